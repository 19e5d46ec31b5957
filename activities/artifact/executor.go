package artifact

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"time"

	"millrace/domain/artifact"
	storage "millrace/storage/artifact"
	workflows "millrace/workflows/artifact"
)

// Runner runs a version's file somewhere. Its result is how that ended; an error
// means that it can't be told.
type Runner interface {
	Run(ctx context.Context, job Job) (Outcome, error)
}

// Job is one run as a Runner gets it.
type Job struct {
	RunID string
	Role  artifact.Role
	Spec  artifact.Spec
	// Dir is an empty directory of the run's own; File is the verified content.
	Dir, File string
	// Stdout and Stderr take what the run says.
	Stdout, Stderr io.Writer
}

// Outcome is how a run ended.
type Outcome struct {
	Status   storage.RunStatus
	ExitCode int
	Detail   string
}

// Executor claims a run, has it run, and stores what it left.
type Executor struct {
	Store  storage.Store
	Runner Runner
	// Heartbeat tells the server that the run goes on. Its error is nil only when
	// the server acknowledged; ErrCancelled when it asks for the end.
	Heartbeat func(ctx context.Context) error
	// Every is how often; 0 stands for 5 s.
	Every time.Duration
	// Stopping, where set, is closed when the worker stops; what has not ended StopIn
	// later is cancelled then, so that it is told how it ended.
	Stopping <-chan struct{}
	StopIn   time.Duration
	Now      func() time.Time
	Logger   *slog.Logger
}

// errStopping ends a run whose worker can't wait for it any longer.
var errStopping = errors.New("the worker was stopped")

// ErrCancelled tells a run to end.
var ErrCancelled = errors.New("the run was cancelled")

const defaultBeat = 5 * time.Second

// Execute makes one run, at most once for its id: whoever comes second is
// refused.
func (e Executor) Execute(ctx context.Context, r workflows.RunRequest) (workflows.RunResult, error) {
	v, err := e.Store.Version(ctx, r.ArtifactID, r.Version)
	if err != nil {
		return workflows.RunResult{}, failure(err)
	}
	if err := sameBundle(v, r.BundleHash); err != nil {
		return workflows.RunResult{}, failure(err)
	}
	dir, err := os.MkdirTemp("", runPrefix)
	if err != nil {
		return workflows.RunResult{}, fmt.Errorf("make a directory: %w", err)
	}
	defer os.RemoveAll(dir) //nolint:errcheck // what is left is swept with the system's temporary files
	// Heartbeats begin before the run: fetching content may take longer than one.
	claiming, stop := e.guard(ctx, claimTimeout)
	run, file, err := e.claim(claiming, r, v, dir)
	stop()
	if err != nil {
		return workflows.RunResult{}, failure(err)
	}
	return e.run(ctx, r, v.Spec, run, dir, file)
}

// claimTimeout is what fetching 100 MiB may take.
const claimTimeout = 10 * time.Minute

// claim fetches the verified content and claims the run.
func (e Executor) claim(ctx context.Context, r workflows.RunRequest, v storage.Artifact, dir string) (storage.Run, string, error) {
	file, err := e.fetch(ctx, v, r.Role, dir)
	if err != nil {
		return storage.Run{}, "", err
	}
	run := storage.Run{
		RunID: r.RunID, Role: r.Role, Kind: v.Kind, WorkflowID: r.WorkflowID, Status: storage.Running, StartedAt: e.Now().UTC(),
	}
	began, err := e.Store.Begin(ctx, r.ArtifactID, r.Version, run)
	if err == nil && !began {
		err = fmt.Errorf("run %s began before: %w", r.RunID, storage.ErrConflict)
	}
	return run, file, err
}

// fetch writes the verified content into the run's directory.
func (e Executor) fetch(ctx context.Context, v storage.Artifact, role artifact.Role, dir string) (string, error) {
	for _, f := range v.Files {
		if f.Role != role {
			continue
		}
		body, err := e.Store.Open(ctx, f)
		if err != nil {
			return "", err
		}
		defer body.Close() //nolint:errcheck // only read
		path := filepath.Join(dir, f.Filename)
		file, err := os.OpenFile(path, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o700) //nolint:gosec // the name was checked
		if err != nil {
			return "", fmt.Errorf("write content: %w", err)
		}
		_, err = io.Copy(file, body)
		return path, errors.Join(err, file.Close())
	}
	return "", fmt.Errorf("the version has no %s file: %w", role, errForbidden)
}

func (e Executor) run(ctx context.Context, r workflows.RunRequest, spec artifact.Spec, run storage.Run, dir, file string) (workflows.RunResult, error) {
	stdout, stderr, err := newOutputs(min(spec.Limits.OutputBytes, artifact.MaxContent))
	if err != nil {
		return workflows.RunResult{}, err
	}
	defer stdout.remove()
	defer stderr.remove()
	bounded, stop := e.guard(ctx, spec.Limits.Timeout.Of())
	outcome, err := e.Runner.Run(bounded, Job{RunID: r.RunID, Role: r.Role, Spec: spec, Dir: dir, File: file, Stdout: stdout, Stderr: stderr})
	cause := context.Cause(bounded)
	stop()
	if err != nil {
		outcome = Outcome{Status: storage.RunFailed, ExitCode: -1, Detail: err.Error()}
	}
	outcome = outcome.because(cause)
	finished := e.Now().UTC()
	run.Status, run.ExitCode, run.Detail = outcome.Status, outcome.ExitCode, outcome.Detail
	run.FinishedAt, run.DurationMS = &finished, finished.Sub(run.StartedAt).Milliseconds()
	run.Truncated = stdout.truncated || stderr.truncated
	if broken := cmp.Or(stdout.broken, stderr.broken); broken != nil {
		run.Detail = strings.TrimPrefix(run.Detail+"; its output is not whole: "+broken.Error(), "; ")
	}
	if err := e.keep(ctx, r.ArtifactID, &run, stdout, stderr); err != nil {
		return workflows.RunResult{}, failure(err)
	}
	return resultOf(run), nil
}

// resultOf is how a run ended. One that says nothing of what it left has lost that,
// which changes nothing of how it ended.
func resultOf(run storage.Run) workflows.RunResult {
	result := workflows.RunResult{Status: string(run.Status), ExitCode: run.ExitCode, Detail: run.Detail}
	if run.Status == storage.Succeeded && len(run.ContentHashes) == 0 {
		result.Detail = strings.TrimPrefix(result.Detail+"; "+noOutput, "; ")
	}
	return result
}

const noOutput = "its output could not be stored"

// because tells why a run was ended from outside.
func (o Outcome) because(cause error) Outcome {
	switch {
	case cause == nil || o.Status == storage.Succeeded:
	case errors.Is(cause, context.DeadlineExceeded):
		o.Status, o.Detail = storage.TimedOut, "the run took longer than its limit"
	case errors.Is(cause, errStopping):
		o.Status, o.Detail = storage.Cancelled, errStopping.Error()
	case errors.Is(cause, errSilent):
		o.Status, o.Detail = storage.WorkerLost, errSilent.Error()
	default:
		o.Status, o.Detail = storage.Cancelled, ErrCancelled.Error()
	}
	return o
}

// keep records how a run ended, then stores what it left. The run is over whatever
// happens to the activity, and an outage of a store must not make a good run a lost
// one: the server is shown that somebody is at it for as long as it takes.
func (e Executor) keep(ctx context.Context, id string, run *storage.Run, stdout, stderr *output) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), workflows.RunKeep)
	defer cancel()
	defer e.signOfLife(ctx)()
	if err := e.insist(ctx, "record how the run ended", func() error { return e.Store.Finish(ctx, id, *run) }); err != nil {
		return err
	}
	err := e.insist(ctx, "store what the run left", func() error { return e.store(ctx, id, run, stdout, stderr) })
	if err != nil {
		run.ContentHashes = nil // the next one who looks finds none either
		e.Logger.ErrorContext(ctx, "what a run left is lost", "run", run.RunID, "error", err)
	}
	return nil
}

func (e Executor) store(ctx context.Context, id string, run *storage.Run, stdout, stderr *output) error {
	said, err := stdout.rewind()
	if err != nil {
		return err
	}
	complained, err := stderr.rewind()
	if err != nil {
		return err
	}
	if err := e.Store.KeepOutput(ctx, run, said, complained); err != nil {
		return err
	}
	return e.Store.NoteOutput(ctx, id, *run)
}

// insist tries again until ctx ends or an error is final.
func (e Executor) insist(ctx context.Context, what string, try func() error) error {
	for wait := 200 * time.Millisecond; ; wait = min(2*wait, 10*time.Second) {
		err := try()
		if err == nil || typeOf(err) != "" {
			return err
		}
		e.Logger.WarnContext(ctx, "what follows a run is tried again", "step", what, "error", err)
		select {
		case <-ctx.Done():
			return err
		case <-time.After(wait):
		}
	}
}

// signOfLife sends heartbeats until its result is called, whatever the answers are.
func (e Executor) signOfLife(ctx context.Context) func() {
	ctx, cancel := context.WithCancel(ctx)
	done := make(chan struct{})
	go func() {
		defer close(done)
		tick := time.NewTicker(e.every())
		defer tick.Stop()
		for {
			call, end := context.WithTimeout(ctx, e.every())
			_ = e.Heartbeat(call) // there is nothing left to end
			end()
			select {
			case <-ctx.Done():
				return
			case <-tick.C:
			}
		}
	}()
	return func() {
		cancel()
		<-done
	}
}

func (e Executor) every() time.Duration { return cmp.Or(e.Every, defaultBeat) }

// errSilent ends a run whose server can't be reached: it may have given the
// worker up, and nothing may run beside what follows.
var errSilent = errors.New("no heartbeat was acknowledged for two thirds of the heartbeat timeout")

// guard bounds a run by its timeout and by its heartbeats.
func (e Executor) guard(ctx context.Context, timeout time.Duration) (context.Context, func()) {
	ctx, cancelTimeout := context.WithTimeout(ctx, timeout)
	ctx, cancel := context.WithCancelCause(ctx)
	done := make(chan struct{})
	go func() {
		defer close(done)
		e.beat(ctx, cancel)
	}()
	go e.stopped(ctx, cancel)
	return ctx, func() {
		cancel(nil)
		cancelTimeout()
		<-done
	}
}

// stopped ends a run when its worker has been stopping for too long.
func (e Executor) stopped(ctx context.Context, end context.CancelCauseFunc) {
	select {
	case <-ctx.Done():
		return
	case <-e.Stopping:
	}
	select {
	case <-ctx.Done():
	case <-time.After(e.StopIn):
		end(errStopping)
	}
}

func (e Executor) beat(ctx context.Context, end context.CancelCauseFunc) {
	every := e.every()
	acknowledged := time.Now()
	tick := time.NewTicker(every)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		call, cancel := context.WithTimeout(ctx, every)
		err := e.Heartbeat(call)
		cancel()
		switch {
		case err == nil:
			acknowledged = time.Now()
		case errors.Is(err, ErrCancelled):
			end(ErrCancelled)
			return
		case time.Since(acknowledged) >= workflows.RunHeartbeat*2/3-every:
			end(errSilent)
			return
		}
	}
}
