package reportcmd

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"os"
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
	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/worker"
	"go.temporal.io/sdk/workflow"
	"google.golang.org/protobuf/types/known/durationpb"

	"millrace/domain/report"
	storage "millrace/storage/report"
	"millrace/storage/storagetest"
	"millrace/workflows/names"
	workflows "millrace/workflows/report"
)

func parse(t *testing.T, args ...string) (*Command, error) {
	t.Helper()
	var cli Command
	parser, err := kong.New(&cli)
	require.NoError(t, err)
	_, err = parser.Parse(args)
	return &cli, err
}

func TestWhatCannotBeMeantIsRefusedAtTheDoor(t *testing.T) {
	for _, c := range []struct{ args, says string }{
		{"run --date=2026-02-30", "--date"},
		{"run --date=2026-01-01 --target=A", "--target"},
		{"run --date=2026-01-01 --notify --quiet", "can't be used together"},
		{"status --date=x", "--date"},
		{"status --report-timezone=Mars/Olympus", "MILLRACE_REPORT_TIMEZONE"},
		{"backfill", "are required"},
		{"backfill --date-from=2026-01-01", "must be given together"},
		{"backfill --date-from=2026-01-02 --date-to=2026-01-01", "--date-from: must not be after"},
		{"backfill --date-from=2026-01-01 --date-to=2030-01-01", "must be at most 1000"},
		{"backfill --target-dates=factory-a", "--target-dates"},
		{"backfill --target-dates=factory-a:2026-01-32,B:2026-01-01", "--target-dates"},
		{"backfill --date-from=2026-01-01 --date-to=2026-01-01 --targets=../x", "--targets"},
		{"backfill --target-dates=a:2026-01-01 --max-bedrock-calls=-1", "--max-bedrock-calls"},
		{"backfill --target-dates=a:2026-01-01 --force --only-missing", "can't be used together"},
	} {
		_, err := parse(t, strings.Fields(c.args)...)
		require.ErrorContains(t, err, c.says, c.args)
	}
}

func TestStatusIsOfYesterdayInTheReportsZone(t *testing.T) {
	c := StatusCommand{Timezone: "Asia/Seoul"}
	require.NoError(t, c.settle(time.Date(2026, 1, 1, 15, 30, 0, 0, time.UTC)))
	require.Equal(t, "2026-01-01", c.Date)
}

func TestAnActionFollowsFromWhatThereIs(t *testing.T) {
	for _, c := range []struct {
		report, metadata, force bool
		want                    Action
	}{
		{false, false, false, Generate},
		{true, true, false, Skip},
		{true, false, false, ForceNeeded},
		{false, true, false, ForceNeeded},
		{true, true, true, Generate},
		{true, false, true, Generate},
		{false, false, true, Generate},
	} {
		require.Equal(t, c.want, actionOf(c.report, c.metadata, c.force), "%+v", c)
	}
}

func TestRangesAndSingleReportsAreOneList(t *testing.T) {
	cli, err := parse(t, "backfill", "--date-from=2025-12-31", "--date-to=2026-01-01", "--targets=factory-a,cloud-infra", "--target-dates=factory-b:2024-02-29,factory-a:2026-01-01")
	require.NoError(t, err)
	asked, err := cli.Backfill.asked()
	require.NoError(t, err)
	require.Equal(t, []workflows.TargetDate{
		{Target: "factory-a", Date: "2025-12-31"},
		{Target: "cloud-infra", Date: "2025-12-31"},
		{Target: "factory-a", Date: "2026-01-01"},
		{Target: "cloud-infra", Date: "2026-01-01"},
		{Target: "factory-b", Date: "2024-02-29"},
	}, asked)
	t.Setenv("MILLRACE_FACTORY_IDS", "x")
	cli, err = parse(t, "backfill", "--date-from=2026-01-01", "--date-to=2026-01-01")
	require.NoError(t, err)
	require.Equal(t, []string{"x", "cloud-infra"}, cli.Backfill.targets())
}

// bench is a bucket and a namespace with a worker that makes reports up.
type bench struct {
	t        *testing.T
	store    storage.Store
	temporal client.Client
}

func newBench(t *testing.T) bench {
	t.Helper()
	return bench{t: t, store: storage.Store{Bucket: storagetest.Bucket(t), Prefix: "reports/daily"}, temporal: namespace(t)}
}

// namespace is a client of a namespace of its own: task queues have fixed names.
func namespace(t *testing.T) client.Client {
	t.Helper()
	options, err := envconfig.LoadDefaultClientOptions()
	require.NoError(t, err)
	options.Logger = log.NewStructuredLogger(slog.New(slog.DiscardHandler))
	namespaces, err := client.NewNamespaceClient(options)
	require.NoError(t, err)
	defer namespaces.Close()
	options.Namespace = fmt.Sprintf("reportcmd-%d", time.Now().UnixNano())
	require.NoError(t, namespaces.Register(t.Context(), &workflowservice.RegisterNamespaceRequest{
		Namespace: options.Namespace, WorkflowExecutionRetentionPeriod: durationpb.New(24 * time.Hour),
	}))
	c, err := client.Dial(options)
	require.NoError(t, err)
	t.Cleanup(c.Close)
	require.Eventually(t, func() bool {
		_, err := c.CountWorkflow(t.Context(), &workflowservice.CountWorkflowExecutionsRequest{Namespace: options.Namespace})
		return err == nil
	}, 30*time.Second, 100*time.Millisecond, "the server learns of a namespace some seconds later")
	return c
}

// work hosts the workflows of days and backfills, and targets that answer.
func (b bench) work(target func(workflows.TargetInput) (workflows.TargetResult, error)) {
	b.t.Helper()
	w := worker.New(b.temporal, names.QueueReports, worker.Options{})
	w.RegisterWorkflowWithOptions(workflows.DailyReport, workflow.RegisterOptions{Name: names.DailyReport})
	w.RegisterWorkflowWithOptions(workflows.ReportBackfill, workflow.RegisterOptions{Name: names.ReportBackfill})
	made := func(ctx workflow.Context, in workflows.TargetInput) (workflows.TargetResult, error) {
		status := workflows.TargetStatus{Stage: workflows.StageDone, Hours: 24, Done: 24}
		if err := workflow.SetQueryHandler(ctx, workflows.StatusQuery, func() (workflows.TargetStatus, error) { return status, nil }); err != nil {
			return workflows.TargetResult{}, err
		}
		return target(in)
	}
	w.RegisterWorkflowWithOptions(made, workflow.RegisterOptions{Name: names.TargetReport})
	w.RegisterActivityWithOptions(func(_ context.Context, req workflows.PlanRequest) (workflows.Plan, error) {
		return workflows.Plan{Date: req.Date, Timezone: "Asia/Seoul", Targets: req.Targets}, nil
	}, activity.RegisterOptions{Name: workflows.PlanActivity})
	w.RegisterActivityWithOptions(func(context.Context, workflows.DeliverRequest) (workflows.DeliverResult, error) {
		return workflows.DeliverResult{Outcome: workflows.DeliverySent}, nil
	}, activity.RegisterOptions{Name: workflows.DeliverActivity})
	require.NoError(b.t, w.Start())
	b.t.Cleanup(w.Stop)
}

func (b bench) file(date, target string, keys ...func(prefix, date, target string) string) {
	b.t.Helper()
	for _, key := range keys {
		require.NoError(b.t, b.store.Bucket.Put(b.t.Context(), key("reports/daily", date, target), "text/plain", []byte("x")))
	}
}

// answer fails factory-b and makes all others with one model call.
func answer(in workflows.TargetInput) (workflows.TargetResult, error) {
	result := workflows.TargetResult{Target: in.Target, Status: workflows.TargetSuccess, Generator: "model", Verdict: "normal", ModelCalls: 1, ReportKey: "k"}
	if in.Target == "factory-b" {
		result.Status, result.Stage, result.Error = workflows.TargetFailed, "publish", "told to fail"
		return result, temporal.NewApplicationErrorWithOptions("told to fail", workflows.ErrorTargetFailed, temporal.ApplicationErrorOptions{NonRetryable: true, Details: []any{result}})
	}
	return result, nil
}

func TestADryRunOnlyTells(t *testing.T) {
	b := newBench(t)
	b.file("2026-01-01", "factory-a", report.MarkdownKey, report.MetadataKey)
	b.file("2026-01-01", "factory-b", report.MetadataKey)
	cli, err := parse(t, "backfill", "--date-from=2026-01-01", "--date-to=2026-01-02", "--targets=factory-a,factory-b", "--dry-run")
	require.NoError(t, err)
	var out bytes.Buffer
	require.NoError(t, cli.Backfill.backfill(t.Context(), b.store, nil, &out, &out))
	require.Equal(t, strings.Join([]string{
		"| day | target | action | status | generator | model calls | note |", "|---|---|---|---|---|---|---|",
		"| 2026-01-01 | factory-a | skip | skipped |  | 0 |  |",
		"| 2026-01-01 | factory-b | force-needed | force-needed |  | 0 |  |",
		"| 2026-01-02 | factory-a | generate | planned |  | 0 |  |",
		"| 2026-01-02 | factory-b | generate | planned |  | 0 |  |",
		"", "4 reports: 0 made, 0 without data, 0 failed, 0 not generated, 1 skipped, 1 need --force, 2 planned; 0 model calls", "",
	}, "\n"), out.String())
}

func TestABackfillListsWhatBecameOfEachReport(t *testing.T) {
	b := newBench(t)
	b.work(answer)
	b.file("2026-01-01", "factory-a", report.MarkdownKey, report.MetadataKey)
	folder := filepath.Join(t.TempDir(), "results")
	cli, err := parse(t, "backfill", "--date-from=2026-01-01", "--date-to=2026-01-03", "--targets=factory-a,factory-b", "--max-bedrock-calls=3", "--output-dir="+folder)
	require.NoError(t, err)
	var out, progress bytes.Buffer
	err = cli.Backfill.backfill(t.Context(), b.store, b.temporal, &out, &progress)
	var failed *FailedError
	require.ErrorAs(t, err, &failed)
	require.Equal(t, 2, failed.ExitCode())
	body, err := os.ReadFile(filepath.Join(folder, "report-backfill.json"))
	require.NoError(t, err)
	var summary Summary
	require.NoError(t, json.Unmarshal(body, &summary))
	require.Equal(t, 3, summary.ModelCalls)
	require.Positive(t, summary.Failed)
	statuses := map[string]int{}
	for _, item := range summary.Items {
		statuses[item.Status]++
	}
	require.Equal(t, 1, statuses[statusSkipped])
	require.Positive(t, statuses[workflows.TargetNotGenerated])
	require.Contains(t, progress.String(), summary.WorkflowID+" started: 5 reports")
	text, err := os.ReadFile(filepath.Join(folder, "report-backfill.md"))
	require.NoError(t, err)
	require.Equal(t, out.String(), string(text))
	require.Contains(t, out.String(), "publish told to fail")
	require.Contains(t, out.String(), "the bound of 3 model calls was reached")
}

func TestWhatIsThereInPartFailsUnlessOnlyTheMissingIsAskedFor(t *testing.T) {
	b := newBench(t)
	b.work(answer)
	b.file("2026-01-01", "factory-a", report.MarkdownKey)
	for flag, fails := range map[string]bool{"--only-missing": false, "--targets=factory-a": true} {
		cli, err := parse(t, "backfill", "--target-dates=factory-a:2026-01-01", flag)
		require.NoError(t, err)
		var out bytes.Buffer
		err = cli.Backfill.backfill(t.Context(), b.store, b.temporal, &out, &out)
		require.Equal(t, fails, err != nil, flag)
	}
	cli, err := parse(t, "backfill", "--target-dates=factory-a:2026-01-01", "--force")
	require.NoError(t, err)
	var out bytes.Buffer
	require.NoError(t, cli.Backfill.backfill(t.Context(), b.store, b.temporal, &out, &out))
	require.Contains(t, out.String(), "| generate | success | model | 1 |")
}

func TestADayIsMadeByHand(t *testing.T) {
	b := newBench(t)
	b.work(answer)
	cli, err := parse(t, "run", "--date=2026-01-01", "--target=factory-a", "--target=factory-b", "--notify")
	require.NoError(t, err)
	var out, progress bytes.Buffer
	err = cli.Run.run(t.Context(), b.temporal, &out, &progress)
	var failed *FailedError
	require.True(t, errors.As(err, &failed), "%v", err)
	require.Contains(t, out.String(), "2026-01-01 (Asia/Seoul): partial_success\n")
	require.Contains(t, out.String(), "factory-b            failed             model normal k publish told to fail")
	require.Contains(t, out.String(), "message: sent")

	cli, err = parse(t, "run", "--date=2026-01-02", "--target=factory-a", "--json")
	require.NoError(t, err)
	out.Reset()
	require.NoError(t, cli.Run.run(t.Context(), b.temporal, &out, &progress))
	var day workflows.DailyResult
	require.NoError(t, json.Unmarshal(out.Bytes(), &day))
	require.Equal(t, workflows.DayCompleted, day.Status)

	b.file("2026-01-02", "factory-a", report.MarkdownKey, report.MetadataKey)
	require.NoError(t, b.store.Label(t.Context(), "2026-01-02", "factory-a", "model", report.Warning))
	cli, err = parse(t, "status", "--date=2026-01-02", "--report-factory-ids=factory-a,factory-b")
	require.NoError(t, err)
	out.Reset()
	require.NoError(t, cli.Status.show(t.Context(), b.store, b.temporal, &out))
	lines := strings.Split(out.String(), "\n")
	require.Regexp(t, `^factory-a +yes +model +warning +20\S+ +Completed +done +24/24 +-$`, lines[1])
	require.Regexp(t, `^factory-b +no +- +- +- +- +- +- +-$`, lines[2])
	require.Regexp(t, `^cloud-infra +no`, lines[3])
}

// TestARunThatWasAskedForSomethingElseIsNotJoined has one run at work while
// others are asked for.
func TestARunThatWasAskedForSomethingElseIsNotJoined(t *testing.T) {
	b := newBench(t)
	ask := func(args ...string) (string, error) {
		t.Helper()
		cli, err := parse(t, append([]string{"run", "--date=2026-01-01"}, args...)...)
		require.NoError(t, err)
		var out, progress bytes.Buffer
		err = cli.Run.run(t.Context(), b.temporal, &out, &progress)
		return out.String() + progress.String(), err
	}
	out, err := ask("--target=factory-a", "--model-id=m1", "--no-wait")
	require.NoError(t, err)
	require.Contains(t, out, "started")
	for _, other := range [][]string{{"--target=factory-c"}, {"--target=factory-a"}, {"--target=factory-a", "--model-id=m1", "--notify"}, {"--target=factory-a", "--model-id=m1", "--ask-again"}} {
		_, err = ask(append(other, "--no-wait")...)
		var running *RunningError
		require.ErrorAs(t, err, &running, other)
		require.ErrorContains(t, err, "daily-report/2026-01-01 is running already and was asked for something else (targets factory-a; model m1)")
	}
	out, err = ask("--target=factory-a", "--model-id=m1", "--no-wait")
	require.NoError(t, err)
	require.Contains(t, out, "joined")
	b.work(answer)
	out, err = ask("--target=factory-c", "--join")
	require.NoError(t, err)
	require.Contains(t, out, "joined")
	require.Contains(t, out, "factory-a ")
}

func TestABackfillTellsOfReportsThatOtherRunsMade(t *testing.T) {
	s := Summary{Items: []Item{{Target: "factory-a", Date: "2026-01-01", Action: Generate, Status: workflows.TargetSuccess, Generator: "model", Awaited: true}}}
	require.Contains(t, s.markdown(), "| success | model | 0 | (made by another run) |")
	require.Contains(t, resultLine(workflows.TargetResult{Target: "factory-a", Awaited: true}), "(made by another run)")
}
