package main

import (
	"bytes"
	"context"
	"crypto/ed25519"
	"crypto/rand"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"io"
	"log/slog"
	"mime/multipart"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/aws-sdk-go-v2/service/s3/types"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/require"
	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/contrib/envconfig"
	"go.temporal.io/sdk/log"
	"go.temporal.io/sdk/worker"
	"go.temporal.io/sdk/workflow"
	"golang.org/x/crypto/ssh"
	"google.golang.org/protobuf/types/known/durationpb"

	activities "millrace/activities/artifact"
	"millrace/domain/artifact"
	"millrace/domain/monitoring"
	"millrace/gateway/server"
	"millrace/platform/awsconf"
	artifactstore "millrace/storage/artifact"
	monitoringstore "millrace/storage/monitoring"
	"millrace/storage/storagetest"
	workflows "millrace/workflows/artifact"
	"millrace/workflows/names"
)

// desk is a whole gateway with a worker behind it, in a namespace and stores of
// its own. Nobody but the gateway vouches for anybody.
type desk struct {
	*testing.T
	cfg    settings
	url    string
	tokens map[string]string
	store  monitoringstore.Store
	bucket artifactstore.Store
	// public is the other half of the gateway's keys.
	public ed25519.PublicKey
}

func newDesk(t *testing.T) *desk {
	t.Helper()
	tab, tokens, bucket := storagetest.Table(t, storagetest.Monitoring), storagetest.Table(t, storagetest.Monitoring), storagetest.Bucket(t)
	public, private, err := ed25519.GenerateKey(rand.Reader)
	require.NoError(t, err)
	block, err := ssh.MarshalPrivateKey(private, "")
	require.NoError(t, err)
	signer, err := ssh.NewSignerFromKey(private)
	require.NoError(t, err)
	t.Setenv("MILLRACE_TEST_SIGNING_KEY", string(pem.EncodeToMemory(block)))
	cfg, err := parse(t, "--governance-table="+tab.Name, "--monitoring-table="+tokens.Name, "--data-bucket="+bucket.Name,
		"--signing-key=env:MILLRACE_TEST_SIGNING_KEY", "--provenance-signing-key=env:MILLRACE_TEST_SIGNING_KEY")
	require.NoError(t, err)
	d := &desk{T: t, cfg: cfg, tokens: map[string]string{}, public: public}
	c := ownNamespace(t)
	d.serve()
	d.bucket = artifactstore.New(tab.Client, tab.Name, awsconf.NewS3(storagetest.Config(t)), bucket.Name)
	versioned(t, d.bucket)
	work(t, c, d.bucket, string(ssh.MarshalAuthorizedKey(signer.PublicKey())))
	return d
}

// serve runs the gateway as main wires it.
func (d *desk) serve() {
	d.Helper()
	aws, err := awsconf.Load(d.Context())
	require.NoError(d, err)
	registry, logger := prometheus.NewRegistry(), slog.New(slog.DiscardHandler)
	b, err := newBackends(d.Context(), d.cfg, aws, registry, logger)
	require.NoError(d, err)
	s, err := newServer(d.cfg, monitoring.KeyRing{}, b, registry, logger)
	require.NoError(d, err)
	d.store = monitoringstore.New(b.tables, d.cfg.MonitoringTable)
	web := httptest.NewServer(s)
	d.Cleanup(web.Close)
	d.url = web.URL
}

func versioned(t *testing.T, store artifactstore.Store) {
	t.Helper()
	objects := store.Client.(*s3.Client)
	_, err := objects.PutBucketVersioning(t.Context(), &s3.PutBucketVersioningInput{
		Bucket: &store.Bucket, VersioningConfiguration: &types.VersioningConfiguration{Status: types.BucketVersioningStatusEnabled},
	})
	require.NoError(t, err)
	t.Cleanup(func() { removeVersions(t, objects, store.Bucket) })
}

// removeVersions empties a bucket with versions, so that it can be removed.
func removeVersions(t *testing.T, objects *s3.Client, bucket string) {
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	out, err := objects.ListObjectVersions(ctx, &s3.ListObjectVersionsInput{Bucket: &bucket})
	require.NoError(t, err)
	var ids []types.ObjectIdentifier
	for _, v := range out.Versions {
		ids = append(ids, types.ObjectIdentifier{Key: v.Key, VersionId: v.VersionId})
	}
	for _, v := range out.DeleteMarkers {
		ids = append(ids, types.ObjectIdentifier{Key: v.Key, VersionId: v.VersionId})
	}
	for _, id := range ids {
		_, err := objects.DeleteObject(ctx, &s3.DeleteObjectInput{Bucket: &bucket, Key: id.Key, VersionId: id.VersionId})
		require.NoError(t, err)
	}
}

func ownNamespace(t *testing.T) client.Client {
	t.Helper()
	options, err := envconfig.LoadDefaultClientOptions()
	require.NoError(t, err)
	options.Logger = log.NewStructuredLogger(slog.New(slog.DiscardHandler))
	namespaces, err := client.NewNamespaceClient(options)
	require.NoError(t, err)
	defer namespaces.Close()
	name := fmt.Sprintf("gateway-test-%d", time.Now().UnixNano())
	require.NoError(t, namespaces.Register(t.Context(), &workflowservice.RegisterNamespaceRequest{
		Namespace: name, WorkflowExecutionRetentionPeriod: durationpb.New(24 * time.Hour),
	}))
	t.Setenv("TEMPORAL_NAMESPACE", name)
	options.Namespace = name
	c, err := client.Dial(options)
	require.NoError(t, err)
	t.Cleanup(c.Close)
	require.Eventually(t, func() bool {
		_, err := c.CountWorkflow(t.Context(), &workflowservice.CountWorkflowExecutionsRequest{Namespace: name})
		return err == nil
	}, 30*time.Second, 200*time.Millisecond, "the server learns of a namespace some seconds later")
	return c
}

// work runs a worker that trusts the gateway's key only.
func work(t *testing.T, c client.Client, store artifactstore.Store, gatewayKey string) {
	t.Helper()
	logger := slog.New(slog.DiscardHandler)
	all := activities.Activities{
		Store: store, Vouchers: activities.Vouchers{Store: store, GatewayKeys: []string{gatewayKey}},
		Floors:   map[artifact.Kind]artifact.Floor{artifact.HTTP: {Required: 2}},
		Settings: workflows.Settings{ArchiveAfter: artifact.Duration(24 * time.Hour)}, Temporal: c, Now: time.Now, Logger: logger,
	}
	lifecycles, scripts := worker.New(c, names.QueueArtifacts, worker.Options{}), worker.New(c, names.QueueScripts, worker.Options{})
	lifecycles.RegisterWorkflowWithOptions(workflows.ArtifactLifecycle, workflow.RegisterOptions{Name: names.ArtifactLifecycle})
	for name, f := range all.All() {
		lifecycles.RegisterActivityWithOptions(f, activity.RegisterOptions{Name: name})
	}
	executor := activities.Executor{Store: store, Runner: activities.Scripts{}, Now: time.Now, Logger: logger}
	scripts.RegisterActivityWithOptions(activities.RunActivity(executor, c), activity.RegisterOptions{Name: workflows.ScriptActivity})
	for _, w := range []worker.Worker{lifecycles, scripts} {
		require.NoError(t, w.Start())
		t.Cleanup(w.Stop)
	}
}

// token is one of an owner with all scopes.
func (d *desk) token(owner string, scopes ...monitoring.Scope) string {
	d.Helper()
	key := fmt.Sprint(owner, scopes)
	if d.tokens[key] == "" {
		if scopes == nil {
			scopes = monitoring.AllScopes()
		}
		texts := make([]string, len(scopes))
		for i, scope := range scopes {
			texts[i] = string(scope)
		}
		token, secret, err := monitoring.Issue(monitoring.Request{Owner: owner, Name: "test", Scopes: texts}, monitoring.KeyRing{}, rand.Reader, time.Now())
		require.NoError(d, err)
		require.NoError(d, d.store.CreateToken(d.Context(), token))
		d.tokens[key] = secret.Plaintext()
	}
	return d.tokens[key]
}

// do makes a request and decodes the answer.
func (d *desk) do(token, method, path string, body io.Reader, headers map[string]string, into any) int {
	d.Helper()
	request, err := http.NewRequestWithContext(d.Context(), method, d.url+path, body)
	require.NoError(d, err)
	request.Header.Set("Authorization", "Bearer "+token)
	for name, value := range headers {
		request.Header.Set(name, value)
	}
	response, err := http.DefaultClient.Do(request)
	require.NoError(d, err)
	defer response.Body.Close() //nolint:errcheck // only read
	answer, err := io.ReadAll(response.Body)
	require.NoError(d, err)
	switch into := into.(type) {
	case nil:
	case *string:
		*into = string(answer)
	default:
		require.NoError(d, json.Unmarshal(answer, into), string(answer))
	}
	return response.StatusCode
}

// say sends JSON.
func (d *desk) say(owner, method, path string, body map[string]any, into any) int {
	d.Helper()
	var reader io.Reader = http.NoBody
	if body != nil {
		encoded, err := json.Marshal(body)
		require.NoError(d, err)
		reader = bytes.NewReader(encoded)
	}
	return d.do(d.token(owner), method, path, reader, map[string]string{"Content-Type": "application/json"}, into)
}

// form sends a form of the part request and a primary file.
func (d *desk) form(owner, method, path, request, script string, into any) int {
	d.Helper()
	var body bytes.Buffer
	w := multipart.NewWriter(&body)
	require.NoError(d, w.WriteField("request", request))
	part, err := w.CreateFormFile("primary", "fix.sh")
	require.NoError(d, err)
	_, err = io.WriteString(part, script)
	require.NoError(d, err)
	require.NoError(d, w.Close())
	return d.do(d.token(owner), method, path, &body, map[string]string{"Content-Type": w.FormDataContentType()}, into)
}

// refused wants a problem with a reason.
func (d *desk) refused(owner, method, path string, body map[string]any, status int, reason string) {
	d.Helper()
	var p server.Problem
	require.Equal(d, status, d.say(owner, method, path, body, &p), "%s: %s", path, p.Detail)
	require.Equal(d, reason, p.Reason, p.Detail)
}

// await waits until a version is in a state.
func (d *desk) await(path string, state artifact.State) workflows.Status {
	d.Helper()
	var status workflows.Status
	require.Eventually(d, func() bool {
		status = workflows.Status{}
		return d.say("user:lee", http.MethodGet, path+"/status", nil, &status) == http.StatusOK && status.State == state
	}, 60*time.Second, 100*time.Millisecond, "wants to be %s", state)
	return status
}

const request = `{"artifact_id":"fix","reason":"the line is stuck","draft":true,"spec":{"kind":"script","policy":{"approvers":["user:kim","group:ops"]}}}`

// TestAnArtifactIsDrivenOverHTTP goes through a whole life, with everything that
// is refused on the way.
func TestAnArtifactIsDrivenOverHTTP(t *testing.T) {
	d := newDesk(t)
	const lee, kim, park, v1 = "user:lee", "user:kim", "user:park", "/v1/artifacts/fix/versions/1"
	var members server.ApproverGroup
	require.Equal(t, http.StatusOK, d.say(lee, http.MethodPut, "/v1/groups/ops/members/user:park", nil, &members))

	var made server.ArtifactSubmitted
	require.Equal(t, http.StatusAccepted, d.form(lee, http.MethodPost, "/v1/artifacts", request, "#!/bin/sh\necho wrong\n", &made))
	require.Equal(t, server.ArtifactSubmitted{ArtifactID: "fix", Version: 1, WorkflowID: "artifact/fix/v1"}, made)
	draft := d.await(v1, artifact.Draft)

	var status workflows.Status
	require.Equal(t, http.StatusOK, d.form(lee, http.MethodPut, v1+"/content", "{}", "#!/bin/sh\necho fixed\n", &status))
	require.NotEqual(t, draft.BundleHash, status.BundleHash)
	d.refused(kim, http.MethodPost, v1+"/submit", map[string]any{}, http.StatusForbidden, "not_the_author")
	d.refused(kim, http.MethodPost, v1+"/decision", map[string]any{"decision": "approve", "bundle_hash": status.BundleHash}, http.StatusConflict, "wrong_state")
	require.Equal(t, http.StatusOK, d.say(lee, http.MethodPost, v1+"/submit", map[string]any{"bundle_hash": status.BundleHash}, &status))
	require.Equal(t, artifact.InReview, status.State)
	require.Equal(t, http.StatusConflict, d.form(lee, http.MethodPut, v1+"/content", "{}", "evil", nil), "content is frozen")

	approve := map[string]any{"decision": "approve", "bundle_hash": status.BundleHash, "comment": "looks right"}
	d.refused(kim, http.MethodPost, v1+"/decision", map[string]any{"decision": "approve", "bundle_hash": draft.BundleHash}, http.StatusConflict, "other_bundle_hash")
	d.refused(kim, http.MethodPost, v1+"/decision", map[string]any{"decision": "approve"}, http.StatusBadRequest, "invalid")
	d.refused(lee, http.MethodPost, v1+"/decision", approve, http.StatusForbidden, "not_an_approver")
	d.refused(kim, http.MethodPost, v1+"/withdraw", map[string]any{}, http.StatusForbidden, "not_the_author")
	d.refused(lee, http.MethodPost, v1+"/execute", map[string]any{}, http.StatusConflict, "wrong_state")

	encoded, err := json.Marshal(approve)
	require.NoError(t, err)
	for range 2 {
		headers := map[string]string{"Content-Type": "application/json", "Idempotency-Key": "approval-1"}
		require.Equal(t, http.StatusOK, d.do(d.token(park), http.MethodPost, v1+"/decision", bytes.NewReader(encoded), headers, &status))
		require.Equal(t, artifact.Approved, status.State, "the repeated request has the answer of the first")
	}
	executed := d.await(v1, artifact.Executed)
	d.refused(park, http.MethodPost, v1+"/decision", approve, http.StatusConflict, "wrong_state")
	d.refused(lee, http.MethodPost, v1+"/compensate", map[string]any{}, http.StatusConflict, "nothing_to_undo")

	var output, content, statements string
	require.Equal(t, http.StatusOK, d.say(kim, http.MethodGet, v1+"/runs/"+executed.Runs[0].RunID+"/stdout", nil, &output))
	require.Equal(t, "fixed\n", output)
	require.Equal(t, http.StatusOK, d.say(kim, http.MethodGet, v1+"/content", nil, &content))
	require.Equal(t, "#!/bin/sh\necho fixed\n", content)
	require.Equal(t, http.StatusOK, d.say(kim, http.MethodGet, v1+"/provenance/statements", nil, &statements))
	first, _, _ := strings.Cut(statements, "\n")
	var envelope artifact.Envelope
	require.NoError(t, json.Unmarshal([]byte(first), &envelope))
	statement, err := envelope.Open(artifact.StatementPayload, d.public)
	require.NoError(t, err)
	require.Contains(t, string(statement), "v0001-0001-submitted")

	var approvals server.ArtifactPage[server.ArtifactApproval]
	require.Equal(t, http.StatusOK, d.say(kim, http.MethodGet, v1+"/approvals", nil, &approvals))
	require.Len(t, approvals.Items, 1)
	require.Equal(t, artifact.Gateway, approvals.Items[0].Assurance)

	require.Equal(t, http.StatusAccepted, d.form(lee, http.MethodPost, "/v1/artifacts", request, "#!/bin/sh\necho again\n", &made))
	require.Equal(t, 2, made.Version)
	const v2 = "/v1/artifacts/fix/versions/2"
	d.await(v2, artifact.Draft)
	var diff server.ArtifactDiff
	require.Equal(t, http.StatusOK, d.say(kim, http.MethodGet, v2+"/diff", nil, &diff))
	require.Contains(t, diff.Diff, "-echo fixed\n+echo again\n")
	require.Equal(t, http.StatusOK, d.say(lee, http.MethodPost, v2+"/withdraw", map[string]any{}, &status))
	require.Equal(t, artifact.Withdrawn, status.State)

	require.Equal(t, http.StatusOK, d.say(lee, http.MethodPost, v1+"/archive", map[string]any{}, &status))
	d.await(v1, artifact.Archived)
	require.Eventually(t, func() bool {
		var p server.Problem
		return d.say(lee, http.MethodPost, v1+"/execute", map[string]any{}, &p) == http.StatusConflict && p.Reason == "wrong_state"
	}, 10*time.Second, 100*time.Millisecond, "its workflow has ended")
	require.Equal(t, http.StatusNotFound, d.say(kim, http.MethodGet, v1+"/content", nil, &content))
	require.Contains(t, content, "restored")
	require.Equal(t, http.StatusNotFound, d.say(lee, http.MethodPost, "/v1/artifacts/none/versions/1/execute", map[string]any{}, nil))
}

// TestContentUploadedLaterIsNotWhatWasApproved has content written over that was
// reviewed: although its own version is still in the bucket nothing runs.
func TestContentUploadedLaterIsNotWhatWasApproved(t *testing.T) {
	d := newDesk(t)
	const v1 = "/v1/artifacts/fix/versions/1"
	reviewed := `{"artifact_id":"fix","version":1,"reason":"x","spec":{"kind":"script","policy":{"approvers":["user:kim"]}}}`
	require.Equal(t, http.StatusAccepted, d.form("user:lee", http.MethodPost, "/v1/artifacts", reviewed, "#!/bin/sh\necho good\n", nil))
	status := d.await(v1, artifact.InReview)
	require.Equal(t, http.StatusAccepted, d.form("user:lee", http.MethodPost, "/v1/artifacts", reviewed, "#!/bin/sh\necho good\n", nil), "the same again")
	require.Equal(t, http.StatusConflict, d.form("user:lee", http.MethodPost, "/v1/artifacts", reviewed, "#!/bin/sh\necho evil\n", nil))
	key := artifactstore.ContentKey("fix", 1, "fix.sh")
	_, err := d.bucket.Put(t.Context(), key, "text/plain", bytes.NewReader([]byte("#!/bin/sh\necho evil\n")))
	require.NoError(t, err)
	require.Equal(t, http.StatusOK, d.say("user:kim", http.MethodPost, v1+"/decision", map[string]any{"decision": "approve", "bundle_hash": status.BundleHash}, nil))
	failed := d.await(v1, artifact.Failed)
	require.Equal(t, workflows.RunFailed, failed.Runs[0].Status)
	require.Contains(t, failed.Runs[0].Detail, workflows.ErrIntegrity)
	var runs struct{ Items []any }
	require.Equal(t, http.StatusOK, d.say("user:kim", http.MethodGet, v1+"/runs", nil, &runs))
	require.Empty(t, runs.Items)
}

// TestApproversSignByRegisteredKeys has a policy that takes the approver's own
// word only.
func TestApproversSignByRegisteredKeys(t *testing.T) {
	d := newDesk(t)
	const kim, v1 = "user:kim", "/v1/artifacts/fix/versions/1"
	strict := `{"artifact_id":"fix","spec":{"kind":"script","policy":{"approvers":["user:kim","user:park"],"required":2,"signed_decisions":true}}}`
	require.Equal(t, http.StatusAccepted, d.form("user:lee", http.MethodPost, "/v1/artifacts", strict, "#!/bin/sh\n", nil))
	bundle := d.await(v1, artifact.InReview).BundleHash
	signers := map[string]ssh.Signer{}
	for _, actor := range []string{kim, "user:park"} {
		_, private, err := ed25519.GenerateKey(rand.Reader)
		require.NoError(t, err)
		signers[actor], err = ssh.NewSignerFromKey(private)
		require.NoError(t, err)
		key := map[string]any{"public_key": string(ssh.MarshalAuthorizedKey(signers[actor].PublicKey()))}
		require.Equal(t, http.StatusOK, d.say("user:lee", http.MethodPost, "/v1/approvers/"+actor+"/keys", key, nil))
	}
	signed := func(c artifact.Command, by string) map[string]any {
		signature, err := artifact.Sign(signers[by], c, "fix", 1)
		require.NoError(t, err)
		return map[string]any{"decision": c.Verb, "bundle_hash": c.BundleHash, "at": c.At, "signature": signature}
	}
	own := artifact.Command{Verb: artifact.Approve, Actor: kim, At: time.Now().UTC(), BundleHash: bundle}
	d.refused(kim, http.MethodPost, v1+"/decision", map[string]any{"decision": "approve", "bundle_hash": bundle}, http.StatusForbidden, "assurance")
	d.refused(kim, http.MethodPost, v1+"/decision", signed(own, "user:park"), http.StatusForbidden, "assurance")
	said := signed(own, kim)
	d.refused("user:park", http.MethodPost, v1+"/decision", said, http.StatusForbidden, "assurance")
	for range 2 {
		var status workflows.Status
		require.Equal(t, http.StatusOK, d.say(kim, http.MethodPost, v1+"/decision", said, &status))
		require.Equal(t, []string{kim}, status.Tally.Approvals, "a replayed signature counts once")
		require.Equal(t, artifact.InReview, status.State)
	}
	var approvals server.ArtifactPage[server.ArtifactApproval]
	require.Equal(t, http.StatusOK, d.say(kim, http.MethodGet, v1+"/approvals", nil, &approvals))
	require.Len(t, approvals.Items, 1)
	require.Equal(t, artifact.Signed, approvals.Items[0].Assurance)
	later := artifact.Command{Verb: artifact.Reject, Actor: kim, At: own.At.Add(-time.Second), BundleHash: bundle}
	d.refused(kim, http.MethodPost, v1+"/decision", signed(later, kim), http.StatusConflict, "older_than_previous")
}

// TestTheStatusTellsWhyASubmissionWasRefused by the floors of the worker, which
// the gateway does not know.
func TestTheStatusTellsWhyASubmissionWasRefused(t *testing.T) {
	d := newDesk(t)
	low := `{"artifact_id":"fix","spec":{"kind":"http","args":{"method":"POST","url":"https://example.org"},"policy":{"required":1,"approvers":["user:kim","user:park"]}}}`
	require.Equal(t, http.StatusAccepted, d.form("user:lee", http.MethodPost, "/v1/artifacts", low, "{}", nil))
	var status workflows.Status
	require.Eventually(t, func() bool {
		status = workflows.Status{}
		return d.say("user:lee", http.MethodGet, "/v1/artifacts/fix/versions/1/status", nil, &status) == http.StatusOK && status.Refused == 1
	}, 20*time.Second, 50*time.Millisecond)
	require.Contains(t, status.Refusals[0].Reason, "policy.required must be at least 2")
	require.Equal(t, http.StatusNotFound, d.say("user:lee", http.MethodGet, "/v1/artifacts/fix/versions/1", nil, nil))

	var made server.ArtifactSubmitted
	require.Equal(t, http.StatusAccepted, d.form("user:lee", http.MethodPost, "/v1/artifacts", strings.Replace(low, `"required":1`, `"required":2`, 1), "{}", &made))
	require.Equal(t, 2, made.Version, "the number of the refused one stays taken")
	d.await("/v1/artifacts/fix/versions/2", artifact.InReview)
}

// TestWithoutTemporalTheGatewaySaysSo has the reads go on.
func TestWithoutTemporalTheGatewaySaysSo(t *testing.T) {
	tab, tokens := storagetest.Table(t, storagetest.Monitoring), storagetest.Table(t, storagetest.Monitoring)
	t.Setenv("TEMPORAL_ADDRESS", freeAddress(t))
	cfg, err := parse(t, "--governance-table="+tab.Name, "--monitoring-table="+tokens.Name, "--data-bucket="+storagetest.Bucket(t).Name)
	require.NoError(t, err)
	d := &desk{T: t, cfg: cfg, tokens: map[string]string{}}
	d.serve()
	var p server.Problem
	const plain = `{"artifact_id":"fix","spec":{"kind":"script","policy":{"approvers":["user:kim"]}}}`
	require.Equal(t, http.StatusServiceUnavailable, d.form("user:lee", http.MethodPost, "/v1/artifacts", plain, "x", &p))
	require.Equal(t, "urn:millrace:problem:temporal-unavailable", p.Type)
	require.Equal(t, http.StatusServiceUnavailable, d.say("user:lee", http.MethodPost, "/v1/artifacts/fix/versions/1/execute", map[string]any{}, nil))
	require.Equal(t, http.StatusServiceUnavailable, d.say("user:lee", http.MethodGet, "/v1/artifacts/fix/versions/1/status", nil, nil))
	require.Equal(t, http.StatusOK, d.say("user:lee", http.MethodGet, "/v1/artifacts", nil, nil))
}

// TestNoRouteOpensWithoutItsScope asks every route of the gateway with a token
// that has every scope but the one that is needed.
func TestNoRouteOpensWithoutItsScope(t *testing.T) {
	tab, tokens := storagetest.Table(t, storagetest.Monitoring), storagetest.Table(t, storagetest.Monitoring)
	cfg, err := parse(t, "--governance-table="+tab.Name, "--monitoring-table="+tokens.Name, "--budget-read=9999", "--budget-write=9999")
	require.NoError(t, err)
	d := &desk{T: t, cfg: cfg, tokens: map[string]string{}}
	d.serve()
	asked := 0
	for r, op := range routes(wired(t).OpenAPI()) {
		if len(op.Security) == 0 {
			continue
		}
		needed := op.Security[0]["bearer"][0]
		var others []monitoring.Scope
		for _, scope := range monitoring.AllScopes() {
			if string(scope) != needed {
				others = append(others, scope)
			}
		}
		var p server.Problem
		status := d.do(d.token("user:kim", others...), r.method, parameter.ReplaceAllString(r.path, "1"), http.NoBody, nil, &p)
		require.Equal(t, http.StatusForbidden, status, "%v", r)
		require.Contains(t, p.Detail, needed, "%v", r)
		asked++
	}
	require.Greater(t, asked, 60)
}

var example = regexp.MustCompile("(?s)```sh\n(.*?)```\n(?:\n```json\n(.*?)```)?")

// TestTheExamplesOfTheArtifactDocumentationWork runs every command of the section
// Over HTTP, in order and in one folder, and compares the answers with those
// printed.
func TestTheExamplesOfTheArtifactDocumentationWork(t *testing.T) {
	text, err := os.ReadFile("../docs/artifacts.md")
	require.NoError(t, err)
	_, section, _ := strings.Cut(string(text), "\n## Over HTTP\n")
	section, _, _ = strings.Cut(section, "\n## ")
	examples := example.FindAllStringSubmatch(section, -1)
	require.GreaterOrEqual(t, len(examples), 5)
	d := newDesk(t)
	folder := t.TempDir()
	for _, e := range examples {
		command := exec.CommandContext(t.Context(), "bash", "-euo", "pipefail", "-c", e[1]) //nolint:gosec // our own documentation
		command.Dir = folder
		command.Env = append(os.Environ(), "MILLRACE_URL="+d.url, "MILLRACE_TOKEN="+d.token("user:lee"), "APPROVER_TOKEN="+d.token("user:park"))
		output, err := command.CombinedOutput()
		require.NoError(t, err, "%s\n%s", e[1], output)
		if e[2] != "" {
			require.JSONEq(t, e[2], string(output), e[1])
		}
	}
}
