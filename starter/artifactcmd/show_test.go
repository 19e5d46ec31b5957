package artifactcmd

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"millrace/domain/artifact"
	storage "millrace/storage/artifact"
)

// stored is what show needs of a version: its items, with content at their keys.
func (s *shop) proposed(reason, content string) storage.Artifact {
	s.Helper()
	r := artifact.Request{
		ArtifactID: "fix", Version: 1, Author: "user:lee", Reason: reason,
		Spec: artifact.Spec{Kind: artifact.Script, Policy: artifact.Policy{Approvers: []string{"user:kim", "user:park"}, Required: 2}},
	}
	r, err := withFile(s, r, content)
	require.NoError(s, err)
	bundle, err := artifact.BundleHash(r.Files, r.Spec)
	require.NoError(s, err)
	record, _, err := artifact.Chain{}.Extend(1, "submitted", r.Author, time.Now(), bundle, artifact.Event{To: artifact.InReview, BundleHash: bundle})
	require.NoError(s, err)
	f := r.Files[0]
	files := []storage.StoredFile{{
		Role: f.Role, Filename: f.Filename, Key: storage.ContentKey("fix", 1, f.StoredName()), ContentHash: f.ContentHash, S3VersionID: f.S3VersionID, Size: f.Size,
	}}
	require.NoError(s, s.store.Create(s.Context(), storage.Creation{
		Request: r, Content: storage.Content{Files: files, BundleHash: bundle}, State: artifact.InReview, Record: record, Submission: artifact.Unverified,
	}))
	v, err := s.store.Version(s.Context(), "fix", 1)
	require.NoError(s, err)
	return v
}

func withFile(s *shop, r artifact.Request, content string) (artifact.Request, error) {
	policy, err := r.Spec.Policy.Complete(r.Author, nil, false)
	if err != nil {
		return r, err
	}
	r.Spec.Policy = policy
	stored, err := s.store.Put(s.Context(), storage.ContentKey("fix", 1, "fix.sh"), "text/plain", strings.NewReader(content))
	r.Files = []artifact.File{{Role: artifact.Primary, Filename: "fix.sh", ContentHash: stored.ContentHash, Size: stored.Size, S3VersionID: stored.S3VersionID}}
	return r, err
}

func TestReviewersSeeWhatTheyDecide(t *testing.T) {
	s := newShop(t)
	v := s.proposed("the line\x1b[31m is stuck", "#!/bin/sh\necho a\u202eb\n")
	var out bytes.Buffer
	require.NoError(t, show(t.Context(), s.store, v, &out))
	for _, says := range []string{
		"fix v1 is in_review", "asked by    user:lee (unverified)", `reason      the line\u001b[31m is stuck`, "bundle hash " + v.BundleHash,
		"primary     fix.sh, 21 bytes, " + v.Files[0].ContentHash, "approvals   0 of 2:", "wanted      user:kim, user:park", `"required": 2`,
		"no version was executed before", "warning: the files have control or format characters", `+echo a\u202eb`, "rollback:\nno change",
	} {
		require.Contains(t, out.String(), says)
	}
	require.NotContains(t, out.String(), "\u202e")
	require.NotContains(t, out.String(), "\x1b")
	require.NoError(t, s.run("artifact", "show", "fix"))
	require.NoError(t, s.run("artifact", "diff", "fix", "1", "--role=primary"))
	require.ErrorIs(t, s.run("artifact", "show", "none"), storage.ErrNotFound)

	out.Reset()
	require.NoError(t, list(t.Context(), s.store, artifact.InReview, 10, &out))
	require.Contains(t, out.String(), `the line\u001b[31m is stuck`)
	out.Reset()
	require.NoError(t, printJSON(&out, map[string]string{"reason": "a\u202eb\U000e0041"}))
	require.JSONEq(t, `{"reason": "a\u202eb\udb40\udc41"}`, out.String())
	require.NotContains(t, out.String(), "\u202e")
}

func TestAnApprovalIsOfWhatWasNamed(t *testing.T) {
	s := newShop(t)
	v := s.proposed("stuck", "#!/bin/sh\n")
	var out bytes.Buffer
	require.NoError(t, ask(strings.NewReader("yes\n"), &out, v))
	require.Contains(t, out.String(), "approve fix v1, "+v.BundleHash+"?")
	for _, answer := range []string{"", "y\n", "no\n", "\n"} {
		require.ErrorIs(t, ask(strings.NewReader(answer), &out, v), errUnsaid)
	}
	require.ErrorIs(t, s.run("artifact", "approve", "fix", "--actor=user:kim"), errUnsaid)
}

func TestFlagsNeverLoosenThePolicy(t *testing.T) {
	policy := func(change func(*SubmitCommand)) (artifact.Policy, error) {
		c := SubmitCommand{Policy: "{}"}
		change(&c)
		return c.policy()
	}
	p, err := policy(func(c *SubmitCommand) {
		c.Policy, c.Approver = `{"required":2,"signed_decisions":true}`, []string{"user:kim", "user:park"}
	})
	require.NoError(t, err)
	require.Equal(t, 2, p.Required)
	require.True(t, p.SignedDecisions)
	require.Equal(t, []string{"user:kim", "user:park"}, p.Approvers)
	p, err = policy(func(c *SubmitCommand) { c.Policy, c.Required = `{"approvers":["user:kim"]}`, 3 })
	require.NoError(t, err)
	require.Equal(t, artifact.Policy{Required: 3, Approvers: []string{"user:kim"}}, p)
	for says, change := range map[string]func(*SubmitCommand){
		"required is 2, --required is 1":      func(c *SubmitCommand) { c.Policy, c.Required = `{"required":2,"approvers":["user:kim"]}`, 1 },
		"approvers are others":                func(c *SubmitCommand) { c.Policy, c.Approver = `{"approvers":["user:kim"]}`, []string{"user:lee"} },
		"name who may approve":                func(*SubmitCommand) {},
		`--policy has no field "auto_execut"`: func(c *SubmitCommand) { c.Policy = `{"auto_execut":false}` },
	} {
		_, err := policy(change)
		require.ErrorContains(t, err, says)
	}
}

func TestSubmittingRefusesHiddenWordsAndSkippedNumbers(t *testing.T) {
	s := newShop(t)
	submit := SubmitCommand{
		ID: "fix", File: s.file("fix.sh", "#!/bin/sh\n"), Kind: "script", Args: "{}", Policy: "{}", Approver: []string{"user:kim"},
		Actor: Actor{Actor: "user:lee"}, Timeout: time.Minute,
	}
	hidden, skipping := submit, submit
	hidden.Reason, skipping.Version = "\u202e", 9999
	_, err := hidden.request(t.Context(), s.store)
	require.ErrorContains(t, err, "reason must not contain the control character U+202E")
	_, err = skipping.request(t.Context(), s.store)
	require.ErrorContains(t, err, "version must be at most 1: numbers are not skipped")
}

func TestTheUndoOfAVersionIsVerifiedWithIt(t *testing.T) {
	s := newShop(t)
	require.ErrorIs(t, s.run("artifact", "verify", "comp-fix-v1"), storage.ErrNotFound)
	original, version, ok := artifact.ParseCompensationID("comp-a-v2-v13")
	require.True(t, ok)
	require.Equal(t, "a-v2", original)
	require.Equal(t, 13, version)
	for _, id := range []string{"fix", "comp-fix", "comp-fix-v0", "comp-fix-v01", "comp--v1", "comp-comp-fix-v1-v1"} {
		_, _, ok := artifact.ParseCompensationID(id)
		require.False(t, ok, id)
	}
}
