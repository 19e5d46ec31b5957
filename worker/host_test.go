package main

import (
	"errors"
	"log/slog"
	"testing"
	"time"

	"github.com/alecthomas/kong"
	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/mocks"
	"go.temporal.io/sdk/worker"
	"go.temporal.io/sdk/workflow"

	"millrace/workflows/names"
)

func parse(t testing.TB, args ...string) (settings, error) {
	t.Helper()
	var s settings
	parser, err := kong.New(&s)
	require.NoError(t, err)
	_, err = parser.Parse(args)
	return s, err
}

func TestEverySettingHasADefaultButTheQueues(t *testing.T) {
	s, err := parse(t, "--telemetry-queue-url=http://q/t", "--rule-errors-queue-url=http://q/r")
	require.NoError(t, err)
	require.Equal(t, []string{"artifacts", "telemetry", "scheduled", "alerts", "reports"}, s.TaskQueues.Names)
	require.NotContains(t, s.TaskQueues.Names, names.QueueScripts)
	require.GreaterOrEqual(t, s.TaskQueues.StopTimeout, 30*time.Second)
	require.Equal(t, 2*time.Hour, s.Retention.HistoryTTL)
	require.Equal(t, 48*time.Hour, s.Retention.GraphTTL)
}

func TestAllWrongSettingsAreNamedTogether(t *testing.T) {
	t.Setenv("MILLRACE_FACTORY_IDS", "a/b")
	t.Setenv("MILLRACE_TELEMETRY_QUEUE_URL", "")
	t.Setenv("MILLRACE_RULE_ERRORS_QUEUE_URL", "")
	_, err := parse(t, "--queues=telemetry,foo", "--history-ttl=1m", "--graph-ttl=0s", "--sample-interval=0s", "--ai-score-threshold=high", "--stop-timeout=0s")
	for _, variable := range []string{
		"MILLRACE_WORKER_QUEUES", "MILLRACE_TELEMETRY_QUEUE_URL", "MILLRACE_RULE_ERRORS_QUEUE_URL", "MILLRACE_FACTORY_IDS",
		"MILLRACE_HISTORY_TTL", "MILLRACE_GRAPH_TTL", "MILLRACE_SAMPLE_INTERVAL", "MILLRACE_AI_SCORE_THRESHOLD", "MILLRACE_WORKER_STOP_TIMEOUT",
	} {
		require.ErrorContains(t, err, variable)
	}
}

func TestQueueURLsAreNeededForTelemetryOnly(t *testing.T) {
	t.Setenv("MILLRACE_TELEMETRY_QUEUE_URL", "")
	_, err := parse(t, "--queues=scheduled")
	require.NoError(t, err)
}

func TestABuildIDSwitchesVersioningOn(t *testing.T) {
	s, err := parse(t, "--queues=scheduled", "--build-id=2026-05-20.1")
	require.NoError(t, err)
	options := newHost(&mocks.Client{}, s).options(names.QueueScripts)
	require.Equal(t, 8, options.MaxConcurrentActivityExecutionSize, "scripts don't starve one another")
	require.True(t, options.DeploymentOptions.UseVersioning)
	require.Equal(t, worker.WorkerDeploymentVersion{DeploymentName: "millrace", BuildID: "2026-05-20.1"}, options.DeploymentOptions.Version)
	require.Equal(t, workflow.VersioningBehaviorPinned, options.DeploymentOptions.DefaultVersioningBehavior)
}

func TestOnlyChosenQueuesAreRegistered(t *testing.T) {
	s, err := parse(t, "--queues=scheduled")
	require.NoError(t, err)
	h := newHost(&mocks.Client{}, s)
	h.on(names.QueueTelemetry, func(worker.Registry) { t.Error("registered on a queue that is not worked on") })
	require.ErrorContains(t, h.run(t.Context(), slog.New(slog.DiscardHandler)), "nothing is registered")
}

func TestTheFirstFatalErrorCounts(t *testing.T) {
	h := newHost(&mocks.Client{}, settings{})
	h.fail(errors.New("first"))
	h.fail(errors.New("second"))
	require.EqualError(t, <-h.fatal, "first")
}
