package server_test

import (
	"bytes"
	"context"
	"crypto/ed25519"
	"crypto/rand"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/stretchr/testify/require"
	"go.temporal.io/api/serviceerror"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/temporal"
	"golang.org/x/crypto/ssh"

	"millrace/domain/artifact"
	"millrace/domain/monitoring"
	"millrace/gateway/server"
	storage "millrace/storage/artifact"
	"millrace/storage/storagetest"
	workflows "millrace/workflows/artifact"
)

// lifecycles stands for Temporal: it keeps what it was asked.
type lifecycles struct {
	started  []workflows.Input
	commands []workflows.Command
	answer   error
}

func (l *lifecycles) ExecuteWorkflow(_ context.Context, _ client.StartWorkflowOptions, _ any, args ...any) (client.WorkflowRun, error) {
	l.started = append(l.started, args[0].(workflows.Input))
	return nil, l.answer
}

func (l *lifecycles) UpdateWorkflow(_ context.Context, o client.UpdateWorkflowOptions) (client.WorkflowUpdateHandle, error) {
	l.commands = append(l.commands, o.Args[0].(workflows.Command))
	return updated{}, l.answer
}

type updated struct{ client.WorkflowUpdateHandle }

func (updated) Get(_ context.Context, into any) error {
	*into.(*workflows.Status) = workflows.Status{State: artifact.Approved}
	return nil
}

// artifactDesk is a gateway with artifacts and a token of each kind.
type artifactDesk struct {
	*testing.T
	*lifecycles
	store  storage.Store
	url    string
	public string
	token  map[monitoring.Scope]string
}

func newArtifactDesk(t *testing.T) *artifactDesk {
	t.Helper()
	_, private, err := ed25519.GenerateKey(rand.Reader)
	require.NoError(t, err)
	signer, err := ssh.NewSignerFromKey(private)
	require.NoError(t, err)
	tab, bucket := storagetest.Table(t, storagetest.Monitoring), storagetest.Bucket(t)
	objects := s3.NewFromConfig(storagetest.Config(t), func(o *s3.Options) { o.UsePathStyle = true })
	d := &artifactDesk{
		T: t, lifecycles: &lifecycles{}, store: storage.New(tab.Client, tab.Name, objects, bucket.Name),
		public: string(ssh.MarshalAuthorizedKey(signer.PublicKey())), token: map[monitoring.Scope]string{},
	}
	f := newFixture(t, server.Artifacts(server.ArtifactConfig{Store: d.store, Workflows: d.lifecycles, Signer: signer, Now: time.Now}))
	d.url = f.url
	for _, scope := range []monitoring.Scope{monitoring.ScopeRead, monitoring.ScopeArtifactSubmit, monitoring.ScopeArtifactApprove, monitoring.ScopeArtifactExecute} {
		_, d.token[scope] = f.issue("user:kim", scope)
	}
	return d
}

func (d *artifactDesk) do(method, path string, scope monitoring.Scope, body any) (int, string) {
	d.Helper()
	encoded, err := json.Marshal(body)
	require.NoError(d, err)
	request, err := http.NewRequestWithContext(d.Context(), method, d.url+path, bytes.NewReader(encoded))
	require.NoError(d, err)
	request.Header.Set("Authorization", "Bearer "+d.token[scope])
	request.Header.Set("Content-Type", "application/json")
	response, err := http.DefaultClient.Do(request)
	require.NoError(d, err)
	defer response.Body.Close()
	answer, err := io.ReadAll(response.Body)
	require.NoError(d, err)
	return response.StatusCode, string(answer)
}

func submission() map[string]any {
	return map[string]any{
		"artifact_id": "fix", "reason": "stuck",
		"spec":  map[string]any{"kind": "script", "policy": map[string]any{"approvers": []string{"user:lee"}, "expires_after": "24h"}},
		"files": []map[string]any{{"role": "primary", "filename": "fix.sh", "content_base64": base64.StdEncoding.EncodeToString([]byte("#!/bin/sh\n"))}},
	}
}

// create writes the version that was started, as the lifecycle does.
func (d *artifactDesk) create() storage.Artifact {
	d.Helper()
	r := d.started[0].Request
	policy, err := r.Spec.Policy.Complete(r.Author, nil, false)
	require.NoError(d, err)
	r.Spec.Policy = policy
	bundle, err := artifact.BundleHash(r.Files, r.Spec)
	require.NoError(d, err)
	record, _, err := artifact.Chain{}.Extend(1, "submitted", r.Author, time.Now(), bundle, "x")
	require.NoError(d, err)
	file := storage.StoredFile{Role: artifact.Primary, Filename: "fix.sh", Key: storage.ContentKey("fix", 1, "fix.sh"), ContentHash: r.Files[0].ContentHash, Size: r.Files[0].Size}
	require.NoError(d, d.store.Create(d.Context(), storage.Creation{
		Request: r, Content: storage.Content{Files: []storage.StoredFile{file}, BundleHash: bundle}, State: artifact.InReview, Record: record,
	}))
	v, err := d.store.Version(d.Context(), "fix", 1)
	require.NoError(d, err)
	return v
}

func TestASubmissionIsOfTheTokensOwnerAndVouchedFor(t *testing.T) {
	d := newArtifactDesk(t)
	status, body := d.do(http.MethodPost, "/v1/artifacts", monitoring.ScopeArtifactSubmit, submission())
	require.Equal(t, http.StatusAccepted, status, body)
	require.JSONEq(t, `{"artifact_id":"fix","version":1,"workflow_id":"artifact/fix/v1"}`, body)
	r := d.started[0].Request
	require.Equal(t, "user:kim", r.Author)
	hash, err := r.Hash()
	require.NoError(t, err)
	require.Equal(t, hash, r.Claim.BundleHash)
	require.NoError(t, r.Claim.VerifySignature("fix", 1, d.public))
	stored, err := d.store.Stat(t.Context(), "artifacts/fix/v1/fix.sh", "")
	require.NoError(t, err)
	require.Equal(t, r.Files[0].ContentHash, stored.ContentHash)

	for field, change := range map[string]func(map[string]any){
		"author":       func(s map[string]any) { s["author"] = "user:boss" },
		"claim":        func(s map[string]any) { s["claim"] = map[string]any{"actor": "user:boss"} },
		"artifact_id":  func(s map[string]any) { s["artifact_id"] = "../etc" },
		"filename":     func(s map[string]any) { s["files"].([]map[string]any)[0]["filename"] = "../../x" },
		"content_hash": func(s map[string]any) { s["files"].([]map[string]any)[0]["content_hash"] = artifact.HashOf(nil) },
		"kind":         func(s map[string]any) { s["spec"].(map[string]any)["kind"] = "sorcery" },
	} {
		s := submission()
		change(s)
		status, body := d.do(http.MethodPost, "/v1/artifacts", monitoring.ScopeArtifactSubmit, s)
		require.Equal(t, http.StatusBadRequest, status, body)
		require.Contains(t, body, field)
	}
	require.Len(t, d.started, 1)
	d.answer = serviceerror.NewWorkflowExecutionAlreadyStarted("", "", "")
	status, _ = d.do(http.MethodPost, "/v1/artifacts", monitoring.ScopeArtifactSubmit, submission())
	require.Equal(t, http.StatusConflict, status)
}

func TestDoorsActInTheNameOfTheTokensOwner(t *testing.T) {
	d := newArtifactDesk(t)
	for door, scope := range map[string]monitoring.Scope{
		"submit": monitoring.ScopeArtifactSubmit, "withdraw": monitoring.ScopeArtifactSubmit, "decision": monitoring.ScopeArtifactApprove,
		"execute": monitoring.ScopeArtifactExecute, "compensate": monitoring.ScopeArtifactExecute, "archive": monitoring.ScopeArtifactExecute,
	} {
		said := map[string]any{"bundle_hash": artifact.HashOf(nil), "comment": "well"}
		if door == "decision" {
			said["decision"] = "approve"
		}
		path := "/v1/artifacts/fix/versions/1/" + door
		status, body := d.do(http.MethodPost, path, scope, said)
		require.Equal(t, http.StatusOK, status, body)
		require.Contains(t, body, `"state":"approved"`)
		c := d.commands[len(d.commands)-1]
		require.Equal(t, "user:kim", c.Actor)
		require.NoError(t, c.VerifySignature("fix", 1, d.public))
		require.Equal(t, artifact.HashOf(nil), c.BundleHash)

		sent := len(d.commands)
		status, _ = d.do(http.MethodPost, path, monitoring.ScopeRead, said)
		require.Equal(t, http.StatusForbidden, status, door)
		said["actor"] = "user:boss"
		status, body = d.do(http.MethodPost, path, scope, said)
		require.Equal(t, http.StatusBadRequest, status, "a claimed actor")
		require.Contains(t, body, "actor")
		require.Len(t, d.commands, sent)
	}
	for status, answer := range map[int]error{
		http.StatusConflict:            temporal.NewNonRetryableApplicationError("wrong_state: x", workflows.ErrRefused, nil),
		http.StatusBadRequest:          temporal.NewNonRetryableApplicationError("bundle_hash is needed", workflows.ErrInvalid, nil),
		http.StatusNotFound:            serviceerror.NewNotFound("no such workflow"),
		http.StatusInternalServerError: temporal.NewNonRetryableApplicationError("x", "Odd", nil),
	} {
		d.answer = answer
		got, body := d.do(http.MethodPost, "/v1/artifacts/fix/versions/1/execute", monitoring.ScopeArtifactExecute, map[string]any{})
		require.Equal(t, status, got, body)
	}
	got, _ := d.do(http.MethodPost, "/v1/artifacts/a..b/versions/1/execute", monitoring.ScopeArtifactExecute, map[string]any{})
	require.Equal(t, http.StatusBadRequest, got)
}

func TestReviewersReadWhatTheyDecideAbout(t *testing.T) {
	d := newArtifactDesk(t)
	status, body := d.do(http.MethodPost, "/v1/artifacts", monitoring.ScopeArtifactSubmit, submission())
	require.Equal(t, http.StatusAccepted, status, body)
	v := d.create()
	for path, want := range map[string]string{
		"":                               `"artifact_id":"fix"`,
		"?state=in_review&limit=1":       v.BundleHash,
		"?approver=user:lee":             `"items":[]`,
		"/fix":                           v.BundleHash,
		"/fix/versions/1":                `"wanted":["user:lee"]`,
		"/fix/versions/1/transitions":    `"to":"in_review"`,
		"/fix/versions/1/approvals":      `"items":[]`,
		"/fix/versions/1/runs":           `"items":[]`,
		"/fix/versions/1/provenance":     `v0001-0001-submitted`,
		"/fix/versions/1/content":        "#!/bin/sh\n",
		"/fix/versions/1/diff":           "+#!/bin/sh",
		"/fix/versions/1/content?role=x": "role",
	} {
		status, body := d.do(http.MethodGet, "/v1/artifacts"+path, monitoring.ScopeRead, nil)
		require.Contains(t, body, want, path)
		if path != "/fix/versions/1/content?role=x" {
			require.Equal(t, http.StatusOK, status, path)
		}
		require.NotContains(t, body, "GSI1PK")
	}
	for path, want := range map[string]int{
		"/none": http.StatusNotFound, "/fix/versions/2": http.StatusNotFound, "/fix/versions/1/content?role=rollback": http.StatusNotFound,
		"?state=odd": http.StatusBadRequest, "?approver=odd": http.StatusBadRequest, "?cursor=odd": http.StatusBadRequest,
	} {
		status, body := d.do(http.MethodGet, "/v1/artifacts"+path, monitoring.ScopeRead, nil)
		require.Equal(t, want, status, "%s %s", path, body)
	}
	status, body = d.do(http.MethodPut, "/v1/artifacts/fix/versions/1/content", monitoring.ScopeArtifactSubmit, map[string]any{"files": submission()["files"]})
	require.Equal(t, http.StatusConflict, status, fmt.Sprint("it is no draft any more: ", body))

	_, err := d.store.Client.PutObject(t.Context(), &s3.PutObjectInput{Bucket: &d.store.Bucket, Key: &v.Files[0].Key, Body: bytes.NewReader([]byte("#!/bin/sh\nevil\n"))})
	require.NoError(t, err)
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, d.url+"/v1/artifacts/fix/versions/1/content", http.NoBody)
	require.NoError(t, err)
	request.Header.Set("Authorization", "Bearer "+d.token[monitoring.ScopeRead])
	response, err := http.DefaultClient.Do(request)
	if err == nil {
		defer response.Body.Close()
		_, err = io.ReadAll(response.Body)
	}
	require.Error(t, err, "changed content never looks whole")
}
