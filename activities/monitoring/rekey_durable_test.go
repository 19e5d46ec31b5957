package monitoring_test

import (
	"context"
	"errors"
	"os"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.temporal.io/api/enums/v1"
	"go.temporal.io/api/history/v1"
	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/contrib/envconfig"
	"go.temporal.io/sdk/worker"
	"go.temporal.io/sdk/workflow"
	"google.golang.org/protobuf/encoding/protojson"

	activities "millrace/activities/monitoring"
	"millrace/domain/monitoring"
	store "millrace/storage/monitoring"
	"millrace/storage/storagetest"
	workflows "millrace/workflows/monitoring"
	"millrace/workflows/names"
)

// dial connects to the Temporal of the local stack.
func dial(t *testing.T) client.Client {
	t.Helper()
	require.NotEmpty(t, os.Getenv("TEMPORAL_ADDRESS"), "no local stack: run make test, or bin/local exec -- go test")
	options, err := envconfig.LoadDefaultClientOptions()
	require.NoError(t, err)
	c, err := client.DialContext(t.Context(), options)
	require.NoError(t, err)
	t.Cleanup(c.Close)
	return c
}

func work(t *testing.T, c client.Client, taskQueue string, rekeyer activities.Rekeyer) worker.Worker {
	t.Helper()
	w := worker.New(c, taskQueue, worker.Options{})
	w.RegisterWorkflowWithOptions(workflows.RekeyTokens, workflow.RegisterOptions{Name: names.RekeyTokens})
	w.RegisterActivityWithOptions(rekeyer.RekeyBatch, activity.RegisterOptions{Name: workflows.RekeyBatchActivity})
	require.NoError(t, w.Start())
	return w
}

// failing is a store that breaks after some saved copies.
type failing struct {
	store.Store
	left   atomic.Int64
	failed chan struct{}
}

func (f *failing) SaveRecovery(ctx context.Context, grant monitoring.Grant, envelope *monitoring.Envelope) error {
	if f.left.Add(-1) < 0 {
		select {
		case f.failed <- struct{}{}:
		default:
		}
		return errors.New("the network is down")
	}
	return f.Store.SaveRecovery(ctx, grant, envelope)
}

func TestRekeyGoesOnAfterItsWorkerIsReplaced(t *testing.T) {
	c := dial(t)
	s := store.Store{Table: storagetest.Table(t, storagetest.Monitoring)}
	before, after := rings(t)
	create(t, s, before, 150)
	queue := "test-" + strings.ToLower(strings.ReplaceAll(t.Name(), "/", "-")) + s.Table.Name

	breaking := &failing{Store: s, failed: make(chan struct{}, 1)}
	breaking.left.Store(120)
	first := work(t, c, queue, activities.Rekeyer{Store: breaking, Ring: after})
	run, err := c.ExecuteWorkflow(t.Context(), client.StartWorkflowOptions{ID: names.RekeyTokensID("k1") + s.Table.Name, TaskQueue: queue},
		names.RekeyTokens, workflows.RekeyInput{KeyID: "k1"})
	require.NoError(t, err)
	<-breaking.failed
	first.Stop()
	second := work(t, c, queue, activities.Rekeyer{Store: s, Ring: after})
	defer second.Stop()

	ctx, cancel := context.WithTimeout(t.Context(), 90*time.Second)
	defer cancel()
	var report workflows.RekeyReport
	require.NoError(t, run.Get(ctx, &report))
	require.True(t, report.Done)
	require.True(t, report.Clean)
	require.Equal(t, 2, report.Passes)
	// What the first worker did since its last heartbeat is missing in the counts.
	require.GreaterOrEqual(t, report.Counts.Sealed, int64(30))
	require.LessOrEqual(t, report.Counts.Sealed, int64(150))
	requireAllUnder(t, s, after, 150)
	replay(t, c, run)
}

// replay runs the workflow's code against its own history. With
// MILLRACE_RECORD_HISTORY set to a file it keeps the history there.
func replay(t *testing.T, c client.Client, run client.WorkflowRun) {
	t.Helper()
	var recorded history.History
	events := c.GetWorkflowHistory(t.Context(), run.GetID(), run.GetRunID(), false, enums.HISTORY_EVENT_FILTER_TYPE_ALL_EVENT)
	for events.HasNext() {
		event, err := events.Next()
		require.NoError(t, err)
		recorded.Events = append(recorded.Events, event)
	}
	replayer := worker.NewWorkflowReplayer()
	replayer.RegisterWorkflowWithOptions(workflows.RekeyTokens, workflow.RegisterOptions{Name: names.RekeyTokens})
	require.NoError(t, replayer.ReplayWorkflowHistory(nil, &recorded))
	if file := os.Getenv("MILLRACE_RECORD_HISTORY"); file != "" {
		body, err := protojson.MarshalOptions{Multiline: true, Indent: " "}.Marshal(&recorded)
		require.NoError(t, err)
		require.NoError(t, os.WriteFile(file, body, 0o600))
	}
}

// requireAllUnder fails unless n tokens have a copy under the ring's current key
// that opens, and none another.
func requireAllUnder(t *testing.T, s store.Store, ring monitoring.KeyRing, n int) {
	t.Helper()
	left, _, err := s.TokensUnderKey(t.Context(), "k1", "", 10)
	require.NoError(t, err)
	require.Empty(t, left)
	opened := 0
	for cursor := ""; ; {
		tokens, next, err := s.TokensUnderKey(t.Context(), ring.Current, cursor, 100)
		require.NoError(t, err)
		for _, token := range tokens {
			_, err := ring.Open(*token.Recovery, token.Owner, token.ID)
			require.NoError(t, err)
			opened++
		}
		if cursor = next; cursor == "" {
			break
		}
	}
	require.Equal(t, n, opened)
}
