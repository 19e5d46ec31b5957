package main

import (
	"fmt"
	"os/exec"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"millrace/domain/artifact"
	storage "millrace/storage/artifact"
	workflows "millrace/workflows/artifact"
	"millrace/workflows/names"
)

// Ways of versions.
var (
	executed = []artifact.State{artifact.InReview, artifact.Approved, artifact.Executing, artifact.Executed}
	undone   = []artifact.State{artifact.InReview, artifact.Approved, artifact.Executing, artifact.Failed, artifact.Compensating, artifact.Compensated}
)

// TestEveryStateSurvivesTheDeathOfItsWorker has a lifecycle in each state when
// the worker is killed, and lets another worker go on. Then it kills the worker
// of the scripts in the middle of one, and freezes the next one in the middle of
// another, which lives on for a while.
func TestEveryStateSurvivesTheDeathOfItsWorker(t *testing.T) {
	f := newFleet(t, "--artifact-archive-after=1m", "--artifact-http-hosts=127.0.0.1", "--artifact-http-allow-private")
	server := newTarget(t)
	executeAfter := time.Now().Add(40 * time.Second)
	main, scripts := f.hire(names.QueueArtifacts), f.hire(names.QueueScripts)
	f.enterEveryState(server, executeAfter)
	kill(main)
	f.hire(names.QueueArtifacts)
	f.leaveEveryState(executeAfter)
	killed, frozen := f.loseScripts(scripts)

	f.stored("requests", artifact.Compensated)
	f.went("requests", undone...)
	require.Equal(t, []string{f.primaryRun("requests").RunID}, server.asked("/do"), "the request was sent once")
	require.Len(t, server.asked("/undo"), 1)
	require.Equal(t, storage.WorkerLost, f.primaryRun("requests").Status)
	lived := f.neverBeside("lost", killed)
	require.Less(t, lived, 5*time.Second, "it died with its worker")
	lived = f.neverBeside("frozen", frozen)
	require.Greater(t, lived, 5*time.Second, "it lived on without its worker")
	require.Less(t, lived, workflows.RunHeartbeat, "it died before the server gave its worker up")
	f.stored("settled", artifact.Archived)
	f.went("settled", artifact.InReview, artifact.Withdrawn)
	inOrder(f, f.store, "draft", "review", "settled", "waits", "runs", "undoes", "lost", "requests")
}

// enterEveryState has a version in each state, named for what it is about.
func (f *fleet) enterEveryState(server *target, executeAfter time.Time) {
	f.Helper()
	const quick = "#!/bin/sh\n"
	f.release("waits", "do")
	f.release("undoes", "do")
	f.submit("draft", quick, "", func(r *artifact.Request) { r.Draft = true })
	f.submit("review", quick, "")
	f.submit("settled", quick, "")
	f.submit("waits", f.ticking("waits", "do", ""), "", func(r *artifact.Request) { r.Spec.Policy.ExecuteAfter = &executeAfter })
	f.submit("runs", f.ticking("runs", "do", ""), "")
	f.submit("undoes", f.ticking("undoes", "do", "exit 1"), f.ticking("undoes", "undo", ""))
	f.submit("lost", f.ticking("lost", "do", ""), f.ticking("lost", "undo", ""))
	f.submit("requests", "body", "body", func(r *artifact.Request) {
		r.Spec.Kind = artifact.HTTP
		r.Spec.Args = fmt.Appendf(nil, `{"method":"POST","url":"%s/do","rollback_url":"%s/undo"}`, server.URL, server.URL)
	})
	f.stored("settled", artifact.InReview)
	f.say("settled", workflows.DoorWithdraw, artifact.Withdraw, "user:lee")
	for _, id := range []string{"waits", "runs", "undoes", "lost", "requests"} {
		f.approve(id)
	}
	f.running("runs", "do")
	f.running("lost", "do")
	f.running("undoes", "undo")
	require.Eventually(f, func() bool { return len(server.asked("/do")) == 1 }, 2*time.Minute, 20*time.Millisecond)
	for id, state := range map[string]artifact.State{
		"draft": artifact.Draft, "review": artifact.InReview, "waits": artifact.Approved, "runs": artifact.Executing, "lost": artifact.Executing,
		"requests": artifact.Executing, "undoes": artifact.Compensating, "settled": artifact.Withdrawn,
	} {
		v, err := f.store.Version(f.Context(), id, 1)
		require.NoError(f, err)
		require.Equal(f, state, v.State, id)
	}
}

// leaveEveryState has those end that nothing was lost of.
func (f *fleet) leaveEveryState(executeAfter time.Time) {
	f.Helper()
	f.release("runs", "do")
	f.release("undoes", "undo")
	f.say("draft", workflows.DoorSubmit, artifact.Submit, "user:lee")
	f.approve("draft")
	f.approve("review")
	for _, id := range []string{"draft", "review", "runs", "waits"} {
		f.stored(id, artifact.Executed)
	}
	f.went("draft", append([]artifact.State{artifact.Draft}, executed...)...)
	f.went("review", executed...)
	f.went("runs", executed...)
	f.went("waits", executed...)
	began, runs := f.ticks("waits", "do")
	require.Equal(f, 1, runs)
	require.False(f, began[0].Before(executeAfter))
	f.stored("undoes", artifact.Compensated)
	f.went("undoes", undone...)
}

// loseScripts kills the worker in the middle of the script "lost", and freezes
// the next one in the middle of the script "frozen"; it tells when.
func (f *fleet) loseScripts(scripts *exec.Cmd) (killed, frozen time.Time) {
	f.Helper()
	f.release("lost", "undo")
	f.release("frozen", "undo")
	kill(scripts)
	killed = time.Now()
	next := f.hire(names.QueueScripts)
	f.submit("frozen", f.ticking("frozen", "do", ""), f.ticking("frozen", "undo", ""))
	f.approve("frozen")
	f.running("frozen", "do")
	require.NoError(f, next.Process.Signal(syscall.SIGSTOP))
	frozen = time.Now()
	f.hire(names.QueueScripts)
	time.Sleep(time.Until(frozen.Add(25 * time.Second)))
	kill(next) // it would be given work as long as it is connected
	return killed, frozen
}

// neverBeside asserts that a script whose worker was lost ran once, and its undo
// once, long after its end. It tells how long the script lived on.
func (f *fleet) neverBeside(id string, at time.Time) time.Duration {
	f.Helper()
	f.stored(id, artifact.Compensated)
	f.went(id, undone...)
	require.Equal(f, storage.WorkerLost, f.primaryRun(id).Status, id)
	did, runs := f.ticks(id, "do")
	require.Equal(f, 1, runs, "%s ran once", id)
	lived := did[len(did)-1].Sub(at)
	undid, runs := f.ticks(id, "undo")
	require.Equal(f, 1, runs, id)
	waited := undid[0].Sub(at)
	f.Logf("%s: its script lived on for %s, its undo began after %s", id, lived, waited)
	require.Greater(f, waited, 45*time.Second, "the undo waits for timeout and grace")
	require.Greater(f, waited-lived, 45*time.Second, "they never run beside each other")
	return lived
}
