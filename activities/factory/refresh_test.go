package factory

import (
	"context"
	"errors"
	"log/slog"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/log"
	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/testsuite"

	"millrace/domain/exact"
	"millrace/domain/factory"
	workflows "millrace/workflows/factory"
)

func (w *world) refresher(factories ...string) Refresher {
	return Refresher{Store: w.store, Factories: factories, Now: func() time.Time { return w.now }, Logger: slog.New(slog.DiscardHandler)}
}

// activityEnvironment runs activities without their logs.
func activityEnvironment() *testsuite.TestActivityEnvironment {
	var suite testsuite.WorkflowTestSuite
	suite.SetLogger(log.NewStructuredLogger(slog.New(slog.DiscardHandler)))
	return suite.NewTestActivityEnvironment()
}

func runRefresh(r Refresher, asOf time.Time) (workflows.RefreshResult, error) {
	env := activityEnvironment()
	env.RegisterActivity(r.RefreshFactories)
	var result workflows.RefreshResult
	value, err := env.ExecuteActivity(r.RefreshFactories, workflows.RefreshRequest{AsOf: asOf})
	if err == nil {
		err = value.Get(&result)
	}
	return result, err
}

// repeated is a refresh as a later attempt of the run that began at asOf sees it.
func (w *world) repeated(id string, asOf time.Time) workflows.RefreshedFactory {
	w.t.Helper()
	run := refreshRun{Refresher: w.refresher(id), asOf: asOf, repeated: true}
	states, err := w.store.BatchLatest(w.t.Context(), []string{id})
	require.NoError(w.t, err)
	entry, err := run.refresh(w.t.Context(), id, states)
	require.NoError(w.t, err)
	return entry
}

// Incident 10.6: a factory that was switched off kept its perfect score.
func TestASilentFactoryLosesItsScore(t *testing.T) {
	cases := []struct {
		silence time.Duration
		status  factory.Health
		most    string
	}{
		{60 * time.Second, factory.Normal, "100"},
		{61 * time.Second, factory.Warning, "84"},
		{121 * time.Second, factory.Critical, "49"},
		{301 * time.Second, factory.Critical, "0"},
	}
	for _, c := range cases {
		t.Run(c.silence.String(), func(t *testing.T) {
			w := newWorld(t)
			began := w.now
			w.take(clusterAt(began))
			w.take(climateAt(began))
			w.now = began.Add(c.silence)
			result, err := runRefresh(w.refresher("factory-x"), w.now)
			require.NoError(t, err)
			require.Equal(t, workflows.StatusOK, result.Status)
			entry := result.Refreshed[0]
			require.Equal(t, c.status, entry.PipelineStatus)
			require.True(t, exact.MustParse(c.most).AtLeast(*entry.RiskScore), entry.RiskScore.String())
			latest := w.latest("factory-x")
			require.EqualValues(t, 3, latest.Rev)
			require.Equal(t, began, latest.LastInfraStateAt.UTC(), "a refresh changes no block")
			require.Empty(t, latest.MessageID)
			require.Equal(t, factory.MillisOf(w.now).String(), latest.Risk.CalculatedAt.String())
			require.Len(t, w.history("factory-x"), 3)
			require.Len(t, w.keys("processed/factory-x/state_snapshot/"), 3)
		})
	}
}

func TestMissingFactoriesAreReportedInOrder(t *testing.T) {
	w := newWorld(t)
	w.take(clusterAt(w.now))
	result, err := runRefresh(w.refresher("factory-b", "factory-x", "factory-a"), w.now)
	require.NoError(t, err)
	require.Equal(t, []workflows.RefreshedFactory{
		{FactoryID: "factory-b", Status: workflows.StatusMissing},
		{FactoryID: "factory-x", PipelineStatus: factory.Normal},
		{FactoryID: "factory-a", Status: workflows.StatusMissing},
	}, result.Refreshed)
}

func TestARepeatedRefreshWritesNoFactoryTwice(t *testing.T) {
	t.Run("by its heartbeat", func(t *testing.T) {
		w := newWorld(t)
		w.take(climateAt(w.now))
		r := w.refresher("factory-x", "factory-y")
		env := activityEnvironment()
		env.RegisterActivity(r.RefreshFactories)
		env.SetHeartbeatDetails(map[string]workflows.RefreshedFactory{"factory-x": {FactoryID: "factory-x", PipelineStatus: factory.Normal}})
		_, err := env.ExecuteActivity(r.RefreshFactories, workflows.RefreshRequest{AsOf: w.now})
		require.NoError(t, err)
		require.Len(t, w.history("factory-x"), 1)
	})
	t.Run("by its calculation time", func(t *testing.T) {
		w := newWorld(t)
		asOf := w.now.Add(time.Minute)
		w.take(climateAt(w.now))
		w.now = asOf.Add(time.Second)
		first := w.repeated("factory-x", asOf)
		require.Len(t, w.history("factory-x"), 2, "judged before the run began")
		again := w.repeated("factory-x", asOf)
		require.Len(t, w.history("factory-x"), 2)
		require.Equal(t, first.PipelineStatus, again.PipelineStatus)
		require.Equal(t, first.RiskScore.String(), again.RiskScore.String())
	})
	t.Run("without a risk", func(t *testing.T) {
		w := newWorld(t)
		asOf := w.now
		w.take(clusterAt(w.now))
		w.repeated("factory-x", asOf)
		w.repeated("factory-x", asOf)
		require.Len(t, w.history("factory-x"), 2)
	})
	t.Run("but mends the snapshot that a kill left out", func(t *testing.T) {
		w := newWorld(t)
		asOf := w.now
		w.take(climateAt(w.now.Add(-time.Second)))
		w.now = asOf.Add(time.Second)
		require.NoError(t, w.store.Commit(t.Context(), factory.Refresh(*w.latest("factory-x"), w.now)))
		require.Len(t, w.keys("processed/factory-x/state_snapshot/"), 1)
		w.repeated("factory-x", asOf)
		require.Len(t, w.history("factory-x"), 2)
		require.Len(t, w.keys("processed/factory-x/state_snapshot/"), 2)
	})
}

func TestARefreshTakesUpWhatAMessageChangedMeanwhile(t *testing.T) {
	w := newWorld(t)
	w.take(clusterAt(w.now.Add(-5 * time.Minute)))
	states, err := w.store.BatchLatest(t.Context(), []string{"factory-x"})
	require.NoError(t, err)
	w.take(clusterAt(w.now))
	run := refreshRun{Refresher: w.refresher("factory-x"), asOf: w.now}
	entry, err := run.refresh(t.Context(), "factory-x", states)
	require.NoError(t, err)
	require.Equal(t, factory.Normal, entry.PipelineStatus, "judged from the state that the conflict showed")
	require.EqualValues(t, 3, w.latest("factory-x").Rev)
}

type observed struct {
	states []factory.Latest
	err    error
}

func (o *observed) Observe(_ context.Context, newest factory.Latest) error {
	o.states = append(o.states, newest)
	return o.err
}

func TestEveryRefreshedStateIsShownToTheObserver(t *testing.T) {
	w := newWorld(t)
	w.take(climateAt(w.now))
	observer := &observed{err: errors.New("no one listens")}
	r := w.refresher("factory-x", "factory-y")
	r.Observer = observer
	_, err := runRefresh(r, w.now)
	require.NoError(t, err, "the next refresh tells it again")
	require.Len(t, observer.states, 1)
	require.EqualValues(t, 2, observer.states[0].Rev)
}

func TestOneFactoryThatCannotBeWrittenKeepsNoOtherFromIt(t *testing.T) {
	w := newWorld(t)
	w.take(climateAt(w.now))
	calls := w.watch()
	calls.Fail(func(operation string) error {
		if operation == "TransactWriteItems" {
			return errors.New("refused")
		}
		return nil
	})
	_, err := runRefresh(w.refresher("factory-x", "factory-y"), w.now)
	var failure *temporal.ApplicationError
	require.ErrorAs(t, err, &failure)
	require.False(t, failure.NonRetryable())
	require.ErrorContains(t, err, "factory-x")
	var done workflows.RefreshResult
	require.NoError(t, failure.Details(&done))
	require.Equal(t, []workflows.RefreshedFactory{{FactoryID: "factory-y", Status: workflows.StatusMissing}}, done.Refreshed)
}

// TestCallsPerRefresh asserts one read for up to a hundred factories, and for
// each factory the transaction and the snapshot.
func TestCallsPerRefresh(t *testing.T) {
	w := newWorld(t)
	w.take(climateAt(w.now))
	calls := w.watch()
	_, err := runRefresh(w.refresher("factory-x", "factory-y", "factory-z"), w.now)
	require.NoError(t, err)
	require.Equal(t, map[string]int{"BatchGetItem": 1, "TransactWriteItems": 1, "PutObject": 1}, calls.Take())
}
