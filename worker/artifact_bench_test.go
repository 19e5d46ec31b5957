package main

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.temporal.io/api/enums/v1"
	"go.temporal.io/api/history/v1"
	"golang.org/x/sync/errgroup"

	"millrace/domain/artifact"
	workflows "millrace/workflows/artifact"
	"millrace/workflows/historytest"
	"millrace/workflows/names"
)

// BenchmarkArtifacts takes a hundred scripts, one after the other, from submission
// until they are archived, on a real server and real stores. It tells what an
// Update that decides takes, and what a lifecycle costs of Temporal, DynamoDB and
// S3.
func BenchmarkArtifacts(b *testing.B) {
	const lives = 100
	p := newPlant(b)
	var spent spending
	p.calls.Take()
	b.ResetTimer()
	for round := range b.N {
		for n := range lives {
			spent.add(p, fmt.Sprintf("bench-%d-%d", round, n))
		}
	}
	b.StopTimer()
	spent.report(b, p.calls.Take())
}

// spending is what lifecycles took.
type spending struct {
	updates         []time.Duration
	actions, events int
}

// add lives one lifecycle.
func (s *spending) add(p *plant, id string) {
	p.Helper()
	p.begun(id, 1, "#!/bin/sh\n")
	v, err := p.reaches(id, 1, artifact.InReview)
	require.NoError(p, err)
	command := artifact.Command{Verb: artifact.Approve, Actor: "user:kim", BundleHash: v.BundleHash}
	began := time.Now()
	p.updated(v, workflows.DoorDecide, command)
	s.updates = append(s.updates, time.Since(began))
	_, err = p.reaches(id, 1, artifact.Executed)
	require.NoError(p, err)
	command.Verb = artifact.ArchiveNow
	p.updated(v, workflows.DoorArchive, command)
	workflow := names.ArtifactLifecycleID(id, 1)
	require.NoError(p, p.temporal.GetWorkflow(p.Context(), workflow, "").Get(p.Context(), nil))
	past := historytest.Of(p, p.temporal, workflow, "")
	s.actions, s.events = s.actions+actionsOf(past), s.events+len(past.Events)
}

// report reports for one lifecycle.
func (s *spending) report(b *testing.B, calls map[string]int) {
	b.Helper()
	slices.Sort(s.updates)
	lives := len(s.updates)
	b.ReportMetric(float64(s.updates[lives/2].Microseconds())/1000, "update-p50-ms")
	b.ReportMetric(float64(s.updates[lives*99/100].Microseconds())/1000, "update-p99-ms")
	b.ReportMetric(float64(s.actions)/float64(lives), "actions/life")
	b.ReportMetric(float64(s.events)/float64(lives), "events/life")
	dynamodb, s3 := 0, 0
	for operation, n := range calls {
		if strings.Contains(operation, "Object") {
			s3 += n
		} else {
			dynamodb += n
		}
	}
	b.Logf("%d lifecycles: %v", lives, calls)
	b.ReportMetric(float64(dynamodb)/float64(lives), "dynamodb/life")
	b.ReportMetric(float64(s3)/float64(lives), "s3/life")
}

// actionsOf counts what Temporal Cloud bills of a history: start, timers,
// signals, accepted updates, attempts of activities, side effects, upserts of
// search attributes, and local activities, where those of one workflow task are
// one (docs.temporal.io/cloud/actions). Queries and heartbeats come on top.
func actionsOf(past *history.History) int {
	var n int
	tasks := map[int64]bool{}
	for _, e := range past.Events {
		switch e.EventType {
		case enums.EVENT_TYPE_WORKFLOW_EXECUTION_STARTED, enums.EVENT_TYPE_TIMER_STARTED, enums.EVENT_TYPE_WORKFLOW_EXECUTION_SIGNALED,
			enums.EVENT_TYPE_WORKFLOW_EXECUTION_UPDATE_ACCEPTED, enums.EVENT_TYPE_UPSERT_WORKFLOW_SEARCH_ATTRIBUTES:
			n++
		case enums.EVENT_TYPE_ACTIVITY_TASK_STARTED:
			n += int(e.GetActivityTaskStartedEventAttributes().Attempt)
		case enums.EVENT_TYPE_MARKER_RECORDED:
			marker := e.GetMarkerRecordedEventAttributes()
			if task := marker.WorkflowTaskCompletedEventId; marker.MarkerName != "LocalActivity" || !tasks[task] {
				n++
				tasks[task] = tasks[task] || marker.MarkerName == "LocalActivity"
			}
		}
	}
	return n
}

// BenchmarkArtifactsTogether takes two hundred scripts from submission until they
// are executed, all at once, decided by Signals.
func BenchmarkArtifactsTogether(b *testing.B) {
	const together = 200
	p := newPlant(b)
	b.ResetTimer()
	for round := range b.N {
		var work errgroup.Group
		for n := range together {
			id := fmt.Sprintf("bench-%d-%d", round, n)
			p.begun(id, 1, "#!/bin/sh\n")
			work.Go(func() error {
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
		require.NoError(b, work.Wait())
	}
	b.ReportMetric(float64(b.N*together)/b.Elapsed().Seconds(), "lifecycles/s")
}
