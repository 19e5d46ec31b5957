package main

import (
	"errors"
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"millrace/domain/artifact"
	storage "millrace/storage/artifact"
	"millrace/workflows/names"
)

// TestARunThatNeverBeganNeverBegins freezes the worker that is given a script, and
// lets it go on when the script has been given up: the script must not run then,
// for something else may.
func TestARunThatNeverBeganNeverBegins(t *testing.T) {
	f := newFleet(t)
	f.hire(names.QueueArtifacts)
	scripts := f.hire(names.QueueScripts)
	f.submit("first", "#!/bin/sh\n", "")
	f.approve("first")
	f.stored("first", artifact.Executed) // the worker polls

	require.NoError(t, scripts.Process.Signal(syscall.SIGSTOP))
	f.submit("never", f.ticking("never", "do", ""), f.ticking("never", "undo", ""))
	f.approve("never")
	f.stored("never", artifact.Failed)
	require.NoError(t, scripts.Process.Signal(syscall.SIGCONT))
	f.submit("after", "#!/bin/sh\n", "")
	f.approve("after")
	f.stored("after", artifact.Executed) // it works again
	time.Sleep(2 * time.Second)
	_, err := os.Stat(filepath.Join(f.notes, "never.do.runs"))
	require.True(t, errors.Is(err, os.ErrNotExist), "it ran")
	runs, err := f.store.Runs(t.Context(), "never", 1)
	require.NoError(t, err)
	require.Len(t, runs, 1)
	require.Equal(t, storage.NeverBegan, runs[0].Status)
	f.went("never", artifact.InReview, artifact.Approved, artifact.Executing, artifact.Failed)
}
