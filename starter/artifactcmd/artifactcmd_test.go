package artifactcmd

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
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/alecthomas/kong"
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
	storage "millrace/storage/artifact"
	"millrace/storage/storagetest"
	workflows "millrace/workflows/artifact"
	"millrace/workflows/names"
)

// shop runs commands as the program does, against a worker of its own.
type shop struct {
	*testing.T
	store    storage.Store
	temporal client.Client
	stores   []string
}

func newShop(t *testing.T) *shop {
	t.Helper()
	tab, bucket := storagetest.Table(t, storagetest.Monitoring), storagetest.Bucket(t)
	s := &shop{T: t, stores: []string{"--governance-table=" + tab.Name, "--data-bucket=" + bucket.Name}}
	var err error
	s.store, err = Stores{GovernanceTable: tab.Name, DataBucket: bucket.Name}.store(t.Context())
	require.NoError(t, err)
	return s
}

// namespace makes a namespace of the shop's own.
func (s *shop) namespace() {
	s.Helper()
	options, err := envconfig.LoadDefaultClientOptions()
	require.NoError(s, err)
	options.Logger = log.NewStructuredLogger(slog.New(slog.DiscardHandler))
	namespaces, err := client.NewNamespaceClient(options)
	require.NoError(s, err)
	defer namespaces.Close()
	name := fmt.Sprintf("artifactcmd-%d", time.Now().UnixNano())
	require.NoError(s, namespaces.Register(s.Context(), &workflowservice.RegisterNamespaceRequest{
		Namespace: name, WorkflowExecutionRetentionPeriod: durationpb.New(24 * time.Hour),
	}))
	s.Setenv("TEMPORAL_NAMESPACE", name)
	options.Namespace = name
	s.temporal, err = client.Dial(options)
	require.NoError(s, err)
	s.Cleanup(s.temporal.Close)
	require.Eventually(s, func() bool {
		_, err := s.temporal.CountWorkflow(s.Context(), &workflowservice.CountWorkflowExecutionsRequest{Namespace: name})
		return err == nil
	}, 30*time.Second, 100*time.Millisecond)
}

// work hosts artifacts in a namespace, strictly: nothing unverified.
func (s *shop) work() {
	s.Helper()
	s.namespace()
	a := activities.Activities{
		Store: s.store, Vouchers: activities.Vouchers{Store: s.store}, Temporal: s.temporal, Now: time.Now,
		Settings: workflows.Settings{ArchiveAfter: artifact.Duration(time.Hour)}, Logger: slog.New(slog.DiscardHandler),
	}
	w := worker.New(s.temporal, names.QueueArtifacts, worker.Options{})
	w.RegisterWorkflowWithOptions(workflows.ArtifactLifecycle, workflow.RegisterOptions{Name: names.ArtifactLifecycle})
	for name, f := range a.All() {
		w.RegisterActivityWithOptions(f, activity.RegisterOptions{Name: name})
	}
	require.NoError(s, w.Start())
	s.Cleanup(w.Stop)
	scripts := worker.New(s.temporal, names.QueueScripts, worker.Options{})
	executor := activities.Executor{Store: s.store, Runner: activities.Scripts{}, Now: time.Now}
	scripts.RegisterActivityWithOptions(activities.RunActivity(executor, s.temporal), activity.RegisterOptions{Name: workflows.ScriptActivity})
	require.NoError(s, scripts.Start())
	s.Cleanup(scripts.Stop)
}

// run runs a command line; what needs no store takes none.
func (s *shop) run(args ...string) error {
	s.Helper()
	var cli struct {
		Artifact Command         `cmd:""`
		Approver ApproverCommand `cmd:""`
		Group    GroupCommand    `cmd:""`
	}
	parser, err := kong.New(&cli)
	require.NoError(s, err)
	parsed, err := parser.Parse(append(args, s.stores...))
	if err != nil {
		return err
	}
	parsed.BindTo(s.Context(), (*context.Context)(nil))
	return parsed.Run(slog.New(slog.DiscardHandler))
}

func (s *shop) file(name, content string) string {
	s.Helper()
	path := filepath.Join(s.TempDir(), name)
	require.NoError(s, os.WriteFile(path, []byte(content), 0o600))
	return path
}

// key makes a key pair and registers it for an actor.
func (s *shop) key(actor string) string {
	s.Helper()
	_, private, err := ed25519.GenerateKey(rand.Reader)
	require.NoError(s, err)
	block, err := ssh.MarshalPrivateKey(private, "")
	require.NoError(s, err)
	signer, err := ssh.NewSignerFromKey(private)
	require.NoError(s, err)
	require.NoError(s, s.run("approver", "add", actor, s.file("key.pub", string(ssh.MarshalAuthorizedKey(signer.PublicKey())))))
	return s.file("key", string(pem.EncodeToMemory(block)))
}

func TestASignedLifeFromSubmissionToVerification(t *testing.T) {
	s := newShop(t)
	s.work()
	author, approver := s.key("user:lee"), s.key("user:kim")
	require.NoError(t, s.run("group", "add", "ops", "user:kim"))
	script := s.file("fix.sh", "#!/bin/sh\necho fixed\n")
	submit := []string{"artifact", "submit", "fix", script, "--reason=stuck", "--approver=group:ops", `--policy={"signed_decisions":true}`}
	require.NoError(t, s.run(append(submit, "--actor=user:lee", "--key="+author)...))
	require.NoError(t, s.run("artifact", "status", "fix"))
	target := Target{ID: "fix", Version: 1}
	status, err := query(t.Context(), s.temporal, target)
	require.NoError(t, err)
	require.NotEmpty(t, status.BundleHash, "what was submitted can be approved at once")
	require.ErrorContains(t, s.run(append(submit, "--actor=user:lee", "--version=2")...), "fix v2 was refused (Refused): assurance")

	require.ErrorIs(t, s.run("artifact", "approve", "fix", "--actor=user:kim", "--key="+approver), errUnsaid, "nobody said what")
	require.ErrorContains(t, s.run("artifact", "approve", "fix", "1", "--actor=user:kim", "--comment=a\u202eb", "--key="+approver), "control character")
	require.ErrorContains(t, s.run("artifact", "approve", "fix", "1", "--actor=user:kim"), "signed by the approver's own key")
	require.ErrorContains(t, s.run("artifact", "approve", "fix", "1", "--actor=user:kim", "--key="+author), "has no key")
	require.ErrorContains(t, s.run("artifact", "approve", "fix", "--yes", "--actor=user:lee", "--key="+author), "not_an_approver")
	require.ErrorContains(t, s.run("artifact", "approve", "fix", "--actor=user:kim", "--key="+approver, "--bundle-hash="+artifact.HashOf(nil)), "other_bundle_hash")
	require.NoError(t, s.run("artifact", "approve", "fix", "--actor=user:kim", "--key="+approver, "--bundle-hash="+status.BundleHash))
	require.ErrorContains(t, s.run("artifact", "status", "fix", "2"), "fix v2 was refused")

	var seen bytes.Buffer
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	quiet := func(context.Context) *workflows.Rollout { return nil }
	require.NoError(t, watcher{store: s.store, target: target, every: 50 * time.Millisecond, out: &seen, rollout: quiet}.watch(ctx))
	require.Contains(t, seen.String(), "executed")
	require.NoError(t, s.run("artifact", "verify", "fix"))
	require.NoError(t, s.run("artifact", "export", "fix"))
	require.NoError(t, s.run("artifact", "list", "--state=executed"))
	require.ErrorContains(t, s.run("artifact", "withdraw", "fix", "--actor=user:lee", "--key="+author), "wrong_state")
	require.NoError(t, s.run("artifact", "archive", "fix", "--actor=user:kim", "--key="+approver))
	require.NoError(t, s.run("artifact", "verify", "fix"))
	offline(t, s)
}

// offline checks the provenance document as somebody without the stores does.
func offline(t *testing.T, s *shop) {
	t.Helper()
	head, err := s.store.Head(t.Context(), "fix")
	require.NoError(t, err)
	document, err := s.store.ReadAll(t.Context(), storage.StoredFile{Key: storage.ProvenanceKey("fix"), ContentHash: head.ProvenanceHash}, 1<<20)
	require.NoError(t, err)
	s.stores = nil
	require.NoError(t, s.run("artifact", "verify", "--file="+s.file("good.json", string(document))))
	for name, tamper := range map[string]func(*storage.Dossier){
		"actor":     func(d *storage.Dossier) { d.Approvals[0].Actor = "user:lee" },
		"comment":   func(d *storage.Dossier) { d.Approvals[0].Comment = "never said" },
		"policy":    func(d *storage.Dossier) { d.Artifact.Spec.Policy.Required = 3 },
		"content":   func(d *storage.Dossier) { d.Artifact.Files[0].ContentHash = artifact.HashOf(nil) },
		"cut":       func(d *storage.Dossier) { d.Records = d.Records[:2] },
		"decisions": func(d *storage.Dossier) { d.Approvals = nil },
		"keys":      func(d *storage.Dossier) { d.Keys = nil },
	} {
		var changed storage.Document
		require.NoError(t, json.Unmarshal(document, &changed))
		tamper(&changed.Versions[0])
		body, err := json.Marshal(changed)
		require.NoError(t, err)
		require.Error(t, s.run("artifact", "verify", "--file="+s.file("bad.json", string(body))), name)
	}
	require.Error(t, s.run("artifact", "verify", "--file="+s.file("no.json", "no")))
	require.Error(t, s.run("artifact", "verify"))
}

func TestCommandsNameWhatIsWrong(t *testing.T) {
	s := newShop(t)
	script := s.file("fix.sh", "#!/bin/sh\n")
	submit := SubmitCommand{ID: "fix", File: script, Kind: "script", Args: "{}", Policy: "{}", Approver: []string{"user:kim"}, Actor: Actor{Actor: "user:lee"}, Timeout: time.Minute}
	for name, change := range map[string]func(*SubmitCommand){
		"artifact_id": func(c *SubmitCommand) { c.ID = "../x" },
		"author":      func(c *SubmitCommand) { c.Actor.Actor = "lee" },
		"--policy":    func(c *SubmitCommand) { c.Policy = "{" },
		"filename":    func(c *SubmitCommand) { c.File = s.file("metadata.json", "x") },
		"read key":    func(c *SubmitCommand) { c.Key = script },
	} {
		c := submit
		change(&c)
		_, err := c.request(t.Context(), s.store)
		require.ErrorContains(t, err, name)
	}
	r, err := submit.request(t.Context(), s.store)
	require.NoError(t, err)
	require.Equal(t, 1, r.Version)
	require.Equal(t, artifact.HashOf([]byte("#!/bin/sh\n")), r.Files[0].ContentHash)

	require.ErrorContains(t, list(t.Context(), s.store, "somewhere", 1, io.Discard), "--state")
	_, err = Target{ID: "none"}.resolve(t.Context(), s.store)
	require.ErrorIs(t, err, storage.ErrNotFound)
	_, err = s.store.Audit(t.Context(), "none", nil)
	require.ErrorIs(t, err, storage.ErrNotFound)
	require.ErrorIs(t, export(t.Context(), s.store, Target{ID: "none", Version: 1}, nil, io.Discard), storage.ErrNotFound)
	require.NoError(t, s.run("group", "add", "ops", "user:kim"))
	require.NoError(t, s.run("group", "list", "ops"))
	require.NoError(t, s.run("group", "remove", "ops", "user:kim"))
	key := s.key("user:kim")
	require.True(t, strings.HasSuffix(key, "key"))
	keys, err := s.store.KeysOf(t.Context(), "user:kim")
	require.NoError(t, err)
	require.NoError(t, s.run("approver", "revoke", "user:kim", keys[0].Fingerprint))
	require.NoError(t, s.run("approver", "list", "user:kim"))
	public := s.file("again.pub", keys[0].PublicKey)
	require.ErrorContains(t, s.run("approver", "add", "user:kim", public), "was revoked")
}
