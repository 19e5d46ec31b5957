package observability

import (
	"maps"
	"slices"
	"strings"

	"millrace/domain/exact"
)

// Names of counters. Those of requests are {protocol}_request_count, those of
// the histogram lat_{bound}.
const (
	CountSignals     = "signal_count"
	CountErrors      = "error_count"
	CountInput       = "input_tokens"
	CountCachedInput = "cached_input_tokens"
	CountOutput      = "output_tokens"
	CountReasoning   = "reasoning_tokens"
	CountTotal       = "total_tokens"
	CountMismatches  = "token_mismatch_count"
	CountCost        = "total_cost_usd"
	CountDuration    = "duration_ms_sum"
	CountDurations   = "duration_count"

	requestSuffix = "_request_count"
)

// Counters are sums by name. A counter that is absent is 0.
type Counters map[string]exact.Decimal

// Of is a counter, 0 when it is absent.
func (c Counters) Of(name string) exact.Decimal { return c[name] }

// Add adds other to c. Zeroes leave no counter behind.
func (c Counters) Add(other Counters) {
	for name, value := range other {
		c.add(name, value)
	}
}

func (c Counters) add(name string, value exact.Decimal) {
	if value.Sign() != 0 {
		c[name] = c[name].Add(value)
	}
}

func (c Counters) count(name string, n int64) { c.add(name, exact.FromInt(n)) }

// Count adds a signal.
func (c Counters) Count(p Pending) {
	c.count(CountSignals, 1)
	if p.Type == Request {
		c.count(string(p.Protocol)+requestSuffix, 1)
	}
	if p.Status == StatusError {
		c.count(CountErrors, 1)
	}
	c.count(CountInput, p.Input)
	c.count(CountCachedInput, p.CachedInput)
	c.count(CountOutput, p.Output)
	c.count(CountReasoning, p.Reasoning)
	c.count(CountTotal, p.TotalTokens)
	if p.TotalTokens != p.Sum() {
		c.count(CountMismatches, 1)
	}
	if p.CostUSD != nil {
		c.add(CountCost, *p.CostUSD)
	}
	if p.DurationMS != nil {
		c.add(CountDuration, *p.DurationMS)
		c.count(CountDurations, 1)
		c.count(LatencyCounter(*p.DurationMS), 1)
	}
}

// Requests is the number of requests of all protocols.
func (c Counters) Requests() exact.Decimal {
	var sum exact.Decimal
	for name, value := range c {
		if strings.HasSuffix(name, requestSuffix) {
			sum = sum.Add(value)
		}
	}
	return sum
}

// IsCounter tells whether an attribute of an aggregate is a counter, and not a
// key or its expiry.
func IsCounter(name string) bool {
	switch name {
	case CountSignals, CountErrors, CountInput, CountCachedInput, CountOutput, CountReasoning, CountTotal, CountMismatches,
		CountCost, CountDuration, CountDurations:
		return true
	}
	if _, latency := bucketOf(name); latency {
		return true
	}
	protocol, requests := strings.CutSuffix(name, requestSuffix)
	return requests && protocols[Protocol(protocol)]
}

// Drift is one counter that is not what it should be.
type Drift struct {
	Counter string        `json:"counter"`
	Want    exact.Decimal `json:"want"`
	Have    exact.Decimal `json:"have"`
}

// Drifts compares what c has with what it should have, by counter name.
func (c Counters) Drifts(want Counters) []Drift {
	names := slices.Collect(maps.Keys(c))
	names = append(names, slices.Collect(maps.Keys(want))...)
	slices.Sort(names)
	var drifts []Drift
	for _, name := range slices.Compact(names) {
		if !c[name].Equal(want[name]) {
			drifts = append(drifts, Drift{Counter: name, Want: want[name], Have: c[name]})
		}
	}
	return drifts
}
