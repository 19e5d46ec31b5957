package observability

import (
	"cmp"
	"slices"
	"time"

	"millrace/domain/exact"
)

// Pending is a signal that no rollup counted yet, as the index of pending
// signals carries it: all that counters and trace rows need.
type Pending struct {
	AppID      string
	SignalID   string
	Timestamp  time.Time
	ReceivedAt time.Time
	Protocol   Protocol
	Type       Type
	Status     Status
	RequestID  string
	DurationMS *exact.Decimal
	Tokens
	TotalTokens int64
	CostUSD     *exact.Decimal
}

// Pending is the part of a signal that is counted.
func (s Signal) Pending() Pending {
	return Pending{
		AppID: s.AppID, SignalID: s.SignalID, Timestamp: s.Timestamp, ReceivedAt: s.ReceivedAt, Protocol: s.Protocol, Type: s.Type, Status: s.Status,
		RequestID: s.RequestID, DurationMS: s.DurationMS, Tokens: s.Tokens, TotalTokens: s.TotalTokens, CostUSD: s.CostUSD,
	}
}

// Batch is what one transaction counts: signals of one application and the sums
// that they add to its aggregates.
type Batch struct {
	AppID   string
	Signals []Pending
}

// Addition is what a batch adds to one aggregate.
type Addition struct {
	Period   Period
	Counters Counters
}

// Additions are the batch's sums by aggregate, in the order of their keys.
func (b Batch) Additions() []Addition {
	sums := map[Period]Counters{}
	for _, signal := range b.Signals {
		for _, g := range Granularities {
			period := PeriodOf(g, signal.Timestamp)
			if sums[period] == nil {
				sums[period] = Counters{}
			}
			sums[period].Count(signal)
		}
	}
	additions := make([]Addition, 0, len(sums))
	for period, counters := range sums {
		additions = append(additions, Addition{period, counters})
	}
	slices.SortFunc(additions, func(a, b Addition) int { return cmp.Compare(a.Period.SK(), b.Period.SK()) })
	return additions
}

// Without is the batch without the signals at some places.
func (b Batch) Without(places map[int]bool) Batch {
	left := Batch{AppID: b.AppID}
	for i, signal := range b.Signals {
		if !places[i] {
			left.Signals = append(left.Signals, signal)
		}
	}
	return left
}

// Pack splits pending signals into batches of one application each, so that the
// signals of a batch and the distinct aggregates that they touch are at most
// limit. Signals of the same hour go together: that packs most. The signals are
// reordered in place.
func Pack(signals []Pending, limit int) []Batch {
	slices.SortStableFunc(signals, func(a, b Pending) int {
		return cmp.Or(cmp.Compare(a.AppID, b.AppID), a.Timestamp.Compare(b.Timestamp), cmp.Compare(a.SignalID, b.SignalID))
	})
	var batches []Batch
	var touched map[Period]bool
	for _, signal := range signals {
		more := fresh(touched, signal)
		last := len(batches) - 1
		if last < 0 || batches[last].AppID != signal.AppID || len(batches[last].Signals)+1+len(touched)+len(more) > limit {
			batches, touched = append(batches, Batch{AppID: signal.AppID}), map[Period]bool{}
			more, last = fresh(touched, signal), last+1
		}
		for _, period := range more {
			touched[period] = true
		}
		batches[last].Signals = append(batches[last].Signals, signal)
	}
	return batches
}

// fresh are the aggregates of a signal that are not touched yet.
func fresh(touched map[Period]bool, signal Pending) []Period {
	var more []Period
	for _, g := range Granularities {
		if period := PeriodOf(g, signal.Timestamp); !touched[period] {
			more = append(more, period)
		}
	}
	return more
}
