package main

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/client"

	"millrace/domain/artifact"
	"millrace/edge/edgetest"
	"millrace/edge/jobs"
	"millrace/edge/simulator"
	"millrace/platform/mqtt"
	storage "millrace/storage/artifact"
	factories "millrace/storage/factory"
	"millrace/storage/storagetest"
	workflows "millrace/workflows/artifact"
	ingest "millrace/workflows/factory"
	"millrace/workflows/names"
)

// product is a worker for artifacts and telemetry, and a factory that publishes
// and takes jobs, on the real broker, rules, queues and stores.
type product struct {
	*testing.T
	factory  *edgetest.Factory
	temporal client.Client
	store    storage.Store
	states   factories.Store
	device   *jobs.Device
}

func newProduct(t *testing.T) *product {
	t.Helper()
	p := &product{T: t, factory: edgetest.New(t), temporal: ownNamespace(t)}
	governance, status := storagetest.Table(t, storagetest.Monitoring), storagetest.Table(t, storagetest.Factory)
	_, ruleErrors := storagetest.Queue(t)
	s, err := parse(t, "--queues=artifacts,telemetry", "--stop-timeout=10s", "--governance-table="+governance.Name, "--factory-status-table="+status.Name,
		"--data-bucket="+p.factory.Bucket.Name, "--telemetry-queue-url="+p.factory.QueueURL, "--rule-errors-queue-url="+ruleErrors,
		"--job-results-queue-url="+p.factory.JobResults(t).URL, "--factory-ids="+p.factory.ID)
	require.NoError(t, err)
	s.Artifacts.AllowUnverified, s.Artifacts.SearchAttributes = true, false
	clients, err := newClients(t.Context())
	require.NoError(t, err)
	d := dependencies{settings: s, clients: clients, temporal: p.temporal, registry: prometheus.NewRegistry(), logger: slog.New(slog.DiscardHandler)}
	d.alerting = newAlerting(d)
	p.store, p.states = artifactStore(d), factoryStore(d)
	h := newHost(p.temporal, s)
	registerFactory(h, d)
	registerArtifact(h, d)
	registerArtifactJobs(h, d)
	for _, w := range h.workers {
		require.NoError(t, w.Start())
	}
	t.Cleanup(h.stop)
	for _, loop := range []struct {
		id, queue, workflow string
		input               any
	}{
		{names.TelemetryIngestID(0), names.QueueTelemetry, names.TelemetryIngest, ingest.IngestInput{}},
		{names.JobResultDrainID, names.QueueArtifacts, names.JobResultDrain, workflows.JobResultInput{}},
	} {
		_, err := p.temporal.ExecuteWorkflow(t.Context(), client.StartWorkflowOptions{ID: loop.id, TaskQueue: loop.queue}, loop.workflow, loop.input)
		require.NoError(t, err)
	}
	p.live()
	return p
}

// live has the factory publish, ten times as fast as usual, and take jobs.
func (p *product) live() {
	p.Helper()
	memory, err := jobs.OpenMemory(p.TempDir() + "/jobs.json")
	require.NoError(p, err)
	quiet := slog.New(slog.DiscardHandler)
	line := &mqtt.Subscriber{
		Config: mqtt.Config{ClientID: "edge-jobs-" + p.factory.ID, Session: true, Broker: mqtt.Broker{
			Endpoint: p.factory.Endpoint, CAFile: p.factory.CAFile, CertFile: p.factory.CertFile, KeyFile: p.factory.KeyFile,
		}},
		Filter: artifact.JobFilter(p.factory.ID), MinDelay: 50 * time.Millisecond, Log: quiet,
	}
	p.device = jobs.NewDevice(p.factory.ID, memory, line, quiet)
	line.Take = p.device.Take
	generator, err := simulator.NewGenerator(simulator.Options{
		FactoryID: p.factory.ID, Profile: simulator.Profiles()["factory-a"], Seed: 1, InstanceID: "worker-test", Speed: 10,
		Scenario: simulator.ScenarioNormal, Adjustment: memory.Adjustment,
	})
	require.NoError(p, err)
	ctx, stop := context.WithCancel(p.Context())
	runner := simulator.NewRunner(generator, wire{ctx: ctx, factory: p.factory.ID, line: line}, quiet)
	var group sync.WaitGroup
	group.Go(func() { p.device.Run(ctx) })
	group.Go(func() { line.Run(ctx) })
	group.Go(func() { runner.Run(ctx) })
	p.Cleanup(func() { stop(); group.Wait() })
	require.Eventually(p, func() bool {
		latest, err := p.states.Latest(p.Context(), p.factory.ID)
		return err == nil && latest != nil && latest.FactoryState != nil && latest.InfraState != nil
	}, 30*time.Second, 100*time.Millisecond, "the factory is seen")
}

// wire is an outbox that publishes at once.
type wire struct {
	ctx     context.Context
	factory string
	line    *mqtt.Subscriber
}

// Write publishes a message of the id {factory}:{source type}:{node}:{time}.
func (w wire) Write(messageID string, body []byte) (string, bool, error) {
	topic := "aegis/" + w.factory + "/" + strings.Split(messageID, ":")[1]
	return topic, true, w.line.Publish(w.ctx, topic, body)
}

func (p *product) score() string {
	p.Helper()
	latest, err := p.states.Latest(p.Context(), p.factory.ID)
	require.NoError(p, err)
	return latest.Risk.Score.String()
}

// change starts the lifecycle of a job and approves it.
func (p *product) change(id, content string) {
	p.Helper()
	file := func(role artifact.Role, content string) artifact.File {
		return artifact.File{Role: role, Filename: "job.json", ContentBase64: base64.StdEncoding.EncodeToString([]byte(content))}
	}
	args, err := json.Marshal(map[string]any{"targets": []string{p.factory.ID}, "waves": []string{"rest"}, "gate": map[string]any{"within": "10s"}})
	require.NoError(p, err)
	_, err = p.temporal.ExecuteWorkflow(p.Context(), client.StartWorkflowOptions{ID: names.ArtifactLifecycleID(id, 1), TaskQueue: names.QueueArtifacts},
		names.ArtifactLifecycle, workflows.Input{Request: artifact.Request{
			ArtifactID: id, Version: 1, Author: "user:lee",
			Spec:  artifact.Spec{Kind: artifact.IoTJob, Args: args, Policy: artifact.Policy{Approvers: []string{"user:kim"}}},
			Files: []artifact.File{file(artifact.Primary, content), file(artifact.Rollback, `{"operation":"reset"}`)},
		}})
	require.NoError(p, err)
	var review workflows.Status
	require.Eventually(p, func() bool { review = p.status(id); return review.State == artifact.InReview }, 30*time.Second, 50*time.Millisecond)
	update, err := p.temporal.UpdateWorkflow(p.Context(), approval(review))
	require.NoError(p, err)
	require.NoError(p, update.Get(p.Context(), nil))
}

func (p *product) status(id string) workflows.Status {
	value, err := p.temporal.QueryWorkflow(p.Context(), names.ArtifactLifecycleID(id, 1), "", workflows.StatusQuery)
	if err != nil {
		return workflows.Status{}
	}
	var status workflows.Status
	require.NoError(p, value.Get(&status))
	return status
}

func (p *product) until(id string, state artifact.State) {
	p.Helper()
	require.Eventually(p, func() bool { return p.status(id).State == state }, time.Minute, 100*time.Millisecond, "%s wants to be %s", id, state)
}

// TestAChangeThatHarmsItsFactoryIsUndone ties the product together: a job makes
// the factory hot and humid, its telemetry tells so, the gate reads the score, and the
// rollback makes it as it was.
func TestAChangeThatHarmsItsFactoryIsUndone(t *testing.T) {
	p := newProduct(t)
	require.Equal(t, "100", p.score())
	p.change("harmless", `{"operation":"adjust","temperature_offset_c":"1"}`)
	p.until("harmless", artifact.Executed)
	require.Equal(t, simulator.Adjustment{Temperature: 1_00}, p.device.Memory.Adjustment())

	p.change("harmful", `{"operation":"adjust","temperature_offset_c":"14","humidity_offset_percent":"40"}`)
	p.until("harmful", artifact.Compensated)
	require.Zero(t, p.device.Memory.Adjustment())
	require.Eventually(t, func() bool { return p.score() == "100" }, 20*time.Second, 100*time.Millisecond, "all is well again")
	runs, err := p.store.Runs(t.Context(), "harmful", 1)
	require.NoError(t, err)
	require.Len(t, runs, 2)
	for _, run := range runs {
		require.Equal(t, storage.Succeeded, run.Status)
		require.Equal(t, p.factory.ID, run.FactoryID)
	}
	transitions, err := p.store.Transitions(t.Context(), "harmful", 1)
	require.NoError(t, err)
	require.Contains(t, transitions[len(transitions)-3].Reason+transitions[len(transitions)-2].Reason, "the score fell from 100 to 84")
	inOrder(t, p.store, "harmless", "harmful")
}
