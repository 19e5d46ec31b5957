package observability

import (
	"context"

	"millrace/domain/observability"
	"millrace/storage/table"
)

// RawDay is what an application's raw signals of one day add up to.
type RawDay struct {
	// Counted are the sums of the signals that a rollup counted.
	Counted observability.Counters
	// Signals are all of them, Pending those that no rollup counted yet.
	Signals, Pending int64
}

// SumDay adds up the raw signals of a day. Whether a signal is counted is read
// with it. beat is called now and then.
func (s Store) SumDay(ctx context.Context, appID string, day observability.Period, beat func()) (RawDay, error) {
	sum := RawDay{Counted: observability.Counters{}}
	items := s.Table.Query(ctx, table.Range{
		Partition: observability.AppPK(appID), Consistent: true,
		// Keys go on with # after the stamp: those of the next day's first instant are above.
		From: observability.SignalPrefix + observability.Stamp(day.Start), To: observability.SignalPrefix + observability.Stamp(day.End()),
	})
	for item, err := range items {
		if err != nil {
			return sum, err
		}
		signal, err := decodePending(item)
		if err != nil {
			return sum, err
		}
		if sum.Signals++; sum.Signals%1000 == 0 {
			beat()
		}
		if _, pending := item[gsi2PK]; pending {
			sum.Pending++
			continue
		}
		sum.Counted.Count(signal)
	}
	return sum, nil
}
