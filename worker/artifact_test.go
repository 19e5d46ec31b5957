package main

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"log/slog"
	"os/exec"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/aws-sdk-go-v2/service/s3/types"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/client"

	"millrace/domain/artifact"
	"millrace/platform/awsconf"
	storage "millrace/storage/artifact"
	"millrace/storage/storagetest"
	workflows "millrace/workflows/artifact"
	"millrace/workflows/names"
)

// plant is a whole worker for artifacts in a namespace and stores of its own.
type plant struct {
	testing.TB
	temporal client.Client
	store    storage.Store
	cli      string
	calls    *storagetest.Calls
}

func newPlant(t testing.TB) *plant {
	t.Helper()
	c := ownNamespace(t)
	tab, bucket := storagetest.Table(t, storagetest.Monitoring), storagetest.Bucket(t)
	s, err := parse(t, "--queues=artifacts,scripts", "--governance-table="+tab.Name, "--data-bucket="+bucket.Name, "--artifact-archive-after=24h")
	require.NoError(t, err)
	s.Artifacts.AllowUnverified, s.Artifacts.SearchAttributes = true, false
	clients, err := newClients(t.Context())
	require.NoError(t, err)
	calls := &storagetest.Calls{}
	watched := calls.Watch(clients.config)
	clients.dynamodb, clients.s3 = dynamodb.NewFromConfig(watched), awsconf.NewS3(watched)
	// The test's own store is not counted.
	own := storagetest.Config(t)
	p := &plant{calls: calls, TB: t, temporal: c, cli: temporalCLI(t), store: storage.New(dynamodb.NewFromConfig(own), tab.Name, awsconf.NewS3(own), bucket.Name)}
	d := dependencies{settings: s, clients: clients, temporal: c, registry: prometheus.NewRegistry(), logger: slog.New(slog.DiscardHandler)}
	d.alerting = newAlerting(d)
	h := newHost(c, s)
	registerArtifact(h, d)
	for _, w := range h.workers {
		require.NoError(t, w.Start())
		t.Cleanup(w.Stop)
	}
	return p
}

// run is the official CLI, as people use it.
func (p *plant) run(args ...string) (string, error) {
	p.Helper()
	out, err := exec.CommandContext(p.Context(), p.cli, args...).CombinedOutput()
	return string(out), err
}

func (p *plant) start(id string, version int, script string) {
	p.Helper()
	input := map[string]any{"request": map[string]any{
		"artifact_id": id, "version": version, "author": "user:lee", "reason": "the line is stuck",
		"spec":  map[string]any{"kind": "script", "policy": map[string]any{"approvers": []string{"user:kim", "user:park"}}},
		"files": []map[string]any{{"role": "primary", "filename": "fix.sh", "content_base64": base64.StdEncoding.EncodeToString([]byte(script))}},
	}}
	body, err := json.Marshal(input)
	require.NoError(p, err)
	out, err := p.run("workflow", "start", "--type", names.ArtifactLifecycle, "--task-queue", names.QueueArtifacts,
		"--workflow-id", names.ArtifactLifecycleID(id, version), "--id-reuse-policy", "RejectDuplicate", "--input", string(body))
	require.NoError(p, err, out)
}

func (p *plant) status(id string, version int) workflows.Status {
	p.Helper()
	value, err := p.temporal.QueryWorkflow(p.Context(), names.ArtifactLifecycleID(id, version), "", workflows.StatusQuery)
	require.NoError(p, err)
	var status workflows.Status
	require.NoError(p, value.Get(&status))
	return status
}

func (p *plant) await(id string, version int, state artifact.State) workflows.Status {
	p.Helper()
	var status workflows.Status
	require.Eventually(p, func() bool {
		status = p.status(id, version)
		return status.State == state
	}, 60*time.Second, 100*time.Millisecond, "wants to be %s", state)
	return status
}

// TestPeopleDriveArtifactsWithTheTemporalCLI is the documented session.
func TestPeopleDriveArtifactsWithTheTemporalCLI(t *testing.T) {
	p := newPlant(t)
	p.start("fix", 1, "#!/bin/sh\necho fixed\n")
	review := p.await("fix", 1, artifact.InReview)
	id := names.ArtifactLifecycleID("fix", 1)
	decide := func(command ...string) (string, error) {
		return p.run(append(append([]string{"workflow"}, command...), "--workflow-id", id, "--name", "decide", "--input",
			fmt.Sprintf(`{"actor":"user:lee","decision":"approve","bundle_hash":%q}`, review.BundleHash))...)
	}
	out, err := decide("update", "execute")
	require.Error(t, err)
	require.Contains(t, out, "not_an_approver")
	_, err = decide("signal")
	require.NoError(t, err)
	require.Eventually(t, func() bool { return p.status("fix", 1).Refused == 1 }, 10*time.Second, 50*time.Millisecond)
	out, err = p.run("workflow", "query", "--workflow-id", id, "--type", "status")
	require.NoError(t, err, out)
	require.Contains(t, out, "not_an_approver")

	out, err = p.run("workflow", "update", "execute", "--workflow-id", id, "--name", "decide", "--input",
		fmt.Sprintf(`{"actor":"user:kim","decision":"approve","comment":"looks right","bundle_hash":%q}`, review.BundleHash))
	require.NoError(t, err, out)
	status := p.await("fix", 1, artifact.Executed)
	run, err := p.store.Run(t.Context(), "fix", status.Runs[0].RunID)
	require.NoError(t, err)
	body, err := p.store.ReadAll(t.Context(), storage.StoredFile{Key: storage.RunKey(run.RunID, storage.StdoutFile), ContentHash: run.ContentHashes[storage.StdoutFile]}, 100)
	require.NoError(t, err)
	require.Equal(t, "fixed\n", string(body))

	out, err = p.run("workflow", "update", "execute", "--workflow-id", id, "--name", "archive", "--input", `{"actor":"user:kim"}`)
	require.NoError(t, err, out)
	p.await("fix", 1, artifact.Archived)
	dossier, err := p.store.Dossier(t.Context(), "fix", 1)
	require.NoError(t, err)
	_, err = artifact.VerifyChain(1, dossier.Records)
	require.NoError(t, err)
	require.Equal(t, artifact.Archived, dossier.Artifact.State)
	var states []artifact.State
	transitions, err := p.store.Transitions(t.Context(), "fix", 1)
	require.NoError(t, err)
	for _, transition := range transitions {
		states = append(states, transition.To)
	}
	require.Equal(t, []artifact.State{artifact.InReview, artifact.Approved, artifact.Executing, artifact.Executed, artifact.Archived}, states)
	inOrder(t, p.store, "fix")

	out, err = p.run("workflow", "start", "--type", names.ArtifactLifecycle, "--task-queue", names.QueueArtifacts,
		"--workflow-id", names.ArtifactLifecycleID("forged", 1), "--input", `{"request":{"artifact_id":"forged","version":1},"carry":{"state":"approved"}}`)
	require.NoError(t, err, out)
	require.ErrorContains(t, p.temporal.GetWorkflow(t.Context(), names.ArtifactLifecycleID("forged", 1), "").Get(t.Context(), nil), "carry")
}

func TestContentChangedAfterApprovalNeverRuns(t *testing.T) {
	p := newPlant(t)
	p.start("fix", 1, "#!/bin/sh\necho good\n")
	review := p.await("fix", 1, artifact.InReview)
	client := p.store.Client.(*s3.Client)
	versioning, err := client.GetBucketVersioning(t.Context(), &s3.GetBucketVersioningInput{Bucket: &p.store.Bucket})
	require.NoError(t, err)
	require.NotEqual(t, types.BucketVersioningStatusEnabled, versioning.Status, "without versions, content can be written over")
	key := storage.ContentKey("fix", 1, "fix.sh")
	_, err = client.PutObject(t.Context(), &s3.PutObjectInput{Bucket: &p.store.Bucket, Key: &key})
	require.NoError(t, err)
	update, err := p.temporal.UpdateWorkflow(t.Context(), approval(review))
	require.NoError(t, err)
	require.NoError(t, update.Get(t.Context(), nil))
	p.await("fix", 1, artifact.Failed)
	runs, err := p.store.Runs(t.Context(), "fix", 1)
	require.NoError(t, err)
	require.Empty(t, runs)
	transitions, err := p.store.Transitions(t.Context(), "fix", 1)
	require.NoError(t, err)
	require.Contains(t, transitions[len(transitions)-1].Reason, workflows.ErrIntegrity)
}

// TestALifecycleCostsSoManyRequests holds what is paid for: the requests of one
// script from submission to its outcome.
func TestALifecycleCostsSoManyRequests(t *testing.T) {
	p := newPlant(t)
	p.calls.Take()
	p.start("fix", 1, "#!/bin/sh\necho fixed\n")
	review := p.await("fix", 1, artifact.InReview)
	update, err := p.temporal.UpdateWorkflow(t.Context(), approval(review))
	require.NoError(t, err)
	require.NoError(t, update.Get(t.Context(), nil))
	p.await("fix", 1, artifact.Executed)
	require.Eventually(t, func() bool {
		head, err := p.store.Head(t.Context(), "fix")
		return err == nil && head.ProvenanceHash != ""
	}, 20*time.Second, 500*time.Millisecond)
	counts := p.calls.Take()
	t.Log(counts)
	require.Equal(t, 5, counts["TransactWriteItems"], "submitted, decided, approved, executing, executed")
	require.LessOrEqual(t, counts["PutObject"], 9, "content, spec, three snapshots of metadata, provenance, three files of the run")
	require.LessOrEqual(t, counts["GetObject"], 3, "content and spec verified once, and content read once to run")
	require.LessOrEqual(t, counts["Query"], 10)
	inOrder(t, p.store, "fix")
}

// updated sends a command by Update and waits for its answer.
func (p *plant) updated(v storage.Artifact, door string, c artifact.Command) {
	p.Helper()
	update, err := p.temporal.UpdateWorkflow(p.Context(), client.UpdateWorkflowOptions{
		WorkflowID: names.ArtifactLifecycleID(v.ArtifactID, v.Version), UpdateName: door, WaitForStage: client.WorkflowUpdateStageCompleted,
		Args: []any{workflows.Command{Command: c}},
	})
	require.NoError(p, err)
	require.NoError(p, update.Get(p.Context(), nil))
}

func approval(review workflows.Status) client.UpdateWorkflowOptions {
	return client.UpdateWorkflowOptions{
		WorkflowID: names.ArtifactLifecycleID(review.ArtifactID, review.Version), UpdateName: workflows.DoorDecide, WaitForStage: client.WorkflowUpdateStageCompleted,
		Args: []any{workflows.Command{Command: artifact.Command{Verb: artifact.Approve, Actor: "user:kim", BundleHash: review.BundleHash}}},
	}
}

func TestFloorsAreReadByKind(t *testing.T) {
	s, err := parse(t, "--queues=artifacts", `--artifact-floors={"script":{"required":2}}`)
	require.NoError(t, err)
	floors, err := s.Artifacts.floors()
	require.NoError(t, err)
	require.Equal(t, 2, floors[artifact.Script].Required)
	_, err = parse(t, "--queues=artifacts", `--artifact-floors={"magic":{}}`, "--artifact-archive-after=1s", "--gateway-public-keys=x", "--script-user=5", "--scripts-at-once=0", "--script-processes=0", "--script-cgroup=here")
	for _, variable := range []string{"MILLRACE_ARTIFACT_FLOORS", "MILLRACE_ARTIFACT_ARCHIVE_AFTER", "MILLRACE_GATEWAY_PUBLIC_KEYS", "MILLRACE_SCRIPT_USER", "MILLRACE_SCRIPTS_AT_ONCE", "MILLRACE_SCRIPT_PROCESSES", "MILLRACE_SCRIPT_CGROUP"} {
		require.ErrorContains(t, err, variable)
	}
}
