package main

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"millrace/domain/artifact"
	"millrace/edge/edgetest"
	"millrace/platform/mqtt"
	"millrace/platform/queue"
)

// reached is a simulated factory that takes jobs, with the worker's publisher and the queue of
// its answers.
type reached struct {
	*testing.T
	*edgetest.Factory
	root    string
	worker  *mqtt.Publisher
	results queue.Queue
	came    []artifact.JobReply
}

func newReached(t *testing.T) *reached {
	t.Helper()
	f := edgetest.New(t)
	r := &reached{T: t, Factory: f, root: filepath.Join(t.TempDir(), "outbox"), results: f.JobResults(t), worker: &mqtt.Publisher{Config: mqtt.Config{
		ClientID: mqtt.UniqueID("edge-test"), Broker: mqtt.Broker{
			Endpoint: f.Endpoint, CAFile: os.Getenv("MILLRACE_IOT_CA_FILE"), CertFile: os.Getenv("MILLRACE_IOT_CERT_FILE"), KeyFile: os.Getenv("MILLRACE_IOT_KEY_FILE"),
		},
	}}}
	t.Cleanup(r.worker.Close)
	return r
}

// simulate runs the program; it ends with the test unless it is killed before.
func (r *reached) simulate(args ...string) (kill func()) {
	r.Helper()
	program := start(r.T, r.Factory, r.root, append([]string{"simulate", "--factory", r.ID, "--profile", "factory-a", "--publish", "--speed", "30"}, args...)...)
	end := sync.OnceFunc(func() { program.Wait() })
	r.Cleanup(func() {
		program.Process.Signal(syscall.SIGTERM)
		end()
		r.settle()
	})
	return func() {
		require.NoError(r, program.Process.Kill())
		end()
	}
}

// settle waits until the broker has stored what was under way.
func (r *reached) settle() {
	for stored := -1; ; time.Sleep(200 * time.Millisecond) {
		now := 0
		for _, err := range r.Bucket.List(context.Background(), "", "") {
			require.NoError(r, err)
			now++
		}
		if now == stored {
			return
		}
		stored = now
	}
}

func jobRun(n int) string { return fmt.Sprintf("01900000-0000-7000-8000-%012d", n) }

func (r *reached) tell(n int, content string) {
	r.Helper()
	body, err := artifact.JobDocument{
		RunID: jobRun(n), ArtifactID: "fix", Version: 1, Role: artifact.Primary, FactoryID: r.ID, Filename: "job.json",
		ContentHash: artifact.HashOf([]byte(content)), ContentBase64: base64.StdEncoding.EncodeToString([]byte(content)),
		TimeoutSeconds: 60, IssuedAt: time.Now().UTC(),
	}.Encode()
	require.NoError(r, err)
	require.NoError(r, r.worker.Publish(r.Context(), artifact.JobTopic(r.ID, jobRun(n)), body))
}

// answer is the next reply to a job that the rules put into the queue.
func (r *reached) answer(n int) artifact.JobReply {
	r.Helper()
	var reply artifact.JobReply
	require.Eventually(r, func() bool {
		r.receive()
		i := slices.IndexFunc(r.came, func(reply artifact.JobReply) bool { return reply.RunID == jobRun(n) })
		if i < 0 {
			return false
		}
		reply = r.came[i]
		r.came = slices.Delete(r.came, i, i+1)
		return true
	}, 30*time.Second, 10*time.Millisecond)
	return reply
}

func (r *reached) receive() {
	messages, err := r.results.Receive(r.Context(), 10, 0, time.Minute)
	require.NoError(r, err)
	require.NoError(r, r.results.Delete(r.Context(), messages))
	for _, m := range messages {
		var envelope struct {
			Body  []byte `json:"body"`
			Topic string `json:"topic"`
		}
		require.NoError(r, json.Unmarshal([]byte(m.Body), &envelope))
		reply, err := artifact.ParseJobReply(envelope.Topic, envelope.Body, time.Now())
		require.NoError(r, err)
		r.came = append(r.came, reply)
	}
}

// tellUntil tells a job again and again until the memory of jobs has some text:
// then the program is there and has come that far.
func (r *reached) tellUntil(text string, n int, content string) {
	r.Helper()
	require.Eventually(r, func() bool {
		r.tell(n, content)
		time.Sleep(100 * time.Millisecond)
		memory, err := os.ReadFile(filepath.Join(filepath.Dir(r.root), r.ID+"-jobs.json"))
		return err == nil && strings.Contains(string(memory), text)
	}, 30*time.Second, 100*time.Millisecond)
}

// temperature is the last one that the cloud has.
func (r *reached) temperature() float64 {
	r.Helper()
	var last string
	for _, id := range r.Stored(r) {
		if strings.Contains(id, ":factory_state:") {
			last = max(last, id)
		}
	}
	if last == "" {
		return 0
	}
	var m struct {
		Payload struct {
			Sensor struct {
				Temperature float64 `json:"temperature_celsius_avg"`
			} `json:"sensor"`
		} `json:"payload"`
	}
	require.NoError(r, json.Unmarshal(r.Body(r, last), &m))
	return m.Payload.Sensor.Temperature
}

func TestLiveWhatAJobChangesShowsInTheCloud(t *testing.T) {
	r := newReached(t)
	r.simulate()
	shows := func(least, most float64) {
		t.Helper()
		require.Eventually(t, func() bool { v := r.temperature(); return v >= least && v <= most }, 30*time.Second, 200*time.Millisecond)
	}
	shows(24, 25)
	r.tellUntil(`"answered":true`, 1, `{"operation":"adjust","temperature_offset_c":"12.5"}`)
	reply := r.answer(1)
	require.Equal(t, artifact.JobSucceeded, reply.Status)
	require.Equal(t, r.ID, reply.FactoryID)
	shows(36.5, 37.5)
	r.tell(2, `{"operation":"reset"}`)
	require.Equal(t, artifact.JobSucceeded, r.answer(2).Status)
	shows(24, 25)
	r.tell(1, `{"operation":"adjust","temperature_offset_c":"12.5"}`)
	require.Equal(t, reply, r.answer(1), "the same job again, the same reply")
	time.Sleep(time.Second)
	shows(24, 25)
}

func TestLiveAKillDuringAJobDoesNotDoItTwice(t *testing.T) {
	r := newReached(t)
	kill := r.simulate("--job-drill", "slow=30s")
	r.tellUntil(`"begun"`, 1, `{"operation":"adjust","temperature_offset_c":"12.5"}`)
	kill()
	// The broker keeps what comes while the device is away.
	r.tell(2, `{"operation":"echo","text":"hello"}`)
	r.simulate("--job-drill", "none")
	first, second := r.answer(1), r.answer(2)
	require.Equal(t, artifact.JobFailed, first.Status)
	require.Equal(t, -1, first.ExitCode)
	require.Contains(t, first.Detail, "not known")
	require.Equal(t, artifact.JobSucceeded, second.Status)
	require.Equal(t, "hello", second.Stdout)
}

func TestLiveAnAnswerSurvivesAKill(t *testing.T) {
	r := newReached(t)
	kill := r.simulate("--job-drill", "silent")
	r.tellUntil(`"answered":true`, 1, `{"operation":"adjust","temperature_offset_c":"12.5"}`)
	kill()
	r.simulate("--job-drill", "duplicate")
	r.tell(1, `{"operation":"adjust","temperature_offset_c":"12.5"}`)
	reply := r.answer(1)
	require.Equal(t, artifact.JobSucceeded, reply.Status)
	require.Equal(t, reply, r.answer(1), "twice, as the drill has it")
}
