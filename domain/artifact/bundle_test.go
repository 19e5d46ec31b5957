package artifact_test

import (
	"encoding/base64"
	"encoding/json"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"millrace/domain/artifact"
)

func request() artifact.Request {
	return artifact.Request{
		ArtifactID: "restart-line", Version: 1, Author: "user:author", Reason: "the line is stuck",
		Spec: artifact.Spec{Kind: artifact.Script, Policy: artifact.Policy{Approvers: []string{"user:a"}}},
		Files: []artifact.File{
			{Role: artifact.Primary, Filename: "run.sh", ContentBase64: base64.StdEncoding.EncodeToString([]byte("#!/bin/sh\n")), ContentHash: bundle},
			{Role: artifact.Rollback, Filename: "run.sh", ContentHash: other, S3VersionID: "v1"},
		},
	}
}

func TestARequestIsCompleted(t *testing.T) {
	r, err := request().Check()
	require.NoError(t, err)
	require.NotZero(t, r.Spec.Limits.Timeout)
	require.True(t, artifact.Rollbackable(r.Files))
	require.Equal(t, "rollback-run.sh", r.Files[1].StoredName())
}

func TestBadRequestsAreNamedByField(t *testing.T) {
	for name, change := range map[string]func(*artifact.Request){
		"artifact_id":      func(r *artifact.Request) { r.ArtifactID = "../etc" },
		"version":          func(r *artifact.Request) { r.Version = 0 },
		"author":           func(r *artifact.Request) { r.Author = "group:x" },
		"kind":             func(r *artifact.Request) { r.Spec.Kind = "sorcery" },
		"spec.args":        func(r *artifact.Request) { r.Spec.Args = json.RawMessage(`{"shell":true}`) },
		"spec.args.args":   func(r *artifact.Request) { r.Spec.Args = json.RawMessage(`{"args":["a\u0000b"]}`) },
		"spec.args.method": func(r *artifact.Request) { r.Spec.Kind = artifact.HTTP },
		"spec.args.url": func(r *artifact.Request) {
			r.Spec.Kind, r.Spec.Args = artifact.HTTP, json.RawMessage(`{"method":"POST","url":"file:///etc/passwd"}`)
		},
		"spec.limits.timeout":      func(r *artifact.Request) { r.Spec.Limits.Timeout = 1 },
		"spec.limits.output_bytes": func(r *artifact.Request) { r.Spec.Limits.OutputBytes = -1 },
		"spec.limits.memory_bytes": func(r *artifact.Request) { r.Spec.Limits.MemoryBytes = 1 },
		"files":                    func(r *artifact.Request) { r.Files = append(r.Files, r.Files[0]) },
		"files.content_hash":       func(r *artifact.Request) { r.Files[1].ContentHash = "" },
		"reason":                   func(r *artifact.Request) { r.Reason = strings.Repeat("x", 3000) },
	} {
		r := request()
		change(&r)
		_, err := r.Check()
		var broken *artifact.InvalidError
		require.ErrorAs(t, err, &broken, name)
		require.Equal(t, name, broken.Field)
	}
	large := request()
	large.Files[0].ContentBase64 = strings.Repeat("A", 100<<10)
	_, err := large.Check()
	require.ErrorContains(t, err, "upload the content first")
}

func TestNamesThatWouldLeaveTheirPlaceAreRefused(t *testing.T) {
	for _, name := range []string{"", ".", "..", ".hidden", "a/b", `a\b`, "../x", "a\x00", "é", "metadata.json", "spec.json", "rollback-x", strings.Repeat("x", 129)} {
		require.Error(t, artifact.CheckFilename(name), "%q", name)
	}
	for _, name := range []string{"run.sh", "a..b", "x", "-", "A_1.tar.gz"} {
		require.NoError(t, artifact.CheckFilename(name), "%q", name)
	}
	for _, id := range []string{"", "A", "a..b", "comp-x", "-a", "a/b", strings.Repeat("x", 65)} {
		require.Error(t, artifact.CheckID(id), "%q", id)
	}
	require.NoError(t, artifact.CheckID("fix.line-2_b"))
	for _, id := range []string{"", "x", "01900000-0000-4000-8000-000000000000", "01900000-0000-7000-8000-00000000000Z"} {
		require.Error(t, artifact.CheckRunID(id))
	}
	require.NoError(t, artifact.CheckRunID("01900000-0000-7000-8000-000000000000"))
}

func TestABundleIsItsFilesAndItsSpec(t *testing.T) {
	r := request()
	base, err := artifact.BundleHash(r.Files, r.Spec)
	require.NoError(t, err)
	reversed := []artifact.File{r.Files[1], r.Files[0]}
	same, err := artifact.BundleHash(reversed, r.Spec)
	require.NoError(t, err)
	require.Equal(t, base, same, "the order of files does not matter")
	for name, change := range map[string]func(*artifact.Request){
		"content": func(r *artifact.Request) { r.Files[0].ContentHash = other },
		"name":    func(r *artifact.Request) { r.Files[0].Filename = "other.sh" },
		"policy":  func(r *artifact.Request) { r.Spec.Policy.Required = 2 },
		"args":    func(r *artifact.Request) { r.Spec.Args = json.RawMessage(`{"args":["x"]}`) },
	} {
		changed := request()
		change(&changed)
		got, err := artifact.BundleHash(changed.Files, changed.Spec)
		require.NoError(t, err)
		require.NotEqual(t, base, got, name)
	}
	r.Files[0].ContentHash = ""
	_, err = artifact.BundleHash(r.Files, r.Spec)
	require.Error(t, err)
}

func TestTheHashOfARequestLeavesItsClaimOut(t *testing.T) {
	r := request()
	before, err := r.Hash()
	require.NoError(t, err)
	r.Claim = artifact.Command{Actor: "user:author", BundleHash: before}
	after, err := r.Hash()
	require.NoError(t, err)
	require.Equal(t, before, after)
	r.Author = "user:other"
	after, err = r.Hash()
	require.NoError(t, err)
	require.NotEqual(t, before, after)
}

func TestCanonicalFormSortsAndKeepsDigits(t *testing.T) {
	body, err := artifact.Canonical(json.RawMessage(`{"b": 1.50, "a": "<&>"}`))
	require.NoError(t, err)
	require.Equal(t, `{"a":"<&>","b":1.50}`, string(body))
}
