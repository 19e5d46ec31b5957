package observability

import (
	"context"
	"time"

	"millrace/domain/observability"
	"millrace/storage/table"
)

// rawSignal is a signal's item.
type rawSignal struct {
	observability.Signal
	Apart bool `json:"attributes_apart"`
}

// Trace reads a page of the signals of a request, of all applications, in the
// order of their timestamps, and the cursor of the next page. Signals are seen
// before they are counted; expired ones are left out.
func (s Store) Trace(ctx context.Context, requestID, cursor string, limit int32, now time.Time) ([]observability.Signal, string, error) {
	entries, next, err := s.Table.Page(ctx, table.PageQuery{
		Index: gsi1, Partition: observability.RequestPK(requestID), Prefix: observability.SignalPrefix, Cursor: cursor, Limit: limit,
	})
	if err != nil {
		return nil, "", err
	}
	items, err := s.fetch(ctx, entries)
	if err != nil {
		return nil, "", err
	}
	signals, apart := []observability.Signal{}, map[table.Key]int{}
	for _, item := range items {
		if expired(item, now) {
			continue
		}
		var raw rawSignal
		if err := table.Decode(item, &raw); err != nil {
			return nil, "", err
		}
		if raw.Apart {
			apart[table.Key{Partition: text(item, "PK"), Sort: observability.AttributesSK(raw.Timestamp, raw.SignalID)}] = len(signals)
		}
		signals = append(signals, raw.Signal)
	}
	return signals, next, s.addAttributes(ctx, signals, apart)
}

// addAttributes reads the attributes that are kept apart; places are those of
// their signals.
func (s Store) addAttributes(ctx context.Context, signals []observability.Signal, places map[table.Key]int) error {
	keys := make([]table.Key, 0, len(places))
	for k := range places {
		keys = append(keys, k)
	}
	items, err := s.Table.BatchGet(ctx, keys)
	if err != nil {
		return err
	}
	for _, item := range items {
		place := places[table.Key{Partition: text(item, "PK"), Sort: text(item, "SK")}]
		if err := table.Decode(table.Item{"attributes": item["attributes"]}, &signals[place]); err != nil {
			return err
		}
	}
	return nil
}

// LastSignal is the event time of an application's newest signal, zero when there
// is none.
func (s Store) LastSignal(ctx context.Context, appID string) (time.Time, error) {
	items, _, err := s.Table.Page(ctx, table.PageQuery{
		Partition: observability.AppPK(appID), Prefix: observability.SignalPrefix, Limit: 1, Descending: true, Consistent: true,
	})
	if err != nil || len(items) == 0 {
		return time.Time{}, err
	}
	at, _, err := observability.ParseSignalSK(text(items[0], "SK"))
	return at, err
}
