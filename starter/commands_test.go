package main

import (
	"bytes"
	"context"
	"crypto/rand"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/alecthomas/kong"
	"github.com/stretchr/testify/require"
	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/contrib/envconfig"
	"go.temporal.io/sdk/log"
	"go.temporal.io/sdk/worker"
	"go.temporal.io/sdk/workflow"
	"google.golang.org/protobuf/types/known/durationpb"

	"millrace/domain/factory"
	"millrace/storage/provision"
	workflows "millrace/workflows/factory"
	"millrace/workflows/names"
)

func parse(t *testing.T, args ...string) (*commands, error) {
	t.Helper()
	var cli commands
	parser, err := kong.New(&cli, kong.Exit(func(int) { t.Error("exits") }))
	require.NoError(t, err)
	_, err = parser.Parse(args)
	return &cli, err
}

func TestEveryCommandIsMounted(t *testing.T) {
	for _, args := range [][]string{
		{"provision"},
		{"up"},
		{"replay", "--factory=factory-a", "--from=x", "--to=y"},
		{"schedules", "apply"},
		{"status"},
		{"token", "list", "--owner=user:a"},
		{"factory", "explain"},
		{"report", "run", "--date=2026-01-01"},
		{"report", "status"},
		{"report", "backfill", "--date-from=2026-01-01", "--date-to=2026-01-31", "--dry-run"},
	} {
		_, err := parse(t, args...)
		require.NoError(t, err, args)
	}
}

func TestWrongSettingsAreNamed(t *testing.T) {
	t.Setenv("MILLRACE_DATA_BUCKET", "Not_A_Bucket")
	_, err := parse(t, "provision")
	require.ErrorContains(t, err, "MILLRACE_DATA_BUCKET")
	_, err = parse(t, "factory", "explain")
	require.NoError(t, err, "explaining needs no store")
	_, err = parse(t, "up", "--consumers=0")
	require.ErrorContains(t, err, "MILLRACE_CONSUMERS")
	_, err = parse(t, "up", "--consumers=1000")
	require.ErrorContains(t, err, "MILLRACE_CONSUMERS")
	_, err = parse(t, "replay", "--factory=factory-a")
	require.ErrorContains(t, err, "--from")
}

func TestQueueNamesComeFromTheirURLs(t *testing.T) {
	c, err := parse(t, "provision")
	require.NoError(t, err)
	require.Equal(t, provision.DefaultQueues, c.Provision.queueNames())
	c, err = parse(t, "provision", "--telemetry-queue-url=https://sqs.eu-west-1.amazonaws.com/123456789012/own-telemetry", "--job-results-queue-url=http://127.0.0.1:1/0/own-jobs")
	require.NoError(t, err)
	want := provision.DefaultQueues
	want.Telemetry, want.JobResults = "own-telemetry", "own-jobs"
	require.Equal(t, want, c.Provision.queueNames())
}

// built is the program, built once for the tests that run it.
func built(t *testing.T) string {
	t.Helper()
	program := filepath.Join(t.TempDir(), "starter")
	out, err := exec.CommandContext(t.Context(), "go", "build", "-o", program, ".").CombinedOutput()
	require.NoError(t, err, string(out))
	return program
}

func TestTheProgramExplainsWithoutAnySettings(t *testing.T) {
	program := built(t)
	run := func(stdin string, args ...string) (stdout, stderr string, code int) {
		cmd := exec.CommandContext(t.Context(), program, args...)
		var out, errs bytes.Buffer
		cmd.Env, cmd.Stdin, cmd.Stdout, cmd.Stderr = []string{}, strings.NewReader(stdin), &out, &errs
		if err := cmd.Run(); err != nil {
			require.IsType(t, &exec.ExitError{}, err)
		}
		return out.String(), errs.String(), cmd.ProcessState.ExitCode()
	}
	golden, err := os.ReadFile("testdata/explain_both.golden.json")
	require.NoError(t, err)
	stdout, stderr, code := run("", "factory", "explain", "--factory-state", factoryFile, "--infra-state", infraFile, "--at", judged)
	require.Equal(t, string(golden), stdout)
	require.Empty(t, stderr)
	require.Zero(t, code)

	stdout, stderr, code = run("{", "factory", "explain", "--factory-state", "-")
	require.Empty(t, stdout)
	require.Contains(t, stderr, "body: must be JSON")
	require.Equal(t, 1, code)
}

func TestTheProgramProvisionsAndThenFindsNothingWanting(t *testing.T) {
	require.NotEmpty(t, os.Getenv("AWS_ENDPOINT_URL_DYNAMODB"), "no local stand-ins: run make test, or bin/local exec -- go test")
	program, own := built(t), "test-"+strings.ToLower(rand.Text())
	run := func(args ...string) (string, int) {
		cmd := exec.CommandContext(t.Context(), program, append([]string{"provision"}, args...)...)
		cmd.Env = append(os.Environ(),
			"MILLRACE_GOVERNANCE_TABLE="+own+"-g", "MILLRACE_MONITORING_TABLE="+own+"-m", "MILLRACE_FACTORY_STATUS_TABLE="+own+"-f", "MILLRACE_DATA_BUCKET="+own,
			"MILLRACE_TELEMETRY_QUEUE_URL=http://q/0/"+own+"-t", "MILLRACE_TELEMETRY_DLQ_QUEUE_URL=http://q/0/"+own+"-d",
			"MILLRACE_RULE_ERRORS_QUEUE_URL=http://q/0/"+own+"-r", "MILLRACE_JOB_RESULTS_QUEUE_URL=http://q/0/"+own+"-j",
		)
		out, _ := cmd.CombinedOutput()
		return string(out), cmd.ProcessState.ExitCode()
	}
	out, code := run()
	require.Equal(t, 1, code)
	require.Contains(t, out, "8 of 8 parts are missing or drifted")
	out, code = run("--create")
	require.Zero(t, code, out)
	require.Contains(t, out, "created")
	require.Regexp(t, `unsupported +bucket \S+ lifecycle +NotImplemented`, out)
	for _, args := range [][]string{nil, {"--create"}} {
		out, code = run(args...)
		require.Zero(t, code, out)
		require.NotContains(t, out, "created")
	}
}

// ownNamespace is a client of a namespace that no other test's worker polls.
func ownNamespace(t *testing.T) client.Client {
	c, _ := namedNamespace(t)
	return c
}

func namedNamespace(t *testing.T) (client.Client, string) {
	t.Helper()
	require.NotEmpty(t, os.Getenv("TEMPORAL_ADDRESS"), "no Temporal server: run make test, or bin/local exec -- go test")
	options, err := envconfig.LoadDefaultClientOptions()
	require.NoError(t, err)
	options.Logger = log.NewStructuredLogger(slog.New(slog.DiscardHandler))
	namespaces, err := client.NewNamespaceClient(options)
	require.NoError(t, err)
	defer namespaces.Close()
	options.Namespace = "starter-" + strings.ToLower(rand.Text())
	err = namespaces.Register(t.Context(), &workflowservice.RegisterNamespaceRequest{
		Namespace: options.Namespace, WorkflowExecutionRetentionPeriod: durationpb.New(24 * time.Hour),
	})
	require.NoError(t, err)
	c, err := client.DialContext(t.Context(), options)
	require.NoError(t, err)
	t.Cleanup(c.Close)
	require.Eventually(t, func() bool {
		_, err := c.ListWorkflow(t.Context(), &workflowservice.ListWorkflowExecutionsRequest{Namespace: options.Namespace})
		return err == nil
	}, 30*time.Second, 100*time.Millisecond)
	return c, options.Namespace
}

func TestUpMakesTheSearchAttributesThatAreMissing(t *testing.T) {
	c, namespace := namedNamespace(t)
	var out bytes.Buffer
	require.NoError(t, ensureSearchAttributes(t.Context(), c, namespace, &out))
	require.Equal(t, "search attributes made: MillraceArtifactAuthor, MillraceArtifactId, MillraceArtifactKind, MillraceArtifactState\n", out.String())
	require.Eventually(t, func() bool { // the server tells of them a moment later
		out.Reset()
		return ensureSearchAttributes(t.Context(), c, namespace, &out) == nil && out.Len() == 0
	}, 30*time.Second, 100*time.Millisecond, "twice changes nothing")
}

func TestUpStartsWhatDoesNotRunYet(t *testing.T) {
	c := ownNamespace(t)
	up := func(consumers int) string {
		var out bytes.Buffer
		// A new namespace takes a moment to reach every part of the server.
		require.Eventually(t, func() bool {
			out.Reset()
			return (&upCommand{Consumers: consumers}).up(t.Context(), c, &out) == nil
		}, 30*time.Second, 200*time.Millisecond)
		return out.String()
	}
	up(1)
	require.Equal(t, strings.Join([]string{
		"telemetry-ingest/0   runs already", "telemetry-ingest/1   started", "rule-error-drain/0   runs already", "job-result-drain/0   runs already", "raw-reconcile/up     runs already", "",
	}, "\n"), up(2))
	for id, want := range map[string][2]string{
		"telemetry-ingest/0": {names.TelemetryIngest, names.QueueTelemetry}, "telemetry-ingest/1": {names.TelemetryIngest, names.QueueTelemetry},
		"rule-error-drain/0": {names.RuleErrorDrain, names.QueueTelemetry}, "job-result-drain/0": {names.JobResultDrain, names.QueueArtifacts},
		"raw-reconcile/up": {names.RawReconcile, names.QueueScheduled},
	} {
		described, err := c.DescribeWorkflow(t.Context(), id, "")
		require.NoError(t, err)
		info := described.RawResponse.GetWorkflowExecutionInfo()
		require.Equal(t, want, [2]string{info.GetType().GetName(), info.GetTaskQueue()}, id)
	}
	require.Contains(t, up(1), "telemetry-ingest/1   ends\n")
}

func TestAReplayIsFollowedToItsEnd(t *testing.T) {
	c := ownNamespace(t)
	w := worker.New(c, names.QueueTelemetry, worker.Options{})
	w.RegisterWorkflowWithOptions(workflows.RawReplay, workflow.RegisterOptions{Name: names.RawReplay})
	w.RegisterActivityWithOptions(func(_ context.Context, chunk workflows.ReplayChunk) (workflows.ReplayChunkResult, error) {
		time.Sleep(time.Second)
		return workflows.ReplayChunkResult{Counts: workflows.ReplayCounts{Messages: 3}, State: &factory.Latest{FactoryID: "factory-a"}, DayDone: true}, nil
	}, activity.RegisterOptions{Name: workflows.ReplayRawActivity})
	w.RegisterActivityWithOptions(func(context.Context, workflows.RestoreRequest) (workflows.RestoreResult, error) {
		return workflows.RestoreResult{Restored: true}, nil
	}, activity.RegisterOptions{Name: workflows.RestoreLatestStateActivity})
	require.NoError(t, w.Start())
	t.Cleanup(w.Stop)

	command := replayCommand{Factory: "factory-a", From: "2026-05-20T08:00:00Z", To: "2026-05-20T18:00:00+09:00", LateDays: 2, Wait: true}
	request, err := command.request()
	require.NoError(t, err)
	var out bytes.Buffer
	require.NoError(t, command.replay(t.Context(), c, request, &out))
	require.Contains(t, out.String(), "raw-replay/factory-a/2026-05-20T08:00:00Z started\n")
	require.Regexp(t, `received on 2026-05-\d\d \(last 2026-05-22\): \d+ messages`, out.String())
	require.Contains(t, out.String(), `"messages": 12`)
	require.Contains(t, out.String(), `"done": true`)
}

func TestReplaysThatCantBeAreRefusedAtTheDoor(t *testing.T) {
	for want, c := range map[string]replayCommand{
		"factory_id":         {Factory: "a/b", From: "2026-05-20T08:00:00Z", To: "2026-05-20T09:00:00Z"},
		"--from":             {Factory: "a", From: "yesterday", To: "2026-05-20T09:00:00Z"},
		"--to":               {Factory: "a", From: "2026-05-20T08:00:00Z", To: "2026-05-20T09:00:00"},
		"to: must be after":  {Factory: "a", From: "2026-05-20T08:00:00Z", To: "2026-05-20T08:00:00Z"},
		"late_days: must be": {Factory: "a", From: "2026-05-20T08:00:00Z", To: "2026-05-20T09:00:00Z", LateDays: -1},
	} {
		_, err := c.request()
		require.ErrorContains(t, err, want)
	}
}
