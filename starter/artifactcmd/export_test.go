package artifactcmd

import (
	"bytes"
	"crypto/ed25519"
	"crypto/rand"
	"encoding/pem"
	"io"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/crypto/ssh"

	"millrace/domain/artifact"
	storage "millrace/storage/artifact"
)

// version writes a version with a chain of three steps, without any workflow.
func (s *shop) version(id string) {
	s.Helper()
	spec := artifact.Spec{Kind: artifact.Script}
	file, err := s.store.Put(s.Context(), storage.ContentKey(id, 1, "fix.sh"), "text/plain", strings.NewReader("#!/bin/sh\n"))
	require.NoError(s, err)
	file.Role, file.Filename = artifact.Primary, "fix.sh"
	bundle, err := artifact.BundleHash([]artifact.File{file.File()}, spec)
	require.NoError(s, err)
	at := time.Date(2026, 5, 31, 12, 0, 0, 0, time.UTC)
	record, chain, err := artifact.Chain{}.Extend(1, "submitted", "user:lee", at, bundle, artifact.Event{To: artifact.InReview, BundleHash: bundle})
	require.NoError(s, err)
	require.NoError(s, s.store.Create(s.Context(), storage.Creation{
		Request: artifact.Request{ArtifactID: id, Version: 1, Author: "user:lee", Spec: spec}, State: artifact.InReview, Record: record,
		Content: storage.Content{Files: []storage.StoredFile{file}, BundleHash: bundle},
	}))
	from := artifact.InReview
	for _, to := range []artifact.State{artifact.Withdrawn, artifact.Archived} {
		at = at.Add(time.Second)
		record, chain, err = chain.Extend(1, string(to), "user:lee", at, bundle, artifact.Event{From: from, To: to, BundleHash: bundle})
		require.NoError(s, err)
		require.NoError(s, s.store.Commit(s.Context(), storage.Step{ArtifactID: id, Version: 1, Record: record, From: from, To: to}))
		from = to
	}
}

// signing makes a key and gives the files of both halves.
func (s *shop) signing() (private, public string) {
	s.Helper()
	pub, key, err := ed25519.GenerateKey(rand.Reader)
	require.NoError(s, err)
	block, err := ssh.MarshalPrivateKey(key, "")
	require.NoError(s, err)
	line, err := ssh.NewPublicKey(pub)
	require.NoError(s, err)
	return s.file("sign", string(pem.EncodeToMemory(block))), s.file("sign.pub", string(ssh.MarshalAuthorizedKey(line)))
}

// exportTo exports a version with a key by reference.
func (s *shop) exportTo(reference string) []byte {
	s.Helper()
	key, err := ExportCommand{SigningKey: reference}.key(s.Context())
	require.NoError(s, err)
	var out bytes.Buffer
	require.NoError(s, export(s.Context(), s.store, Target{ID: "fix", Version: 1}, key, &out))
	require.Equal(s, 3, bytes.Count(out.Bytes(), []byte("\n")), "one a line")
	return out.Bytes()
}

func TestASignedExportIsVerifiedWithItsKey(t *testing.T) {
	s := newShop(t)
	s.version("fix")
	private, public := s.signing()
	_, other := s.signing()
	body := s.exportTo("file:" + private)
	s.stores = nil
	signed := s.file("signed.jsonl", string(body))
	verify := func(path string, more ...string) error {
		return s.run(append([]string{"artifact", "verify", "--file=" + path}, more...)...)
	}
	require.NoError(t, verify(signed, "--public-key="+public))
	require.ErrorIs(t, verify(signed, "--public-key="+other), artifact.ErrUnsigned)
	require.ErrorContains(t, verify(signed), "--public-key")

	var out bytes.Buffer
	require.NoError(t, VerifyCommand{File: signed, PublicKey: public}.file(&out))
	require.Equal(t, "fix/fix.sh v1: 3 signed statements in order, up to v0001-0003-archived\n", out.String())

	lines := strings.SplitAfter(string(body), "\n")
	for name, bad := range map[string]string{
		"a gap":        lines[0] + lines[2],
		"another":      lines[1] + lines[0],
		"nothing":      "",
		"no json":      "x",
		"cut":          string(body[:len(body)-20]),
		"changed":      strings.Replace(string(body), `"payload":"e`, `"payload":"f`, 1),
		"another type": strings.ReplaceAll(string(body), "in-toto", "other"),
	} {
		require.Error(t, verify(s.file("bad.jsonl", bad), "--public-key="+public), name)
	}
}

func TestAnUnsignedExportIsAChainOnly(t *testing.T) {
	s := newShop(t)
	s.version("fix")
	_, public := s.signing()
	body := s.exportTo("")
	s.stores = nil
	plain := s.file("plain.jsonl", string(body))
	require.NoError(t, s.run("artifact", "verify", "--file="+plain))
	require.ErrorIs(t, s.run("artifact", "verify", "--file="+plain, "--public-key="+public), artifact.ErrUnsigned, "a key asks for signatures")
	for _, change := range [][2]string{{"user:lee", "user:kim"}, {"fix/fix.sh", "fix/other.sh"}, {"Statement/v1", "Statement/v0"}, {"v0001-0001", "v1-1"}} {
		bad := strings.Replace(string(body), change[0], change[1], 1)
		require.NotEqual(t, string(body), bad)
		require.Error(t, s.run("artifact", "verify", "--file="+s.file("bad.jsonl", bad)), change[0])
	}
	require.Error(t, s.run("artifact", "verify", "--file="+s.file("bad.pub", `{"_type":"x"}`), "--public-key="+plain))
}

func TestASigningKeyIsNamedByReference(t *testing.T) {
	s := newShop(t)
	private, _ := s.signing()
	text, err := os.ReadFile(private)
	require.NoError(t, err)
	t.Setenv("EXPORT_KEY", string(text))
	_, err = ExportCommand{SigningKey: "env:EXPORT_KEY"}.key(t.Context())
	require.NoError(t, err)
	t.Setenv("EXPORT_KEY", "no key but a secret")
	for _, reference := range []string{string(text), "env:EXPORT_KEY", "file:/none"} {
		_, err = ExportCommand{SigningKey: reference}.key(t.Context())
		require.Error(t, err)
		require.NotContains(t, err.Error(), "secret but")
		require.NotContains(t, err.Error(), "PRIVATE KEY")
		require.NotContains(t, err.Error(), "no key but")
	}
	require.ErrorIs(t, export(t.Context(), s.store, Target{ID: "none", Version: 1}, nil, io.Discard), storage.ErrNotFound)
}
