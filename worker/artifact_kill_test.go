package main

import (
	"bufio"
	"encoding/base64"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/client"

	"millrace/domain/artifact"
	"millrace/platform/awsconf"
	storage "millrace/storage/artifact"
	"millrace/storage/storagetest"
	workflows "millrace/workflows/artifact"
	"millrace/workflows/names"
)

// fleet is the built worker, several times, that a test kills as it likes.
type fleet struct {
	*plant
	program string
	args    []string
	// notes is where scripts say when they ran.
	notes string
}

func newFleet(t *testing.T, args ...string) *fleet {
	t.Helper()
	program := filepath.Join(t.TempDir(), "worker")
	out, err := exec.CommandContext(t.Context(), "go", "build", "-o", program, ".").CombinedOutput()
	require.NoError(t, err, string(out))
	c := ownNamespace(t)
	tab, bucket := storagetest.Table(t, storagetest.Monitoring), storagetest.Bucket(t)
	cfg := storagetest.Config(t)
	p := &plant{TB: t, temporal: c, cli: temporalCLI(t), store: storage.New(dynamodb.NewFromConfig(cfg), tab.Name, awsconf.NewS3(cfg), bucket.Name)}
	args = append(args, "--governance-table="+tab.Name, "--data-bucket="+bucket.Name, "--artifact-allow-unverified", "--artifact-search-attributes=false")
	return &fleet{plant: p, program: program, args: args, notes: t.TempDir()}
}

// hire starts a worker process for a task queue.
func (f *fleet) hire(queue string) *exec.Cmd {
	f.Helper()
	cmd := exec.Command(f.program, append([]string{"--queues=" + queue, "--metrics-address=" + freeAddress(f)}, f.args...)...)
	log, err := os.OpenFile(filepath.Join(f.notes, "worker.log"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	require.NoError(f, err)
	defer log.Close()
	cmd.Stdout, cmd.Stderr = log, log
	require.NoError(f, cmd.Start())
	f.Cleanup(func() { kill(cmd) })
	return cmd
}

// kill is kill -9.
func kill(cmd *exec.Cmd) {
	_ = cmd.Process.Kill()
	_ = cmd.Wait()
}

// ticking is a script that notes the time until it is ended or n times are noted.
func (f *fleet) ticking(id, name string, n int, end string) string {
	path := filepath.Join(f.notes, id+"."+name)
	return fmt.Sprintf("#!/bin/sh\necho start >> %s.runs\ni=0\nwhile [ $i -lt %d ]; do date +%%s%%N >> %s; sleep 0.1; i=$((i+1)); done\n%s\n", path, n, path, end)
}

// ticks are the times that a script noted, and how often it began.
func (f *fleet) ticks(id, name string) (times []time.Time, runs int) {
	f.Helper()
	path := filepath.Join(f.notes, id+"."+name)
	file, err := os.Open(path)
	if err != nil {
		return nil, 0
	}
	defer file.Close()
	for lines := bufio.NewScanner(file); lines.Scan(); {
		if at, err := strconv.ParseInt(lines.Text(), 10, 64); err == nil {
			times = append(times, time.Unix(0, at))
		}
	}
	body, err := os.ReadFile(path + ".runs")
	require.NoError(f, err)
	return times, strings.Count(string(body), "start")
}

func (f *fleet) submit(id, primary, rollback string, change ...func(*artifact.Request)) {
	f.Helper()
	r := artifact.Request{
		ArtifactID: id, Version: 1, Author: "user:lee", Reason: "to be killed",
		Spec:  artifact.Spec{Kind: artifact.Script, Policy: artifact.Policy{Approvers: []string{"user:kim"}}},
		Files: []artifact.File{{Role: artifact.Primary, Filename: "run.sh", ContentBase64: encode(primary)}},
	}
	if rollback != "" {
		r.Files = append(r.Files, artifact.File{Role: artifact.Rollback, Filename: "run.sh", ContentBase64: encode(rollback)})
	}
	for _, c := range change {
		c(&r)
	}
	_, err := f.temporal.ExecuteWorkflow(f.Context(), client.StartWorkflowOptions{ID: names.ArtifactLifecycleID(id, 1), TaskQueue: names.QueueArtifacts}, names.ArtifactLifecycle, workflows.Input{Request: r})
	require.NoError(f, err)
}

// stored waits until the store says that a version has a state.
func (f *fleet) stored(id string, state artifact.State) storage.Artifact {
	f.Helper()
	var v storage.Artifact
	require.Eventually(f, func() bool {
		var err error
		v, err = f.store.Version(f.Context(), id, 1)
		return err == nil && v.State == state
	}, 4*time.Minute, 100*time.Millisecond, "%s wants to be %s", id, state)
	return v
}

// say sends a command through its door.
func (f *fleet) say(id, door string, verb artifact.Verb, actor string) {
	f.Helper()
	v, err := f.store.Version(f.Context(), id, 1)
	require.NoError(f, err)
	f.updated(v, door, artifact.Command{Verb: verb, Actor: actor, BundleHash: v.BundleHash})
}

// approve approves a version that is in review, or will be.
func (f *fleet) approve(id string) {
	f.Helper()
	f.stored(id, artifact.InReview)
	f.say(id, workflows.DoorDecide, artifact.Approve, "user:kim")
}

// went asserts that a version went this way: each transition once, one chain,
// and one run of each role at most.
func (f *fleet) went(id string, way ...artifact.State) {
	f.Helper()
	transitions, err := f.store.Transitions(f.Context(), id, 1)
	require.NoError(f, err)
	var states []artifact.State
	for _, t := range transitions {
		states = append(states, t.To)
	}
	if n := len(states); n > 0 && states[n-1] == artifact.Archived {
		states = states[:n-1] // some have the time to
	}
	require.Equal(f, way, states, id)
	dossier, err := f.store.Dossier(f.Context(), id, 1)
	require.NoError(f, err)
	end, err := artifact.VerifyChain(1, dossier.Records)
	require.NoError(f, err, id)
	require.Equal(f, dossier.Artifact.ChainLast, end.Last, id)
	roles := map[artifact.Role]int{}
	for _, run := range dossier.Runs {
		roles[run.Role]++
	}
	require.LessOrEqual(f, roles[artifact.Primary], 1, id)
	require.LessOrEqual(f, roles[artifact.Rollback], 1, id)
}

// primaryRun is the run of the primary file.
func (f *fleet) primaryRun(id string) storage.Execution {
	f.Helper()
	runs, err := f.store.Runs(f.Context(), id, 1)
	require.NoError(f, err)
	for _, run := range runs {
		if run.Role == artifact.Primary {
			return run
		}
	}
	f.Fatalf("%s never ran", id)
	return storage.Execution{}
}

// target answers requests: those to do something never, those to undo at once.
type target struct {
	*httptest.Server
	mu   sync.Mutex
	keys map[string][]string
}

func newTarget(t *testing.T) *target {
	t.Helper()
	s := &target{keys: map[string][]string{}}
	s.Server = httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		s.mu.Lock()
		s.keys[r.URL.Path] = append(s.keys[r.URL.Path], r.Header.Get("Idempotency-Key"))
		s.mu.Unlock()
		_, _ = io.Copy(io.Discard, r.Body) // until then the server does not see the end of the connection
		if r.URL.Path == "/do" {
			<-r.Context().Done()
		}
	}))
	t.Cleanup(s.Close)
	return s
}

func (s *target) asked(path string) []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.keys[path]
}

// TestEveryStateSurvivesTheDeathOfItsWorker has a lifecycle in each state when
// the worker is killed, and lets another worker go on. Then it kills the worker
// of the scripts in the middle of one, and freezes the next one in the middle of
// another, which lives on for a while.
func TestEveryStateSurvivesTheDeathOfItsWorker(t *testing.T) {
	f := newFleet(t, "--artifact-archive-after=1m", "--artifact-http-hosts=127.0.0.1", "--artifact-http-allow-private")
	server := newTarget(t)
	const endless = 3000
	quick := "#!/bin/sh\n"
	f.submit("draft", quick, "", func(r *artifact.Request) { r.Draft = true })
	f.submit("review", quick, "")
	f.submit("settled", quick, "")
	executeAfter := time.Now().Add(20 * time.Second)
	f.submit("waits", f.ticking("waits", "do", 1, ""), "", func(r *artifact.Request) { r.Spec.Policy.ExecuteAfter = &executeAfter })
	f.submit("runs", f.ticking("runs", "do", 100, ""), "")
	f.submit("undoes", f.ticking("undoes", "do", 1, "exit 1"), f.ticking("undoes", "undo", 100, ""))
	f.submit("lost", f.ticking("lost", "do", endless, ""), f.ticking("lost", "undo", 1, ""))
	f.submit("requests", "body", "body", func(r *artifact.Request) {
		r.Spec.Kind = artifact.HTTP
		r.Spec.Args = fmt.Appendf(nil, `{"method":"POST","url":"%s/do","rollback_url":"%s/undo"}`, server.URL, server.URL)
	})
	main, scripts := f.hire(names.QueueArtifacts), f.hire(names.QueueScripts)
	f.stored("settled", artifact.InReview)
	f.say("settled", workflows.DoorWithdraw, artifact.Withdraw, "user:lee")
	for _, id := range []string{"waits", "runs", "undoes", "lost", "requests"} {
		f.approve(id)
	}
	running := func(id, name string) {
		t.Helper()
		require.Eventually(t, func() bool { times, _ := f.ticks(id, name); return len(times) > 0 }, time.Minute, 20*time.Millisecond, "%s %s", id, name)
	}
	running("runs", "do")
	running("lost", "do")
	running("undoes", "undo")
	require.Eventually(t, func() bool { return len(server.asked("/do")) == 1 }, time.Minute, 20*time.Millisecond)
	for id, state := range map[string]artifact.State{
		"draft": artifact.Draft, "review": artifact.InReview, "waits": artifact.Approved, "runs": artifact.Executing, "lost": artifact.Executing,
		"requests": artifact.Executing, "undoes": artifact.Compensating, "settled": artifact.Withdrawn,
	} {
		v, err := f.store.Version(t.Context(), id, 1)
		require.NoError(t, err)
		require.Equal(t, state, v.State, id)
	}
	kill(main)
	f.hire(names.QueueArtifacts)

	f.say("draft", workflows.DoorSubmit, artifact.Submit, "user:lee")
	f.approve("draft")
	f.approve("review")
	for _, id := range []string{"draft", "review", "runs"} {
		f.stored(id, artifact.Executed)
		f.went(id, append(map[string][]artifact.State{"draft": {artifact.Draft}}[id], artifact.InReview, artifact.Approved, artifact.Executing, artifact.Executed)...)
	}
	f.stored("undoes", artifact.Compensated)
	undone := []artifact.State{artifact.InReview, artifact.Approved, artifact.Executing, artifact.Failed, artifact.Compensating, artifact.Compensated}
	f.went("undoes", undone...)

	f.stored("waits", artifact.Executed)
	f.went("waits", artifact.InReview, artifact.Approved, artifact.Executing, artifact.Executed)
	began, runs := f.ticks("waits", "do")
	require.Equal(t, 1, runs)
	require.False(t, began[0].Before(executeAfter))

	kill(scripts)
	killed := time.Now()
	frozen := f.hire(names.QueueScripts)
	f.submit("frozen", f.ticking("frozen", "do", endless, ""), f.ticking("frozen", "undo", 1, ""))
	f.approve("frozen")
	running("frozen", "do")
	require.NoError(t, frozen.Process.Signal(syscall.SIGSTOP))
	stopped := time.Now()
	f.hire(names.QueueScripts)
	time.Sleep(time.Until(stopped.Add(25 * time.Second)))
	kill(frozen) // it holds polls of its own

	f.stored("requests", artifact.Compensated)
	f.went("requests", undone...)
	require.Equal(t, []string{f.primaryRun("requests").RunID}, server.asked("/do"), "the request was sent once")
	require.Len(t, server.asked("/undo"), 1)
	require.Equal(t, storage.WorkerLost, f.primaryRun("requests").Status)
	for id, at := range map[string]time.Time{"lost": killed, "frozen": stopped} {
		f.stored(id, artifact.Compensated)
		f.went(id, undone...)
		require.Equal(t, storage.WorkerLost, f.primaryRun(id).Status, id)
		did, runs := f.ticks(id, "do")
		require.Equal(t, 1, runs, "%s ran once", id)
		last := did[len(did)-1]
		undid, runs := f.ticks(id, "undo")
		require.Equal(t, 1, runs, id)
		t.Logf("%s: its worker was lost at 0, its script died %s later, its undo began %s later", id, last.Sub(at), undid[0].Sub(at))
		require.Greater(t, undid[0].Sub(at), 45*time.Second, "the undo waited for timeout and grace")
		require.Greater(t, undid[0].Sub(last), 45*time.Second, "never beside each other")
		if id == "lost" {
			require.Less(t, last.Sub(at), 5*time.Second, "it died with its worker")
		} else {
			require.Greater(t, last.Sub(at), 5*time.Second, "it lived on without its worker")
			require.Less(t, last.Sub(at), workflows.RunHeartbeat, "it died before the server gave its worker up")
		}
	}
	f.stored("settled", artifact.Archived)
	f.went("settled", artifact.InReview, artifact.Withdrawn)
}

func encode(text string) string { return base64.StdEncoding.EncodeToString([]byte(text)) }
