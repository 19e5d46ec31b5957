package alert

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/client"

	"millrace/domain/alert"
	"millrace/domain/factory"
	workflows "millrace/workflows/alert"
)

// recorder notes the signals that would go to Temporal.
type recorder struct {
	mu      sync.Mutex
	signals []workflows.Raise
	ids     []string
	fail    error
}

func (r *recorder) SignalWithStartWorkflow(_ context.Context, id, signal string, arg any, options client.StartWorkflowOptions, _ any, args ...any) (client.WorkflowRun, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.fail != nil {
		return nil, r.fail
	}
	if signal != workflows.RaiseSignal || options.TaskQueue != "alerts" || options.ID != id || len(args) != 1 {
		return nil, fmt.Errorf("unexpected signal %s to %s on %s", signal, id, options.TaskQueue)
	}
	r.signals = append(r.signals, arg.(workflows.Raise))
	r.ids = append(r.ids, id)
	return nil, nil
}

type clock struct{ now time.Time }

func (c *clock) Now() time.Time { return c.now }

func newRaiser() (*Raiser, *recorder, *clock) {
	c := &clock{now: start}
	rec := &recorder{}
	return &Raiser{Temporal: rec, Now: c.Now, Metrics: NewMetrics(prometheus.NewRegistry())}, rec, c
}

// red is a factory whose nodes and pods are all down, silent for a time.
func red(at time.Time, silent time.Duration) factory.Latest {
	last := at.Add(-silent)
	pipeline := factory.EvaluatePipeline(&last, &last, at)
	infra := &factory.InfraState{NodesTotal: 2, PodsTotal: 2}
	risk := factory.EvaluateRisk(factory.FactoryState{}, infra, pipeline)
	return factory.Latest{FactoryID: "factory-a", UpdatedAt: factory.MillisOf(at), Risk: &risk, PipelineStatus: &pipeline}
}

func green(at time.Time) factory.Latest {
	last := at
	pipeline := factory.EvaluatePipeline(&last, &last, at)
	risk := factory.EvaluateRisk(factory.FactoryState{}, &factory.InfraState{NodesTotal: 2, NodesReady: 2}, pipeline)
	return factory.Latest{FactoryID: "factory-a", UpdatedAt: factory.MillisOf(at), Risk: &risk, PipelineStatus: &pipeline}
}

func TestANormalSnapshotSignalsNothing(t *testing.T) {
	r, rec, c := newRaiser()
	for range 1000 {
		require.NoError(t, Observer{Raiser: r}.Observe(t.Context(), green(c.now)))
	}
	require.Empty(t, rec.signals)
}

func TestOneSignalCarriesAllAlertsOfASnapshot(t *testing.T) {
	r, rec, c := newRaiser()
	require.NoError(t, Observer{Raiser: r}.Observe(t.Context(), red(c.now, 200*time.Second)))
	require.Equal(t, []string{"risk-alert/factory-a"}, rec.ids)
	require.Len(t, rec.signals[0].Alerts, 3)
	require.NotEmpty(t, rec.signals[0].Suppressed)
	for _, a := range rec.signals[0].Alerts {
		require.NoError(t, a.Check())
		require.LessOrEqual(t, len(a.Details.Causes), 3)
	}
}

// bench-fast sends twenty snapshots a second. Whatever they are, at most four
// signals a minute leave the process; the same alerts go twice a minute.
func TestARedFactorySignalsAtMostFourTimesAMinute(t *testing.T) {
	for name, test := range map[string]struct {
		snapshot func(i int, now time.Time) alert.Decision
		most     int
	}{
		"steadily red": {func(_ int, now time.Time) alert.Decision { return alert.Factory(red(now, 0)) }, 2},
		"another alert each time": {func(i int, now time.Time) alert.Decision {
			a := danger(now)
			a.Reason = fmt.Sprintf("reason_%d", i)
			return alert.Decision{Alerts: []alert.Alert{a}}
		}, 4},
	} {
		t.Run(name, func(t *testing.T) {
			r, rec, c := newRaiser()
			var times []time.Time
			for i := range 20 * 60 * 5 {
				before := len(rec.signals)
				require.NoError(t, r.Raise(t.Context(), test.snapshot(i, c.now)))
				if len(rec.signals) > before {
					times = append(times, c.now)
				}
				c.now = c.now.Add(50 * time.Millisecond)
			}
			require.Len(t, times, 5*test.most)
			for i := range times {
				in := 0
				for _, at := range times[i:] {
					if at.Sub(times[i]) < time.Minute {
						in++
					}
				}
				require.LessOrEqual(t, in, test.most, "in any minute")
			}
		})
	}
}

func TestANewAlertDoesNotWaitForTheOthers(t *testing.T) {
	r, rec, c := newRaiser()
	o := Observer{Raiser: r}
	require.NoError(t, o.Observe(t.Context(), red(c.now, 0)))
	c.now = c.now.Add(time.Second)
	require.NoError(t, o.Observe(t.Context(), red(c.now, 0)))
	require.Len(t, rec.signals, 1)
	require.NoError(t, o.Observe(t.Context(), red(c.now, 90*time.Second)))
	require.Len(t, rec.signals, 2)
	require.Len(t, rec.signals[1].Alerts, 1, "only what is new")
	require.Equal(t, "pipeline_status", rec.signals[1].Alerts[0].Reason)
	c.now = c.now.Add(30 * time.Second)
	require.NoError(t, o.Observe(t.Context(), red(c.now, 0)))
	require.Len(t, rec.signals, 3, "after 30 s they are signalled again")
}

func TestALostSignalIsMadeUpForByTheNextSnapshot(t *testing.T) {
	r, rec, c := newRaiser()
	rec.fail = errors.New("no connection")
	require.ErrorContains(t, Observer{Raiser: r}.Observe(t.Context(), red(c.now, 0)), "factory-a")
	rec.fail = nil
	require.NoError(t, Observer{Raiser: r}.Observe(t.Context(), red(c.now, 0)))
	require.Len(t, rec.signals, 1)
}

func TestTheRaisersMemoryIsBounded(t *testing.T) {
	r, _, c := newRaiser()
	for i := range 5000 {
		a := danger(c.now)
		a.Scope = fmt.Sprintf("factory-%d", i)
		require.NoError(t, r.Raise(t.Context(), alert.Decision{Alerts: []alert.Alert{a}}))
	}
	require.LessOrEqual(t, len(r.scopes), maxScopes)
	for i := range 5000 {
		a := danger(c.now)
		a.Reason = fmt.Sprintf("r%d", i)
		c.now = c.now.Add(time.Second)
		require.NoError(t, r.Raise(t.Context(), alert.Decision{Alerts: []alert.Alert{a}}))
	}
	require.LessOrEqual(t, len(r.scopes["factory-a"].keys), 30)
}

func TestCloudSnapshotsAreObservedByHalves(t *testing.T) {
	r, rec, c := newRaiser()
	o := Observer{Raiser: r}
	at := factory.MillisOf(c.now)
	require.NoError(t, o.ObserveFast(t.Context(), fmt.Appendf(nil, `{"fast_updated_at":%q,"fast":{"backend_runtime":{"status":"critical"},"data_pipeline":{"status":"normal"}}}`, at), "k"))
	require.NoError(t, o.ObserveSlow(t.Context(), fmt.Appendf(nil, `{"slow_updated_at":%q,"slow":{"eks_management":{"status":"not_configured"},"storage_freshness":{"status":"warning"}}}`, at), "k"))
	require.Equal(t, []string{"risk-alert/cloud-infra", "risk-alert/cloud-infra"}, rec.ids)
	require.Equal(t, "k", rec.signals[0].Alerts[0].SourceKey)
	require.Error(t, o.ObserveFast(t.Context(), []byte(`{`), ""))
}

func TestWhatIsRaisedOnceIsAlwaysSignalled(t *testing.T) {
	r, rec, _ := newRaiser()
	for range 10 {
		require.NoError(t, r.Signal(t.Context(), "artifacts", alert.Decision{Alerts: []alert.Alert{danger(start)}}))
	}
	require.Len(t, rec.signals, 10)
}

func BenchmarkObserve(b *testing.B) {
	for name, latest := range map[string]factory.Latest{"normal": green(start), "red, signalled lately": red(start, 0)} {
		b.Run(name, func(b *testing.B) {
			r, _, _ := newRaiser()
			o := Observer{Raiser: r}
			b.ReportAllocs()
			for b.Loop() {
				if err := o.Observe(context.Background(), latest); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "snapshots/s")
		})
	}
}
