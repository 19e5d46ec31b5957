package observability

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/stretchr/testify/require"

	"millrace/domain/alert"
	"millrace/domain/exact"
	"millrace/domain/observability"
	storage "millrace/storage/observability"
	"millrace/storage/provision"
	"millrace/storage/storagetest"
	"millrace/storage/table"
	workflows "millrace/workflows/observability"
)

// yearEnd is the last second of a year: signals around it touch two of each
// aggregate.
var yearEnd = time.Date(2026, 12, 31, 23, 59, 59, 0, time.UTC)

var quiet = slog.New(slog.DiscardHandler)

// raiser keeps the alerts that were handed on.
type raiser struct {
	lock   sync.Mutex
	raised []alert.Alert
	fail   error
}

func (r *raiser) Signal(_ context.Context, scope string, d alert.Decision) error {
	r.lock.Lock()
	defer r.lock.Unlock()
	if r.fail != nil {
		return r.fail
	}
	for _, a := range d.Alerts {
		if err := a.Check(); err != nil {
			return fmt.Errorf("the machinery would refuse: %w", err)
		}
		if a.Scope != scope {
			return errors.New("alert of another scope")
		}
	}
	r.raised = append(r.raised, d.Alerts...)
	return nil
}

func (r *raiser) take() []alert.Alert {
	r.lock.Lock()
	defer r.lock.Unlock()
	raised := r.raised
	r.raised = nil
	return raised
}

func newStore(t testing.TB) storage.Store {
	t.Helper()
	shape := provision.GovernanceTable("")
	schema := storagetest.Schema{PartitionKey: shape.PartitionKey, SortKey: shape.SortKey}
	for _, index := range shape.Indexes {
		schema.Indexes = append(schema.Indexes, storagetest.Index(index))
	}
	own := storagetest.Table(t, schema)
	client, ok := own.Client.(*dynamodb.Client)
	require.True(t, ok)
	return storage.New(client, own.Name)
}

// makeSignals are n signals of an application, 7 s apart around the end of a
// year, with numbers that binary floats would spoil.
func makeSignals(app string, n int) []observability.Signal {
	all := make([]observability.Signal, n)
	for i := range all {
		s := observability.Signal{
			SignalID: fmt.Sprintf("s-%d", i), AppID: app, Timestamp: yearEnd.Add(time.Duration(i-n/2) * 7 * time.Second), ReceivedAt: yearEnd.Add(time.Duration(i) * time.Millisecond),
			Protocol: observability.AIGP, Type: observability.Request, Status: observability.StatusOK,
			Tokens: observability.Tokens{Input: int64(i), CachedInput: 3, Output: 2, Reasoning: 1}, TotalTokens: int64(i) + 6,
		}
		cost, duration := exact.MustParse(fmt.Sprintf("0.%029d1", i)), exact.MustParse(fmt.Sprintf("%d.000001", i*13))
		s.CostUSD, s.DurationMS = &cost, &duration
		if i%3 > 0 {
			s.RequestID = fmt.Sprintf("%s-req-%d", app, i/3)
		}
		if i%5 == 0 {
			s.Status, s.Type, s.TotalTokens = observability.StatusError, observability.Failure, int64(i)+7
		}
		all[i] = s
	}
	return all
}

func put(t testing.TB, store storage.Store, signals []observability.Signal) {
	t.Helper()
	var work sync.WaitGroup
	for chunk := range slices.Chunk(signals, max(1, len(signals)/8+1)) {
		work.Go(func() {
			for _, s := range chunk {
				if _, err := store.Put(context.Background(), s); err != nil {
					t.Error(err)
				}
			}
		})
	}
	work.Wait()
}

// requireTruth compares the aggregates of applications with what their signals
// add up to, exactly.
func requireTruth(t testing.TB, store storage.Store, signals []observability.Signal) {
	t.Helper()
	want := map[string]map[observability.Period]observability.Counters{}
	for _, s := range signals {
		if want[s.AppID] == nil {
			want[s.AppID] = map[observability.Period]observability.Counters{}
		}
		for _, g := range observability.Granularities {
			period := observability.PeriodOf(g, s.Timestamp)
			if want[s.AppID][period] == nil {
				want[s.AppID][period] = observability.Counters{}
			}
			want[s.AppID][period].Count(s.Pending())
		}
	}
	for app, periods := range want {
		for period, counters := range periods {
			have, err := store.CountersOf(t.Context(), app, []observability.Period{period})
			require.NoError(t, err)
			require.Empty(t, have[0].Drifts(counters), "%s %s", app, period.SK())
		}
	}
}

func requireTraceRows(t testing.TB, store storage.Store, signals []observability.Signal) {
	t.Helper()
	var keys []table.Key
	for _, s := range signals {
		if s.RequestID != "" {
			keys = append(keys, table.Key{Partition: observability.TracePK(s.RequestID), Sort: observability.SignalSK(s.Timestamp, s.SignalID)})
		}
	}
	rows, err := store.Table.BatchGet(t.Context(), keys)
	require.NoError(t, err)
	require.Len(t, rows, len(keys), "trace rows")
}

func newDrainer(store storage.Store, r *raiser) Drainer {
	return Drainer{Store: store, Raiser: r, Now: time.Now, Logger: quiet}
}

// rollUp drains the shards of applications once.
func rollUp(ctx context.Context, d Drainer, apps ...string) (workflows.Counts, error) {
	var sum workflows.Counts
	shards := map[int]bool{}
	for _, app := range apps {
		shards[observability.ShardOf(app)] = true
	}
	for shard := range shards {
		result, err := d.drain(ctx, workflows.DrainRequest{Shard: shard, To: yearEnd.Add(1000 * time.Hour)}, func(workflows.DrainResult) {})
		sum.Add(result.Counts)
		if err != nil {
			return sum, err
		}
	}
	return sum, nil
}

var errKilled = errors.New("killed")

// killer is a store's client that stops at one write: before it is made, or after
// it was made and before its answer came.
type killer struct {
	storage.API
	writes atomic.Int64
	at     int64
	before bool
	dead   atomic.Bool
}

func (k *killer) write(do func() error) error {
	if k.dead.Load() {
		return errKilled
	}
	if k.writes.Add(1) != k.at {
		return do()
	}
	k.dead.Store(true)
	if k.before {
		return errKilled
	}
	if err := do(); err != nil {
		return err
	}
	return errKilled
}

func (k *killer) TransactWriteItems(ctx context.Context, in *dynamodb.TransactWriteItemsInput, o ...func(*dynamodb.Options)) (out *dynamodb.TransactWriteItemsOutput, err error) {
	err = k.write(func() (err error) {
		out, err = k.API.TransactWriteItems(ctx, in, o...)
		return err
	})
	return out, err
}

func (k *killer) BatchWriteItem(ctx context.Context, in *dynamodb.BatchWriteItemInput, o ...func(*dynamodb.Options)) (out *dynamodb.BatchWriteItemOutput, err error) {
	err = k.write(func() (err error) {
		out, err = k.API.BatchWriteItem(ctx, in, o...)
		return err
	})
	return out, err
}
