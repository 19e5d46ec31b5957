package server_test

import (
	"bytes"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/stretchr/testify/require"

	"millrace/domain/artifact"
	"millrace/gateway/server"
	storage "millrace/storage/artifact"
)

// submitted submits and writes a version.
func (d *artifactDesk) submitted(n int, content string) storage.Artifact {
	d.Helper()
	a := d.form(http.MethodPost, "/v1/artifacts", piece{"request", "", document(version(n))}, piece{"primary", "fix.sh", content})
	require.Equal(d, http.StatusAccepted, a.Status, string(a.Body))
	return d.create(fmt.Sprintf("artifact/fix/v%d", n), artifact.InReview)
}

// decided has lee approve a version.
func (d *artifactDesk) decided(v storage.Artifact) storage.Artifact {
	d.Helper()
	decision := artifact.Decision{
		Command:   artifact.Command{Verb: artifact.Approve, Actor: "user:lee", At: time.Now().UTC(), BundleHash: v.BundleHash},
		Assurance: artifact.Gateway, RecordedAt: time.Now().UTC(),
	}
	v = d.step(v, artifact.InReview, func(s *storage.Step) { s.Decision = &decision })
	return d.step(v, artifact.Approved, func(s *storage.Step) { s.Head = storage.HeadMove("approve") })
}

// ran runs an approved version, with its output.
func (d *artifactDesk) ran(v storage.Artifact, stdout string) (storage.Artifact, string) {
	d.Helper()
	now := time.Now().UTC()
	run := artifact.NewRunID(now, v.ChainLast)
	v = d.step(v, artifact.Executing, func(s *storage.Step) { s.Head, s.Run = storage.HeadMove("run"), run })
	began, err := d.store.Begin(d.Context(), v.ArtifactID, v.Version, storage.Run{RunID: run, Role: artifact.Primary, Kind: v.Kind, Status: storage.Running, StartedAt: now})
	require.NoError(d, err)
	require.True(d, began)
	file, err := d.store.Put(d.Context(), storage.RunKey(run, storage.StdoutFile), "text/plain", strings.NewReader(stdout))
	require.NoError(d, err)
	require.NoError(d, d.store.Finish(d.Context(), v.ArtifactID, storage.Run{
		RunID: run, Status: storage.Succeeded, FinishedAt: &now, ContentHashes: map[string]string{storage.StdoutFile: file.ContentHash},
	}))
	return d.step(v, artifact.Executed, func(s *storage.Step) { s.Head, s.Run = storage.HeadMove("release"), run }), run
}

func TestReviewersReadWhatTheyDecideAbout(t *testing.T) {
	d := newArtifactDesk(t)
	v := d.submitted(1, "#!/bin/sh\n")
	for path, want := range map[string]string{
		"s":                                      `"artifact_id":"fix"`,
		"s?state=in_review&limit=1":              v.BundleHash,
		"s?state=executed":                       `"items":[]`,
		"-approvals?approver=user:lee":           `"items":[]`,
		"-transitions":                           `"to":"in_review"`,
		"-runs":                                  `"items":[]`,
		"-compensations":                         `"items":[]`,
		"s/fix":                                  v.BundleHash,
		"s/fix/versions/1":                       `"wanted":["user:lee"]`,
		"s/fix/versions/1/transitions":           `"to":"in_review"`,
		"s/fix/versions/1/approvals":             `"items":[]`,
		"s/fix/versions/1/runs":                  `"items":[]`,
		"s/fix/versions/1/provenance":            `v0001-0001-submitted`,
		"s/fix/versions/1/content":               "#!/bin/sh\n",
		"s/fix/versions/1/diff":                  `+#!/bin/sh`,
		"s/fix/versions/1/provenance/statements": `"_type":"https://in-toto.io/Statement/v1"`,
	} {
		a := d.send(kim, http.MethodGet, "/v1/artifact"+path, nil)
		require.Equal(t, http.StatusOK, a.Status, "%s %s", path, a.Body)
		require.Contains(t, string(a.Body), want, path)
		for _, hidden := range []string{"GSI1PK", `"PK"`, "schema_version"} {
			require.NotContains(t, string(a.Body), hidden)
		}
	}
	var review server.ArtifactReview
	d.send(kim, http.MethodGet, "/v1/artifacts/fix/versions/1", nil).decode(&review)
	require.Equal(t, kim, review.Artifact.Author)
	require.Equal(t, "stuck", review.Artifact.Reason)
	require.EqualValues(t, 10, review.TotalSize)
	require.Equal(t, artifact.HashOf([]byte("#!/bin/sh\n")), review.Artifact.Files[0].ContentHash)
	require.Equal(t, []string{"user:lee"}, review.Artifact.Spec.Policy.Approvers)
}

func TestBadReadsAreRefused(t *testing.T) {
	d := newArtifactDesk(t)
	d.submitted(1, "x")
	run := artifact.NewRunID(time.Now(), "x")
	for path, want := range map[string]int{
		"s/none":                                   http.StatusNotFound,
		"s/none/provenance":                        http.StatusNotFound,
		"s/fix/provenance":                         http.StatusNotFound,
		"s/fix/versions/2":                         http.StatusNotFound,
		"s/fix/versions/2/transitions":             http.StatusNotFound,
		"s/fix/versions/2/diff":                    http.StatusNotFound,
		"s/fix/versions/2/status":                  http.StatusOK, // the stand-in knows every version
		"s/fix/versions/1/content?role=rollback":   http.StatusNotFound,
		"s/fix/versions/1/content?role=x":          http.StatusBadRequest,
		"s/fix/versions/1/diff?role=x":             http.StatusBadRequest,
		"s/fix/versions/1/runs/" + run + "/stdout": http.StatusNotFound,
		"s/fix/versions/1/runs/" + run + "/odd":    http.StatusBadRequest,
		"s/fix/versions/1/runs/odd/stdout":         http.StatusBadRequest,
		"s/fix/versions/0":                         http.StatusBadRequest,
		"s/Fix":                                    http.StatusBadRequest,
		"s/a..b/provenance":                        http.StatusBadRequest,
		"s/a..b/versions/1/provenance/statements":  http.StatusBadRequest,
		"s?state=odd":                              http.StatusBadRequest,
		"s?cursor=odd":                             http.StatusBadRequest,
		"s?limit=0":                                http.StatusBadRequest,
		"s?approver=user:lee":                      http.StatusBadRequest,
		"-approvals":                               http.StatusBadRequest,
		"-approvals?approver=odd":                  http.StatusBadRequest,
		"-transitions?day=2026-02-30":              http.StatusBadRequest,
		"-runs?day=x":                              http.StatusBadRequest,
		"-compensations?state=odd":                 http.StatusBadRequest,
	} {
		a := d.send(kim, http.MethodGet, "/v1/artifact"+path, nil)
		require.Equal(t, want, a.Status, "%s %s", path, a.Body)
	}
}

func TestListsPageByStateDayAndApprover(t *testing.T) {
	d := newArtifactDesk(t)
	for n := range 3 {
		d.submitted(n+1, fmt.Sprint(n))
	}
	d.decided(d.submitted(4, "four"))
	today := artifact.Date(time.Now())
	for path, want := range map[string]int{
		"s?state=in_review": 3, "s?state=approved": 1, "-transitions?day=" + today: 5, "-transitions?day=2020-01-01": 0,
		"-approvals?approver=user:lee": 1, "-approvals?approver=user:park": 0,
	} {
		seen, cursor := 0, ""
		for {
			join := "?"
			if strings.Contains(path, "?") {
				join = "&"
			}
			a := d.send(kim, http.MethodGet, "/v1/artifact"+path+join+"limit=2"+cursor, nil)
			require.Equal(t, http.StatusOK, a.Status, string(a.Body))
			var page server.ArtifactPage[json.RawMessage]
			a.decode(&page)
			require.LessOrEqual(t, len(page.Items), 2)
			seen += len(page.Items)
			if page.NextCursor == "" {
				break
			}
			cursor = "&cursor=" + page.NextCursor
		}
		require.Equal(t, want, seen, path)
	}
}

func TestContentSaysWhatItIs(t *testing.T) {
	d := newArtifactDesk(t)
	v := d.submitted(1, "#!/bin/sh\n")
	const path = "/v1/artifacts/fix/versions/1/content"
	a := d.send(kim, http.MethodGet, path, nil)
	require.Equal(t, http.StatusOK, a.Status)
	hash := v.Files[0].ContentHash
	sum, err := hex.DecodeString(strings.TrimPrefix(hash, "sha256:"))
	require.NoError(t, err)
	require.Equal(t, `"`+hash+`"`, a.Header.Get("ETag"))
	require.Equal(t, "sha-256=:"+base64.StdEncoding.EncodeToString(sum)+":", a.Header.Get("Content-Digest"))
	require.Equal(t, `attachment; filename="fix.sh"`, a.Header.Get("Content-Disposition"))
	require.Equal(t, "nosniff", a.Header.Get("X-Content-Type-Options"))
	for match, want := range map[string]int{`"` + hash + `"`: 304, `W/"` + hash + `"`: 304, `"x", "` + hash + `"`: 304, "*": 304, `"x"`: 200} {
		require.Equal(t, want, d.send(kim, http.MethodGet, path, nil, "If-None-Match", match).Status, match)
	}

	_, err = d.store.Client.PutObject(t.Context(), &s3.PutObjectInput{Bucket: &d.store.Bucket, Key: &v.Files[0].Key, Body: bytes.NewReader([]byte("#!/bin/sh\nevil\n"))})
	require.NoError(t, err)
	d.requireNeverWhole(path)
}

// requireNeverWhole wants a download to break off.
func (d *artifactDesk) requireNeverWhole(path string) {
	d.Helper()
	request, err := http.NewRequestWithContext(d.Context(), http.MethodGet, d.url+path, http.NoBody)
	require.NoError(d, err)
	request.Header.Set("Authorization", "Bearer "+d.token(kim))
	response, err := http.DefaultClient.Do(request)
	if err == nil {
		defer response.Body.Close()
		_, err = io.ReadAll(response.Body)
	}
	require.Error(d, err, "changed content never looks whole")
}

func TestOutputsOfRunsAreRead(t *testing.T) {
	d := newArtifactDesk(t)
	v, run := d.ran(d.decided(d.submitted(1, "fix")), "fixed\n")
	base := "/v1/artifacts/fix/versions/1/runs/" + run
	a := d.send(kim, http.MethodGet, base+"/stdout", nil)
	require.Equal(t, http.StatusOK, a.Status, string(a.Body))
	require.Equal(t, "fixed\n", string(a.Body))
	require.Equal(t, "6", a.Header.Get("Content-Length"))
	require.NotEmpty(t, a.Header.Get("Content-Digest"))
	d.send(kim, http.MethodGet, base+"/stderr", nil).problem(http.StatusNotFound, "not-found")
	d.send(kim, http.MethodGet, "/v1/artifacts/fix/versions/2/runs/"+run+"/stdout", nil).problem(http.StatusNotFound, "not-found")
	d.send(kim, http.MethodGet, "/v1/artifacts/other/versions/1/runs/"+run+"/stdout", nil).problem(http.StatusNotFound, "not-found")
	require.Contains(t, string(d.send(kim, http.MethodGet, "/v1/artifact-runs", nil).Body), run)

	key := storage.RunKey(run, storage.StdoutFile)
	_, err := d.store.Client.PutObject(t.Context(), &s3.PutObjectInput{Bucket: &d.store.Bucket, Key: &key, Body: bytes.NewReader([]byte("forged"))})
	require.NoError(t, err)
	d.requireNeverWhole(base + "/stdout")
	_, err = d.store.Client.DeleteObject(t.Context(), &s3.DeleteObjectInput{Bucket: &d.store.Bucket, Key: &key})
	require.NoError(t, err)
	d.send(kim, http.MethodGet, base+"/stdout", nil).problem(http.StatusNotFound, "not-found")

	require.NoError(t, d.store.WriteProvenance(t.Context(), v.ArtifactID))
	a = d.send(kim, http.MethodGet, "/v1/artifacts/fix/provenance", nil)
	require.Equal(t, http.StatusOK, a.Status, string(a.Body))
	var document storage.Document
	a.decode(&document)
	_, err = artifact.VerifyChain(1, document.Versions[0].Records)
	require.NoError(t, err)
}

func TestADiffIsAgainstTheLastExecutedVersion(t *testing.T) {
	d := newArtifactDesk(t)
	diff := func(n int, role string) server.ArtifactDiff {
		a := d.send(kim, http.MethodGet, fmt.Sprintf("/v1/artifacts/fix/versions/%d/diff?role=%s", n, role), nil)
		require.Equal(t, http.StatusOK, a.Status, string(a.Body))
		var result server.ArtifactDiff
		a.decode(&result)
		return result
	}
	first, _ := d.ran(d.decided(d.submitted(1, "one\n")), "")
	d.submitted(2, "never ran\n")
	d.submitted(3, "three\n")
	changed := diff(3, "primary")
	require.Equal(t, 1, changed.Against)
	require.Contains(t, changed.Diff, "-one\n+three\n")
	require.Equal(t, server.ArtifactDiff{Against: 1}, diff(3, "rollback"))
	require.Equal(t, server.ArtifactDiff{Against: 1}, diff(3, "spec"))
	require.Contains(t, diff(1, "spec").Diff, `+  "kind": "script",`)
	var review server.ArtifactReview
	d.send(kim, http.MethodGet, "/v1/artifacts/fix/versions/3", nil).decode(&review)
	require.Equal(t, 1, review.LastExecuted)

	d.step(first, artifact.Archived, func(s *storage.Step) { s.ArchivePrefix = "archive/2026/05/fix/v1/" })
	require.Equal(t, server.ArtifactDiff{Against: 1, Diff: "version 1 is archived: its content must be restored before it can be compared\n"}, diff(3, "primary"))
	require.Equal(t, server.ArtifactDiff{Against: 1}, diff(3, "spec"))
	d.send(kim, http.MethodGet, "/v1/artifacts/fix/versions/1/content", nil).problem(http.StatusNotFound, "archived")
}
