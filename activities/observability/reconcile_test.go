package observability

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/testsuite"

	"millrace/domain/exact"
	"millrace/domain/observability"
	storage "millrace/storage/observability"
	"millrace/storage/table"
	workflows "millrace/workflows/observability"
)

// checked are two applications whose signals are counted, and a check of the last
// day of the year.
func checked(t *testing.T) (storage.Store, *raiser, func() workflows.DayResult) {
	t.Helper()
	store, r := newStore(t), &raiser{}
	put(t, store, append(makeSignals("app-x", 60), makeSignals("app-y", 30)...))
	_, err := rollUp(t.Context(), newDrainer(store, r), "app-x", "app-y")
	require.NoError(t, err)
	reconciler := Reconciler{Store: store, Raiser: r, Now: func() time.Time { return yearEnd.AddDate(0, 0, 3) }, Logger: quiet}
	var suite testsuite.WorkflowTestSuite
	env := suite.NewTestActivityEnvironment()
	env.RegisterActivity(reconciler.ReconcileSignals)
	return store, r, func() workflows.DayResult {
		t.Helper()
		value, err := env.ExecuteActivity(reconciler.ReconcileSignals, workflows.DayRequest{Day: "2026-12-31"})
		require.NoError(t, err)
		var result workflows.DayResult
		require.NoError(t, value.Get(&result))
		return result
	}
}

func TestADayWithoutDriftRaisesNothing(t *testing.T) {
	_, r, check := checked(t)
	require.Equal(t, workflows.DayResult{Day: "2026-12-31", Apps: 2, Signals: 47}, check())
	require.Empty(t, r.take())
}

func TestDriftIsFoundWhereverItIs(t *testing.T) {
	for comparison, sk := range map[string]string{
		workflows.RawAgainstDay:   "AGG#DAILY#2026-12-31",
		workflows.HoursAgainstDay: "AGG#HOURLY#2026-12-31#23",
		workflows.DaysAgainstMon:  "AGG#MONTHLY#2026-12",
	} {
		t.Run(comparison, func(t *testing.T) {
			store, r, check := checked(t)
			require.NoError(t, store.Table.Update(t.Context(), table.Change{
				Key: table.Key{Partition: "APP#app-x", Sort: sk},
				Add: map[string]exact.Decimal{observability.CountCost: exact.MustParse("0.000000000000000000000000000001")},
			}, nil))
			result := check()
			require.Positive(t, result.Drifted)
			var found []string
			for _, drift := range result.Drifts {
				found = append(found, drift.Comparison)
				require.Equal(t, observability.CountCost, drift.Counter)
			}
			require.Contains(t, found, comparison)
			raised := r.take()
			require.Len(t, raised, 1)
			require.Equal(t, "aggregate_drift", raised[0].Reason)
			require.NotEmpty(t, raised[0].Details.Facts)
		})
	}
}

func TestAnAggregateThatIsGoneIsDrift(t *testing.T) {
	store, r, check := checked(t)
	for _, sk := range []string{"AGG#DAILY#2026-12-31", "AGG#HOURLY#2026-12-31#23"} {
		require.NoError(t, store.Table.Delete(t.Context(), table.Key{Partition: "APP#app-y", Sort: sk}, nil))
	}
	require.Positive(t, check().Drifted, "the month still knows the application")
	require.Len(t, r.take(), 1)
}

func TestWhatIsStillPendingIsNoDriftButIsToldOf(t *testing.T) {
	store, r, check := checked(t)
	late := makeSignals("app-x", 1)[0]
	late.SignalID, late.Timestamp = "late", yearEnd.Add(-time.Hour)
	put(t, store, []observability.Signal{late})
	result := check()
	require.Zero(t, result.Drifted)
	require.EqualValues(t, 1, result.Pending)
	require.Len(t, r.take(), 1)
}

func TestDaysThatCantBeCheckedAreRefused(t *testing.T) {
	reconciler := Reconciler{Now: func() time.Time { return yearEnd.AddDate(0, 0, 31) }, Logger: quiet}
	var suite testsuite.WorkflowTestSuite
	env := suite.NewTestActivityEnvironment()
	env.RegisterActivity(reconciler.ReconcileSignals)
	for day, rule := range map[string]string{"yesterday": "must be a day", "2026-12-31": "must be one of the last 29"} {
		_, err := env.ExecuteActivity(reconciler.ReconcileSignals, workflows.DayRequest{Day: day})
		require.ErrorContains(t, err, rule)
	}
}
