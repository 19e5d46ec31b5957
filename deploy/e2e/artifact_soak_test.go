//go:build soak

package e2e

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/stretchr/testify/require"
	"go.temporal.io/api/serviceerror"
	"go.temporal.io/sdk/client"
	"golang.org/x/sync/errgroup"

	"millrace/domain/artifact"
	"millrace/platform/awsconf"
	storage "millrace/storage/artifact"
	"millrace/storage/storagetest"
	workflows "millrace/workflows/artifact"
	"millrace/workflows/historytest"
	"millrace/workflows/names"
)

// workshop is the product as far as artifacts need it, on the local stand-ins.
type workshop struct {
	t        *testing.T
	temporal client.Client
	store    storage.Store
	workers  map[string]*process
	// notes is where each script says that it ran.
	notes string
}

func newWorkshop(t *testing.T) *workshop {
	t.Helper()
	run(t, "starter", "provision", "--create", "--no-streams")
	c, err := client.Dial(historytest.Options(t))
	require.NoError(t, err)
	t.Cleanup(c.Close)
	cfg := storagetest.Config(t)
	w := &workshop{
		t: t, temporal: c, notes: t.TempDir(), workers: map[string]*process{},
		store: storage.New(dynamodb.NewFromConfig(cfg), "millrace-governance", awsconf.NewS3(cfg), "millrace-data"),
	}
	for _, queue := range []string{names.QueueArtifacts, names.QueueScripts} {
		env := []string{"MILLRACE_ARTIFACT_ALLOW_UNVERIFIED=true", "MILLRACE_METRICS_ADDRESS=" + freeAddress(t)}
		w.workers[queue] = start(t, env, "worker", "--queues="+queue)
	}
	return w
}

// TestSoakArtifacts takes a thousand lifecycles from submission to their outcome
// while the workers, Temporal, DynamoDB and S3 are killed one after the other.
// Afterwards each has an outcome, one run at most, each transition once and a
// whole chain; whatever was executed ran exactly once.
func TestSoakArtifacts(t *testing.T) {
	w := newWorkshop(t)
	const lifecycles, together = 1000, 60
	ctx, stop := context.WithCancel(t.Context())
	var killing sync.WaitGroup
	killing.Go(func() { w.killEverything(ctx) })
	began := time.Now()
	var work errgroup.Group
	work.SetLimit(together)
	for n := range lifecycles {
		work.Go(func() error { return w.live(t.Context(), soakID(n)) })
	}
	require.NoError(t, work.Wait())
	stop()
	killing.Wait()
	t.Logf("%d lifecycles took %s", lifecycles, time.Since(began))
	outcomes := map[string]int{}
	for n := range lifecycles {
		outcomes[w.outcome(soakID(n))]++
	}
	t.Log(outcomes)
	require.Greater(t, outcomes[string(artifact.Executed)], lifecycles*9/10)
}

func soakID(n int) string { return fmt.Sprintf("soak-%04d", n) }

// killEverything is kill -9 of one part after the other until ctx ends.
func (w *workshop) killEverything(ctx context.Context) {
	for round := 0; ; round++ {
		for _, part := range []string{names.QueueArtifacts, "dynamodb", names.QueueScripts, "temporal", "s3"} {
			select {
			case <-ctx.Done():
				return
			case <-time.After(20 * time.Second):
			}
			w.t.Logf("round %d: kill -9 %s", round, part)
			if worker, ok := w.workers[part]; ok {
				worker.stop(syscall.SIGKILL)
				worker.start()
				continue
			}
			control(w.t, "/kill/"+part, nil)
		}
	}
}

// live takes one lifecycle from submission to its outcome. What fails because a
// part is down is tried again.
func (w *workshop) live(ctx context.Context, id string) error {
	ctx, cancel := context.WithTimeout(ctx, 10*time.Minute)
	defer cancel()
	script := fmt.Sprintf("#!/bin/sh\necho ran >> %s\n", filepath.Join(w.notes, id))
	request := artifact.Request{
		ArtifactID: id, Version: 1, Author: "user:soak", Reason: "one of a thousand",
		Spec:  artifact.Spec{Kind: artifact.Script, Policy: artifact.Policy{Approvers: []string{"user:kim"}}},
		Files: []artifact.File{{Role: artifact.Primary, Filename: "run.sh", ContentBase64: base64.StdEncoding.EncodeToString([]byte(script))}},
	}
	workflow := names.ArtifactLifecycleID(id, 1)
	err := again(ctx, func() error {
		_, err := w.temporal.ExecuteWorkflow(ctx, client.StartWorkflowOptions{ID: workflow, TaskQueue: names.QueueArtifacts}, names.ArtifactLifecycle, workflows.Input{Request: request})
		if _, started := errors.AsType[*serviceerror.WorkflowExecutionAlreadyStarted](err); started {
			return nil
		}
		return err
	})
	if err != nil {
		return fmt.Errorf("start %s: %w", id, err)
	}
	var v storage.Artifact
	if v, err = w.reaches(ctx, id, artifact.InReview); err != nil {
		return err
	}
	decision := artifact.Command{Verb: artifact.Approve, Actor: "user:kim", BundleHash: v.BundleHash, At: v.CreatedAt.Add(time.Millisecond)}
	err = again(ctx, func() error {
		return w.temporal.SignalWorkflow(ctx, workflow, "", workflows.DoorDecide, workflows.Command{Command: decision})
	})
	if err != nil {
		return fmt.Errorf("approve %s: %w", id, err)
	}
	_, err = w.reaches(ctx, id, artifact.Executed, artifact.Failed)
	return err
}

// again tries until it succeeds or ctx ends.
func again(ctx context.Context, f func() error) error {
	for {
		err := f()
		if err == nil {
			return nil
		}
		select {
		case <-ctx.Done():
			return errors.Join(err, ctx.Err())
		case <-time.After(time.Second):
		}
	}
}

func (w *workshop) reaches(ctx context.Context, id string, states ...artifact.State) (storage.Artifact, error) {
	var v storage.Artifact
	err := again(ctx, func() error {
		var err error
		if v, err = w.store.Version(ctx, id, 1); err != nil {
			return err
		}
		if slices.Contains(states, v.State) {
			return nil
		}
		return fmt.Errorf("%s is %s, not %v", id, v.State, states)
	})
	return v, err
}

// outcome checks everything that is known of a lifecycle and names its end.
func (w *workshop) outcome(id string) string {
	w.t.Helper()
	d, err := w.store.Dossier(w.t.Context(), id, 1)
	require.NoError(w.t, err)
	end, err := artifact.VerifyChain(1, d.Records)
	require.NoError(w.t, err, id)
	require.Equal(w.t, artifact.Chain{Length: d.Artifact.ChainLength, Last: d.Artifact.ChainLast}, end, id)
	transitions, err := w.store.Transitions(w.t.Context(), id, 1)
	require.NoError(w.t, err)
	var states []artifact.State
	for _, transition := range transitions {
		states = append(states, transition.To)
	}
	require.Equal(w.t, []artifact.State{artifact.InReview, artifact.Approved, artifact.Executing, d.Artifact.State}, states, id)
	require.Len(w.t, d.Approvals, 1, id)
	ran, _ := os.ReadFile(filepath.Join(w.notes, id)) // none means that it never ran
	times := strings.Count(string(ran), "ran")
	require.LessOrEqual(w.t, times, 1, "%s ran more than once", id)
	require.LessOrEqual(w.t, len(d.Runs), 1, id)
	if d.Artifact.State == artifact.Executed {
		require.Equal(w.t, 1, times, id)
		require.Equal(w.t, storage.Succeeded, d.Runs[0].Status, id)
		return string(artifact.Executed)
	}
	require.Equal(w.t, artifact.Failed, d.Artifact.State, id)
	if len(d.Runs) == 0 || d.Runs[0].Status == storage.NeverBegan {
		require.Zero(w.t, times, "%s ran without an item", id)
		return "failed: never began"
	}
	return "failed: " + string(d.Runs[0].Status)
}
