package artifact

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"millrace/domain/artifact"
	storage "millrace/storage/artifact"
	workflows "millrace/workflows/artifact"
)

func TestWhatKilledRunsLeftIsDeleted(t *testing.T) {
	dir, now := t.TempDir(), time.Now()
	t.Setenv("TMPDIR", dir)
	for name, age := range map[string]time.Duration{
		"millrace-run-old": staleAge, "millrace-run-new": staleAge - time.Minute, "millrace-output-old": staleAge, "other": 100 * staleAge,
	} {
		path := filepath.Join(dir, name)
		require.NoError(t, os.MkdirAll(filepath.Join(path, "inside"), 0o755))
		require.NoError(t, os.Chtimes(path, now.Add(-age), now.Add(-age)))
	}
	require.NoError(t, SweepTemporary(now))
	left, err := filepath.Glob(filepath.Join(dir, "*"))
	require.NoError(t, err)
	require.Equal(t, []string{filepath.Join(dir, "millrace-run-new"), filepath.Join(dir, "other")}, left)
}

func TestOutputThatFindsNoRoomIsToldOf(t *testing.T) {
	full, err := os.OpenFile("/dev/full", os.O_WRONLY, 0)
	require.NoError(t, err)
	o := &output{file: full, left: 100}
	for range 3 {
		n, err := o.Write([]byte("hello"))
		require.NoError(t, err, "a script doesn't end by it")
		require.Equal(t, 5, n)
	}
	require.True(t, o.truncated)
	require.ErrorContains(t, o.broken, "no space left")
}

// TestAWorkerThatStopsTellsHowItsRunEnded stops while a script runs.
func TestAWorkerThatStopsTellsHowItsRunEnded(t *testing.T) {
	for name, c := range map[string]struct {
		body string
		want workflows.RunResult
	}{
		"long":  {"exec sleep 300", workflows.RunResult{Status: workflows.RunCancelled, ExitCode: -1, Detail: errStopping.Error()}},
		"short": {"sleep 0.1", workflows.RunResult{Status: workflows.RunSucceeded}},
	} {
		t.Run(name, func(t *testing.T) {
			d := newDesk(t)
			v := d.submit(script("#!/bin/sh\necho began\n" + c.body + "\n"))
			e := d.executor(Scripts{Grace: 100 * time.Millisecond})
			stop := make(chan struct{})
			close(stop)
			e.Stopping, e.StopIn = stop, time.Second
			result, err := e.Execute(t.Context(), runRequest(v, 1, artifact.Primary))
			require.NoError(t, err)
			require.Equal(t, c.want, result)
			require.Equal(t, "began", d.read(runID(1), storage.StdoutFile))
		})
	}
}

func TestAScriptOfAnotherUserGainsNoPrivileges(t *testing.T) {
	job := scriptJob(t, "grep NoNewPrivs /proc/self/status\n")
	outcome, err := Scripts{User: 65534, Group: 65534}.Run(t.Context(), job)
	require.NoError(t, err)
	if os.Geteuid() != 0 {
		require.Equal(t, storage.RunFailed, outcome.Status)
		return
	}
	require.Equal(t, "NoNewPrivs:\t1", strings.TrimSpace(job.said(t)))
}
