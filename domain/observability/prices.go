package observability

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"time"

	"millrace/domain/exact"
)

// Prices is a versioned table of what tokens cost, by model and date. The zero
// value knows no price.
type Prices struct {
	Version string  `json:"version"`
	Models  []Price `json:"models"`
}

// Price is what a model's tokens cost from a day on, in US dollars per million
// tokens.
type Price struct {
	// Model is a name, or the beginning of names where it ends in *.
	Model string `json:"model"`
	// From is the first day, UTC (2006-01-02).
	From        string        `json:"from"`
	Input       exact.Decimal `json:"input"`
	CachedInput exact.Decimal `json:"cached_input"`
	Output      exact.Decimal `json:"output"`
	Reasoning   exact.Decimal `json:"reasoning"`

	since time.Time
}

const (
	maxPrices      = 10_000
	maxPricePlaces = 12
	maxPriceUSD    = 1_000_000
)

// ParsePrices reads a price table. Its error is an *InvalidError that names the
// entry.
func ParsePrices(body []byte) (Prices, error) {
	decoder := json.NewDecoder(bytes.NewReader(body))
	decoder.DisallowUnknownFields()
	var p Prices
	if err := decoder.Decode(&p); err != nil {
		return Prices{}, fmt.Errorf("read price table: %w", err)
	}
	if _, err := decoder.Token(); err != io.EOF { //nolint:errorlint // the decoder returns it bare
		return Prices{}, invalid("prices", "must be one JSON object")
	}
	if p.Version == "" || len(p.Version) > 64 {
		return Prices{}, invalid("version", "must have 1 to 64 characters")
	}
	if len(p.Models) > maxPrices {
		return Prices{}, invalid("models", "must be at most 10000")
	}
	seen := map[string]bool{}
	for i := range p.Models {
		if err := p.Models[i].settle(); err != nil {
			return Prices{}, fmt.Errorf("models[%d]: %w", i, err)
		}
		key := p.Models[i].Model + "\x00" + p.Models[i].From
		if seen[key] {
			return Prices{}, fmt.Errorf("models[%d]: %w", i, invalid("from", "must differ from other prices of the model"))
		}
		seen[key] = true
	}
	return p, nil
}

func (p *Price) settle() error {
	var err error
	if p.Model == "" || len(p.Model) > maxText || strings.Contains(strings.TrimSuffix(p.Model, "*"), "*") {
		return invalid("model", "must be a name, with * at its end only")
	}
	if p.since, err = time.Parse(time.DateOnly, p.From); err != nil {
		return invalid("from", "must be a day such as 2026-01-31")
	}
	for field, price := range map[string]exact.Decimal{
		"input": p.Input, "cached_input": p.CachedInput, "output": p.Output, "reasoning": p.Reasoning,
	} {
		if !within(price, exact.FromInt(maxPriceUSD), maxPricePlaces) {
			return invalid(field, "must be 0 to 1000000 dollars per million tokens with at most 12 decimal places")
		}
	}
	return nil
}

// fill gives a signal without a cost the price of its tokens, and says where the
// cost comes from. A signal without tokens or of an unknown model stays without.
func (p Prices) fill(s Signal) Signal {
	if s.CostUSD != nil {
		s.CostSource = CostClient
		return s
	}
	price, known := p.find(s.Model, s.Timestamp)
	if !known || s.Sum() == 0 {
		return s
	}
	cost := price.of(s.Tokens)
	if !within(cost, maxCost, maxCostPlaces) {
		return s
	}
	s.CostUSD, s.CostSource, s.PriceVersion = &cost, CostPrices, p.Version
	return s
}

// perMillion turns a price per million tokens into one per token, exactly.
var perMillion = exact.MustParse("0.000001")

func (p Price) of(t Tokens) exact.Decimal {
	var sum exact.Decimal
	for _, bucket := range []struct {
		tokens int64
		price  exact.Decimal
	}{{t.Input, p.Input}, {t.CachedInput, p.CachedInput}, {t.Output, p.Output}, {t.Reasoning, p.Reasoning}} {
		sum = sum.Add(exact.FromInt(bucket.tokens).Mul(bucket.price))
	}
	return sum.Mul(perMillion)
}

// find is the price of a model at a time: that of its own name before those of
// beginnings, the longest beginning first, and the latest that began.
func (p Prices) find(model string, at time.Time) (Price, bool) {
	var best Price
	found := false
	if model == "" {
		return best, false
	}
	for _, price := range p.Models {
		if price.since.After(at) || !price.covers(model) {
			continue
		}
		if !found || price.precedes(best) {
			best, found = price, true
		}
	}
	return best, found
}

func (p Price) covers(model string) bool {
	beginning, open := strings.CutSuffix(p.Model, "*")
	return p.Model == model || open && strings.HasPrefix(model, beginning)
}

func (p Price) precedes(other Price) bool {
	exactName, otherExact := !strings.HasSuffix(p.Model, "*"), !strings.HasSuffix(other.Model, "*")
	switch {
	case exactName != otherExact:
		return exactName
	case len(p.Model) != len(other.Model):
		return len(p.Model) > len(other.Model)
	}
	return p.since.After(other.since)
}
