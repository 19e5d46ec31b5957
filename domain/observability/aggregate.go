package observability

import "millrace/domain/exact"

// Aggregate is what an application did in one period.
type Aggregate struct {
	AppID string
	Period
	Counters Counters
}

// Rates are what counters tell once they are read.
type Rates struct {
	// ErrorRate is the share of failed signals in per cent.
	ErrorRate *exact.Decimal `json:"error_rate_percent,omitempty"`
	// MeanDurationMS is the mean of the durations told.
	MeanDurationMS *exact.Decimal `json:"mean_duration_ms,omitempty"`
	// MeanCostUSD is the mean cost of a request.
	MeanCostUSD *exact.Decimal `json:"mean_request_cost_usd,omitempty"`
	P50         *Percentile    `json:"p50_duration_ms,omitempty"`
	P95         *Percentile    `json:"p95_duration_ms,omitempty"`
	P99         *Percentile    `json:"p99_duration_ms,omitempty"`
}

// Precision of rates.
const (
	ratePlaces = 4
	costPlaces = 12
)

// Rates computes averages, rates and percentiles.
func (c Counters) Rates() Rates {
	return Rates{
		ErrorRate:      ratio(c.Of(CountErrors).Mul(exact.FromInt(percent)), c.Of(CountSignals), ratePlaces),
		MeanDurationMS: ratio(c.Of(CountDuration), c.Of(CountDurations), ratePlaces),
		MeanCostUSD:    ratio(c.Of(CountCost), c.Requests(), costPlaces),
		P50:            c.Percentile(50), P95: c.Percentile(95), P99: c.Percentile(99),
	}
}

func ratio(part, whole exact.Decimal, places int32) *exact.Decimal {
	if whole.Sign() == 0 {
		return nil
	}
	quotient := part.Quo(whole, places)
	return &quotient
}
