package main

import (
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/client"
	"golang.org/x/sync/errgroup"

	"millrace/domain/artifact"
	storage "millrace/storage/artifact"
	workflows "millrace/workflows/artifact"
	"millrace/workflows/names"
)

// begun starts a version of a script.
func (p *plant) begun(id string, version int, script string, change ...func(*artifact.Request)) {
	p.Helper()
	r := artifact.Request{
		ArtifactID: id, Version: version, Author: "user:lee", Reason: "one of many",
		Spec:  artifact.Spec{Kind: artifact.Script, Policy: artifact.Policy{Approvers: []string{"user:kim"}}},
		Files: []artifact.File{{Role: artifact.Primary, Filename: "run.sh", ContentBase64: encode(script)}},
	}
	for _, c := range change {
		c(&r)
	}
	_, err := p.temporal.ExecuteWorkflow(p.Context(), client.StartWorkflowOptions{
		ID: names.ArtifactLifecycleID(id, version), TaskQueue: names.QueueArtifacts,
	}, names.ArtifactLifecycle, workflows.Input{Request: r})
	require.NoError(p, err)
}

// reaches waits until a version has one of these states.
func (p *plant) reaches(id string, version int, states ...artifact.State) (storage.Artifact, error) {
	for deadline := time.Now().Add(5 * time.Minute); ; time.Sleep(500 * time.Millisecond) {
		v, err := p.store.Version(p.Context(), id, version)
		if err != nil && !errors.Is(err, storage.ErrNotFound) {
			return v, err
		}
		for _, state := range states {
			if err == nil && v.State == state {
				return v, nil
			}
		}
		if time.Now().After(deadline) {
			return v, fmt.Errorf("%s v%d is %s, not %v", id, version, v.State, states)
		}
	}
}

// decided approves by Signal what is in review.
func (p *plant) decided(v storage.Artifact) error {
	return p.temporal.SignalWorkflow(p.Context(), names.ArtifactLifecycleID(v.ArtifactID, v.Version), "", workflows.DoorDecide,
		workflows.Command{Command: artifact.Command{Verb: artifact.Approve, Actor: "user:kim", BundleHash: v.BundleHash}})
}

// sound asserts that a version's chain is whole and that it ran so often.
func (p *plant) sound(id string, version, runs int) storage.Dossier {
	p.Helper()
	d, err := p.store.Dossier(p.Context(), id, version)
	require.NoError(p, err)
	end, err := artifact.VerifyChain(version, d.Records)
	require.NoError(p, err, "%s v%d", id, version)
	require.Equal(p, artifact.Chain{Length: d.Artifact.ChainLength, Last: d.Artifact.ChainLast}, end)
	require.Len(p, d.Runs, runs, "%s v%d", id, version)
	return d
}

// TestTwoHundredLifecyclesAtOnce has 160 artifacts with one version and 20 with
// two versions that are approved at the same moment.
func TestTwoHundredLifecyclesAtOnce(t *testing.T) {
	p := newPlant(t)
	const single, twin = 160, 20
	began := time.Now()
	for n := range single {
		p.begun(fmt.Sprintf("one-%d", n), 1, "#!/bin/sh\n")
	}
	for n := range twin {
		p.begun(fmt.Sprintf("two-%d", n), 1, "#!/bin/sh\n")
	}
	var work errgroup.Group
	for n := range single {
		work.Go(func() error {
			id := fmt.Sprintf("one-%d", n)
			v, err := p.reaches(id, 1, artifact.InReview)
			if err == nil {
				err = p.decided(v)
			}
			if err == nil {
				_, err = p.reaches(id, 1, artifact.Executed)
			}
			return err
		})
	}
	for n := range twin {
		work.Go(func() error { return p.twins(fmt.Sprintf("two-%d", n)) })
	}
	require.NoError(t, work.Wait())
	t.Logf("%d lifecycles took %s", single+2*twin, time.Since(began))
	for n := range single {
		p.sound(fmt.Sprintf("one-%d", n), 1, 1)
	}
	for n := range twin {
		p.alone(fmt.Sprintf("two-%d", n))
	}
}

// twins approves two versions of an artifact at the same moment and waits until
// both are settled.
func (p *plant) twins(id string) error {
	first, err := p.reaches(id, 1, artifact.InReview)
	if err != nil {
		return err
	}
	p.begun(id, 2, "#!/bin/sh\n")
	second, err := p.reaches(id, 2, artifact.InReview)
	if err != nil {
		return err
	}
	var both errgroup.Group
	var start sync.WaitGroup
	start.Add(1)
	for _, v := range []storage.Artifact{first, second} {
		both.Go(func() error { start.Wait(); return p.decided(v) })
	}
	start.Done()
	if err := both.Wait(); err != nil {
		return err
	}
	if _, err := p.reaches(id, 2, artifact.Executed); err != nil {
		return fmt.Errorf("nothing may stop the newer one: %w", err)
	}
	_, err = p.reaches(id, 1, artifact.Superseded, artifact.Executed)
	return err
}

// alone asserts that the older of two versions ran before the newer one or not
// at all, and that HEAD is free.
func (p *plant) alone(id string) {
	p.Helper()
	newer := p.sound(id, 2, 1)
	v, err := p.store.Version(p.Context(), id, 1)
	require.NoError(p, err)
	if v.State == artifact.Superseded {
		p.sound(id, 1, 0)
	} else {
		older := p.sound(id, 1, 1)
		require.False(p, older.Runs[0].FinishedAt.After(newer.Runs[0].StartedAt), "%s: beside each other", id)
	}
	head, err := p.store.Head(p.Context(), id)
	require.NoError(p, err)
	require.Equal(p, 2, head.ApprovedVersion)
	require.Empty(p, head.ExecutingRun)
}
