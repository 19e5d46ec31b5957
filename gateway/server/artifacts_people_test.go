package server_test

import (
	"crypto/ed25519"
	"crypto/rand"
	"net/http"
	"net/url"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/crypto/ssh"

	"millrace/gateway/server"
)

func publicKey(t *testing.T) string {
	t.Helper()
	public, _, err := ed25519.GenerateKey(rand.Reader)
	require.NoError(t, err)
	key, err := ssh.NewPublicKey(public)
	require.NoError(t, err)
	return string(ssh.MarshalAuthorizedKey(key))
}

func TestKeysOfApproversAreAddedListedAndRevoked(t *testing.T) {
	d := newArtifactDesk(t)
	const path = "/v1/approvers/user:lee/keys"
	// Fingerprints have slashes now and then: all of them must work in a path.
	for range 8 {
		var added, again, revoked server.ApproverKey
		text := publicKey(t)
		d.send(kim, http.MethodPost, path, map[string]any{"public_key": text}).decode(&added)
		require.Equal(t, "user:lee", added.Actor)
		d.send(kim, http.MethodPost, path, map[string]any{"public_key": text}).decode(&again)
		require.Equal(t, added, again)
		revoke := path + "/" + url.PathEscape(added.Fingerprint) + "/revoke"
		a := d.send(kim, http.MethodPost, revoke, nil)
		require.Equal(t, http.StatusOK, a.Status, "%s %s", added.Fingerprint, a.Body)
		a.decode(&revoked)
		require.NotNil(t, revoked.RevokedAt)
		for _, repeat := range []answer{d.send(kim, http.MethodPost, revoke, nil), d.send(kim, http.MethodPost, path, map[string]any{"public_key": text})} {
			again = server.ApproverKey{}
			repeat.decode(&again)
			require.Equal(t, revoked.RevokedAt, again.RevokedAt, "a revoked key stays revoked")
		}
		d.send(kim, http.MethodPost, "/v1/approvers/user:park/keys/"+url.PathEscape(added.Fingerprint)+"/revoke", nil).problem(http.StatusNotFound, "not-found")
	}
	var page server.ArtifactPage[server.ApproverKey]
	d.send(kim, http.MethodGet, path, nil).decode(&page)
	require.Len(t, page.Items, 8)

	requireField(t, d.send(kim, http.MethodGet, "/v1/approvers/lee/keys", nil), "path.actor")
	requireField(t, d.send(kim, http.MethodGet, "/v1/approvers/group:ops/keys", nil), "path.actor")
	requireField(t, d.send(kim, http.MethodPost, "/v1/approvers/lee/keys", map[string]any{"public_key": publicKey(t)}), "path.actor")
	require.Equal(t, http.StatusBadRequest, d.send(kim, http.MethodPost, path, map[string]any{"public_key": "ssh-ed25519 AAAA"}).Status)
	d.send(kim, http.MethodPost, path, map[string]any{}).problem(http.StatusBadRequest, "invalid-input")
	requireField(t, d.send(kim, http.MethodPost, path, map[string]any{"public_key": publicKey(t), "actor": "user:boss"}), "body.actor")
	requireField(t, d.send(kim, http.MethodPost, path+"/MD5:x/revoke", nil), "path.fingerprint")
}

func TestMembersOfGroupsAreAddedListedAndRemoved(t *testing.T) {
	d := newArtifactDesk(t)
	const path = "/v1/groups/ops/members"
	members := func(a answer) []string {
		require.Equal(t, http.StatusOK, a.Status, string(a.Body))
		var group server.ApproverGroup
		a.decode(&group)
		require.Equal(t, "ops", group.Group)
		return group.Members
	}
	require.Empty(t, members(d.send(kim, http.MethodGet, path, nil)))
	for range 2 {
		require.Equal(t, []string{"user:lee"}, members(d.send(kim, http.MethodPut, path+"/user:lee", nil)))
	}
	require.Equal(t, []string{"app:bot", "user:lee"}, members(d.send(kim, http.MethodPut, path+"/app:bot", nil)))
	stored, err := d.store.Members(t.Context(), "ops")
	require.NoError(t, err)
	require.Equal(t, []string{"app:bot", "user:lee"}, stored, "as the starter sees it")
	for range 2 {
		require.Equal(t, []string{"app:bot"}, members(d.send(kim, http.MethodDelete, path+"/user:lee", nil)))
	}
	requireField(t, d.send(kim, http.MethodPut, "/v1/groups/Ops/members/user:lee", nil), "path.group")
	requireField(t, d.send(kim, http.MethodPut, path+"/lee", nil), "path.actor")
	requireField(t, d.send(kim, http.MethodDelete, path+"/group:ops", nil), "path.actor")
	requireField(t, d.send(kim, http.MethodGet, "/v1/groups/o_ps/members", nil), "path.group")
}
