package observability

import (
	"context"
	"encoding/base64"
	"fmt"
	"iter"
	"math/rand/v2"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"millrace/domain/exact"
	"millrace/domain/observability"
	"millrace/storage/table"
)

// AggregateQuery asks for a page of one application's aggregates, oldest first:
// those whose periods begin in the period of From or later, and not after To.
type AggregateQuery struct {
	AppID       string
	Granularity observability.Granularity
	From, To    time.Time
	Cursor      string
	Limit       int32
}

// Aggregates reads a page and the cursor of the next, "" at the end. What has
// expired is left out, so that a page may have fewer.
func (s Store) Aggregates(ctx context.Context, q AggregateQuery, now time.Time) ([]observability.Aggregate, string, error) {
	items, cursor, err := s.between(ctx, span{
		partition: observability.AppPK(q.AppID), from: observability.PeriodOf(q.Granularity, q.From).SK(),
		to: observability.PeriodOf(q.Granularity, q.To).SK(), cursor: q.Cursor, limit: q.Limit,
	})
	if err != nil {
		return nil, "", err
	}
	all, err := decodeAggregates(items, now)
	return all, cursor, err
}

// span is a stretch of a partition, both ends included.
type span struct {
	partition, from, to, cursor string
	limit                       int32
	descending                  bool
}

// between reads one page of a span. Its cursor is the last sort key.
func (s Store) between(ctx context.Context, r span) ([]table.Item, string, error) {
	in := &dynamodb.QueryInput{
		TableName: &s.Table.Name, KeyConditionExpression: aws.String("PK = :pk AND SK BETWEEN :from AND :to"), ConsistentRead: aws.Bool(true),
		ExpressionAttributeValues: table.Item{":pk": table.String(r.partition), ":from": table.String(r.from), ":to": table.String(r.to)},
		Limit:                     &r.limit, ScanIndexForward: aws.Bool(!r.descending),
	}
	if r.cursor != "" {
		last, err := base64.RawURLEncoding.DecodeString(r.cursor)
		if sk := string(last); err != nil || sk < r.from || sk > r.to {
			return nil, "", table.ErrBadCursor
		}
		in.ExclusiveStartKey = key(table.Key{Partition: r.partition, Sort: string(last)})
	}
	out, err := s.Client.Query(ctx, in)
	if err != nil {
		return nil, "", fmt.Errorf("query %s: %w", s.Table.Name, err)
	}
	if len(out.LastEvaluatedKey) == 0 {
		return out.Items, "", nil
	}
	return out.Items, base64.RawURLEncoding.EncodeToString([]byte(text(out.LastEvaluatedKey, "SK"))), nil
}

func decodeAggregates(items []table.Item, now time.Time) ([]observability.Aggregate, error) {
	all := make([]observability.Aggregate, 0, len(items))
	for _, item := range items {
		period, ok := observability.ParsePeriodSK(text(item, "SK"))
		if !ok || expired(item, now) {
			continue
		}
		counters, err := decodeCounters(item)
		if err != nil {
			return nil, err
		}
		all = append(all, observability.Aggregate{AppID: observability.AppOfPK(text(item, "PK")), Period: period, Counters: counters})
	}
	return all, nil
}

func decodeCounters(item table.Item) (observability.Counters, error) {
	counters := observability.Counters{}
	for name, value := range item {
		n, ok := value.(*types.AttributeValueMemberN)
		if !ok || !observability.IsCounter(name) {
			continue
		}
		d, err := exact.Parse(n.Value)
		if err != nil {
			return nil, fmt.Errorf("read counter %s: %w", name, err)
		}
		counters[name] = d
	}
	return counters, nil
}

// AggregatesOn reads a page of all applications' aggregates of a granularity that
// belong to one day, or to one month for monthly ones, by application. Pages may
// have fewer than the limit before the end.
func (s Store) AggregatesOn(ctx context.Context, p observability.Period, cursor string, limit int32, now time.Time) ([]observability.Aggregate, string, error) {
	partition, _ := p.GSI1("")
	for {
		keys, next, err := s.Table.Page(ctx, table.PageQuery{Index: gsi1, Partition: partition, Cursor: cursor, Limit: limit})
		if err != nil {
			return nil, "", err
		}
		all, err := s.aggregatesAt(ctx, ofGranularity(keys, p.Granularity), now)
		if err != nil || len(all) > 0 || next == "" {
			return all, next, err
		}
		cursor = next
	}
}

func ofGranularity(keys []table.Item, g observability.Granularity) []table.Item {
	kept := keys[:0]
	for _, k := range keys {
		if period, ok := observability.ParsePeriodSK(text(k, "SK")); ok && period.Granularity == g {
			kept = append(kept, k)
		}
	}
	return kept
}

func (s Store) aggregatesAt(ctx context.Context, keys []table.Item, now time.Time) ([]observability.Aggregate, error) {
	items, err := s.fetch(ctx, keys)
	if err != nil {
		return nil, err
	}
	return decodeAggregates(items, now)
}

// fetch reads the items that index entries name, in their order; those that are
// gone are left out.
func (s Store) fetch(ctx context.Context, entries []table.Item) ([]table.Item, error) {
	keys := make([]table.Key, len(entries))
	for i, entry := range entries {
		keys[i] = table.Key{Partition: text(entry, "PK"), Sort: text(entry, "SK")}
	}
	found, err := s.Table.BatchGet(ctx, keys)
	if err != nil {
		return nil, err
	}
	byKey := make(map[table.Key]table.Item, len(found))
	for _, item := range found {
		byKey[table.Key{Partition: text(item, "PK"), Sort: text(item, "SK")}] = item
	}
	items := make([]table.Item, 0, len(found))
	for _, k := range keys {
		if item, ok := byKey[k]; ok {
			items = append(items, item)
		}
	}
	return items, nil
}

// appPage is how many index entries are read at once where all are wanted.
const appPage = 500

// AppsOn walks the applications that have an aggregate of a day or month.
func (s Store) AppsOn(ctx context.Context, p observability.Period) iter.Seq2[string, error] {
	return func(yield func(string, error) bool) {
		partition, _ := p.GSI1("")
		for cursor := ""; ; {
			entries, next, err := s.Table.Page(ctx, table.PageQuery{Index: gsi1, Partition: partition, Cursor: cursor, Limit: appPage})
			if err != nil {
				yield("", err)
				return
			}
			for _, entry := range ofGranularity(entries, p.Granularity) {
				if !yield(strings.TrimPrefix(text(entry, "PK"), "APP#"), nil) {
					return
				}
			}
			if next == "" {
				return
			}
			cursor = next
		}
	}
}

// readAttempts and the waits of counting let about two seconds pass.
const readAttempts = 10

// CountersOf reads the counters of some periods of an application as they are at
// one moment, at most 100; absent ones are empty.
func (s Store) CountersOf(ctx context.Context, appID string, periods []observability.Period) ([]observability.Counters, error) {
	in := &dynamodb.TransactGetItemsInput{}
	for _, p := range periods {
		in.TransactItems = append(in.TransactItems, types.TransactGetItem{Get: &types.Get{
			TableName: &s.Table.Name, Key: key(table.Key{Partition: observability.AppPK(appID), Sort: p.SK()}),
		}})
	}
	out, err := s.readAtOnce(ctx, in)
	if err != nil {
		return nil, fmt.Errorf("read aggregates of %s: %w", appID, err)
	}
	all := make([]observability.Counters, len(periods))
	for i, response := range out.Responses {
		if all[i], err = decodeCounters(response.Item); err != nil {
			return nil, err
		}
	}
	return all, nil
}

// readAtOnce reads items as they are at one moment. While a rollup writes one of
// them DynamoDB refuses; that lasts milliseconds.
func (s Store) readAtOnce(ctx context.Context, in *dynamodb.TransactGetItemsInput) (*dynamodb.TransactGetItemsOutput, error) {
	wait := conflictWait
	for attempt := 1; ; attempt++ {
		out, err := s.Client.TransactGetItems(ctx, in)
		if err == nil || attempt == readAttempts || !table.IsCollision(err) {
			return out, err
		}
		select {
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-time.After(rand.N(wait)): //nolint:gosec // jitter is no secret
		}
		wait = min(2*wait, maxConflictWait)
	}
}
