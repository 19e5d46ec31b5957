package observability

import (
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/testsuite"

	"millrace/domain/exact"
	"millrace/domain/observability"
	"millrace/storage/table"
	workflows "millrace/workflows/observability"
)

// TestARollupKilledAnywhereCountsOnce stops a rollup before and after every write
// and at every step in between, begins again, and compares the sums.
func TestARollupKilledAnywhereCountsOnce(t *testing.T) {
	store := newStore(t)
	apps := func(name string) []string { return []string{"app-a-" + name, "app-b-" + name} }
	run := func(name string, kill func(d *Drainer) (reached func() bool)) bool {
		var signals []observability.Signal
		for i, app := range apps(name) {
			signals = append(signals, makeSignals(app, 105-90*i)...)
		}
		put(t, store, signals)
		d := newDrainer(store, &raiser{})
		reached := kill(&d)
		_, err := rollUp(t.Context(), d, apps(name)...)
		if reached() {
			require.ErrorIs(t, err, errKilled, name)
		} else {
			require.NoError(t, err, name)
		}
		_, err = rollUp(t.Context(), newDrainer(store, &raiser{}), apps(name)...)
		require.NoError(t, err)
		counts, err := rollUp(t.Context(), newDrainer(store, &raiser{}), apps(name)...)
		require.NoError(t, err)
		require.Zero(t, counts, "nothing is left")
		requireTruth(t, store, signals)
		requireTraceRows(t, store, signals)
		return reached()
	}
	t.Run("at every write", func(t *testing.T) {
		for n := int64(1); ; n++ {
			any := false
			for _, before := range []bool{true, false} {
				k := &killer{API: store.Client, at: n, before: before}
				any = run(fmt.Sprintf("w%d-%t", n, before), func(d *Drainer) func() bool {
					d.Store.Client, d.Store.Table.Client = k, k
					return k.dead.Load
				}) || any
			}
			if !any {
				require.Greater(t, n, int64(6), "there were writes to stop at")
				return
			}
		}
	})
	t.Run("at every step", func(t *testing.T) {
		for n := 1; ; n++ {
			var lock sync.Mutex
			steps, dead := 0, false
			hit := run(fmt.Sprint("s", n), func(d *Drainer) func() bool {
				d.At = func(Step) error {
					lock.Lock()
					defer lock.Unlock()
					if steps++; dead || steps == n {
						dead = true
						return errKilled
					}
					return nil
				}
				return func() bool { return dead }
			})
			if !hit {
				require.Greater(t, n, 6)
				return
			}
		}
	})
}

func TestFiftyRollupsOfOneApplicationAtOnceCountOnce(t *testing.T) {
	store := newStore(t)
	signals := makeSignals("app-x", 600)
	put(t, store, signals)
	var lock sync.Mutex
	var sum workflows.Counts
	var work sync.WaitGroup
	for range 50 {
		work.Go(func() {
			counts, err := rollUp(t.Context(), newDrainer(store, &raiser{}), "app-x")
			if err != nil {
				t.Error(err)
			}
			lock.Lock()
			defer lock.Unlock()
			sum.Add(counts)
		})
	}
	work.Wait()
	require.EqualValues(t, 600, sum.Signals)
	requireTruth(t, store, signals)
	requireTraceRows(t, store, signals)
}

func TestLateSignalsLandInTheHourOfTheirEvent(t *testing.T) {
	store := newStore(t)
	signals := makeSignals("app-x", 20)
	put(t, store, signals[:10])
	_, err := rollUp(t.Context(), newDrainer(store, &raiser{}), "app-x")
	require.NoError(t, err)
	put(t, store, signals[10:])
	late := signals[0]
	late.SignalID, late.Timestamp, late.ReceivedAt = "late", yearEnd.Add(-47*time.Hour), yearEnd.Add(time.Minute)
	put(t, store, []observability.Signal{late})
	_, err = rollUp(t.Context(), newDrainer(store, &raiser{}), "app-x")
	require.NoError(t, err)
	requireTruth(t, store, append(signals, late))
}

func TestAStretchEndsAndTheNextGoesOn(t *testing.T) {
	store := newStore(t)
	signals := makeSignals("app-x", 2500)
	put(t, store, signals)
	d := newDrainer(store, &raiser{})
	d.Stretch = time.Nanosecond
	req := workflows.DrainRequest{Shard: observability.ShardOf("app-x"), To: yearEnd.Add(time.Hour)}
	var suite testsuite.WorkflowTestSuite
	env := suite.NewTestActivityEnvironment()
	env.RegisterActivity(d.DrainSignals)
	for stretches := 1; ; stretches++ {
		value, err := env.ExecuteActivity(d.DrainSignals, req)
		require.NoError(t, err)
		var result workflows.DrainResult
		require.NoError(t, value.Get(&result))
		if result.Done {
			require.Equal(t, 3, stretches)
			break
		}
		require.EqualValues(t, pageSize, result.Signals)
		req.From = result.Next
	}
	requireTruth(t, store, signals)
}

func TestShardsWithPendingSignalsAreFound(t *testing.T) {
	store := newStore(t)
	signals := makeSignals("app-x", 2)
	put(t, store, signals)
	d := newDrainer(store, &raiser{})
	found, err := d.FindPendingShards(t.Context(), workflows.FindRequest{To: yearEnd.Add(time.Hour)})
	require.NoError(t, err)
	require.Equal(t, []int{observability.ShardOf("app-x")}, found.Shards)
	found, err = d.FindPendingShards(t.Context(), workflows.FindRequest{From: yearEnd.Add(time.Minute), To: yearEnd.Add(time.Hour)})
	require.NoError(t, err)
	require.Empty(t, found.Shards, "received before")
	_, err = rollUp(t.Context(), d, "app-x")
	require.NoError(t, err)
	found, err = d.FindPendingShards(t.Context(), workflows.FindRequest{To: yearEnd.Add(time.Hour)})
	require.NoError(t, err)
	require.Empty(t, found.Shards)
}

func TestOnlyWhatWasReceivedInTheRangeIsCounted(t *testing.T) {
	store := newStore(t)
	signals := makeSignals("app-x", 30)
	put(t, store, signals)
	d := newDrainer(store, &raiser{})
	_, err := d.drain(t.Context(), workflows.DrainRequest{
		Shard: observability.ShardOf("app-x"), From: signals[10].ReceivedAt, To: signals[20].ReceivedAt,
	}, func(workflows.DrainResult) {})
	require.NoError(t, err)
	requireTruth(t, store, signals[10:20])
}

func TestAnApplicationThatCantBeCountedIsToldOfAndKeepsNoOtherFromIt(t *testing.T) {
	store := newStore(t)
	shard := observability.ShardOf("app-x")
	other := ""
	for n := 0; other == ""; n++ {
		if app := fmt.Sprint("app-", n); observability.ShardOf(app) == shard {
			other = app
		}
	}
	bad, good := makeSignals("app-x", 20), makeSignals(other, 20)
	put(t, store, append(bad, good...))
	for _, month := range []string{"2026-12", "2027-01"} {
		require.NoError(t, store.Table.Update(t.Context(), table.Change{
			Key: table.Key{Partition: "APP#app-x", Sort: "AGG#MONTHLY#" + month}, Set: map[string]any{"total_cost_usd": exact.MustParse("99999999999")},
		}, nil))
	}
	r := &raiser{}
	counts, err := rollUp(t.Context(), newDrainer(store, r), "app-x")
	require.NoError(t, err)
	require.EqualValues(t, 20, counts.Signals)
	require.EqualValues(t, 20, counts.Stuck)
	requireTruth(t, store, good)
	raised := r.take()
	require.Len(t, raised, 1)
	require.Equal(t, "rollup_stuck", raised[0].Reason)
}

func TestAnOutageIsTriedAgain(t *testing.T) {
	store := newStore(t)
	put(t, store, makeSignals("app-x", 1))
	d := newDrainer(store, &raiser{})
	d.At = func(Step) error { return errors.New("no answer") }
	var suite testsuite.WorkflowTestSuite
	env := suite.NewTestActivityEnvironment()
	env.RegisterActivity(d.DrainSignals)
	_, err := env.ExecuteActivity(d.DrainSignals, workflows.DrainRequest{Shard: observability.ShardOf("app-x"), To: yearEnd.Add(time.Hour)})
	require.ErrorContains(t, err, "no answer")
	var application *temporal.ApplicationError
	require.ErrorAs(t, err, &application)
	require.False(t, application.NonRetryable())
}
