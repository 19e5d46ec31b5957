package server_test

import (
	"context"
	"crypto/ed25519"
	"crypto/rand"
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.temporal.io/api/serviceerror"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/temporal"
	"golang.org/x/crypto/ssh"

	"millrace/domain/artifact"
	workflows "millrace/workflows/artifact"
)

const doorsOf = "/v1/artifacts/fix/versions/1/"

var allDoors = []string{"submit", "withdraw", "decision", "execute", "compensate", "archive"}

func TestDoorsActInTheNameOfTheTokensOwner(t *testing.T) {
	d := newArtifactDesk(t)
	for _, door := range allDoors {
		said := map[string]any{"bundle_hash": artifact.HashOf(nil), "comment": "well"}
		if door == "decision" {
			said["decision"] = "approve"
		}
		a := d.send(kim, http.MethodPost, doorsOf+door, said)
		require.Equal(t, http.StatusOK, a.Status, string(a.Body))
		require.Contains(t, string(a.Body), `"state":"approved"`)
		c := d.last()
		require.Equal(t, kim, c.Actor)
		require.NoError(t, c.VerifySignature("fix", 1, d.public))
		require.Equal(t, artifact.HashOf(nil), c.BundleHash)

		sent := len(d.commands)
		for field, value := range map[string]any{"actor": "user:boss", "bundle_hash": "sha256:x", "at": "2026-05-31T12:00:00Z", "files": []any{}} {
			bad := map[string]any{field: value}
			if door == "decision" {
				bad["decision"] = "approve"
			}
			requireField(t, d.send(kim, http.MethodPost, doorsOf+door, bad), "body."+field)
		}
		require.Len(t, d.commands, sent)
	}
	d.send(kim, http.MethodPost, doorsOf+"decision", map[string]any{}).problem(http.StatusBadRequest, "invalid-input")
	requireField(t, d.send(kim, http.MethodPost, doorsOf+"decision", map[string]any{"decision": "execute"}), "body.decision")
	requireField(t, d.send(kim, http.MethodPost, doorsOf+"execute", map[string]any{"decision": "approve"}), "body.decision")
	requireField(t, d.send(kim, http.MethodPost, "/v1/artifacts/a..b/versions/1/execute", map[string]any{}), "path.artifact_id")
	requireField(t, d.send(kim, http.MethodPost, "/v1/artifacts/fix/versions/0/execute", map[string]any{}), "path.version")
}

func TestRefusalsSayWhy(t *testing.T) {
	d := newArtifactDesk(t)
	refused := func(kind, message string) error { return temporal.NewNonRetryableApplicationError(message, kind, nil) }
	for _, c := range []struct {
		err                error
		status             int
		code, reason, rest string
	}{
		{refused(workflows.ErrRefused, "wrong_state: submit is taken in draft, not in executed"), 409, "refused", "wrong_state", "submit is taken in draft, not in executed"},
		{refused(workflows.ErrRefused, "other_bundle_hash: this version is x"), 409, "refused", "other_bundle_hash", "this version is x"},
		{refused(workflows.ErrRefused, "expired: the review ended"), 409, "refused", "expired", "the review ended"},
		{refused(workflows.ErrRefused, "not_an_approver: user:kim is not among the approvers"), 403, "refused", "not_an_approver", "user:kim is not among the approvers"},
		{refused(workflows.ErrRefused, "separation_of_duties: no"), 403, "refused", "separation_of_duties", "no"},
		{refused(workflows.ErrRefused, "not_the_author: no"), 403, "refused", "not_the_author", "no"},
		{refused(workflows.ErrRefused, "assurance: no"), 403, "refused", "assurance", "no"},
		{refused(workflows.ErrForbidden, "not what was approved"), 403, "refused", "forbidden", "not what was approved"},
		{refused(workflows.ErrIntegrity, "object x"), 409, "refused", "content_integrity", "object x"},
		{refused(workflows.ErrConflict, "no transition"), 409, "refused", "conflict", "no transition"},
		{refused(workflows.ErrInvalid, "bundle_hash is needed: a decision is about one content"), 400, "invalid-input", "invalid", "body.bundle_hash is needed: a decision is about one content"},
		{serviceerror.NewUnavailable("down"), 503, "temporal-unavailable", "", "the lifecycle did not answer; it may take the request all the same: ask for its status"},
		{client.NewWorkflowUpdateServiceTimeoutOrCanceledError(context.DeadlineExceeded), 503, "temporal-unavailable", "", "the lifecycle did not answer; it may take the request all the same: ask for its status"},
		{serviceerror.NewNotFound("no such workflow"), 404, "not-found", "", "there is no such version"},
		{refused("Odd", "secret"), 500, "internal", "", "unexpected error"},
	} {
		d.answer = c.err
		p := d.send(kim, http.MethodPost, doorsOf+"execute", map[string]any{}).problem(c.status, c.code)
		require.Equal(t, c.reason, p.Reason)
		require.Equal(t, c.rest, p.Detail)
	}
	d.answer = nil
	require.Equal(t, http.StatusAccepted, d.send(kim, http.MethodPost, "/v1/artifacts", submission()).Status)
	d.create("artifact/fix/v1", artifact.InReview)
	d.answer = serviceerror.NewNotFound("workflow execution already completed")
	p := d.send(kim, http.MethodPost, doorsOf+"execute", map[string]any{}).problem(http.StatusConflict, "refused")
	require.Equal(t, "wrong_state", p.Reason)
}

func TestARepeatedCommandIsToldFromANewOne(t *testing.T) {
	d := newArtifactDesk(t)
	ids := map[string]bool{}
	say := func(owner, comment, key string) string {
		a := d.send(owner, http.MethodPost, doorsOf+"decision", map[string]any{"decision": "approve", "bundle_hash": artifact.HashOf(nil), "comment": comment}, "Idempotency-Key", key)
		require.Equal(t, http.StatusOK, a.Status, string(a.Body))
		return d.commands[len(d.commands)-1].UpdateID
	}
	first := say(kim, "yes", "k1")
	require.NotEmpty(t, first)
	require.Equal(t, first, say(kim, "yes", "k1"), "Temporal answers the second with the outcome of the first")
	for _, id := range []string{first, say(kim, "no", "k1"), say(kim, "yes", "k2"), say("user:lee", "yes", "k1")} {
		require.False(t, ids[id])
		ids[id] = true
	}
	a := d.send(kim, http.MethodPost, doorsOf+"execute", map[string]any{})
	require.Equal(t, http.StatusOK, a.Status)
	require.Empty(t, d.commands[len(d.commands)-1].UpdateID)
	requireField(t, d.send(kim, http.MethodPost, doorsOf+"execute", map[string]any{}, "Idempotency-Key", "a b"), "header.Idempotency-Key")
}

func TestApproversSignThemselves(t *testing.T) {
	d := newArtifactDesk(t)
	_, private, err := ed25519.GenerateKey(rand.Reader)
	require.NoError(t, err)
	signer, err := ssh.NewSignerFromKey(private)
	require.NoError(t, err)
	c := artifact.Command{Verb: artifact.Approve, Actor: kim, At: time.Now().UTC(), BundleHash: artifact.HashOf(nil)}
	c.Signature, err = artifact.Sign(signer, c, "fix", 1)
	require.NoError(t, err)
	said := map[string]any{"decision": "approve", "bundle_hash": c.BundleHash, "at": c.At, "signature": c.Signature}
	a := d.send(kim, http.MethodPost, doorsOf+"decision", said)
	require.Equal(t, http.StatusOK, a.Status, string(a.Body))
	require.NoError(t, d.last().VerifySignature("fix", 1, string(ssh.MarshalAuthorizedKey(signer.PublicKey()))), "their own signature, not the gateway's")
	delete(said, "at")
	requireField(t, d.send(kim, http.MethodPost, doorsOf+"decision", said), "body.at")
}

func TestStatusIsTheLifecyclesOwnWord(t *testing.T) {
	d := newArtifactDesk(t)
	a := d.send(kim, http.MethodGet, doorsOf+"status", nil)
	require.Equal(t, http.StatusOK, a.Status, string(a.Body))
	require.Contains(t, string(a.Body), `"waiting_for":"its turn to run"`)
	d.answer = serviceerror.NewUnavailable("down")
	d.send(kim, http.MethodGet, doorsOf+"status", nil).problem(http.StatusServiceUnavailable, "temporal-unavailable")
	d.answer = serviceerror.NewNotFound("forgotten")
	d.send(kim, http.MethodGet, doorsOf+"status", nil).problem(http.StatusNotFound, "not-found")

	require.Equal(t, http.StatusAccepted, d.send(kim, http.MethodPost, "/v1/artifacts", submission()).Status)
	v := d.create("artifact/fix/v1", artifact.InReview)
	a = d.send(kim, http.MethodGet, doorsOf+"status", nil)
	require.Equal(t, http.StatusOK, a.Status, string(a.Body))
	var status workflows.Status
	a.decode(&status)
	require.Equal(t, artifact.InReview, status.State)
	require.Equal(t, v.BundleHash, status.BundleHash)
	require.Equal(t, []string{"user:lee"}, status.Tally.Wanted)
}
