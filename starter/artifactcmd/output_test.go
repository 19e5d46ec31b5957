package artifactcmd

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"millrace/domain/artifact"
	storage "millrace/storage/artifact"
	"millrace/storage/objects"
)

func TestOutputsOfRunsArePrintedAndChecked(t *testing.T) {
	s := newShop(t)
	target := Target{ID: "fix", Version: 1}
	var ids []string
	for n, text := range []string{"first\n", "second\n"} {
		at := time.Date(2026, 5, 31, 12, n, 0, 0, time.UTC)
		run := artifact.NewRunID(at, text)
		ids = append(ids, run)
		began, err := s.store.Begin(t.Context(), "fix", 1, storage.Run{RunID: run, Status: storage.Running, StartedAt: at})
		require.NoError(t, err)
		require.True(t, began)
		file, err := s.store.Put(t.Context(), storage.RunKey(run, storage.StdoutFile), "text/plain", strings.NewReader(text))
		require.NoError(t, err)
		require.NoError(t, s.store.Finish(t.Context(), "fix", storage.Run{
			RunID: run, Status: storage.Succeeded, FinishedAt: &at, ContentHashes: map[string]string{storage.StdoutFile: file.ContentHash},
		}))
	}
	for run, want := range map[string]string{"": "second\n", ids[0]: "first\n"} {
		var out bytes.Buffer
		require.NoError(t, output(t.Context(), s.store, target, run, storage.StdoutFile, &out))
		require.Equal(t, want, out.String())
	}
	require.NoError(t, s.run("artifact", "output", "fix", "1", "--run="+ids[0]))
	require.ErrorIs(t, s.run("artifact", "output", "fix", "1", "--file=stderr"), storage.ErrNotFound)
	require.ErrorIs(t, s.run("artifact", "output", "fix", "2"), storage.ErrNotFound)
	require.Error(t, s.run("artifact", "output", "fix", "1", "--file=odd"))

	_, err := s.store.Put(t.Context(), storage.RunKey(ids[1], storage.StdoutFile), "text/plain", strings.NewReader("forged"))
	require.NoError(t, err)
	var changed *objects.IntegrityError
	require.ErrorAs(t, s.run("artifact", "output", "fix", "1"), &changed)
}

func TestASubmissionReservesItsNumber(t *testing.T) {
	s := newShop(t)
	submit := SubmitCommand{
		ID: "fix", File: s.file("fix.sh", "#!/bin/sh\n"), Kind: "script", Args: "{}", Policy: "{}", Approver: []string{"user:kim"},
		Actor: Actor{Actor: "user:lee"}, Timeout: time.Minute,
	}
	for range 2 {
		r, err := submit.request(t.Context(), s.store)
		require.NoError(t, err, "the same again goes on")
		require.Equal(t, 1, r.Version)
	}
	submit.File = s.file("fix.sh", "#!/bin/sh\nother\n")
	_, err := submit.request(t.Context(), s.store)
	require.ErrorIs(t, err, storage.ErrTaken)
	stored, err := s.store.Stat(t.Context(), storage.ContentKey("fix", 1, "fix.sh"), "")
	require.NoError(t, err)
	require.Equal(t, artifact.HashOf([]byte("#!/bin/sh\n")), stored.ContentHash)
}
