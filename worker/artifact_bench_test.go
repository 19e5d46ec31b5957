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

// BenchmarkArtifacts measures whole lifecycles of a script, from submission until
// archived, on a real server and real stores: what an Update that decides takes,
// and what a lifecycle costs of Temporal, DynamoDB and S3.
func BenchmarkArtifacts(b *testing.B) {
	p := newPlant(b)
	var updates []time.Duration
	var actions, events int
	p.calls.Take()
	b.ResetTimer()
	for n := range b.N {
		id := fmt.Sprintf("bench-%d", n)
		p.begun(id, 1, "#!/bin/sh\n")
		v, err := p.reaches(id, 1, artifact.InReview)
		require.NoError(b, err)
		began := time.Now()
		p.updated(v, workflows.DoorDecide, artifact.Command{Verb: artifact.Approve, Actor: "user:kim", BundleHash: v.BundleHash})
		updates = append(updates, time.Since(began))
		_, err = p.reaches(id, 1, artifact.Executed)
		require.NoError(b, err)
		p.updated(v, workflows.DoorArchive, artifact.Command{Verb: artifact.ArchiveNow, Actor: "user:kim", BundleHash: v.BundleHash})
		require.NoError(b, p.temporal.GetWorkflow(b.Context(), names.ArtifactLifecycleID(id, 1), "").Get(b.Context(), nil))
		past := historytest.Of(b, p.temporal, names.ArtifactLifecycleID(id, 1), "")
		actions, events = actions+actionsOf(past), events+len(past.Events)
	}
	b.StopTimer()
	slices.Sort(updates)
	b.ReportMetric(float64(updates[len(updates)/2].Microseconds())/1000, "update-p50-ms")
	b.ReportMetric(float64(updates[len(updates)*99/100].Microseconds())/1000, "update-p99-ms")
	b.ReportMetric(float64(actions)/float64(b.N), "actions/op")
	b.ReportMetric(float64(events)/float64(b.N), "events/op")
	requests(b, p.calls.Take())
}

// requests reports how many go to each store.
func requests(b *testing.B, counts map[string]int) {
	b.Helper()
	var dynamodb, s3 int
	for operation, n := range counts {
		if strings.Contains(operation, "Object") {
			s3 += n
		} else {
			dynamodb += n
		}
	}
	b.Logf("%d lifecycles: %v", b.N, counts)
	b.ReportMetric(float64(dynamodb)/float64(b.N), "dynamodb/op")
	b.ReportMetric(float64(s3)/float64(b.N), "s3/op")
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

// BenchmarkArtifactsTogether has 100 lifecycles under way at a time, decided by
// Signals, until they are executed.
func BenchmarkArtifactsTogether(b *testing.B) {
	p := newPlant(b)
	const together = 100
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
