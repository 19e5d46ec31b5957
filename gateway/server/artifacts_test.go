package server_test

import (
	"bytes"
	"context"
	"crypto/ed25519"
	"crypto/rand"
	"encoding/base64"
	"encoding/json"
	"io"
	"mime/multipart"
	"net/http"
	"net/textproto"
	"os"
	"sync"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/stretchr/testify/require"
	"go.temporal.io/api/serviceerror"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/converter"
	"golang.org/x/crypto/ssh"

	"millrace/domain/artifact"
	"millrace/domain/monitoring"
	"millrace/gateway/server"
	storage "millrace/storage/artifact"
	"millrace/storage/storagetest"
	workflows "millrace/workflows/artifact"
)

// lifecycles stands for Temporal: it keeps what it was asked, and starts a
// workflow id once only.
type lifecycles struct {
	lock     sync.Mutex
	started  map[string]workflows.Input
	commands []client.UpdateWorkflowOptions
	// refusing is the answer to starts, answer that to updates and queries, and
	// describing that to descriptions.
	refusing, answer, describing error
}

func (l *lifecycles) ExecuteWorkflow(_ context.Context, o client.StartWorkflowOptions, _ any, args ...any) (client.WorkflowRun, error) {
	l.lock.Lock()
	defer l.lock.Unlock()
	if l.refusing != nil {
		return nil, l.refusing
	}
	if _, again := l.started[o.ID]; again {
		return nil, serviceerror.NewWorkflowExecutionAlreadyStarted("", "", "")
	}
	l.started[o.ID] = args[0].(workflows.Input)
	return nil, nil
}

func (l *lifecycles) UpdateWorkflow(_ context.Context, o client.UpdateWorkflowOptions) (client.WorkflowUpdateHandle, error) {
	l.lock.Lock()
	defer l.lock.Unlock()
	l.commands = append(l.commands, o)
	return updated{}, l.answer
}

func (l *lifecycles) DescribeWorkflow(_ context.Context, id, _ string) (*client.WorkflowExecutionDescription, error) {
	l.lock.Lock()
	defer l.lock.Unlock()
	if _, found := l.started[id]; !found && l.describing == nil {
		return nil, serviceerror.NewNotFound("no such workflow")
	}
	return nil, l.describing
}

func (l *lifecycles) QueryWorkflow(context.Context, string, string, string, ...any) (converter.EncodedValue, error) {
	return asked{}, l.answer
}

func (l *lifecycles) GetWorkflow(context.Context, string, string) client.WorkflowRun { return nil }

// request is the one that started a version.
func (d *artifactDesk) request(id string) artifact.Request {
	d.Helper()
	d.lock.Lock()
	defer d.lock.Unlock()
	in, found := d.started[id]
	require.True(d, found, "%s was not started", id)
	return in.Request
}

func (d *artifactDesk) last() workflows.Command {
	return d.commands[len(d.commands)-1].Args[0].(workflows.Command)
}

type updated struct{ client.WorkflowUpdateHandle }

func (updated) Get(_ context.Context, into any) error { return asked{}.Get(into) }

type asked struct{ converter.EncodedValue }

func (asked) Get(into any) error {
	*into.(*workflows.Status) = workflows.Status{State: artifact.Approved, WaitingFor: "its turn to run"}
	return nil
}

// artifactDesk is a gateway with artifacts and tokens of several people.
type artifactDesk struct {
	testing.TB
	*lifecycles
	*fixture
	store  storage.Store
	folder string
	public string
	tokens map[string]string
}

// kim is who asks where nothing else is said.
const kim = "user:kim"

func newArtifactDesk(t testing.TB) *artifactDesk {
	t.Helper()
	_, private, err := ed25519.GenerateKey(rand.Reader)
	require.NoError(t, err)
	signer, err := ssh.NewSignerFromKey(private)
	require.NoError(t, err)
	tab, bucket := storagetest.Table(t, storagetest.Monitoring), storagetest.Bucket(t)
	objects := s3.NewFromConfig(storagetest.Config(t), func(o *s3.Options) { o.UsePathStyle = true })
	d := &artifactDesk{
		TB: t, lifecycles: &lifecycles{started: map[string]workflows.Input{}}, store: storage.New(tab.Client, tab.Name, objects, bucket.Name),
		public: string(ssh.MarshalAuthorizedKey(signer.PublicKey())), folder: t.TempDir(), tokens: map[string]string{},
	}
	tokens, calls := newTable(t)
	unlimited := monitoring.Limits{Read: 1e6, Write: 1e6, TokenCreate: 1e6}
	d.fixture = start(t, tokens, calls, newRing(t, "k1"), server.Config{Limits: unlimited}, server.Artifacts(server.ArtifactConfig{
		Store: d.store, Workflows: d.lifecycles, Signer: signer, UploadFolder: d.folder, UploadIdle: 300 * time.Millisecond, Now: time.Now,
	}))
	return d
}

// token is one of an owner with everything but other people's rights.
func (d *artifactDesk) token(owner string) string {
	if d.tokens[owner] == "" {
		_, d.tokens[owner] = d.issue(owner, monitoring.AllScopes()...)
	}
	return d.tokens[owner]
}

// post sends JSON as an owner.
func (d *artifactDesk) send(owner, method, path string, body any, headers ...string) answer {
	d.Helper()
	text := ""
	if body != nil {
		encoded, err := json.Marshal(body)
		require.NoError(d, err)
		text = string(encoded)
	}
	return d.call(method, path, d.token(owner), text, headers...)
}

// piece is a part of a form.
type piece struct{ name, filename, content string }

// parts is a form and its content type.
func parts(t testing.TB, pieces ...piece) (*bytes.Buffer, string) {
	t.Helper()
	body := &bytes.Buffer{}
	w := multipart.NewWriter(body)
	for _, p := range pieces {
		header := textproto.MIMEHeader{}
		disposition := `form-data; name="` + p.name + `"`
		if p.filename != "" {
			disposition += `; filename="` + p.filename + `"`
		}
		header.Set("Content-Disposition", disposition)
		part, err := w.CreatePart(header)
		require.NoError(t, err)
		_, err = io.WriteString(part, p.content)
		require.NoError(t, err)
	}
	require.NoError(t, w.Close())
	return body, w.FormDataContentType()
}

// upload sends a body as it is.
func (d *artifactDesk) upload(method, path string, body io.Reader, contentType string) answer {
	d.Helper()
	request, err := http.NewRequestWithContext(d.Context(), method, d.url+path, body)
	require.NoError(d, err)
	request.Header.Set("Authorization", "Bearer "+d.token(kim))
	request.Header.Set("Content-Type", contentType)
	return d.do(request)
}

func (d *artifactDesk) form(method, path string, pieces ...piece) answer {
	d.Helper()
	body, contentType := parts(d, pieces...)
	return d.upload(method, path, body, contentType)
}

// document is the part request of a submission.
func document(changes ...func(map[string]any)) string {
	s := map[string]any{
		"artifact_id": "fix", "reason": "stuck",
		"spec": map[string]any{"kind": "script", "policy": map[string]any{"approvers": []string{"user:lee"}, "expires_after": "24h"}},
	}
	for _, change := range changes {
		change(s)
	}
	body, _ := json.Marshal(s) // nothing in it can fail
	return string(body)
}

func version(n int) func(map[string]any) { return func(s map[string]any) { s["version"] = n } }

func submission() map[string]any {
	var s map[string]any
	_ = json.Unmarshal([]byte(document()), &s) // it was made a moment ago
	s["files"] = []map[string]any{{"role": "primary", "filename": "fix.sh", "content_base64": base64.StdEncoding.EncodeToString([]byte("#!/bin/sh\n"))}}
	return s
}

// create writes a version that was started, as the lifecycle does.
func (d *artifactDesk) create(id string, state artifact.State) storage.Artifact {
	d.Helper()
	r := d.request(id)
	policy, err := r.Spec.Policy.Complete(r.Author, nil, false)
	require.NoError(d, err)
	r.Spec.Policy = policy
	bundle, err := artifact.BundleHash(r.Files, r.Spec)
	require.NoError(d, err)
	record, _, err := artifact.Chain{}.Extend(r.Version, "submitted", r.Author, time.Now(), bundle, artifact.Event{To: state, BundleHash: bundle})
	require.NoError(d, err)
	var files []storage.StoredFile
	for _, f := range r.Files {
		files = append(files, storage.StoredFile{
			Role: f.Role, Filename: f.Filename, Key: storage.ContentKey(r.ArtifactID, r.Version, f.StoredName()),
			ContentHash: f.ContentHash, S3VersionID: f.S3VersionID, Size: f.Size,
		})
	}
	require.NoError(d, d.store.Create(d.Context(), storage.Creation{
		Request: r, Content: storage.Content{Files: files, BundleHash: bundle}, State: state, Record: record,
	}))
	v, err := d.store.Version(d.Context(), r.ArtifactID, r.Version)
	require.NoError(d, err)
	return v
}

// step makes the next change of a version, as the lifecycle does.
func (d *artifactDesk) step(v storage.Artifact, to artifact.State, change func(*storage.Step)) storage.Artifact {
	d.Helper()
	chain := artifact.Chain{Length: v.ChainLength, Last: v.ChainLast}
	record, _, err := chain.Extend(v.Version, string(to), artifact.System, time.Now(), v.BundleHash, artifact.Event{From: v.State, To: to, BundleHash: v.BundleHash})
	require.NoError(d, err)
	s := storage.Step{ArtifactID: v.ArtifactID, Version: v.Version, Record: record, From: v.State, To: to}
	if change != nil {
		change(&s)
	}
	require.NoError(d, d.store.Commit(d.Context(), s))
	v, err = d.store.Version(d.Context(), v.ArtifactID, v.Version)
	require.NoError(d, err)
	return v
}

// objects are the keys in the bucket.
func (d *artifactDesk) objects() []string {
	d.Helper()
	out, err := d.store.Client.ListObjectsV2(d.Context(), &s3.ListObjectsV2Input{Bucket: &d.store.Bucket})
	require.NoError(d, err)
	var keys []string
	for _, o := range out.Contents {
		keys = append(keys, *o.Key)
	}
	return keys
}

// requireNothingLeft wants no lifecycle, no object and no file on disk.
func (d *artifactDesk) requireNothingLeft() {
	d.Helper()
	require.Empty(d, d.started)
	require.Empty(d, d.objects())
	d.requireNoFiles()
}

func (d *artifactDesk) requireNoFiles() {
	d.Helper()
	files, err := os.ReadDir(d.folder)
	require.NoError(d, err)
	require.Empty(d, files)
}
