package supervise

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

var (
	discard    = slog.New(slog.DiscardHandler)
	background = context.Background()
)

// quick is the policy of the tests: the same decisions as the default's, sooner.
var quick = Policy{
	Backoff: 5 * time.Millisecond, MaxBackoff: 20 * time.Millisecond,
	Settled: time.Minute, QuickDeaths: 4, ProbeEvery: 10 * time.Millisecond, Failures: 3,
}

type bench struct {
	*Supervisor
	t   *testing.T
	dir string
}

func newBench(t *testing.T, policy Policy) bench {
	t.Helper()
	dir := t.TempDir()
	b := bench{Supervisor: New(filepath.Join(dir, "logs"), policy, discard), t: t, dir: dir}
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
		defer cancel()
		b.Close(ctx)
	})
	return b
}

// part is a shell script that first notes its process id; it is up once that is noted.
func (b bench) part(name, script string) Part {
	pidFile := filepath.Join(b.dir, name+".pid")
	return Part{
		Name: name, Env: os.Environ(), ReadyWithin: 5 * time.Second,
		Command: []string{"/bin/sh", "-c", fmt.Sprintf("echo $$ > %s.new; mv %[1]s.new %[1]s\n%s", pidFile, script)},
		Ready:   FileProbe(pidFile),
	}
}

func (b bench) pid(name string) int {
	b.t.Helper()
	text, err := os.ReadFile(filepath.Join(b.dir, name+".pid"))
	require.NoError(b.t, err)
	pid, err := strconv.Atoi(strings.TrimSpace(string(text)))
	require.NoError(b.t, err)
	return pid
}

func alive(pid int) bool { return syscall.Kill(pid, 0) == nil }

func gone(pid int) func() bool { return func() bool { return !alive(pid) } }

const forever = "while :; do sleep 0.05; done"

func TestPartIsUpWhenItsProbeAnswers(t *testing.T) {
	b := newBench(t, quick)
	part := b.part("slow", forever)
	var asked atomic.Int32
	part.Ready = func(context.Context) error {
		if asked.Add(1) < 4 {
			return errors.New("not yet")
		}
		return nil
	}
	require.NoError(t, b.Start(t.Context(), part))
	require.GreaterOrEqual(t, asked.Load(), int32(4))
	require.Equal(t, Up, b.Status()["slow"])
}

func TestOutputGoesToThePartsLog(t *testing.T) {
	b := newBench(t, quick)
	require.NoError(t, b.Start(t.Context(), b.part("talks", "echo to stdout; echo to stderr >&2\n"+forever)))
	require.Eventually(t, func() bool {
		tail := Tail(b.LogFile("talks"))
		return strings.Contains(tail, "| to stdout") && strings.Contains(tail, "| to stderr")
	}, 5*time.Second, 5*time.Millisecond)
	info, err := os.Stat(b.LogFile("talks"))
	require.NoError(t, err)
	require.Equal(t, os.FileMode(0o600), info.Mode().Perm())
}

func TestKilledPartIsStartedAgain(t *testing.T) {
	b := newBench(t, quick)
	require.NoError(t, b.Start(t.Context(), b.part("p", forever)))
	first := b.pid("p")
	require.NoError(t, syscall.Kill(first, syscall.SIGKILL))
	require.Eventually(t, func() bool {
		return b.Status()["p"] == Up && b.pid("p") != first
	}, 5*time.Second, 5*time.Millisecond)
}

func TestKillOnRequestReturnsWhenThePartIsUpAgain(t *testing.T) {
	b := newBench(t, quick)
	require.NoError(t, b.Start(t.Context(), b.part("p", forever)))
	first := b.pid("p")
	require.NoError(t, os.Remove(filepath.Join(b.dir, "p.pid")))
	require.NoError(t, b.Kill(t.Context(), "p"))
	require.NotEqual(t, first, b.pid("p"))
	require.False(t, alive(first))
	require.True(t, alive(b.pid("p")))
}

func TestPartThatDiesTooOftenEndsTheRunWithItsLog(t *testing.T) {
	b := newBench(t, quick)
	part := b.part("mortal", "echo cannot open the database; exit 3")
	part.Ready = func(context.Context) error { return errors.New("never") }
	err := b.Start(t.Context(), part)
	require.ErrorContains(t, err, "mortal is failed")
	failure := <-b.Failed()
	require.ErrorContains(t, failure, "mortal died 4 times in a row")
	require.ErrorContains(t, failure, "exit status 3")
	require.ErrorContains(t, failure, "| cannot open the database")
	require.ErrorContains(t, failure, b.LogFile("mortal"))
}

func TestMissingProgramEndsTheRun(t *testing.T) {
	b := newBench(t, quick)
	err := b.Start(t.Context(), Part{Name: "none", Command: []string{"/does/not/exist"}})
	require.Error(t, err)
	require.ErrorContains(t, <-b.Failed(), "/does/not/exist")
}

func TestDeathsAfterASettledRunDoNotCount(t *testing.T) {
	policy := quick
	policy.Settled = 10 * time.Millisecond
	policy.QuickDeaths = 2
	b := newBench(t, policy)
	require.NoError(t, b.Start(t.Context(), b.part("p", "sleep 0.1")))
	first := b.pid("p")
	require.Eventually(t, func() bool { return b.pid("p") != first }, 5*time.Second, 5*time.Millisecond)
	second := b.pid("p")
	require.Eventually(t, func() bool { return b.pid("p") != second }, 5*time.Second, 5*time.Millisecond)
	require.NotEqual(t, Failed, b.Status()["p"])
}

func TestPartThatStopsAnsweringIsKilledAndStartedAgain(t *testing.T) {
	b := newBench(t, quick)
	part := b.part("hangs", forever)
	var mu sync.Mutex
	healthy := true
	probe := part.Ready
	part.Ready = func(ctx context.Context) error {
		mu.Lock()
		defer mu.Unlock()
		if !healthy {
			healthy = true // the next process is
			return errors.New("no answer")
		}
		return probe(ctx)
	}
	policy := quick
	policy.Failures = 1
	b.policy = policy
	require.NoError(t, b.Start(t.Context(), part))
	first := b.pid("hangs")
	mu.Lock()
	healthy = false
	mu.Unlock()
	require.Eventually(t, gone(first), 5*time.Second, 5*time.Millisecond)
	require.Eventually(t, func() bool { return b.pid("hangs") != first }, 5*time.Second, 5*time.Millisecond)
}

func TestPartThatIsNotUpInTimeIsKilled(t *testing.T) {
	b := newBench(t, quick)
	part := b.part("late", forever)
	part.ReadyWithin = 30 * time.Millisecond
	part.Ready = func(context.Context) error { return errors.New("never") }
	require.Error(t, b.Start(t.Context(), part))
	require.ErrorContains(t, <-b.Failed(), "killed")
}

func TestStoppedPartStaysStoppedUntilResumed(t *testing.T) {
	b := newBench(t, quick)
	require.NoError(t, b.Start(t.Context(), b.part("p", forever)))
	first := b.pid("p")
	require.NoError(t, b.Stop(t.Context(), "p"))
	require.False(t, alive(first))
	require.Never(t, func() bool { return b.pid("p") != first }, 100*time.Millisecond, 10*time.Millisecond)
	require.Equal(t, Stopped, b.Status()["p"])
	require.ErrorContains(t, b.Kill(t.Context(), "p"), "not running")
	require.NoError(t, b.Resume(t.Context(), "p"))
	require.Eventually(t, func() bool { return b.pid("p") != first && b.Status()["p"] == Up }, 5*time.Second, 5*time.Millisecond)
}

func TestResumingARunningPartChangesNothing(t *testing.T) {
	b := newBench(t, quick)
	require.NoError(t, b.Start(t.Context(), b.part("p", forever)))
	first := b.pid("p")
	require.NoError(t, b.Resume(t.Context(), "p"))
	require.Equal(t, first, b.pid("p"))
}

func TestUnknownPartIsRefused(t *testing.T) {
	b := newBench(t, quick)
	for _, do := range []func(context.Context, string) error{b.Kill, b.Stop, b.Resume} {
		require.ErrorIs(t, do(t.Context(), "nobody"), ErrUnknownPart)
	}
	require.NoError(t, b.Start(t.Context(), b.part("p", forever)))
	require.ErrorContains(t, b.Start(t.Context(), b.part("p", forever)), "already started")
}

func TestCloseStopsHigherStagesFirst(t *testing.T) {
	b := newBench(t, quick)
	order, trapped := filepath.Join(b.dir, "order"), filepath.Join(b.dir, "trapped")
	for name, stage := range map[string]int{"store": 0, "program": 1, "edge-1": 2, "edge-2": 2} {
		part := b.part(name, fmt.Sprintf("trap 'sleep 0.05; echo %d >> %s; exit 0' TERM\necho %d >> %s\n%s", stage, order, stage, trapped, forever))
		part.Stage = stage
		require.NoError(t, b.Start(t.Context(), part))
	}
	require.Eventually(t, func() bool {
		data, err := os.ReadFile(trapped)
		return err == nil && len(strings.Fields(string(data))) == 4
	}, 10*time.Second, 5*time.Millisecond, "a shell can be told to end before it has set its trap")
	b.Close(t.Context())
	data, err := os.ReadFile(order)
	require.NoError(t, err)
	require.Equal(t, []string{"2", "2", "1", "0"}, strings.Fields(string(data)))
}

func TestPartThatIgnoresTheRequestIsKilledAfterItsGrace(t *testing.T) {
	b := newBench(t, quick)
	part := b.part("stubborn", "trap '' TERM\n"+forever)
	part.Grace = 50 * time.Millisecond
	require.NoError(t, b.Start(t.Context(), part))
	pid := b.pid("stubborn")
	b.Close(t.Context())
	require.False(t, alive(pid))
}

func TestEndedContextKillsAtOnce(t *testing.T) {
	b := newBench(t, quick)
	part := b.part("stubborn", "trap '' TERM\n"+forever)
	part.Grace = time.Hour
	require.NoError(t, b.Start(t.Context(), part))
	pid := b.pid("stubborn")
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	b.Close(ctx)
	require.False(t, alive(pid))
}

func TestGrandchildrenGoWithTheirParent(t *testing.T) {
	b := newBench(t, quick)
	child := filepath.Join(b.dir, "child.pid")
	require.NoError(t, b.Start(t.Context(), b.part("p", fmt.Sprintf("(trap '' TERM; %s) & echo $! > %s\n%s", forever, child, forever))))
	var pid int
	require.Eventually(t, func() bool {
		_, err := os.Stat(child)
		return err == nil
	}, 5*time.Second, 5*time.Millisecond)
	pid = b.pid("child")
	require.True(t, alive(pid))
	b.Close(t.Context())
	require.Eventually(t, gone(pid), 5*time.Second, 5*time.Millisecond)
}

func TestRunReturnsTheEndOfTheLogWhenItFails(t *testing.T) {
	b := newBench(t, quick)
	sh := func(script string) Part { return Part{Name: "once", Command: []string{"/bin/sh", "-c", script}} }
	require.NoError(t, b.Run(t.Context(), sh("echo fine")))
	err := b.Run(t.Context(), sh("echo access denied; exit 9"))
	require.ErrorContains(t, err, "exit status 9")
	require.ErrorContains(t, err, "| access denied")
}

func TestRunEndsWithItsContext(t *testing.T) {
	b := newBench(t, quick)
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	part := b.part("once", forever)
	require.ErrorIs(t, b.Run(ctx, part), context.DeadlineExceeded)
	require.False(t, alive(b.pid("once")))
}

func TestTailShowsTheLastLinesOnly(t *testing.T) {
	name := filepath.Join(t.TempDir(), "x.log")
	var log bytes.Buffer
	for i := range 10_000 {
		fmt.Fprintf(&log, "line %d\n", i)
	}
	require.NoError(t, os.WriteFile(name, log.Bytes(), 0o600))
	lines := strings.Split(Tail(name), "\n")
	require.Len(t, lines, tailLines)
	require.Equal(t, "  | line 9999", lines[len(lines)-1])
	require.Contains(t, Tail(name+".none"), "no log")
}

func TestLongLogStartsAnewAndIsKept(t *testing.T) {
	name := filepath.Join(t.TempDir(), "x.log")
	require.NoError(t, trimLog(name))
	log, err := openLog(name)
	require.NoError(t, err)
	defer log.Close()
	_, err = log.Write([]byte("small"))
	require.NoError(t, err)
	require.NoError(t, trimLog(name))
	require.NoFileExists(t, name+".1")

	require.NoError(t, log.Truncate(maxLog))
	require.NoError(t, trimLog(name))
	info, err := os.Stat(name + ".1")
	require.NoError(t, err)
	require.EqualValues(t, maxLog, info.Size())
	_, err = log.Write([]byte("next"))
	require.NoError(t, err)
	data, err := os.ReadFile(name)
	require.NoError(t, err)
	require.Equal(t, "next", string(data))
}
