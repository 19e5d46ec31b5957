// Package artifactcmd has the operator's commands for artifacts, the keys of
// approvers and groups.
package artifactcmd

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/prometheus/client_golang/prometheus"
	"go.temporal.io/sdk/client"
	"golang.org/x/crypto/ssh"

	"millrace/domain/artifact"
	"millrace/platform/awsconf"
	"millrace/platform/temporalconf"
	storage "millrace/storage/artifact"
	workflows "millrace/workflows/artifact"
	"millrace/workflows/names"
)

// Command has what can be done about artifacts.
type Command struct {
	Submit     SubmitCommand  `cmd:"" help:"Store content and start the lifecycle of a new version."`
	Approve    ApproveCommand `cmd:"" help:"Approve a version, signed with your key where one is named."`
	Reject     RejectCommand  `cmd:"" help:"Reject a version."`
	Withdraw   DoorCommand    `cmd:"" help:"Withdraw a version of your own."`
	Execute    DoorCommand    `cmd:"" help:"Run an approved version that does not run by itself."`
	Compensate DoorCommand    `cmd:"" help:"Undo a version with its rollback file."`
	Archive    DoorCommand    `cmd:"" help:"Archive a settled version now."`
	Show       ShowCommand    `cmd:"" help:"Show what is to be decided: who asks and why, files, policy, tally and what changes."`
	Diff       DiffCommand    `cmd:"" help:"Show what a version changes against the last executed one."`
	Status     StatusCommand  `cmd:"" help:"Show where a version is, its tally, runs and refusals."`
	Watch      WatchCommand   `cmd:"" help:"Show each change of a version until its outcome is known."`
	List       ListCommand    `cmd:"" help:"List versions by state."`
	Output     OutputCommand  `cmd:"" help:"Print what a run wrote, checked."`
	Verify     VerifyCommand  `cmd:"" help:"Check chains, content, decisions and signatures; with --file offline, from a provenance document."`
	Export     ExportCommand  `cmd:"" help:"Print the provenance of a version as in-toto statements, one a line, signed where a key is named."`
}

// Stores names the table and the bucket.
type Stores struct {
	GovernanceTable string `help:"Table of artifacts." default:"millrace-governance" env:"MILLRACE_GOVERNANCE_TABLE"`
	DataBucket      string `help:"Bucket of all objects." default:"millrace-data" env:"MILLRACE_DATA_BUCKET"`
	ArtifactBucket  string `help:"Bucket of artifacts; empty takes the one above." env:"MILLRACE_ARTIFACT_BUCKET"`
}

func (s Stores) store(ctx context.Context) (storage.Store, error) {
	cfg, err := awsconf.Load(ctx)
	if err != nil {
		return storage.Store{}, err
	}
	bucket := s.DataBucket
	if s.ArtifactBucket != "" {
		bucket = s.ArtifactBucket
	}
	objects := awsconf.NewS3(cfg)
	return storage.New(dynamodb.NewFromConfig(cfg), s.GovernanceTable, objects, bucket), nil
}

func dial(ctx context.Context, logger *slog.Logger) (client.Client, error) {
	return temporalconf.Dial(ctx, logger, prometheus.NewRegistry())
}

// open opens the store and connects to Temporal.
func (s Stores) open(ctx context.Context, logger *slog.Logger) (storage.Store, client.Client, error) {
	store, err := s.store(ctx)
	if err != nil {
		return store, nil, err
	}
	temporal, err := dial(ctx, logger)
	return store, temporal, err
}

// Target names a version.
type Target struct {
	ID      string `arg:"" help:"Id of the artifact."`
	Version int    `arg:"" optional:"" help:"Number of the version; by default the latest."`
}

func (t Target) resolve(ctx context.Context, store storage.Store) (Target, error) {
	if err := artifact.CheckID(t.ID); err != nil {
		return t, err
	}
	if t.Version != 0 {
		return t, artifact.CheckVersion(t.Version)
	}
	head, err := store.Head(ctx, t.ID)
	if err == nil && head.LatestVersion == 0 {
		err = fmt.Errorf("artifact %s: %w", t.ID, storage.ErrNotFound)
	}
	t.Version = head.LatestVersion
	return t, err
}

// Actor says who acts, and with which key.
type Actor struct {
	Actor string `help:"Who you are: user:NAME or app:ID." required:"" env:"MILLRACE_ACTOR"`
	Key   string `help:"OpenSSH private key that signs the command; without one nobody vouches for you." type:"existingfile" env:"MILLRACE_SIGNING_KEY_FILE" placeholder:"FILE"`
}

// sign signs a command where there is a key.
func (a Actor) sign(c artifact.Command, id string, version int) (artifact.Command, error) {
	if a.Key == "" {
		return c, nil
	}
	body, err := os.ReadFile(a.Key)
	if err != nil {
		return c, fmt.Errorf("read key: %w", err)
	}
	signer, err := ssh.ParsePrivateKey(body)
	if _, locked := errors.AsType[*ssh.PassphraseMissingError](err); locked {
		return c, errors.New("the key has a passphrase: sign with ssh-keygen -Y sign -n " + artifact.SignatureNamespace + " and send the command with the temporal command")
	}
	if err != nil {
		return c, fmt.Errorf("read key: %w", err)
	}
	c.Signature, err = artifact.Sign(signer, c, id, version)
	return c, err
}

// send sends a command through its door and waits for the answer.
func send(ctx context.Context, temporal client.Client, t Target, door string, c artifact.Command) (workflows.Status, error) {
	handle, err := temporal.UpdateWorkflow(ctx, client.UpdateWorkflowOptions{
		WorkflowID: names.ArtifactLifecycleID(t.ID, t.Version), UpdateName: door, WaitForStage: client.WorkflowUpdateStageCompleted,
		Args: []any{workflows.Command{Command: c}},
	})
	if err != nil {
		return workflows.Status{}, fmt.Errorf("%s %s v%d: %w", door, t.ID, t.Version, err)
	}
	var status workflows.Status
	if err := handle.Get(ctx, &status); err != nil {
		return workflows.Status{}, fmt.Errorf("%s %s v%d: %w", door, t.ID, t.Version, err)
	}
	return status, nil
}

func query(ctx context.Context, temporal client.Client, t Target) (workflows.Status, error) {
	var status workflows.Status
	value, err := temporal.QueryWorkflow(ctx, names.ArtifactLifecycleID(t.ID, t.Version), "", workflows.StatusQuery)
	if err == nil {
		err = value.Get(&status)
	}
	if err != nil {
		return status, fmt.Errorf("ask for the status of %s v%d: %w", t.ID, t.Version, err)
	}
	return status, nil
}

func printJSON(out io.Writer, document any) error {
	body, err := json.MarshalIndent(document, "", "  ")
	if err != nil {
		return fmt.Errorf("print: %w", err)
	}
	_, err = fmt.Fprintln(out, artifact.PrintableLines(string(body)))
	return err
}

// now is the time of a command; a time with nanoseconds is signed as it is.
func now() time.Time { return time.Now().UTC() }
