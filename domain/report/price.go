package report

import (
	"encoding/json"
	"fmt"
	"strings"

	"millrace/domain/exact"
)

// TokenPrice is what a model's tokens cost, in US dollars per million tokens.
type TokenPrice struct {
	// Model is a model id, or the beginning of ids where it ends in *.
	Model  string        `json:"model"`
	Input  exact.Decimal `json:"input"`
	Output exact.Decimal `json:"output"`
}

// TokenPrices are the prices of models. The zero value knows none.
type TokenPrices []TokenPrice

const maxTokenPrices = 1000

// ParseTokenPrices reads a JSON list of prices; empty text is no price. Its error
// is an *InvalidError that names the entry.
func ParseTokenPrices(text string) (TokenPrices, error) {
	if strings.TrimSpace(text) == "" {
		return nil, nil
	}
	decoder := json.NewDecoder(strings.NewReader(text))
	decoder.DisallowUnknownFields()
	var prices TokenPrices
	if err := decoder.Decode(&prices); err != nil || decoder.More() {
		return nil, invalid("prices", `must be a JSON list such as [{"model":"name*","input":3,"output":15}]`)
	}
	if len(prices) > maxTokenPrices {
		return nil, invalid("prices", fmt.Sprintf("must be at most %d", maxTokenPrices))
	}
	for i, price := range prices {
		field := fmt.Sprintf("prices[%d]", i)
		if price.Model == "" || strings.Contains(strings.TrimSuffix(price.Model, "*"), "*") {
			return nil, invalid(field+".model", "must be a model id, with * at its end only")
		}
		if price.Input.Sign() < 0 || price.Output.Sign() < 0 {
			return nil, invalid(field, "must not be negative")
		}
	}
	return prices, nil
}

// millionth turns a price per million tokens into one per token, exactly.
var millionth = exact.MustParse("0.000001")

// Cost is what the tokens of a model cost in US dollars, and whether its price is
// known: that of its own id before those of beginnings, the longest first.
func (p TokenPrices) Cost(model string, inputTokens, outputTokens int64) (exact.Decimal, bool) {
	best := -1
	for i, price := range p {
		if price.covers(model) && (best < 0 || price.precedes(p[best])) {
			best = i
		}
	}
	if best < 0 {
		return exact.Decimal{}, false
	}
	sum := exact.FromInt(inputTokens).Mul(p[best].Input).Add(exact.FromInt(outputTokens).Mul(p[best].Output))
	return sum.Mul(millionth), true
}

func (p TokenPrice) covers(model string) bool {
	beginning, open := strings.CutSuffix(p.Model, "*")
	return p.Model == model || open && strings.HasPrefix(model, beginning)
}

func (p TokenPrice) precedes(other TokenPrice) bool {
	whole, otherWhole := !strings.HasSuffix(p.Model, "*"), !strings.HasSuffix(other.Model, "*")
	if whole != otherWhole {
		return whole
	}
	return len(p.Model) > len(other.Model)
}
