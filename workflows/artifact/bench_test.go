package artifact

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/client"

	"millrace/domain/artifact"
	"millrace/workflows/historytest"
	"millrace/workflows/names"
)

// BenchmarkLifecycle has one lifecycle after the other submitted, approved by
// Update and run on a real server; activities only answer. It reports what the
// Update took and how many history events a lifecycle has.
func BenchmarkLifecycle(b *testing.B) {
	c, d := server(b), newDesk()
	host(b, c, d)
	var updates []time.Duration
	last := ""
	b.ResetTimer()
	for n := range b.N {
		r := request(func(r *artifact.Request) { r.ArtifactID = fmt.Sprintf("bench-%d", n) })
		id, bundle := begin(b, c, r)
		began := time.Now()
		require.NoError(b, say(b.Context(), c, id, DoorDecide, artifact.Command{Verb: artifact.Approve, Actor: "user:a", BundleHash: bundle}))
		updates = append(updates, time.Since(began))
		until(b, c, id, artifact.Executed)
		last = id
	}
	b.StopTimer()
	slices.Sort(updates)
	b.ReportMetric(float64(updates[len(updates)/2].Milliseconds()), "update-p50-ms")
	b.ReportMetric(float64(updates[len(updates)*99/100].Milliseconds()), "update-p99-ms")
	b.ReportMetric(float64(len(historytest.Of(b, c, last, "").Events)), "events/op")
}

// BenchmarkLifecyclesTogether has 50 lifecycles under way at a time.
func BenchmarkLifecyclesTogether(b *testing.B) {
	c, d := server(b), newDesk()
	host(b, c, d)
	const together = 50
	b.ResetTimer()
	for round := range b.N {
		ids := make([]string, together)
		for n := range together {
			r := request(func(r *artifact.Request) { r.ArtifactID = fmt.Sprintf("bench-%d-%d", round, n) })
			ids[n] = names.ArtifactLifecycleID(r.ArtifactID, 1)
			_, err := c.ExecuteWorkflow(b.Context(), client.StartWorkflowOptions{ID: ids[n], TaskQueue: names.QueueArtifacts}, names.ArtifactLifecycle, Input{Request: r})
			require.NoError(b, err)
		}
		for _, id := range ids {
			bundle := until(b, c, id, artifact.InReview).BundleHash
			require.NoError(b, c.SignalWorkflow(b.Context(), id, "", DoorDecide, Command{Command: artifact.Command{Verb: artifact.Approve, Actor: "user:a", BundleHash: bundle}}))
		}
		for _, id := range ids {
			until(b, c, id, artifact.Executed)
		}
	}
	b.ReportMetric(float64(b.N*together)/b.Elapsed().Seconds(), "lifecycles/s")
}
