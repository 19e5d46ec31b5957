package alert

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/contrib/envconfig"
	"go.temporal.io/sdk/log"
	"go.temporal.io/sdk/worker"

	"millrace/domain/alert"
	"millrace/domain/factory"
	"millrace/platform/slack"
	"millrace/platform/slack/slacktest"
	storage "millrace/storage/alert"
	workflows "millrace/workflows/alert"
	"millrace/workflows/names"
)

// service is the alert machinery on the local Temporal server, worked on by two
// workers.
type service struct {
	t      *testing.T
	client client.Client
	raiser *Raiser
	slack  *slacktest.Server
	store  storage.Store
	scope  string
}

func newService(t *testing.T, timeout time.Duration) *service {
	t.Helper()
	require.NotEmpty(t, os.Getenv("TEMPORAL_ADDRESS"), "no Temporal server: run make test, or bin/local exec -- go test")
	silent := slog.New(slog.DiscardHandler)
	options, err := envconfig.LoadDefaultClientOptions()
	require.NoError(t, err)
	options.Logger = log.NewStructuredLogger(silent)
	c, err := client.DialContext(t.Context(), options)
	require.NoError(t, err)
	t.Cleanup(c.Close)
	s := &service{t: t, client: c, slack: slacktest.New(t), scope: fmt.Sprintf("factory-%d", time.Now().UnixNano())}
	s.store, _ = newStore(t)
	t.Setenv("SERVICE_HOOK", s.slack.Hook("hook"))
	queue := t.Name() + time.Now().Format(time.RFC3339Nano)
	for range 2 {
		w := worker.New(c, queue, worker.Options{WorkerStopTimeout: time.Second})
		register(w, Activities{Store: s.store, Logger: silent, Sender: Slack{
			Client: slack.Client{Timeout: timeout}, Secrets: reader(), Webhook: "env:SERVICE_HOOK",
		}})
		require.NoError(t, w.Start())
		t.Cleanup(w.Stop)
	}
	s.raiser = &Raiser{Temporal: c, TaskQueue: queue, Now: time.Now}
	t.Cleanup(func() {
		require.NoError(t, c.TerminateWorkflow(context.Background(), names.RiskAlertID(s.scope), "", "test is over"))
	})
	return s
}

func (s *service) alert(at time.Time, reason string) alert.Alert {
	a := danger(at)
	a.Scope, a.Reason, a.SourceUpdatedAt = s.scope, reason, factory.MillisOf(at)
	return a
}

func (s *service) await(done func(workflows.Status) bool) {
	s.t.Helper()
	require.Eventually(s.t, func() bool {
		value, err := s.client.QueryWorkflow(s.t.Context(), names.RiskAlertID(s.scope), "", workflows.StatusQuery)
		if err != nil {
			return false
		}
		var status workflows.Status
		return value.Get(&status) == nil && len(status.InFlight) == 0 && !status.Writing && done(status)
	}, 60*time.Second, 50*time.Millisecond)
}

// Fifty consumers see the same outage at once; each signals it by itself.
func TestFiftyDeliveriesOfOneSnapshotSendOnce(t *testing.T) {
	s := newService(t, slack.DefaultTimeout)
	now := time.Now()
	var deliveries sync.WaitGroup
	for range 50 {
		deliveries.Go(func() {
			raiser := &Raiser{Temporal: s.client, TaskQueue: s.raiser.TaskQueue, Now: time.Now}
			d := alert.Decision{Alerts: []alert.Alert{s.alert(now, "nodes_all_not_ready"), s.alert(now, "pods_all_unready")}}
			if err := raiser.Raise(s.t.Context(), d); err != nil {
				t.Error(err)
			}
		})
	}
	deliveries.Wait()
	s.await(func(status workflows.Status) bool { return status.Totals["sent"]+status.Totals["suppressed"] == 100 })
	require.Len(t, s.slack.Messages(), 2)
	records, _, err := s.store.Records(t.Context(), storage.Query{Scopes: []string{s.scope}, From: now.Add(-time.Minute), To: now.Add(time.Hour), Limit: 100, Now: now})
	require.NoError(t, err)
	counts := told(records)
	require.EqualValues(t, 2, counts["sent raised"])
	require.EqualValues(t, 98, counts["suppressed in_flight"]+counts["suppressed duplicate"])
}

// A worker that dies in the middle of a send leaves an attempt that times out.
// Its message may have arrived: it is sent once more and recorded as ambiguous,
// and Temporal's own retries double nothing.
func TestAnAttemptThatVanishesIsAmbiguous(t *testing.T) {
	s := newService(t, time.Minute)
	s.slack.Fail(slacktest.Fault{Swallow: true})
	require.NoError(t, s.raiser.Raise(t.Context(), alert.Decision{Alerts: []alert.Alert{s.alert(time.Now(), "x")}}))
	s.await(func(status workflows.Status) bool { return status.Totals["ambiguous"] == 1 })
	require.Len(t, s.slack.Messages(), 2)
	require.Equal(t, 2, s.slack.Requests())
}
