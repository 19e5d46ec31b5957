package observability_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/stretchr/testify/require"

	"millrace/domain/exact"
	"millrace/domain/observability"
	storage "millrace/storage/observability"
	"millrace/storage/provision"
	"millrace/storage/storagetest"
	"millrace/storage/table"
)

var noon = time.Date(2026, 5, 4, 12, 0, 0, 0, time.UTC)

// newStore is a store on a table of the shape that is provisioned.
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

func decimal(text string) *exact.Decimal {
	d := exact.MustParse(text)
	return &d
}

// signal is the n-th signal of an application, n seconds after noon.
func signal(app string, n int) observability.Signal {
	return observability.Signal{
		SignalID: fmt.Sprintf("s-%d", n), AppID: app, RequestID: fmt.Sprintf("req-%d", n/3), Timestamp: noon.Add(time.Duration(n) * time.Second),
		ReceivedAt: noon.Add(time.Duration(n) * time.Second), Protocol: observability.AIGP, Type: observability.Request, Status: observability.StatusOK,
		Name: "chat", Model: "model-x", DurationMS: decimal("12.345678"), Tokens: observability.Tokens{Input: 7, CachedInput: 3, Output: 2, Reasoning: 1},
		TotalTokens: 13, CostUSD: decimal("0.000000000000000000000000000001"),
	}
}

func pendingOf(t testing.TB, store storage.Store, app string) []observability.Pending {
	t.Helper()
	var all []observability.Pending
	var after table.Item
	for {
		page, next, err := store.Pending(t.Context(), storage.PendingQuery{
			Shard: observability.ShardOf(app), To: noon.Add(1000 * time.Hour), Limit: 100, After: after,
		})
		require.NoError(t, err)
		all = append(all, page...)
		if next == nil {
			return all
		}
		after = next
	}
}

func counters(t testing.TB, store storage.Store, app string, g observability.Granularity) observability.Counters {
	t.Helper()
	all, err := store.CountersOf(t.Context(), app, []observability.Period{observability.PeriodOf(g, noon)})
	require.NoError(t, err)
	return all[0]
}

func TestTheSameSignalIsKeptOnce(t *testing.T) {
	store := newStore(t)
	fresh, err := store.Put(t.Context(), signal("app-x", 1))
	require.NoError(t, err)
	require.True(t, fresh)
	fresh, err = store.Put(t.Context(), signal("app-x", 1))
	require.NoError(t, err)
	require.False(t, fresh)
	require.Len(t, pendingOf(t, store, "app-x"), 1)
}

func TestTwoClientsAtOnceKeepASignalOnce(t *testing.T) {
	store := newStore(t)
	var work sync.WaitGroup
	var lock sync.Mutex
	kept := 0
	for range 20 {
		work.Go(func() {
			fresh, err := store.Put(t.Context(), signal("app-x", 1))
			if err != nil {
				t.Error(err)
			}
			if fresh {
				lock.Lock()
				kept++
				lock.Unlock()
			}
		})
	}
	work.Wait()
	require.Equal(t, 1, kept)
}

func TestTheIndexCarriesAllThatIsCounted(t *testing.T) {
	store := newStore(t)
	want := signal("app-x", 5)
	_, err := store.Put(t.Context(), want)
	require.NoError(t, err)
	require.Equal(t, []observability.Pending{want.Pending()}, pendingOf(t, store, "app-x"))
}

func TestItemsHaveTheKeysAndTimesOfTheSeed(t *testing.T) {
	store := newStore(t)
	s := signal("app-x", 0)
	s.Attributes = map[string]string{"k": strings.Repeat("v", 2000)}
	_, err := store.Put(t.Context(), s)
	require.NoError(t, err)
	pending := pendingOf(t, store, "app-x")
	_, err = store.PutTraces(t.Context(), pending)
	require.NoError(t, err)
	_, err = store.Count(t.Context(), observability.Batch{AppID: "app-x", Signals: pending})
	require.NoError(t, err)
	const stamp = "2026-05-04T12:00:00.000000000Z"
	for _, want := range []struct {
		pk, sk, gsi1PK, gsi1SK string
		expires                time.Time
	}{
		{"APP#app-x", "SIG#" + stamp + "#s-0", "REQ#req-0", "SIG#" + stamp + "#s-0", noon.Add(30 * 24 * time.Hour)},
		{"APP#app-x", "SIGATTR#" + stamp + "#s-0", "", "", noon.Add(30 * 24 * time.Hour)},
		{"TRACE#req-0", "SIG#" + stamp + "#s-0", "", "", noon.Add(30 * 24 * time.Hour)},
		{"APP#app-x", "AGG#HOURLY#2026-05-04#12", "AGG#2026-05-04", "APP#app-x#12", noon.Add(time.Hour + 90*24*time.Hour)},
		{"APP#app-x", "AGG#DAILY#2026-05-04", "AGG#2026-05-04", "APP#app-x", time.Date(2027, 5, 5, 0, 0, 0, 0, time.UTC)},
		{"APP#app-x", "AGG#MONTHLY#2026-05", "AGG#2026-05", "APP#app-x", time.Time{}},
	} {
		var item struct {
			GSI1PK, GSI1SK, GSI2PK string
			ExpiresAt              int64 `json:"expires_at"`
		}
		found, err := store.Table.Get(t.Context(), table.Key{Partition: want.pk, Sort: want.sk}, &item)
		require.NoError(t, err)
		require.True(t, found, want.sk)
		require.Equal(t, want.gsi1PK, item.GSI1PK, want.sk)
		require.Equal(t, want.gsi1SK, item.GSI1SK, want.sk)
		require.Empty(t, item.GSI2PK, "it is counted")
		if want.expires.IsZero() {
			require.Zero(t, item.ExpiresAt)
			continue
		}
		require.Equal(t, want.expires.Unix(), item.ExpiresAt, want.sk)
	}
}

func TestABatchCountsOnceHoweverOften(t *testing.T) {
	store := newStore(t)
	want := observability.Counters{}
	for n := range 90 {
		s := signal("app-x", n)
		want.Count(s.Pending())
		_, err := store.Put(t.Context(), s)
		require.NoError(t, err)
	}
	pending := pendingOf(t, store, "app-x")
	done, err := store.Count(t.Context(), observability.Batch{AppID: "app-x", Signals: pending})
	require.NoError(t, err)
	require.Equal(t, storage.Counted{Signals: 90, Attempts: 1}, done)
	done, err = store.Count(t.Context(), observability.Batch{AppID: "app-x", Signals: pending})
	require.NoError(t, err)
	require.Equal(t, storage.Counted{Dropped: 90, Attempts: 1}, done)
	for _, g := range observability.Granularities {
		require.Empty(t, counters(t, store, "app-x", g).Drifts(want), g)
	}
	require.Empty(t, pendingOf(t, store, "app-x"))
}

func TestAPartlyCountedBatchCountsTheRest(t *testing.T) {
	store := newStore(t)
	want := observability.Counters{}
	for n := range 10 {
		s := signal("app-x", n)
		want.Count(s.Pending())
		_, err := store.Put(t.Context(), s)
		require.NoError(t, err)
	}
	pending := pendingOf(t, store, "app-x")
	_, err := store.Count(t.Context(), observability.Batch{AppID: "app-x", Signals: []observability.Pending{pending[3], pending[7]}})
	require.NoError(t, err)
	done, err := store.Count(t.Context(), observability.Batch{AppID: "app-x", Signals: pending})
	require.NoError(t, err)
	require.Equal(t, storage.Counted{Signals: 8, Dropped: 2, Attempts: 2}, done)
	require.Empty(t, counters(t, store, "app-x", observability.Daily).Drifts(want))
}

func TestFiftyCountsAtOnceCountOnce(t *testing.T) {
	store := newStore(t)
	want := observability.Counters{}
	for n := range 300 {
		s := signal("app-x", n)
		want.Count(s.Pending())
		_, err := store.Put(t.Context(), s)
		require.NoError(t, err)
	}
	pending := pendingOf(t, store, "app-x")
	var work sync.WaitGroup
	for range 50 {
		own := append([]observability.Pending(nil), pending...)
		rand.Shuffle(len(own), func(i, j int) { own[i], own[j] = own[j], own[i] })
		work.Go(func() {
			for _, batch := range observability.Pack(own, table.MaxTransaction) {
				if _, err := store.Count(t.Context(), batch); err != nil {
					t.Error(err)
				}
			}
		})
	}
	work.Wait()
	for _, g := range observability.Granularities {
		require.Empty(t, counters(t, store, "app-x", g).Drifts(want), g)
	}
}

func TestASumThatDoesNotFitIsAnErrorAndNothingIsCounted(t *testing.T) {
	store := newStore(t)
	s := signal("app-x", 0)
	_, err := store.Put(t.Context(), s)
	require.NoError(t, err)
	key := table.Key{Partition: "APP#app-x", Sort: "AGG#DAILY#2026-05-04"}
	require.NoError(t, store.Table.Update(t.Context(), table.Change{Key: key, Set: map[string]any{"total_cost_usd": exact.MustParse("900000000")}}, nil))
	_, err = store.Count(t.Context(), observability.Batch{AppID: "app-x", Signals: []observability.Pending{s.Pending()}})
	require.ErrorIs(t, err, storage.ErrUncountable)
	require.Len(t, pendingOf(t, store, "app-x"), 1)
}

func TestPendingKeepsToTheReceiptAskedFor(t *testing.T) {
	store := newStore(t)
	for n := range 5 {
		_, err := store.Put(t.Context(), signal("app-x", n))
		require.NoError(t, err)
	}
	page, _, err := store.Pending(t.Context(), storage.PendingQuery{
		Shard: observability.ShardOf("app-x"), From: noon.Add(time.Second), To: noon.Add(3 * time.Second), Limit: 10,
	})
	require.NoError(t, err)
	require.Len(t, page, 2)
	require.Equal(t, "s-1", page[0].SignalID)
}

func TestTracesHaveEverySignalInOrderWithItsAttributes(t *testing.T) {
	store := newStore(t)
	large := map[string]string{"prompt.id": strings.Repeat("x", 1500)}
	for n := range 3 {
		s := signal(fmt.Sprint("app-", n), n)
		if n == 1 {
			s.Attributes = large
		}
		_, err := store.Put(t.Context(), s)
		require.NoError(t, err)
	}
	signals, cursor, err := store.Trace(t.Context(), "req-0", "", 2, noon)
	require.NoError(t, err)
	require.Len(t, signals, 2)
	require.Equal(t, signal("app-0", 0), signals[0])
	require.Equal(t, large, signals[1].Attributes)
	signals, cursor, err = store.Trace(t.Context(), "req-0", cursor, 2, noon)
	require.NoError(t, err)
	require.Len(t, signals, 1)
	require.Empty(t, cursor)
	signals, _, err = store.Trace(t.Context(), "req-0", "", 10, noon.Add(31*24*time.Hour))
	require.NoError(t, err)
	require.Empty(t, signals, "expired ones are not returned, deleted or not")
}

func TestAggregatesOfADayAreListedByApplication(t *testing.T) {
	store := newStore(t)
	for n := range 7 {
		s := signal(fmt.Sprintf("app-%d", n), n)
		_, err := store.Put(t.Context(), s)
		require.NoError(t, err)
		_, err = store.Count(t.Context(), observability.Batch{AppID: s.AppID, Signals: []observability.Pending{s.Pending()}})
		require.NoError(t, err)
	}
	day := observability.PeriodOf(observability.Daily, noon)
	var apps []string
	for cursor := ""; ; {
		page, next, err := store.AggregatesOn(t.Context(), day, cursor, 4, noon)
		require.NoError(t, err)
		for _, a := range page {
			apps = append(apps, a.AppID)
			require.Equal(t, "13", a.Counters.Of(observability.CountTotal).String())
		}
		if next == "" {
			break
		}
		cursor = next
	}
	require.Equal(t, []string{"app-0", "app-1", "app-2", "app-3", "app-4", "app-5", "app-6"}, apps)
	var walked []string
	for app, err := range store.AppsOn(t.Context(), day) {
		require.NoError(t, err)
		walked = append(walked, app)
	}
	require.Equal(t, apps, walked)
	page, _, err := store.AggregatesOn(t.Context(), day, "", 4, day.End().Add(366*24*time.Hour))
	require.NoError(t, err)
	require.Empty(t, page, "expired")
	_, _, err = store.AggregatesOn(t.Context(), day, "bogus", 4, noon)
	require.ErrorIs(t, err, table.ErrBadCursor)
}

func TestAggregatesOfAnApplicationCrossYears(t *testing.T) {
	store := newStore(t)
	last := time.Date(2026, 12, 31, 23, 59, 59, 999_999_999, time.UTC)
	for n := range 2 {
		s := signal("app-x", n)
		s.Timestamp = last.Add(time.Duration(n))
		_, err := store.Put(t.Context(), s)
		require.NoError(t, err)
		_, err = store.Count(t.Context(), observability.Batch{AppID: "app-x", Signals: []observability.Pending{s.Pending()}})
		require.NoError(t, err)
	}
	for g, want := range map[observability.Granularity][]string{
		observability.Hourly:  {"AGG#HOURLY#2026-12-31#23", "AGG#HOURLY#2027-01-01#00"},
		observability.Daily:   {"AGG#DAILY#2026-12-31", "AGG#DAILY#2027-01-01"},
		observability.Monthly: {"AGG#MONTHLY#2026-12", "AGG#MONTHLY#2027-01"},
	} {
		query := storage.AggregateQuery{AppID: "app-x", Granularity: g, From: last, To: last.Add(time.Hour), Limit: 1}
		var got []string
		for {
			page, next, err := store.Aggregates(t.Context(), query, last)
			require.NoError(t, err)
			for _, a := range page {
				got = append(got, a.SK())
				require.Equal(t, "1", a.Counters.Of(observability.CountSignals).String())
			}
			if next == "" {
				break
			}
			query.Cursor = next
		}
		require.Equal(t, want, got)
	}
	_, _, err := store.Aggregates(t.Context(), storage.AggregateQuery{AppID: "app-x", Granularity: observability.Daily, From: last, To: last, Limit: 1, Cursor: "QUdHIw"}, last)
	require.ErrorIs(t, err, table.ErrBadCursor)
}

func TestRulesHaveRevisions(t *testing.T) {
	store := newStore(t)
	spec := observability.Spec{Name: "Budget", Kind: observability.DailyCost, Threshold: exact.FromInt(10), Severity: observability.Warning}
	rule := observability.Rule{RuleID: "budget", AppID: "app-x", Spec: spec, Rev: 1, CreatedAt: noon, UpdatedAt: noon}
	created, err := store.CreateRule(t.Context(), rule)
	require.NoError(t, err)
	require.Equal(t, rule, created)
	_, err = store.CreateRule(t.Context(), rule)
	require.NoError(t, err, "a retry")
	other := rule
	other.Threshold = exact.FromInt(11)
	_, err = store.CreateRule(t.Context(), other)
	require.ErrorIs(t, err, storage.ErrRuleExists)
	changed, err := store.ChangeRule(t.Context(), "app-x", "budget", 1, other.Spec, noon.Add(time.Minute))
	require.NoError(t, err)
	require.EqualValues(t, 2, changed.Rev)
	_, err = store.ChangeRule(t.Context(), "app-x", "budget", 1, spec, noon)
	require.ErrorIs(t, err, storage.ErrRuleChanged)
	_, err = store.ChangeRule(t.Context(), "app-x", "none", 1, spec, noon)
	require.ErrorIs(t, err, storage.ErrRuleNotFound)
	for r, err := range store.AllRules(t.Context()) {
		require.NoError(t, err)
		require.True(t, r.Threshold.Equal(exact.FromInt(11)))
		require.Equal(t, "app-x", r.AppID)
	}
	require.ErrorIs(t, store.DeleteRule(t.Context(), "app-x", "budget", 1, noon), storage.ErrRuleChanged)
	require.NoError(t, store.DeleteRule(t.Context(), "app-x", "budget", 2, noon))
	require.NoError(t, store.DeleteRule(t.Context(), "app-x", "budget", 2, noon), "again")
	rules, err := store.Rules(t.Context(), "app-x")
	require.NoError(t, err)
	require.Empty(t, rules)
}

func TestAnApplicationHasAtMostFiftyRules(t *testing.T) {
	store := newStore(t)
	spec := observability.Spec{Name: "Budget", Kind: observability.DailyCost, Threshold: exact.FromInt(10), Severity: observability.Warning}
	for n := range observability.MaxRules {
		_, err := store.CreateRule(t.Context(), observability.Rule{RuleID: fmt.Sprint("r", n), AppID: "app-x", Spec: spec, Rev: 1, CreatedAt: noon})
		require.NoError(t, err)
	}
	_, err := store.CreateRule(t.Context(), observability.Rule{RuleID: "more", AppID: "app-x", Spec: spec, Rev: 1, CreatedAt: noon})
	require.ErrorIs(t, err, storage.ErrTooManyRules)
	rules, err := store.Rules(t.Context(), "app-x")
	require.NoError(t, err)
	require.Len(t, rules, observability.MaxRules)
}

func TestOneFiringIsOneAlert(t *testing.T) {
	store := newStore(t)
	rule := observability.Rule{RuleID: "silent", AppID: "app-x", Spec: observability.Spec{Kind: observability.Silence, Name: "Silent"}}
	firing := observability.Firing{Level: "warning", Severity: "warning", Value: exact.FromInt(7), Threshold: exact.FromInt(5)}
	first, err := store.Claim(t.Context(), rule, firing, noon)
	require.NoError(t, err)
	again, err := store.Claim(t.Context(), rule, firing, noon.Add(5*time.Minute))
	require.NoError(t, err)
	require.Equal(t, first, again, "the first note stands")
	alert := observability.NewAlert(rule, firing, noon)
	require.NoError(t, store.PutAlert(t.Context(), alert))
	require.NoError(t, store.PutAlert(t.Context(), alert))
	require.NoError(t, store.MarkRaised(t.Context(), "app-x", first))
	notes, err := store.FiredNotes(t.Context(), "app-x")
	require.NoError(t, err)
	require.Len(t, notes, 1)
	require.True(t, notes[0].Raised)
	require.Equal(t, "silent", notes[0].RuleID())
	require.NoError(t, store.Resolve(t.Context(), "app-x", notes[0], noon.Add(time.Hour)))
	for _, list := range []func() ([]observability.Alert, string, error){
		func() ([]observability.Alert, string, error) { return store.Alerts(t.Context(), "app-x", "", 10, noon) },
		func() ([]observability.Alert, string, error) { return store.AlertsOn(t.Context(), noon, "", 10, noon) },
	} {
		alerts, _, err := list()
		require.NoError(t, err)
		require.Len(t, alerts, 1)
		require.Equal(t, alert.AlertID, alerts[0].AlertID)
		require.True(t, noon.Add(time.Hour).Equal(*alerts[0].ResolvedAt))
	}
	alerts, _, err := store.Alerts(t.Context(), "app-x", "", 10, noon.Add(91*24*time.Hour))
	require.NoError(t, err)
	require.Empty(t, alerts)
	var keys struct{ GSI1PK, GSI1SK string }
	_, err = store.Table.Get(t.Context(), table.Key{Partition: "APP#app-x", Sort: first.AlertSK}, &keys)
	require.NoError(t, err)
	require.Equal(t, "ALERTS#2026-05-04", keys.GSI1PK)
	require.Equal(t, "#2026-05-04T12:00:00.000000000Z#"+alert.AlertID, keys.GSI1SK)
}

// tally counts the requests to DynamoDB by operation.
type tally struct {
	storage.API
	lock  sync.Mutex
	calls map[string]int
}

func (c *tally) count(operation string) {
	c.lock.Lock()
	defer c.lock.Unlock()
	c.calls[operation]++
}

func (c *tally) PutItem(ctx context.Context, in *dynamodb.PutItemInput, o ...func(*dynamodb.Options)) (*dynamodb.PutItemOutput, error) {
	c.count("PutItem")
	return c.API.PutItem(ctx, in, o...)
}

func (c *tally) Query(ctx context.Context, in *dynamodb.QueryInput, o ...func(*dynamodb.Options)) (*dynamodb.QueryOutput, error) {
	c.count("Query")
	return c.API.Query(ctx, in, o...)
}

func (c *tally) TransactWriteItems(ctx context.Context, in *dynamodb.TransactWriteItemsInput, o ...func(*dynamodb.Options)) (*dynamodb.TransactWriteItemsOutput, error) {
	c.count("TransactWriteItems")
	return c.API.TransactWriteItems(ctx, in, o...)
}

func (c *tally) BatchWriteItem(ctx context.Context, in *dynamodb.BatchWriteItemInput, o ...func(*dynamodb.Options)) (*dynamodb.BatchWriteItemOutput, error) {
	c.count("BatchWriteItem")
	return c.API.BatchWriteItem(ctx, in, o...)
}

func TestASignalTakesOnePutAndItsShareOfATransaction(t *testing.T) {
	store := newStore(t)
	calls := &tally{API: store.Client, calls: map[string]int{}}
	store.Client, store.Table.Client = calls, calls
	for n := range 97 {
		_, err := store.Put(t.Context(), signal("app-x", n))
		require.NoError(t, err)
	}
	page, after, err := store.Pending(t.Context(), storage.PendingQuery{Shard: observability.ShardOf("app-x"), To: noon.Add(time.Hour), Limit: 1000})
	require.NoError(t, err)
	require.Nil(t, after)
	batches := observability.Pack(page, table.MaxTransaction)
	require.Len(t, batches, 1)
	_, err = store.PutTraces(t.Context(), batches[0].Signals)
	require.NoError(t, err)
	_, err = store.Count(t.Context(), batches[0])
	require.NoError(t, err)
	require.Equal(t, map[string]int{"PutItem": 97, "Query": 1, "BatchWriteItem": 4, "TransactWriteItems": 1}, calls.calls)

	large := signal("app-x", 100)
	large.Attributes = map[string]string{"k": strings.Repeat("v", observability.LargeAttributes)}
	_, err = store.Put(t.Context(), large)
	require.NoError(t, err)
	require.Equal(t, 99, calls.calls["PutItem"], "two for large attributes")
}

// contended refuses the first reads, as DynamoDB does while a transaction works
// on the same items.
type contended struct {
	storage.API
	refusals int
	reads    int
}

func (c *contended) TransactGetItems(ctx context.Context, in *dynamodb.TransactGetItemsInput, o ...func(*dynamodb.Options)) (*dynamodb.TransactGetItemsOutput, error) {
	c.reads++
	if c.reads <= c.refusals {
		code := "TransactionConflict"
		return nil, &types.TransactionCanceledException{CancellationReasons: []types.CancellationReason{{Code: &code}}}
	}
	return c.API.TransactGetItems(ctx, in, o...)
}

func TestCountersAreReadAgainWhileARollupWritesThem(t *testing.T) {
	store := newStore(t)
	one := signal("app-x", 1)
	_, err := store.Put(t.Context(), one)
	require.NoError(t, err)
	_, err = store.Count(t.Context(), observability.Batch{AppID: "app-x", Signals: []observability.Pending{one.Pending()}})
	require.NoError(t, err)
	busy := &contended{API: store.Client, refusals: 3}
	store.Client = busy
	day := []observability.Period{observability.PeriodOf(observability.Daily, one.Timestamp)}
	counters, err := store.CountersOf(t.Context(), "app-x", day)
	require.NoError(t, err)
	require.Equal(t, "1", counters[0].Of(observability.CountSignals).String())
	require.Equal(t, 4, busy.reads)

	busy.refusals, busy.reads = 1000, 0
	_, err = store.CountersOf(t.Context(), "app-x", day)
	require.ErrorContains(t, err, "read aggregates of app-x")
	require.Equal(t, 10, busy.reads, "not for ever")
}
