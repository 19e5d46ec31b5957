package e2e

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/stretchr/testify/require"

	"millrace/platform/queue"
	storage "millrace/storage/factory"
	"millrace/storage/objects"
	"millrace/storage/storagetest"
)

// repository is the root folder, where bin/ is.
func repository(t testing.TB) string {
	t.Helper()
	root, err := filepath.Abs("../..")
	require.NoError(t, err)
	return root
}

// run runs one of our programs to its end.
func run(t testing.TB, program string, args ...string) string {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), filepath.Join(repository(t), "bin", program), args...)
	out, err := cmd.CombinedOutput()
	require.NoError(t, err, "%s %s: %s", program, strings.Join(args, " "), out)
	return string(out)
}

// process is a running program of ours.
type process struct {
	t       testing.TB
	program string
	args    []string
	env     []string
	cmd     *exec.Cmd
}

func start(t testing.TB, env []string, program string, args ...string) *process {
	t.Helper()
	p := &process{t: t, program: program, args: args, env: env}
	p.start()
	t.Cleanup(func() { p.stop(syscall.SIGTERM) })
	return p
}

func (p *process) start() {
	p.t.Helper()
	p.cmd = exec.Command(filepath.Join(repository(p.t), "bin", p.program), p.args...)
	p.cmd.Env = append(os.Environ(), p.env...)
	log, err := os.OpenFile(filepath.Join(os.Getenv("MILLRACE_LOCAL_DIR"), "e2e-"+p.program+".log"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	require.NoError(p.t, err)
	p.cmd.Stdout, p.cmd.Stderr = log, log
	require.NoError(p.t, p.cmd.Start())
	require.NoError(p.t, log.Close())
}

func (p *process) stop(signal os.Signal) {
	if p.cmd.Process.Signal(signal) == nil {
		_ = p.cmd.Wait()
	}
}

func freeAddress(t testing.TB) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer l.Close()
	return l.Addr().String()
}

// stack is the running product on the local stand-ins.
type stack struct {
	t       testing.TB
	store   storage.Store
	queue   queue.Queue
	worker  *process
	metrics string
}

// newStack provisions the stand-ins and starts a worker with one consumer.
func newStack(t testing.TB) *stack {
	t.Helper()
	cfg := storagetest.Config(t)
	s := &stack{t: t, metrics: freeAddress(t)}
	s.store = storage.Store{
		Table:      storage.StatusTable(dynamodb.NewFromConfig(cfg), "millrace-factory-status"),
		Bucket:     objects.Bucket{Client: s3.NewFromConfig(cfg), Name: "millrace-data"},
		HistoryTTL: 2 * time.Hour,
	}
	s.queue = queue.Queue{Client: sqs.NewFromConfig(cfg), URL: os.Getenv("MILLRACE_TELEMETRY_QUEUE_URL")}
	run(t, "starter", "provision", "--create", "--no-streams")
	s.worker = start(t, []string{"MILLRACE_METRICS_ADDRESS=" + s.metrics}, "worker")
	run(t, "starter", "up")
	return s
}

// metric is the sum of a metric of the worker over all its labels.
func (s *stack) metric(name string) float64 {
	s.t.Helper()
	response, err := http.Get("http://" + s.metrics + "/metrics")
	if err != nil {
		return 0
	}
	defer response.Body.Close()
	var sum float64
	for lines := bufio.NewScanner(response.Body); lines.Scan(); {
		series, value, _ := strings.Cut(lines.Text(), " ")
		if series != name && !strings.HasPrefix(series, name+"{") {
			continue
		}
		if v, err := strconv.ParseFloat(value, 64); err == nil {
			sum += v
		}
	}
	return sum
}

// control asks the local stack to do something, such as kill a part.
func control(t testing.TB, path string, answer any) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, os.Getenv("MILLRACE_LOCAL_CONTROL")+path, nil)
	require.NoError(t, err)
	response, err := http.DefaultClient.Do(request)
	require.NoError(t, err)
	defer response.Body.Close()
	require.Equal(t, http.StatusOK, response.StatusCode, path)
	if answer != nil {
		require.NoError(t, json.NewDecoder(response.Body).Decode(answer))
	}
}

// certificates are the files of a factory's identity.
type certificates struct {
	Cert string `json:"cert_file"`
	Key  string `json:"key_file"`
	CA   string `json:"ca_file"`
}

func factoryID(n int) string { return fmt.Sprintf("plant-%03d", n) }
