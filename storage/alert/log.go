package alert

import (
	"cmp"
	"context"
	"encoding/base64"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"golang.org/x/sync/errgroup"

	"millrace/domain/alert"
	"millrace/domain/factory"
	"millrace/storage/table"
)

// LogTTL is how long lines of the alert log live.
const LogTTL = 30 * 24 * time.Hour

const logPrefix = "ALERTLOG#"

// logRow is the item of a line.
type logRow struct {
	PK string `json:"pk"`
	SK string `json:"sk"`
	alert.Record
	TTL int64 `json:"ttl"`
}

func rowOf(r alert.Record) logRow {
	return logRow{PK: logPrefix + r.Scope, SK: r.At.String() + "#" + r.ID, Record: r, TTL: r.At.Add(LogTTL).Unix()}
}

// Log writes lines of the alert log. Writing a line again replaces it by the
// same, or by one with a higher count.
func (s Store) Log(ctx context.Context, records ...alert.Record) error {
	for batch := range slices.Chunk(records, table.MaxTransaction) {
		if err := s.logBatch(ctx, batch); err != nil {
			return fmt.Errorf("write alert log: %w", err)
		}
	}
	return nil
}

func (s Store) logBatch(ctx context.Context, records []alert.Record) error {
	if len(records) == 1 {
		return s.Status.Put(ctx, rowOf(records[0]), nil)
	}
	byKey := map[string]types.TransactWriteItem{}
	for _, r := range records {
		row := rowOf(r)
		write, err := s.Status.PutWrite(row, nil)
		if err != nil {
			return err
		}
		byKey[row.PK+"/"+row.SK] = write
	}
	writes := make([]types.TransactWriteItem, 0, len(byKey))
	for _, write := range byKey {
		writes = append(writes, write)
	}
	return s.Status.TransactRetrying(ctx, writes...)
}

// Query asks for lines of the alert log, newest first: From inclusive, To
// exclusive.
type Query struct {
	Scopes   []string
	From, To time.Time
	Limit    int
	// Cursor is where the last page ended; "" starts at the newest line.
	Cursor string
	// Now bounds the query to lines that have not expired.
	Now time.Time
}

// scopesAtOnce bounds how many partitions are read in parallel.
const scopesAtOnce = 8

// Records reads one page of the log and the cursor of the next one, "" at the
// end.
func (s Store) Records(ctx context.Context, q Query) ([]alert.Record, string, error) {
	after, err := decodeCursor(q.Cursor)
	if err != nil {
		return nil, "", err
	}
	q.Cursor = after
	if expired := q.Now.Add(-LogTTL); q.From.Before(expired) {
		q.From = expired
	}
	pages := make([][]logRow, len(q.Scopes))
	work, ctx := errgroup.WithContext(ctx)
	work.SetLimit(scopesAtOnce)
	for i, scope := range q.Scopes {
		work.Go(func() (err error) {
			pages[i], err = s.scopeRecords(ctx, scope, q)
			return err
		})
	}
	if err := work.Wait(); err != nil {
		return nil, "", err
	}
	rows := slices.Concat(pages...)
	slices.SortFunc(rows, func(a, b logRow) int { return cmp.Or(cmp.Compare(b.SK, a.SK), cmp.Compare(b.PK, a.PK)) })
	next := ""
	if len(rows) > q.Limit {
		rows = rows[:q.Limit]
		next = encodeCursor(rows[q.Limit-1].SK)
	}
	records := make([]alert.Record, len(rows))
	for i, row := range rows {
		records[i] = row.Record
	}
	return records, next, nil
}

// scopeRecords are the newest lines of one scope, one more than a page.
func (s Store) scopeRecords(ctx context.Context, scope string, q Query) ([]logRow, error) {
	from, to := factory.MillisOf(q.From).String(), factory.MillisOf(q.To).String()
	if q.Cursor != "" && q.Cursor < to {
		to = q.Cursor
	}
	if from > to {
		return nil, nil
	}
	page := int32(q.Limit + 2) //nolint:gosec // limits are at most some hundreds
	var rows []logRow
	for item, err := range s.Status.Query(ctx, table.Range{Partition: logPrefix + scope, From: from, To: to, Descending: true, Page: page}) {
		if err != nil {
			return nil, fmt.Errorf("read alert log: %w", err)
		}
		var row logRow
		if err := table.Decode(item, &row); err != nil {
			return nil, fmt.Errorf("read alert log: %w", err)
		}
		if row.SK == q.Cursor {
			continue
		}
		rows = append(rows, row)
		if len(rows) > q.Limit {
			break
		}
	}
	return rows, nil
}

// encodeCursor makes a cursor of the sort key of a page's last line: it marks
// the same place in the log of every scope.
func encodeCursor(sk string) string { return base64.RawURLEncoding.EncodeToString([]byte(sk)) }

// decodeCursor is the sort key in a cursor, "" for none. A text that no page
// handed out is table.ErrBadCursor.
func decodeCursor(cursor string) (string, error) {
	sk, err := base64.RawURLEncoding.DecodeString(cursor)
	at, id, ok := strings.Cut(string(sk), "#")
	if cursor == "" {
		return "", nil
	}
	if _, instant := factory.ParseInstant(at); err != nil || !ok || instant != nil || len(id) > 64 {
		return "", table.ErrBadCursor
	}
	return string(sk), nil
}
