package main

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"log/slog"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/worker"
	"go.temporal.io/sdk/workflow"

	"millrace/domain/artifact"
	"millrace/edge/edgetest"
	"millrace/edge/jobs"
	"millrace/platform/mqtt"
	storage "millrace/storage/artifact"
	"millrace/storage/storagetest"
	workflows "millrace/workflows/artifact"
	"millrace/workflows/names"
)

// awaitJob sends a job and waits for its result, as a lifecycle does.
func awaitJob(ctx workflow.Context, r workflows.JobRequest) (workflows.JobResult, error) {
	ctx = workflow.WithActivityOptions(ctx, workflow.ActivityOptions{StartToCloseTimeout: 30 * time.Second})
	if err := workflow.ExecuteActivity(ctx, workflows.SendJobActivity, r).Get(ctx, nil); err != nil {
		return workflows.JobResult{}, err
	}
	var result workflows.JobResult
	workflow.GetSignalChannel(ctx, workflows.JobResultSignal).ReceiveWithTimeout(ctx, time.Minute, &result)
	return result, nil
}

// reach is a whole worker, a factory with its device, and a version for it.
type reach struct {
	*testing.T
	factory  *edgetest.Factory
	temporal client.Client
	store    storage.Store
	device   *jobs.Device
	request  workflows.JobRequest
}

func newReach(t *testing.T, change func(*settings)) *reach {
	t.Helper()
	r := &reach{T: t, factory: edgetest.New(t), temporal: ownNamespace(t)}
	tab, bucket := storagetest.Table(t, storagetest.Monitoring), storagetest.Bucket(t)
	s, err := parse(t, "--queues=artifacts", "--governance-table="+tab.Name, "--data-bucket="+bucket.Name, "--stop-timeout=10s",
		"--job-results-queue-url="+r.factory.JobResults(t).URL)
	require.NoError(t, err)
	s.Artifacts.AllowUnverified, s.Artifacts.SearchAttributes = true, false
	change(&s)
	clients, err := newClients(t.Context())
	require.NoError(t, err)
	r.store = storage.New(clients.dynamodb, tab.Name, clients.s3, bucket.Name)
	d := dependencies{settings: s, clients: clients, temporal: r.temporal, registry: prometheus.NewRegistry(), logger: slog.New(slog.DiscardHandler)}
	d.alerting = newAlerting(d)
	h := newHost(r.temporal, s)
	registerArtifact(h, d)
	registerArtifactJobs(h, d)
	h.on(names.QueueArtifacts, func(registry worker.Registry) {
		registry.RegisterWorkflowWithOptions(awaitJob, workflow.RegisterOptions{Name: "awaitJob"})
	})
	for _, w := range h.workers {
		require.NoError(t, w.Start())
	}
	t.Cleanup(h.stop)
	_, err = r.temporal.ExecuteWorkflow(t.Context(), client.StartWorkflowOptions{ID: names.JobResultDrainID, TaskQueue: names.QueueArtifacts}, names.JobResultDrain, workflows.JobResultInput{})
	require.NoError(t, err)
	r.submit()
	return r
}

// submit makes a draft whose file is the job.
func (r *reach) submit() {
	r.Helper()
	content := []byte(`{"operation":"adjust","temperature_offset_c":"12.5"}`)
	args, err := json.Marshal(map[string]any{"targets": []string{r.factory.ID}, "waves": []string{"rest"}})
	require.NoError(r, err)
	id := names.ArtifactLifecycleID("cool", 1)
	_, err = r.temporal.ExecuteWorkflow(r.Context(), client.StartWorkflowOptions{ID: id, TaskQueue: names.QueueArtifacts}, names.ArtifactLifecycle, workflows.Input{Request: artifact.Request{
		ArtifactID: "cool", Version: 1, Author: "user:lee", Draft: true,
		Spec:  artifact.Spec{Kind: artifact.IoTJob, Args: args, Policy: artifact.Policy{Approvers: []string{"user:kim"}}},
		Files: []artifact.File{{Role: artifact.Primary, Filename: "job.json", ContentBase64: base64.StdEncoding.EncodeToString(content)}},
	}})
	require.NoError(r, err)
	var v storage.Artifact
	require.Eventually(r, func() bool {
		v, err = r.store.Version(r.Context(), "cool", 1)
		return err == nil
	}, 30*time.Second, 50*time.Millisecond)
	r.request = workflows.JobRequest{
		VersionRef: workflows.VersionRef{ArtifactID: "cool", Version: 1}, RunID: artifact.NewRunID(time.Now(), r.factory.ID), Role: artifact.Primary,
		BundleHash: v.BundleHash, WorkflowID: "await-" + r.factory.ID, FactoryID: r.factory.ID,
	}
}

// connect lets the factory's device take jobs.
func (r *reach) connect() {
	r.Helper()
	memory, err := jobs.OpenMemory(filepath.Join(r.TempDir(), "jobs.json"))
	require.NoError(r, err)
	quiet := slog.New(slog.DiscardHandler)
	subscribed := make(chan struct{})
	line := &mqtt.Subscriber{
		Config: mqtt.Config{ClientID: "edge-jobs-" + r.factory.ID, Session: true, Broker: mqtt.Broker{
			Endpoint: r.factory.Endpoint, CAFile: r.factory.CAFile, CertFile: r.factory.CertFile, KeyFile: r.factory.KeyFile,
		}},
		Filter: artifact.JobFilter(r.factory.ID), Log: slog.New(onInfo{Handler: quiet.Handler(), once: sync.OnceFunc(func() { close(subscribed) })}),
	}
	r.device = jobs.NewDevice(r.factory.ID, memory, line, quiet)
	line.Take = r.device.Take
	ctx, stop := context.WithCancel(r.Context())
	var group sync.WaitGroup
	group.Go(func() { r.device.Run(ctx) })
	group.Go(func() { line.Run(ctx) })
	r.Cleanup(func() { stop(); group.Wait() })
	<-subscribed
}

// onInfo is a log handler that calls at the first line of the level info.
type onInfo struct {
	slog.Handler
	once func()
}

func (onInfo) Enabled(context.Context, slog.Level) bool { return true }

func (h onInfo) Handle(_ context.Context, record slog.Record) error {
	if record.Level == slog.LevelInfo {
		h.once()
	}
	return nil
}

func (r *reach) await() (workflows.JobResult, error) {
	r.Helper()
	run, err := r.temporal.ExecuteWorkflow(r.Context(), client.StartWorkflowOptions{ID: r.request.WorkflowID, TaskQueue: names.QueueArtifacts}, "awaitJob", r.request)
	require.NoError(r, err)
	var result workflows.JobResult
	return result, run.Get(r.Context(), &result)
}

// TestAJobGoesToTheDeviceAndItsReplyComesBack goes the whole way: activity, broker,
// device, rule, queue, drain, signal.
func TestAJobGoesToTheDeviceAndItsReplyComesBack(t *testing.T) {
	r := newReach(t, func(*settings) {})
	r.connect()
	began := time.Now()
	result, err := r.await()
	require.NoError(t, err)
	t.Logf("there and back in %s", time.Since(began))
	require.Equal(t, r.request.RunID, result.RunID)
	require.Equal(t, workflows.RunSucceeded, result.Status)
	require.Equal(t, r.factory.ID, result.FactoryID)
	require.WithinDuration(t, time.Now(), result.FinishedAt, time.Minute)
	require.Equal(t, "12.50", r.device.Memory.Adjustment().Temperature.String())

	run, err := r.store.Run(t.Context(), "cool", r.request.RunID)
	require.NoError(t, err)
	require.Equal(t, storage.Succeeded, run.Status)
	require.Equal(t, r.factory.ID, run.FactoryID)
	stdout, err := r.store.ReadAll(t.Context(), storage.StoredFile{
		Key: storage.RunKey(run.RunID, storage.StdoutFile), ContentHash: run.ContentHashes[storage.StdoutFile],
	}, 1000)
	require.NoError(t, err)
	require.Contains(t, string(stdout), "12.50")
}

func TestAWorkerWithoutABrokerStartsAndSaysWhyItSendsNothing(t *testing.T) {
	r := newReach(t, func(s *settings) { s.IoT.Endpoint = "" })
	_, err := r.await()
	var final *temporal.ApplicationError
	require.ErrorAs(t, err, &final)
	require.ErrorContains(t, err, "MILLRACE_IOT_ENDPOINT")
	require.True(t, final.NonRetryable())
}

func TestABrokerWithoutCertificatesIsRefusedAtTheStart(t *testing.T) {
	for _, variable := range []string{"MILLRACE_IOT_CA_FILE", "MILLRACE_IOT_CERT_FILE", "MILLRACE_IOT_KEY_FILE"} {
		t.Setenv(variable, "")
	}
	_, err := parse(t, "--queues=artifacts", "--iot-endpoint=broker.example.com")
	for _, variable := range []string{"MILLRACE_IOT_CA_FILE", "MILLRACE_IOT_CERT_FILE", "MILLRACE_IOT_KEY_FILE"} {
		require.ErrorContains(t, err, variable)
	}
}
