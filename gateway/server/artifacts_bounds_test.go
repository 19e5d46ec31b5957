package server_test

import (
	"context"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"millrace/domain/artifact"
	storage "millrace/storage/artifact"
)

// hangAs begins uploads of one owner that never send a body, and counts the
// statuses of their answers.
func (d *artifactDesk) hangAs(owner string, n int, header string) map[string]int {
	d.Helper()
	d.token(owner)
	var lock sync.Mutex
	var all sync.WaitGroup
	counts := map[string]int{}
	for range n {
		all.Go(func() {
			line := d.rawAs(owner, "POST /v1/artifacts HTTP/1.1\r\nHost: x\r\n"+header, "")
			lock.Lock()
			defer lock.Unlock()
			counts[strings.Fields(line)[1]]++
		})
	}
	all.Wait()
	return counts
}

func TestOneOwnerLeavesPlacesToOthers(t *testing.T) {
	d := newArtifactDesk(t)
	const form = "Content-Type: multipart/form-data; boundary=b\r\nContent-Length: 10\r\n"
	require.Equal(t, map[string]int{"408": 4, "503": 4}, d.hangAs(kim, 8, form))
	require.Equal(t, map[string]int{"408": 4}, d.hangAs(kim, 4, form), "the places are free again")
	require.Equal(t, map[string]int{"408": 4, "503": 1}, d.hangAs(kim, 5, "Content-Type: application/json\r\nContent-Length: 1000000\r\n"))
}

func TestASmallDocumentNeedsNoPlace(t *testing.T) {
	d := newArtifactDesk(t)
	began := time.Now()
	require.Equal(t, map[string]int{"408": 12}, d.hangAs(kim, 12, "Content-Type: application/json\r\nContent-Length: 10\r\n"))
	require.Less(t, time.Since(began), 5*time.Second)
}

func TestNumbersAreNotSkipped(t *testing.T) {
	d := newArtifactDesk(t)
	submit := func(n int) answer {
		s := submission()
		s["version"] = n
		return d.send(kim, http.MethodPost, "/v1/artifacts", s)
	}
	a := submit(9999)
	require.Equal(t, http.StatusBadRequest, a.Status)
	require.Contains(t, string(a.Body), "must be at most 1: numbers are not skipped")
	require.Empty(t, d.started)
	require.Equal(t, http.StatusAccepted, submit(1).Status)
	require.Equal(t, http.StatusAccepted, submit(2).Status, "one that was taken and never written counts")
	require.Equal(t, http.StatusAccepted, submit(1).Status, "the same again")
	require.Equal(t, http.StatusBadRequest, submit(4).Status)
}

func TestControlCharactersAreRefusedAtTheDoor(t *testing.T) {
	d := newArtifactDesk(t)
	s := submission()
	s["reason"] = "stuck\x00 \u202e"
	a := d.send(kim, http.MethodPost, "/v1/artifacts", s)
	require.Equal(t, http.StatusBadRequest, a.Status)
	require.Contains(t, string(a.Body), "body.reason")
	require.Contains(t, string(a.Body), "must not contain the control character U+0000")
	require.Equal(t, http.StatusAccepted, d.send(kim, http.MethodPost, "/v1/artifacts", submission()).Status)
	for _, door := range []string{"withdraw", "decision"} {
		body := map[string]any{"comment": "\x1b[31m"}
		if door == "decision" {
			body["decision"], body["bundle_hash"] = "approve", artifact.HashOf(nil)
		}
		a = d.send(kim, http.MethodPost, "/v1/artifacts/fix/versions/1/"+door, body)
		require.Equal(t, http.StatusBadRequest, a.Status)
		require.Contains(t, string(a.Body), "body.comment")
	}
	require.Empty(t, d.commands)
}

func TestUnknownFieldsOfPoliciesAreRefused(t *testing.T) {
	d := newArtifactDesk(t)
	s := submission()
	s["spec"].(map[string]any)["policy"].(map[string]any)["reqired"] = 3
	a := d.send(kim, http.MethodPost, "/v1/artifacts", s)
	require.Equal(t, http.StatusBadRequest, a.Status)
	require.Contains(t, string(a.Body), "body.reqired")
}

// TestWhatUndoesAVersionCanBeRead is about the artifact that stands for an undo:
// it has no lifecycle, and nothing can be done about it.
func TestWhatUndoesAVersionCanBeRead(t *testing.T) {
	d := newArtifactDesk(t)
	s := submission()
	s["files"] = append(s["files"].([]map[string]any), map[string]any{"role": "rollback", "filename": "undo.sh", "content_base64": "IyEvYmluL3NoCg=="})
	require.Equal(t, http.StatusAccepted, d.send(kim, http.MethodPost, "/v1/artifacts", s).Status)
	v := d.create("artifact/fix/v1", artifact.InReview)
	v = d.step(v, artifact.Approved, func(s *storage.Step) { s.Head = storage.HeadApprove })
	v = d.step(v, artifact.Executing, func(s *storage.Step) { s.Head, s.Run = storage.HeadRun, "r1" })
	v = d.step(v, artifact.Executed, func(s *storage.Step) { s.Head, s.Run = storage.HeadRelease, "r1" })
	d.step(v, artifact.Compensating, func(s *storage.Step) {
		s.Head, s.Run, s.Undo = storage.HeadUndo, "u1", &storage.Undo{State: storage.CompensationRunning, StartedAt: time.Now()}
	})
	for path, says := range map[string]string{
		"comp-fix-v1":            `"artifact_id":"comp-fix-v1"`,
		"comp-fix-v1/versions/1": `"state":"executing"`,
		"comp-fix-v1/versions/1/content?role=rollback": "#!/bin/sh",
		"comp-fix-v1/versions/1/transitions":           `"items":[]`,
	} {
		a := d.send(kim, http.MethodGet, "/v1/artifacts/"+path, nil)
		require.Equal(t, http.StatusOK, a.Status, path)
		require.Contains(t, string(a.Body), says, path)
	}
	require.Equal(t, http.StatusNotFound, d.send(kim, http.MethodGet, "/v1/artifacts/comp-fix-v2", nil).Status)
	require.Equal(t, http.StatusBadRequest, d.send(kim, http.MethodGet, "/v1/artifacts/comp-fix", nil).Status)
	require.Equal(t, http.StatusBadRequest, d.send(kim, http.MethodPost, "/v1/artifacts/comp-fix-v1/versions/1/archive", map[string]any{}).Status)
}

// TestTheProvenanceDocumentIsWholeWhileVersionsSettle reads the document while it
// is written again and again: the object is replaced before HEAD names it.
func TestTheProvenanceDocumentIsWholeWhileVersionsSettle(t *testing.T) {
	d := newArtifactDesk(t)
	require.Equal(t, http.StatusAccepted, d.send(kim, http.MethodPost, "/v1/artifacts", submission()).Status)
	d.step(d.create("artifact/fix/v1", artifact.InReview), artifact.Withdrawn, nil)
	require.NoError(t, d.store.WriteProvenance(t.Context(), "fix"))
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	var writing sync.WaitGroup
	writing.Go(func() {
		for ctx.Err() == nil {
			_ = d.store.WriteProvenance(ctx, "fix") // it is stopped at some time
		}
	})
	d.token(kim)
	for range 60 {
		a := d.send(kim, http.MethodGet, "/v1/artifacts/fix/provenance", nil)
		require.Equal(t, http.StatusOK, a.Status)
		require.Equal(t, a.Header.Get("ETag"), `"`+artifact.HashOf(a.Body)+`"`)
	}
	stop()
	writing.Wait()
}
