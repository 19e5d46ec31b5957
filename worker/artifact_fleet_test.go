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

// ticking is a script that notes the time, at least once, until it is released.
func (f *fleet) ticking(id, name, end string) string {
	path := filepath.Join(f.notes, id+"."+name)
	return fmt.Sprintf("#!/bin/sh\necho start >> %s.runs\nwhile :; do date +%%s%%N >> %s; [ -e %s.released ] && break; sleep 0.1; done\n%s\n", path, path, path, end)
}

// release has a script end, or not even wait.
func (f *fleet) release(id, name string) {
	f.Helper()
	require.NoError(f, os.WriteFile(filepath.Join(f.notes, id+"."+name+".released"), nil, 0o600))
}

// running waits until a script has noted a time.
func (f *fleet) running(id, name string) {
	f.Helper()
	require.Eventually(f, func() bool { times, _ := f.ticks(id, name); return len(times) > 0 }, 2*time.Minute, 20*time.Millisecond, "%s %s", id, name)
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

func encode(text string) string { return base64.StdEncoding.EncodeToString([]byte(text)) }
