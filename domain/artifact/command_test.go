package artifact_test

import (
	"crypto/ed25519"
	"crypto/rand"
	"crypto/rsa"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/crypto/ssh"

	"millrace/domain/artifact"
)

func standing(t *testing.T) artifact.Standing {
	t.Helper()
	return artifact.Standing{
		State: artifact.InReview, Author: "user:author", BundleHash: bundle, Since: noon, ExpiresAt: noon.Add(time.Hour),
		Policy:    complete(t, artifact.Policy{Approvers: []string{"user:a", "user:author"}}, nil),
		Decisions: []artifact.Decision{decision("user:a", artifact.Reject, bundle)},
	}
}

func TestCommandsAreJudgedByRule(t *testing.T) {
	now := noon.Add(time.Minute)
	approve := artifact.Command{Verb: artifact.Approve, Actor: "user:a", BundleHash: bundle}
	with := func(change func(*artifact.Command)) artifact.Command {
		c := approve
		change(&c)
		return c
	}
	for name, c := range map[string]struct {
		command artifact.Command
		at      time.Time
		why     artifact.Why
	}{
		"an approver approves":          {approve, now, ""},
		"says when":                     {with(func(c *artifact.Command) { c.At = now }), now, ""},
		"on other content":              {with(func(c *artifact.Command) { c.BundleHash = other }), now, artifact.WhyOtherContent},
		"a stranger":                    {with(func(c *artifact.Command) { c.Actor = "user:z" }), now, artifact.WhyNotApprover},
		"the author":                    {with(func(c *artifact.Command) { c.Actor = "user:author" }), now, artifact.WhyOwnApproval},
		"the author may reject":         {with(func(c *artifact.Command) { c.Actor, c.Verb = "user:author", artifact.Reject }), now, ""},
		"too late":                      {approve, noon.Add(time.Hour), artifact.WhyExpired},
		"older than his last":           {with(func(c *artifact.Command) { c.At = noon }), now, artifact.WhyStale},
		"before the review began":       {with(func(c *artifact.Command) { c.At = noon.Add(-time.Hour) }), now, artifact.WhyStale},
		"in the future":                 {with(func(c *artifact.Command) { c.At = now.Add(6 * time.Minute) }), now, artifact.WhyFuture},
		"withdrawn by the author":       {artifact.Command{Verb: artifact.Withdraw, Actor: "user:author"}, now, ""},
		"withdrawn by another":          {artifact.Command{Verb: artifact.Withdraw, Actor: "user:a"}, now, artifact.WhyNotAuthor},
		"executed before its approval":  {artifact.Command{Verb: artifact.Execute, Actor: "user:a"}, now, artifact.WhyState},
		"compensated before it ran":     {artifact.Command{Verb: artifact.Undo, Actor: "user:a"}, now, artifact.WhyState},
		"archived before it is settled": {artifact.Command{Verb: artifact.ArchiveNow, Actor: "user:a"}, now, artifact.WhyState},
		"an unknown verb":               {artifact.Command{Verb: "praise", Actor: "user:a"}, now, artifact.WhyState},
	} {
		err := standing(t).Judge(c.command, c.at)
		if c.why == "" {
			require.NoError(t, err, name)
			continue
		}
		var refused *artifact.RefusedError
		require.ErrorAs(t, err, &refused, name)
		require.Equal(t, c.why, refused.Why, name)
	}
}

func TestBadlyFormedCommandsAreNamedByField(t *testing.T) {
	for field, c := range map[string]artifact.Command{
		"actor":       {Verb: artifact.Approve, Actor: "kim"},
		"bundle_hash": {Verb: artifact.Approve, Actor: "user:a", BundleHash: "md5:x"},
		"at":          {Verb: artifact.Approve, Actor: "user:a", BundleHash: bundle, Signature: "x"},
		"comment":     {Verb: artifact.Approve, Actor: "user:a", BundleHash: bundle, Comment: "\xff"},
		"signature":   {Verb: artifact.Approve, Actor: "user:a", BundleHash: bundle, Signature: string(make([]byte, 9000)), At: noon},
	} {
		var broken *artifact.InvalidError
		require.ErrorAs(t, standing(t).Judge(c, noon), &broken, field)
		require.Equal(t, field, broken.Field)
	}
	err := standing(t).Judge(artifact.Command{Verb: artifact.Approve, Actor: "user:a"}, noon)
	require.ErrorContains(t, err, "bundle_hash is needed")
}

func TestExecutionAndUndoAreJudgedByTheirStates(t *testing.T) {
	s := standing(t)
	s.State, s.ExpiresAt = artifact.Approved, time.Time{}
	after := noon.Add(2 * time.Hour)
	s.Policy.ExecuteAfter = &after
	execute := artifact.Command{Verb: artifact.Execute, Actor: "user:a"}
	require.ErrorContains(t, s.Judge(execute, noon), string(artifact.WhyTooEarly))
	require.NoError(t, s.Judge(execute, after))
	undo := artifact.Command{Verb: artifact.Undo, Actor: "user:a"}
	for _, state := range []artifact.State{artifact.Executed, artifact.Failed, artifact.CompensationFailed} {
		s.State, s.Undoable = state, false
		require.ErrorContains(t, s.Judge(undo, noon), string(artifact.WhyNothing))
		s.Undoable = true
		require.NoError(t, s.Judge(undo, noon))
		require.NoError(t, s.Judge(artifact.Command{Verb: artifact.ArchiveNow, Actor: "user:a"}, noon))
	}
}

func TestAssurancesThatAreEnough(t *testing.T) {
	free, strict := artifact.Policy{}, artifact.Policy{SignedDecisions: true}
	require.NoError(t, free.Accepts(artifact.Approve, artifact.Gateway, false))
	require.NoError(t, free.Accepts(artifact.Approve, artifact.Unverified, true))
	require.Error(t, free.Accepts(artifact.Approve, artifact.Unverified, false))
	require.Error(t, strict.Accepts(artifact.Approve, artifact.Gateway, true))
	require.Error(t, strict.Accepts(artifact.Reject, artifact.Unverified, true))
	require.NoError(t, strict.Accepts(artifact.Approve, artifact.Signed, false))
	require.NoError(t, strict.Accepts(artifact.Execute, artifact.Gateway, false), "only decisions need the approver's own key")
}

func signer(t *testing.T) (ssh.Signer, string) {
	t.Helper()
	_, private, err := ed25519.GenerateKey(rand.Reader)
	require.NoError(t, err)
	s, err := ssh.NewSignerFromKey(private)
	require.NoError(t, err)
	return s, string(ssh.MarshalAuthorizedKey(s.PublicKey()))
}

func TestASignatureFitsItsCommandOnly(t *testing.T) {
	private, public := signer(t)
	_, stranger := signer(t)
	c := artifact.Command{Verb: artifact.Approve, Actor: "user:a", BundleHash: bundle, At: noon}
	var err error
	c.Signature, err = artifact.Sign(private, c, "fix", 3)
	require.NoError(t, err)
	require.NoError(t, c.VerifySignature("fix", 3, public))
	key, err := artifact.ParseKey(public + "")
	require.NoError(t, err)
	by, err := c.SignedBy()
	require.NoError(t, err)
	require.Equal(t, key.Fingerprint(), by)

	require.Error(t, c.VerifySignature("fix", 3, stranger), "another key")
	require.Error(t, c.VerifySignature("fix", 4, public), "another version")
	require.Error(t, c.VerifySignature("other", 3, public), "another artifact")
	for name, change := range map[string]func(*artifact.Command){
		"verb":   func(c *artifact.Command) { c.Verb = artifact.Reject },
		"actor":  func(c *artifact.Command) { c.Actor = "user:b" },
		"bundle": func(c *artifact.Command) { c.BundleHash = other },
		"time":   func(c *artifact.Command) { c.At = noon.Add(time.Nanosecond) },
	} {
		forged := c
		change(&forged)
		require.Error(t, forged.VerifySignature("fix", 3, public), name)
	}
	broken := c
	broken.Signature = "-----BEGIN SSH SIGNATURE-----"
	require.Error(t, broken.VerifySignature("fix", 3, public))
	_, err = broken.SignedBy()
	require.Error(t, err)
}

// TestOpenSSHSignsCommands signs with the official tool, as approvers do.
func TestOpenSSHSignsCommands(t *testing.T) {
	keygen, err := exec.LookPath("ssh-keygen")
	if err != nil {
		t.Log("no ssh-keygen here: TestASignatureFitsItsCommandOnly covers the format")
		return
	}
	dir := t.TempDir()
	key, text := filepath.Join(dir, "key"), filepath.Join(dir, "text")
	out, err := exec.Command(keygen, "-q", "-t", "ed25519", "-N", "", "-f", key).CombinedOutput()
	require.NoError(t, err, string(out))
	c := artifact.Command{Verb: artifact.Approve, Actor: "user:a", BundleHash: bundle, At: noon}
	require.NoError(t, os.WriteFile(text, c.Text("fix", 1), 0o600))
	out, err = exec.Command(keygen, "-q", "-Y", "sign", "-n", artifact.SignatureNamespace, "-f", key, text).CombinedOutput()
	require.NoError(t, err, string(out))
	signature, err := os.ReadFile(text + ".sig")
	require.NoError(t, err)
	public, err := os.ReadFile(key + ".pub")
	require.NoError(t, err)
	c.Signature = string(signature)
	require.NoError(t, c.VerifySignature("fix", 1, string(public)))
}

func TestKeysThatAreTaken(t *testing.T) {
	_, public := signer(t)
	key, err := artifact.ParseKey(public)
	require.NoError(t, err)
	again, err := artifact.ParseKey(key.String())
	require.NoError(t, err)
	require.Equal(t, key.Fingerprint(), again.Fingerprint())
	weak, err := rsa.GenerateKey(rand.Reader, 2048)
	require.NoError(t, err)
	weakKey, err := ssh.NewPublicKey(&weak.PublicKey)
	require.NoError(t, err)
	for _, text := range []string{"", "ssh-ed25519 x", public + public, string(ssh.MarshalAuthorizedKey(weakKey))} {
		_, err := artifact.ParseKey(text)
		require.Error(t, err)
	}
}

func FuzzSignatures(f *testing.F) {
	f.Add("-----BEGIN SSH SIGNATURE-----\nU1NIU0lH\n-----END SSH SIGNATURE-----\n")
	f.Fuzz(func(t *testing.T, signature string) {
		c := artifact.Command{Verb: artifact.Approve, Actor: "user:a", At: noon, Signature: signature}
		require.Error(t, c.VerifySignature("fix", 1, "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIJVYpbpWzxXzPyZHpnBhzfYzkKDkFyZbWfDLUr1VJ0oP"))
	})
}

func TestACommandIsTheSameHoweverItsSignatureIsWritten(t *testing.T) {
	_, private, err := ed25519.GenerateKey(rand.Reader)
	require.NoError(t, err)
	signer, err := ssh.NewSignerFromKey(private)
	require.NoError(t, err)
	c := artifact.Command{Verb: artifact.Replace, Actor: "user:author", At: noon, BundleHash: bundle}
	unsigned := c.ID("fix", 1)
	c.Signature, err = artifact.Sign(signer, c, "fix", 1)
	require.NoError(t, err)
	id := c.ID("fix", 1)
	require.NotEqual(t, unsigned, id, "who signs is part of it")
	require.NotEqual(t, id, c.ID("fix", 2))
	c.Signature += "\n"
	require.Equal(t, id, c.ID("fix", 1))
	c.Signature = "broken"
	require.NotEqual(t, id, c.ID("fix", 1))
}

func TestAReplacementIsAboutItsFiles(t *testing.T) {
	spec := artifact.Spec{Kind: artifact.Script}
	good := []artifact.File{{Role: artifact.Primary, Filename: "fix.sh", ContentBase64: "Z29vZA=="}}
	hashed := []artifact.File{{Role: artifact.Primary, Filename: "fix.sh", ContentHash: artifact.HashOf([]byte("good"))}}
	evil := []artifact.File{{Role: artifact.Primary, Filename: "fix.sh", ContentBase64: "ZXZpbA=="}}
	bundle, err := artifact.BundleHash(hashed, spec)
	require.NoError(t, err)
	c := artifact.Command{Verb: artifact.Replace, BundleHash: bundle, Signature: "x"}
	require.NoError(t, c.CheckReplacement(good, spec))
	require.NoError(t, c.CheckReplacement(hashed, spec))
	var refused *artifact.RefusedError
	require.ErrorAs(t, c.CheckReplacement(evil, spec), &refused)
	require.Equal(t, artifact.WhyOtherContent, refused.Why)
	require.ErrorAs(t, c.CheckReplacement(good, artifact.Spec{Kind: artifact.HTTP}), &refused)
	var invalid *artifact.InvalidError
	c.BundleHash = ""
	require.ErrorAs(t, c.CheckReplacement(good, spec), &invalid, "what says no content would fit any")
	c.Signature = ""
	require.NoError(t, c.CheckReplacement(good, spec), "nobody vouches for it anyway")
}
