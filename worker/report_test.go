package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/client"

	"millrace/domain/report"
	"millrace/domain/report/reporttest"
	"millrace/platform/slack/slacktest"
	"millrace/storage/objects"
	"millrace/storage/storagetest"
	"millrace/workflows/names"
	workflows "millrace/workflows/report"
)

// buildFolder has the program that tests run; it goes with the tests.
var buildFolder string

// TestMain removes what the tests built.
func TestMain(m *testing.M) {
	code := m.Run()
	if buildFolder != "" {
		_ = os.RemoveAll(buildFolder) // a temporary folder
	}
	os.Exit(code)
}

// built is the program, built once for the tests that run it.
var built = sync.OnceValues(func() (string, error) {
	var err error
	if buildFolder, err = os.MkdirTemp("", "worker-test-"); err != nil {
		return "", err
	}
	program := filepath.Join(buildFolder, "worker")
	if out, err := exec.Command("go", "build", "-o", program, ".").CombinedOutput(); err != nil {
		return "", fmt.Errorf("build worker: %w: %s", err, out)
	}
	return program, nil
})

// night is a bucket with telemetry and the worker program between it and Temporal.
type night struct {
	t        *testing.T
	bucket   objects.Bucket
	temporal client.Client
	slack    *slacktest.Server
	s3       *holdingS3
	program  string
	worker   *exec.Cmd
	log      *os.File
}

func newNight(t *testing.T) *night {
	t.Helper()
	n := &night{t: t, bucket: storagetest.Bucket(t), temporal: ownNamespace(t), slack: slacktest.New(t), s3: newHoldingS3(t)}
	var err error
	n.program, err = built()
	require.NoError(t, err)
	n.log, err = os.Create(filepath.Join(t.TempDir(), "worker.log"))
	require.NoError(t, err)
	t.Cleanup(func() {
		n.kill()
		if t.Failed() {
			body, _ := os.ReadFile(n.log.Name())
			t.Log(string(body[max(0, len(body)-8000):]))
		}
	})
	n.start()
	return n
}

// start starts a worker of the queue of reports.
func (n *night) start() {
	n.t.Helper()
	n.worker = exec.Command(n.program, "--queues=reports", "--data-bucket="+n.bucket.Name, "--slack-webhook=env:HOOK",
		"--report-factory-ids=factory-a", "--bedrock-prices="+`[{"model":"*","input":3,"output":15}]`)
	n.worker.Env = append(os.Environ(), "HOOK="+n.slack.Hook("reports"), "AWS_ENDPOINT_URL_S3="+n.s3.URL)
	n.worker.Stdout, n.worker.Stderr = n.log, n.log
	require.NoError(n.t, n.worker.Start())
}

// kill ends the worker as kill -9 does.
func (n *night) kill() {
	_ = n.worker.Process.Signal(syscall.SIGKILL)
	_ = n.worker.Wait()
}

// telemetry stores some minutes of a day of factory-a, and of the infrastructure.
func (n *night) telemetry(date string) {
	n.t.Helper()
	day, err := report.ParseDay(date, "Asia/Seoul")
	require.NoError(n.t, err)
	start := day.Window().Start
	for _, at := range []time.Duration{0, 12 * time.Hour} {
		minutes := reporttest.FactoryDay{FactoryID: "factory-a", Start: start.Add(at), End: start.Add(at + 2*time.Minute), Calm: true}
		_, err := reporttest.Write(n.t.Context(), n.bucket, minutes.Objects(), 8)
		require.NoError(n.t, err)
	}
	hour := reporttest.CloudDay{Start: start, End: start.Add(10 * time.Minute), Calm: true}
	_, err = reporttest.Write(n.t.Context(), n.bucket, hour.Objects(), 8)
	require.NoError(n.t, err)
}

// begin starts the reports on a day.
func (n *night) begin(in workflows.DailyInput) client.WorkflowRun {
	n.t.Helper()
	run, err := n.temporal.ExecuteWorkflow(n.t.Context(), client.StartWorkflowOptions{ID: names.DailyReportID(in.Date), TaskQueue: names.QueueReports}, names.DailyReport, in)
	require.NoError(n.t, err)
	return run
}

func (n *night) result(run client.WorkflowRun) workflows.DailyResult {
	n.t.Helper()
	ctx, cancel := context.WithTimeout(n.t.Context(), 3*time.Minute)
	defer cancel()
	var day workflows.DailyResult
	require.NoError(n.t, run.Get(ctx, &day))
	return day
}

// objects are the bodies of all objects below a prefix.
func (n *night) objects(prefix string) map[string]string {
	n.t.Helper()
	all := map[string]string{}
	for o, err := range n.bucket.List(n.t.Context(), prefix, "") {
		require.NoError(n.t, err)
		body, err := n.bucket.Get(n.t.Context(), o.Key, 8<<20)
		require.NoError(n.t, err)
		all[strings.TrimPrefix(o.Key, prefix)] = string(body)
	}
	return all
}

func (n *night) remove(prefix string) {
	n.t.Helper()
	for key := range n.objects(prefix) {
		_, err := n.bucket.Client.(*s3.Client).DeleteObject(n.t.Context(), &s3.DeleteObjectInput{Bucket: &n.bucket.Name, Key: new(prefix + key)})
		require.NoError(n.t, err)
	}
}

// holdingS3 passes requests on to the stand-in, and holds chosen ones for ever:
// before they arrive there, or their answers.
type holdingS3 struct {
	*httptest.Server
	lock  sync.Mutex
	holds []*hold
}

type hold struct {
	key    string
	before bool
	held   chan struct{}
	done   bool
}

func newHoldingS3(t *testing.T) *holdingS3 {
	t.Helper()
	target, err := url.Parse(os.Getenv("AWS_ENDPOINT_URL_S3"))
	require.NoError(t, err)
	h := &holdingS3{}
	proxy := &httputil.ReverseProxy{
		Rewrite: func(r *httputil.ProxyRequest) {
			r.Out.URL.Scheme, r.Out.URL.Host, r.Out.Host = target.Scheme, target.Host, r.In.Host
		},
		ErrorLog: nil,
	}
	ended := make(chan struct{})
	h.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		held := h.matching(r)
		if held == nil {
			proxy.ServeHTTP(w, r)
			return
		}
		if !held.before {
			proxy.ServeHTTP(httptest.NewRecorder(), r)
		}
		close(held.held)
		select {
		case <-r.Context().Done():
		case <-ended:
		}
	}))
	t.Cleanup(func() { close(ended); h.CloseClientConnections(); h.Close() })
	return h
}

// hold holds the next write whose key has all of the words in it.
func (h *holdingS3) hold(key string, before bool) *hold {
	held := &hold{key: key, before: before, held: make(chan struct{})}
	h.lock.Lock()
	defer h.lock.Unlock()
	h.holds = append(h.holds, held)
	return held
}

func (h *holdingS3) matching(r *http.Request) *hold {
	if r.Method != http.MethodPut {
		return nil
	}
	h.lock.Lock()
	defer h.lock.Unlock()
	for _, held := range h.holds {
		if !held.done && strings.Contains(r.URL.Path, held.key) {
			held.done = true
			return held
		}
	}
	return nil
}

// mode has the stand-in of the models answer one model in a way.
func mode(t *testing.T, model, mode string, count int) {
	t.Helper()
	body, err := json.Marshal(map[string]any{"model": model, "mode": mode, "count": count})
	require.NoError(t, err)
	request, err := http.NewRequestWithContext(t.Context(), http.MethodPut, os.Getenv("AWS_ENDPOINT_URL_BEDROCK_RUNTIME")+"/mode", bytes.NewReader(body))
	require.NoError(t, err)
	response, err := http.DefaultClient.Do(request)
	require.NoError(t, err)
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	require.NoError(t, err)
	require.Equal(t, http.StatusOK, response.StatusCode, string(text))
}

// TestAWorkerThatIsKilledAtAnyStageLeavesOneReport kills the worker with kill -9
// while one of ten days is at each write, and starts another one. Then it makes
// the same days undisturbed: every byte is the same.
func TestAWorkerThatIsKilledAtAnyStageLeavesOneReport(t *testing.T) {
	n := newNight(t)
	stages := []struct {
		key    string
		before bool
	}{
		{"factory-a/intermediate/hourly/hh=12.json", true},
		{"factory-a/factory-daily-summary.json", false},
		{"factory-a/report-context.json", false},
		{"factory-a/drafts/", true},
		{"factory-a/drafts/", false},
		{"factory-a/report.html", false},
		{"factory-a/report.md", false},
		{"factory-a/generation-metadata.json", true},
		{"factory-a/labels/", false},
		{"/delivery.json", false},
	}
	const prefix = "reports/daily/yyyy=2026/mm=01/"
	dates := make([]string, len(stages))
	holds := make([]*hold, len(stages))
	for i, stage := range stages {
		dates[i] = fmt.Sprintf("2026-01-%02d", i+1)
		n.telemetry(dates[i])
		separator := "/"
		if strings.HasPrefix(stage.key, "/") {
			separator = ""
		}
		holds[i] = n.s3.hold(report.DayPrefix("reports/daily", dates[i])+separator+stage.key, stage.before)
	}
	runs := make([]client.WorkflowRun, len(stages))
	for i, date := range dates {
		runs[i] = n.begin(workflows.DailyInput{Date: date, Targets: []string{"factory-a"}, Model: "kill-" + date})
	}
	for i, held := range holds {
		select {
		case <-held.held:
		case <-time.After(2 * time.Minute):
			require.FailNow(t, "never reached", stages[i].key)
		}
	}
	n.kill()
	n.start()
	for i := range stages {
		day := n.result(runs[i])
		require.Equal(t, workflows.DayCompleted, day.Status, stages[i].key)
		require.Equal(t, workflows.GeneratorModel, day.Results[0].Generator, stages[i].key)
		require.Equal(t, workflows.DeliverySent, day.Deliveries[0].Outcome, stages[i].key)
	}
	require.Len(t, n.slack.Messages(), len(stages), "each day was told of once")
	disturbed := n.objects(prefix)
	n.remove(prefix)
	for i, date := range dates {
		runs[i] = n.begin(workflows.DailyInput{Date: date, Targets: []string{"factory-a"}, Model: "kill-" + date, Quiet: true})
	}
	for _, run := range runs {
		n.result(run)
	}
	requireSame(t, disturbed, n.objects(prefix), len(stages))
}

// requireSame compares what does not tell of its own making, byte for byte.
func requireSame(t *testing.T, disturbed, undisturbed map[string]string, days int) {
	t.Helper()
	reports := 0
	for key, body := range undisturbed {
		require.Contains(t, disturbed, key)
		if strings.HasSuffix(key, "/generation-metadata.json") || strings.Contains(key, "/drafts/") {
			continue // when and how long
		}
		require.Equal(t, body, disturbed[key], key)
		if strings.HasSuffix(key, "/report.md") {
			reports++
		}
	}
	require.Equal(t, days, reports)
	for key := range disturbed {
		if !strings.HasSuffix(key, "/delivery.json") {
			require.Contains(t, undisturbed, key, "nothing is left over")
		}
	}
}

// TestWhateverTheModelDoesAReportArrives makes days with models that fail in
// their ways, over the wire.
func TestWhateverTheModelDoesAReportArrives(t *testing.T) {
	n := newNight(t)
	cases := []struct {
		mode      string
		count     int
		generator string
		calls     int
		reason    string
	}{
		{"ok", 0, workflows.GeneratorModel, 1, ""},
		{"throttle", 2, workflows.GeneratorModel, 1, ""},
		{"lie", 1, workflows.GeneratorModel, 2, ""},
		{"lie", 0, workflows.GeneratorTemplate, 2, "failed its checks"},
		{"foreign", 0, workflows.GeneratorTemplate, 2, "failed its checks"},
		{"nonsense", 0, workflows.GeneratorTemplate, 2, "failed its checks"},
		{"truncate", 0, workflows.GeneratorTemplate, 2, "failed its checks"},
		{"denied", 0, workflows.GeneratorTemplate, 0, "no draft by the model"},
	}
	dateOf := func(i int) string { return fmt.Sprintf("2026-02-%02d", i+1) }
	runs := make([]client.WorkflowRun, len(cases))
	for i, c := range cases {
		model := fmt.Sprintf("model-%d-%d", i, time.Now().UnixNano())
		n.telemetry(dateOf(i))
		mode(t, model, c.mode, c.count)
		runs[i] = n.begin(workflows.DailyInput{Date: dateOf(i), Targets: []string{"factory-a"}, Model: model})
	}
	for i, c := range cases {
		t.Run(fmt.Sprintf("%s for %d", c.mode, c.count), func(t *testing.T) {
			date, day := dateOf(i), n.result(runs[i])
			require.Equal(t, workflows.DayCompleted, day.Status)
			r := day.Results[0]
			require.Equal(t, c.generator, r.Generator, "%+v", r)
			require.Equal(t, c.calls, r.ModelCalls)
			require.Contains(t, r.Reason, c.reason)
			require.Equal(t, c.calls > 0, r.Cost != "")
			written := n.objects(report.ReportPrefix("reports/daily", date, "factory-a") + "/")
			require.Contains(t, written, "report.md")
			require.Contains(t, written, "report.html")
			require.Contains(t, written["generation-metadata.json"], `"generator":"`+c.generator+`"`)
		})
	}
}

// TestANightOfReports makes all targets, one of them on a
// day without data, and a second time: nothing is paid or told twice.
func TestANightOfReports(t *testing.T) {
	n := newNight(t)
	n.telemetry("2026-03-01")
	first := n.result(n.begin(workflows.DailyInput{Date: "2026-03-01"}))
	require.Equal(t, workflows.DayCompleted, first.Status, "%+v", first)
	require.Len(t, first.Results, 2)
	for _, r := range first.Results {
		require.Equal(t, workflows.TargetSuccess, r.Status, "%+v", r)
		require.Equal(t, workflows.GeneratorModel, r.Generator, "%+v", r)
		require.NotEmpty(t, r.Summary)
	}
	again := n.result(n.begin(workflows.DailyInput{Date: "2026-03-01"}))
	require.Zero(t, again.Results[0].ModelCalls, "the same figures are never paid for twice")
	require.Equal(t, workflows.DeliveryDuplicate, again.Deliveries[0].Outcome)
	require.Len(t, n.slack.Messages(), 1)
	require.Contains(t, n.slack.Messages()[0].Text, "factory-a")

	empty := n.result(n.begin(workflows.DailyInput{Date: "2026-03-02"}))
	for _, r := range empty.Results {
		require.Equal(t, workflows.TargetInsufficientData, r.Status, "%+v", r)
		require.Equal(t, workflows.GeneratorTemplate, r.Generator)
		require.Zero(t, r.ModelCalls)
	}
}
