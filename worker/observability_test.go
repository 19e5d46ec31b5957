package main

import (
	"context"
	"fmt"
	"log/slog"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/require"
	"go.temporal.io/api/enums/v1"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/contrib/envconfig"
	"go.temporal.io/sdk/converter"
	"go.temporal.io/sdk/log"
	"go.temporal.io/sdk/worker"

	"millrace/domain/exact"
	"millrace/domain/observability"
	storage "millrace/storage/observability"
	"millrace/storage/provision"
	"millrace/storage/storagetest"
	alerts "millrace/workflows/alert"
	"millrace/workflows/names"
	workflows "millrace/workflows/observability"
)

// TestSignalsAreCountedAndOverdrawnBudgetsAreToldOf runs the rollup as the worker
// hosts it, on a real server and table, and looks for the alert at the entity of
// the application.
func TestSignalsAreCountedAndOverdrawnBudgetsAreToldOf(t *testing.T) {
	shape := provision.GovernanceTable("")
	schema := storagetest.Schema{PartitionKey: shape.PartitionKey, SortKey: shape.SortKey}
	for _, index := range shape.Indexes {
		schema.Indexes = append(schema.Indexes, storagetest.Index(index))
	}
	own := storagetest.Table(t, schema)
	tables, ok := own.Client.(*dynamodb.Client)
	require.True(t, ok)
	options, err := envconfig.LoadDefaultClientOptions()
	require.NoError(t, err)
	options.Logger = log.NewStructuredLogger(slog.New(slog.DiscardHandler))
	temporal, err := client.Dial(options)
	require.NoError(t, err)
	t.Cleanup(temporal.Close)

	var s settings
	s.GovernanceTable, s.TaskQueues.Names = own.Name, []string{names.QueueScheduled}
	queue := fmt.Sprintf("observability-%d", time.Now().UnixNano())
	w := worker.New(temporal, queue, worker.Options{})
	h := newHost(temporal, s)
	h.workers[names.QueueScheduled] = w
	registerObservability(h, dependencies{
		settings: s, clients: clients{dynamodb: tables}, temporal: temporal, registry: prometheus.NewRegistry(), logger: slog.New(slog.DiscardHandler),
	})
	require.NoError(t, w.Start())
	t.Cleanup(w.Stop)

	app := fmt.Sprintf("shop-%d", time.Now().UnixNano())
	store := storage.New(tables, own.Name)
	now := time.Now().UTC()
	for n := range 120 {
		cost := exact.MustParse("0.1")
		signal, err := observability.Signal{
			SignalID: fmt.Sprint("s", n), AppID: app, Timestamp: now, Protocol: observability.UOP, Type: observability.Request, Status: observability.StatusOK, CostUSD: &cost,
		}.Receive(now, observability.Prices{})
		require.NoError(t, err)
		_, err = store.Put(t.Context(), signal)
		require.NoError(t, err)
	}
	spec, err := observability.Spec{Name: "Shop", Kind: observability.DailyCost, Threshold: exact.FromInt(12)}.Settled()
	require.NoError(t, err)
	_, err = store.CreateRule(t.Context(), observability.Rule{RuleID: "budget", AppID: app, Spec: spec, Rev: 1, CreatedAt: now})
	require.NoError(t, err)

	for _, want := range []int64{120, 0} {
		run, err := temporal.ExecuteWorkflow(t.Context(), client.StartWorkflowOptions{ID: queue, TaskQueue: queue}, names.SignalRollup, workflows.RollupInput{})
		require.NoError(t, err)
		var done workflows.Carry
		require.NoError(t, run.Get(t.Context(), &done))
		require.Equal(t, want, done.Counts.Signals)
		require.EqualValues(t, 3, done.Rules.Firing)
		require.EqualValues(t, map[int64]int64{120: 3, 0: 0}[want], done.Rules.New)
	}
	raised := raisedAt(t, temporal, "risk-alert/app."+app)
	require.Len(t, raised.Alerts, 3)
	require.Equal(t, "ALERTSTATE#budget#80#"+now.Format(time.DateOnly), raised.Alerts[0].Key().SK)
	require.NoError(t, temporal.TerminateWorkflow(t.Context(), "risk-alert/app."+app, "", "tested"))
}

// raisedAt is what the one signal of an entity raised.
func raisedAt(t *testing.T, temporal client.Client, id string) alerts.Raise {
	t.Helper()
	var raises []alerts.Raise
	events := temporal.GetWorkflowHistory(context.Background(), id, "", false, enums.HISTORY_EVENT_FILTER_TYPE_ALL_EVENT)
	for events.HasNext() {
		event, err := events.Next()
		require.NoError(t, err)
		if signal := event.GetWorkflowExecutionSignaledEventAttributes(); signal != nil {
			var raise alerts.Raise
			require.NoError(t, converter.GetDefaultDataConverter().FromPayloads(signal.Input, &raise))
			raises = append(raises, raise)
		}
	}
	require.Len(t, raises, 1)
	return raises[0]
}
