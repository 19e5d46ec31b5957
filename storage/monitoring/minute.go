package monitoring

import (
	"context"
	"encoding/base64"
	"fmt"
	"iter"
	"time"

	"millrace/domain/monitoring"
	"millrace/storage/table"
)

// minuteRow is the summary of one minute of a source.
type minuteRow struct {
	PK        string `json:"PK"`
	SK        string `json:"SK"`
	ExpiresAt int64  `json:"expires_at"`
	monitoring.Minute
}

func (s Store) minuteRow(owner string, source monitoring.Source) minuteRow {
	return minuteRow{
		PK: monitoring.MinutePK(owner, source.ID), SK: monitoring.MinuteSK(source.Minute.Start),
		ExpiresAt: source.Minute.ExpiresAt(s.retention()).Unix(),
		Minute:    source.Minute,
	}
}

func (s Store) retention() time.Duration {
	if s.MinuteRetention > 0 {
		return s.MinuteRetention
	}
	return monitoring.DefaultMinuteRetention
}

// MinuteRange asks for retained minutes of a source that begin at or after From
// and before To.
type MinuteRange struct {
	Owner, SourceID string
	From, To        time.Time
	// Cursor is where the last page ended; "" starts at From.
	Cursor string
	Limit  int
	// Now bounds what is still retained: DynamoDB removes expired rows late.
	Now time.Time
}

// Minutes reads one page of retained minutes in order, and the cursor of the
// next page, "" at the end. A cursor of another list is table.ErrBadCursor; one
// that From has passed meanwhile, as a range that ends now moves on, starts at
// From.
func (s Store) Minutes(ctx context.Context, r MinuteRange) ([]monitoring.Minute, string, error) {
	if r.Cursor != "" {
		last, err := decodeMinute(r.Cursor)
		if err != nil || !last.Before(r.To) {
			return nil, "", table.ErrBadCursor
		}
		if next := last.Add(time.Minute); next.After(r.From) {
			r.From = next
		}
	}
	minutes := make([]monitoring.Minute, 0, min(r.Limit, 256))
	for m, err := range s.minutes(ctx, r, int32(r.Limit+1), true) { //nolint:gosec // a page limit is small
		if err != nil {
			return nil, "", err
		}
		if len(minutes) == r.Limit {
			return minutes, encodeMinute(minutes[r.Limit-1].Start), nil
		}
		minutes = append(minutes, m)
	}
	return minutes, "", nil
}

// minutes walks a range in order, without what has expired.
func (s Store) minutes(ctx context.Context, r MinuteRange, page int32, consistent bool) iter.Seq2[monitoring.Minute, error] {
	first := r.From.Add(time.Minute - 1).Truncate(time.Minute)
	last := r.To.Add(-1).Truncate(time.Minute)
	return func(yield func(monitoring.Minute, error) bool) {
		if last.Before(first) {
			return
		}
		for item, err := range s.Table.Query(ctx, table.Range{
			Partition: monitoring.MinutePK(r.Owner, r.SourceID),
			From:      monitoring.MinuteSK(first), To: monitoring.MinuteSK(last),
			Page: page, Consistent: consistent,
		}) {
			var row minuteRow
			if err == nil {
				err = table.Decode(item, &row)
			}
			if err != nil {
				yield(monitoring.Minute{}, fmt.Errorf("read minutes: %w", err))
				return
			}
			if row.ExpiresAt > r.Now.Unix() && !yield(row.Minute, nil) {
				return
			}
		}
	}
}

func encodeMinute(start time.Time) string {
	return base64.RawURLEncoding.EncodeToString([]byte(monitoring.MinuteSK(start)))
}

func decodeMinute(cursor string) (time.Time, error) {
	text, err := base64.RawURLEncoding.Strict().DecodeString(cursor)
	if err != nil {
		return time.Time{}, err
	}
	return monitoring.ParseMinuteSK(string(text))
}
