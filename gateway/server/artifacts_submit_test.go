package server_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
	"go.temporal.io/api/serviceerror"

	"millrace/domain/artifact"
)

func TestASubmissionIsOfTheTokensOwnerAndVouchedFor(t *testing.T) {
	d := newArtifactDesk(t)
	for n, submit := range []func() answer{
		func() answer { return d.send(kim, http.MethodPost, "/v1/artifacts", submission()) },
		func() answer {
			return d.form(http.MethodPost, "/v1/artifacts",
				piece{"request", "", document(version(2), func(s map[string]any) {
					s["files"] = []any{map[string]any{"role": "primary", "content_hash": artifact.HashOf([]byte("#!/bin/sh\n")), "size": 10}}
				})}, piece{"primary", "fix.sh", "#!/bin/sh\n"})
		},
	} {
		a := submit()
		require.Equal(t, http.StatusAccepted, a.Status, string(a.Body))
		require.JSONEq(t, fmt.Sprintf(`{"artifact_id":"fix","version":%d,"workflow_id":"artifact/fix/v%d"}`, n+1, n+1), string(a.Body))
		r := d.request(fmt.Sprintf("artifact/fix/v%d", n+1))
		require.Equal(t, kim, r.Author)
		hash, err := r.Hash()
		require.NoError(t, err)
		require.Equal(t, hash, r.Claim.BundleHash)
		require.NoError(t, r.Claim.VerifySignature("fix", n+1, d.public))
		stored, err := d.store.Stat(t.Context(), fmt.Sprintf("artifacts/fix/v%d/fix.sh", n+1), "")
		require.NoError(t, err)
		require.Equal(t, r.Files[0].ContentHash, stored.ContentHash)
		require.EqualValues(t, 10, r.Files[0].Size)
	}
	d.requireNoFiles()
}

func TestARollbackLiesBesideThePrimary(t *testing.T) {
	d := newArtifactDesk(t)
	a := d.form(http.MethodPost, "/v1/artifacts", piece{"request", "", document()}, piece{"rollback", "undo.sh", "undo"}, piece{"primary", "fix.sh", "fix"})
	require.Equal(t, http.StatusAccepted, a.Status, string(a.Body))
	require.ElementsMatch(t, []string{"artifacts/fix/v1/fix.sh", "artifacts/fix/v1/rollback-undo.sh"}, d.objects())
}

func TestBadSubmissionsAreRefusedByTheirFieldAndLeaveNothing(t *testing.T) {
	d := newArtifactDesk(t)
	for field, change := range map[string]func(map[string]any){
		"body.author":                  func(s map[string]any) { s["author"] = "user:boss" },
		"body.claim":                   func(s map[string]any) { s["claim"] = map[string]any{"actor": "user:boss"} },
		"body.artifact_id":             func(s map[string]any) { s["artifact_id"] = "../etc" },
		"body.version":                 func(s map[string]any) { s["version"] = 10000 },
		"body.filename":                func(s map[string]any) { s["files"].([]map[string]any)[0]["filename"] = "../../x" },
		"body.files[0].role":           func(s map[string]any) { s["files"].([]map[string]any)[0]["role"] = "other" },
		"body.files[0].content_hash":   func(s map[string]any) { s["files"].([]map[string]any)[0]["content_hash"] = artifact.HashOf(nil) },
		"body.files[0].content_base64": func(s map[string]any) { s["files"].([]map[string]any)[0]["content_base64"] = "?" },
		"body.s3_version_id":           func(s map[string]any) { s["files"].([]map[string]any)[0]["s3_version_id"] = "x" },
		"body.files":                   func(s map[string]any) { delete(s, "files") },
		"body.kind":                    func(s map[string]any) { s["spec"].(map[string]any)["kind"] = "sorcery" },
		"body.spec.policy.required":    func(s map[string]any) { s["spec"].(map[string]any)["policy"].(map[string]any)["required"] = 2 },
		"body.spec.policy.approvers": func(s map[string]any) {
			s["spec"].(map[string]any)["policy"].(map[string]any)["approvers"] = []string{"group:none"}
		},
		"body.spec.limits.timeout": func(s map[string]any) { s["spec"].(map[string]any)["limits"] = map[string]any{"timeout": "1ms"} },
		"body": func(s map[string]any) {
			s["spec"].(map[string]any)["policy"].(map[string]any)["expires_after"] = "soon"
		},
	} {
		s := submission()
		change(s)
		requireField(t, d.send(kim, http.MethodPost, "/v1/artifacts", s), field)
	}
	d.requireNothingLeft()
}

// requireField wants a 400 that names a field; the place of the rules' own fields
// may differ.
func requireField(t *testing.T, a answer, field string) {
	t.Helper()
	p := a.problem(http.StatusBadRequest, "invalid-input")
	require.NotEmpty(t, p.Errors)
	got := p.Errors[0].Field
	require.True(t, got == field || strings.HasSuffix(got, strings.TrimPrefix(field, "body")), "%s, not %s: %s", got, field, p.Detail)
}

func TestBadFormsAreRefusedByTheirFieldAndLeaveNothing(t *testing.T) {
	d := newArtifactDesk(t)
	request, fix := piece{"request", "", document()}, piece{"primary", "fix.sh", "fix"}
	saying := func(file map[string]any) piece {
		return piece{"request", "", document(func(s map[string]any) { s["files"] = []any{file} })}
	}
	for name, c := range map[string]struct {
		field  string
		pieces []piece
	}{
		"files first":          {"body", []piece{fix, request}},
		"no files":             {"body.files", []piece{request}},
		"no primary":           {"body.files", []piece{request, {"rollback", "undo.sh", "undo"}}},
		"primary twice":        {"body.primary", []piece{request, fix, fix}},
		"unknown part":         {"body", []piece{request, fix, {"extra", "x", "x"}}},
		"request twice":        {"body", []piece{request, request, fix}},
		"no file name":         {"body.primary.filename", []piece{request, {"primary", "", "fix"}}},
		"path":                 {"body.primary.filename", []piece{request, {"primary", "../fix.sh", "fix"}}},
		"absolute path":        {"body.primary.filename", []piece{request, {"primary", "/etc/passwd", "fix"}}},
		"backslashes":          {"body.primary.filename", []piece{request, {"primary", `..\\fix.sh`, "fix"}}},
		"hidden file":          {"body.primary.filename", []piece{request, {"primary", ".fix.sh", "fix"}}},
		"reserved name":        {"body.primary.filename", []piece{request, {"primary", "spec.json", "fix"}}},
		"reserved prefix":      {"body.rollback.filename", []piece{request, fix, {"rollback", "rollback-x", "undo"}}},
		"other hash":           {"body.files[0].content_hash", []piece{saying(map[string]any{"role": "primary", "content_hash": artifact.HashOf(nil)}), fix}},
		"other size":           {"body.files[0].size", []piece{saying(map[string]any{"role": "primary", "size": 4}), fix}},
		"other name":           {"body.files[0].filename", []piece{saying(map[string]any{"role": "primary", "filename": "x"}), fix}},
		"no part of the role":  {"body.files[0]", []piece{saying(map[string]any{"role": "rollback"}), fix}},
		"content in both":      {"body.files[0].content_base64", []piece{saying(map[string]any{"role": "primary", "content_base64": "eA=="}), fix}},
		"forged author":        {"body.author", []piece{{"request", "", document(func(s map[string]any) { s["author"] = "user:boss" })}, fix}},
		"request is no JSON":   {"body", []piece{{"request", "", "{"}, fix}},
		"two objects":          {"body", []piece{{"request", "", document() + "{}"}, fix}},
		"the same field twice": {"body", []piece{{"request", "", `{"artifact_id":"a",` + document()[1:]}, fix}},
		"request is too long":  {"body.request", []piece{{"request", "", strings.Repeat(" ", 256<<10) + document()}, fix}},
	} {
		t.Run(name, func(t *testing.T) {
			a := d.form(http.MethodPost, "/v1/artifacts", c.pieces...)
			p := a.problem(http.StatusBadRequest, "invalid-input")
			require.Equal(t, c.field, p.Errors[0].Field, p.Detail)
			d.requireNothingLeft()
		})
	}
	body, contentType := parts(t, request, fix)
	for name, c := range map[string]struct {
		status      int
		code        string
		contentType string
		body        string
	}{
		"cut before the last boundary": {http.StatusBadRequest, "invalid-input", contentType, body.String()[:body.Len()-6]},
		"cut in a part":                {http.StatusBadRequest, "invalid-input", contentType, strings.Split(body.String(), "fix.sh")[0]},
		"no part at all":               {http.StatusBadRequest, "invalid-input", contentType, ""},
		"no boundary":                  {http.StatusBadRequest, "invalid-input", "multipart/form-data", body.String()},
		"other boundary":               {http.StatusBadRequest, "invalid-input", "multipart/form-data; boundary=x", body.String()},
		"other type":                   {http.StatusUnsupportedMediaType, "unsupported-media-type", "text/plain", body.String()},
		"no type":                      {http.StatusUnsupportedMediaType, "unsupported-media-type", "", body.String()},
	} {
		t.Run(name, func(t *testing.T) {
			d.upload(http.MethodPost, "/v1/artifacts", strings.NewReader(c.body), c.contentType).problem(c.status, c.code)
			d.requireNothingLeft()
		})
	}
}

func TestJobsForDevicesHaveSmallFiles(t *testing.T) {
	d := newArtifactDesk(t)
	job := func(n int, args map[string]any) piece {
		return piece{"request", "", document(version(n), func(s map[string]any) {
			s["draft"] = true
			s["spec"].(map[string]any)["kind"], s["spec"].(map[string]any)["args"] = "iot-job", args
		})}
	}
	good := map[string]any{"targets": []string{"factory-a", "factory-b"}, "waves": []any{1, "rest"}}
	large := piece{"primary", "job.json", strings.Repeat("x", 64<<10+1)}
	requireField(t, d.form(http.MethodPost, "/v1/artifacts", job(1, map[string]any{}), piece{"primary", "job.json", "{}"}), "body.spec.args.targets")
	requireField(t, d.form(http.MethodPost, "/v1/artifacts", job(1, good), large), "body.files")
	d.requireNothingLeft()
	a := d.form(http.MethodPost, "/v1/artifacts", job(1, good), piece{"primary", "job.json", "{}"})
	require.Equal(t, http.StatusAccepted, a.Status, string(a.Body))
	d.create("artifact/fix/v1", artifact.Draft)
	replacement := d.form(http.MethodPut, "/v1/artifacts/fix/versions/1/content", piece{"request", "", "{}"}, large)
	requireField(t, replacement, "body.files")
}

func TestTheSameSubmissionAgainIsAnsweredTheSameAndAnotherIsRefused(t *testing.T) {
	d := newArtifactDesk(t)
	submit := func(content string) answer {
		return d.form(http.MethodPost, "/v1/artifacts", piece{"request", "", document(version(1))}, piece{"primary", "fix.sh", content})
	}
	first := submit("one")
	require.Equal(t, http.StatusAccepted, first.Status, string(first.Body))
	for _, when := range []string{"before the version is written", "after"} {
		again := submit("one")
		require.Equal(t, http.StatusAccepted, again.Status, when)
		require.Equal(t, string(first.Body), string(again.Body))
		submit("two").problem(http.StatusConflict, "version-taken")
		reason := d.form(http.MethodPost, "/v1/artifacts", piece{"request", "", document(version(1), func(s map[string]any) { s["reason"] = "other" })}, piece{"primary", "fix.sh", "one"})
		reason.problem(http.StatusConflict, "version-taken")
		if when != "after" {
			d.create("artifact/fix/v1", artifact.InReview)
		}
	}
	require.Len(t, d.started, 1)
	stored, err := d.store.Stat(t.Context(), "artifacts/fix/v1/fix.sh", "")
	require.NoError(t, err)
	require.Equal(t, artifact.HashOf([]byte("one")), stored.ContentHash)

	next := d.form(http.MethodPost, "/v1/artifacts", piece{"request", "", document()}, piece{"primary", "fix.sh", "one"})
	require.Contains(t, string(next.Body), `"version":2`, "without a number the next one is taken")
	next = d.form(http.MethodPost, "/v1/artifacts", piece{"request", "", document()}, piece{"primary", "fix.sh", "three"})
	require.Contains(t, string(next.Body), `"version":3`, "a lifecycle that wrote no version keeps its number")
}

// TestRefusedSubmissionsBlockNoArtifact has lifecycles that write no version, as
// those that the floors of the worker refuse.
func TestRefusedSubmissionsBlockNoArtifact(t *testing.T) {
	d := newArtifactDesk(t)
	for number := 1; number <= 45; number++ {
		reason := document(func(s map[string]any) { s["reason"] = fmt.Sprint("try ", number) })
		a := d.form(http.MethodPost, "/v1/artifacts", piece{"request", "", reason}, piece{"primary", "fix.sh", "one"})
		require.Equal(t, http.StatusAccepted, a.Status, string(a.Body))
		require.Contains(t, string(a.Body), fmt.Sprintf(`"version":%d,`, number))
	}
	d.create("artifact/fix/v7", artifact.InReview)
	next := d.form(http.MethodPost, "/v1/artifacts", piece{"request", "", document()}, piece{"primary", "fix.sh", "two"})
	require.Contains(t, string(next.Body), `"version":46,`)
}

// TestOneOfManySubmissionsOfAVersionWins holds on a bucket without versions too,
// where a later object would replace the content of the winner.
func TestOneOfManySubmissionsOfAVersionWins(t *testing.T) {
	d := newArtifactDesk(t)
	tokens := []string{d.token(kim), d.token("user:park")} // one owner may not send so many at once
	statuses, bodies := make([]int, 8), make([]string, 8)
	var all sync.WaitGroup
	for n := range statuses {
		body, contentType := parts(t, piece{"request", "", document(version(1))}, piece{"primary", "fix.sh", fmt.Sprint("content ", n)})
		all.Go(func() {
			request, err := http.NewRequestWithContext(t.Context(), http.MethodPost, d.url+"/v1/artifacts", body)
			if err != nil {
				return
			}
			request.Header.Set("Authorization", "Bearer "+tokens[n%2])
			request.Header.Set("Content-Type", contentType)
			a := d.do(request)
			statuses[n], bodies[n] = a.Status, string(a.Body)
		})
	}
	all.Wait()
	winner := -1
	for n, status := range statuses {
		switch status {
		case http.StatusAccepted:
			require.Equal(t, -1, winner, "two won")
			winner = n
		default:
			require.Equal(t, http.StatusConflict, status, bodies[n])
		}
	}
	require.NotEqual(t, -1, winner)
	stored, err := d.store.Stat(t.Context(), "artifacts/fix/v1/fix.sh", "")
	require.NoError(t, err)
	require.Equal(t, artifact.HashOf(fmt.Append(nil, "content ", winner)), stored.ContentHash)
	require.Equal(t, stored.ContentHash, d.request("artifact/fix/v1").Files[0].ContentHash)
	d.requireNoFiles()
}

func TestWithoutTemporalNothingIsStored(t *testing.T) {
	d := newArtifactDesk(t)
	d.describing = serviceerror.NewUnavailable("no Temporal")
	a := d.send(kim, http.MethodPost, "/v1/artifacts", submission())
	a.problem(http.StatusServiceUnavailable, "temporal-unavailable")
	require.NotEmpty(t, a.Header.Get("Retry-After"))
	d.requireNothingLeft()

	d.describing, d.refusing = nil, serviceerror.NewUnavailable("lost on the way")
	numbered := submission()
	numbered["version"] = 1
	d.send(kim, http.MethodPost, "/v1/artifacts", numbered).problem(http.StatusServiceUnavailable, "temporal-unavailable")
	other := submission()
	other["version"], other["reason"] = 1, "other"
	d.send(kim, http.MethodPost, "/v1/artifacts", other).problem(http.StatusConflict, "version-taken")

	d.refusing = nil
	require.Equal(t, http.StatusAccepted, d.send(kim, http.MethodPost, "/v1/artifacts", numbered).Status, "the same submission goes on")
	require.Len(t, d.started, 1)

	started := submission()
	started["artifact_id"], started["version"] = "late", 1
	d.refusing = serviceerror.NewWorkflowExecutionAlreadyStarted("", "", "")
	d.send(kim, http.MethodPost, "/v1/artifacts", started).problem(http.StatusConflict, "version-taken")
}

func TestFilesOfADraftAreReplaced(t *testing.T) {
	d := newArtifactDesk(t)
	const path = "/v1/artifacts/fix/versions/1/content"
	draft := submission()
	draft["draft"] = true
	require.Equal(t, http.StatusAccepted, d.send(kim, http.MethodPost, "/v1/artifacts", draft).Status)
	d.form(http.MethodPut, path, piece{"request", "", "{}"}, piece{"primary", "fix.sh", "x"}).problem(http.StatusNotFound, "not-found")
	v := d.create("artifact/fix/v1", artifact.Draft)

	a := d.form(http.MethodPut, path, piece{"request", "", `{"comment":"better"}`}, piece{"primary", "fix.sh", "new"}, piece{"rollback", "undo.sh", "undo"})
	require.Equal(t, http.StatusOK, a.Status, string(a.Body))
	c := d.last()
	require.Equal(t, artifact.Replace, c.Verb)
	require.Equal(t, kim, c.Actor)
	require.NoError(t, c.VerifySignature("fix", 1, d.public))
	require.Equal(t, artifact.HashOf([]byte("new")), c.Files[0].ContentHash)
	stored, err := d.store.Stat(t.Context(), "artifacts/fix/v1/rollback-undo.sh", c.Files[1].S3VersionID)
	require.NoError(t, err)
	require.Equal(t, c.Files[1].ContentHash, stored.ContentHash)

	sent := len(d.commands)
	a = d.send(kim, http.MethodPut, path, map[string]any{"files": submission()["files"]})
	require.Equal(t, http.StatusOK, a.Status, string(a.Body))
	require.Len(t, d.commands, sent, "these are its files")
	d.send("user:lee", http.MethodPut, path, map[string]any{"files": submission()["files"]}).problem(http.StatusForbidden, "refused")
	requireField(t, d.send(kim, http.MethodPut, path, map[string]any{"files": submission()["files"], "actor": "user:boss"}), "body.actor")
	requireField(t, d.send(kim, http.MethodPut, path, map[string]any{}), "body.files")

	d.step(v, artifact.InReview, nil)
	before := d.objects()
	p := d.form(http.MethodPut, path, piece{"request", "", "{}"}, piece{"primary", "other.sh", "evil"}).problem(http.StatusConflict, "refused")
	require.Equal(t, "wrong_state", p.Reason)
	require.Equal(t, before, d.objects())
	require.Len(t, d.commands, sent)
}

func TestTheContractDescribesBothFormsOfUploads(t *testing.T) {
	d := newArtifactDesk(t)
	body, err := json.Marshal(d.server.OpenAPI())
	require.NoError(t, err)
	var document struct {
		Paths map[string]map[string]struct {
			RequestBody struct {
				Required bool
				Content  map[string]struct {
					Schema   struct{ Properties map[string]map[string]any }
					Encoding map[string]struct{ ContentType string }
				}
			}
			Responses map[string]struct {
				Headers map[string]any
				Content map[string]any
			}
		}
	}
	require.NoError(t, json.Unmarshal(body, &document))
	for _, op := range []struct{ path, method string }{{"/v1/artifacts", "post"}, {"/v1/artifacts/{artifact_id}/versions/{version}/content", "put"}} {
		described := document.Paths[op.path][op.method].RequestBody
		require.True(t, described.Required)
		require.Contains(t, described.Content, "application/json")
		form := described.Content["multipart/form-data"]
		require.Equal(t, "binary", form.Schema.Properties["primary"]["format"])
		require.Equal(t, "application/json", form.Encoding["request"].ContentType)
	}
	download := document.Paths["/v1/artifacts/{artifact_id}/versions/{version}/content"]["get"].Responses
	require.Contains(t, download["200"].Content, "application/octet-stream")
	require.NotContains(t, download["200"].Content, "application/json")
	require.Contains(t, download["200"].Headers, "Content-Digest")
	require.Contains(t, download, "304")
}
