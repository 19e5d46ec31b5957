package artifact

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.temporal.io/api/enums/v1"

	"millrace/domain/artifact"
	"millrace/workflows/historytest"
	"millrace/workflows/names"
)

// TestFreshHistoriesOfRolloutsReplay has jobs rolled out on a real server and
// replays what was done there. With -record the histories are kept for
// TestRecordedHistoriesReplay.
func TestFreshHistoriesOfRolloutsReplay(t *testing.T) {
	c, d := server(t), newDesk()
	events := map[string]int{}
	host(t, c, d)
	for _, name := range []string{"in_waves", "gate_closed"} {
		id := names.ArtifactLifecycleID(name, 1)
		d.plants = newPlants(time.Now, func(after time.Duration, r JobResult) {
			time.AfterFunc(after/10, func() {
				d.plants.answered()
				_ = c.SignalWorkflow(context.Background(), id, "", JobResultSignal, r) // one that is lost fails the test by its deadline
			})
		}, four[:3]...)
		want := artifact.Executed
		if name == "gate_closed" {
			d.plants.byID["plant-2"].sick, want = "20", artifact.Compensated
		}
		args := inThree(four[:3]...)
		args.Waves, args.Pause, args.Gate.Within = []artifact.Wave{1, 1, artifact.Rest}, artifact.Duration(time.Second), artifact.Duration(10*time.Second)
		_, bundle := begin(t, c, jobRequest(args, func(r *artifact.Request) { r.ArtifactID = name }))
		require.NoError(t, say(t.Context(), c, id, DoorDecide, artifact.Command{Verb: artifact.Approve, Actor: "user:a", BundleHash: bundle}))
		until(t, c, id, want)
		h := historytest.Of(t, c, id, "")
		for _, e := range h.Events {
			require.NotEqual(t, enums.EVENT_TYPE_WORKFLOW_TASK_FAILED, e.EventType)
		}
		events[name] = len(h.Events)
		t.Logf("%s has %d events", name, len(h.Events))
		require.NoError(t, replay(h, id), name)
		historytest.Save(t, name, h)
	}
	require.LessOrEqual(t, events["in_waves"], 200, "history events are paid for")
	require.LessOrEqual(t, events["gate_closed"], 220, "history events are paid for")
}
