package schedules

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.temporal.io/api/enums/v1"
	"go.temporal.io/api/serviceerror"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/contrib/envconfig"

	"millrace/workflows/names"
)

func dial(t *testing.T) client.Client {
	t.Helper()
	require.NotEmpty(t, os.Getenv("TEMPORAL_ADDRESS"), "no Temporal server: run make test, or bin/local exec -- go test")
	options, err := envconfig.LoadDefaultClientOptions()
	require.NoError(t, err)
	c, err := client.Dial(options)
	require.NoError(t, err)
	t.Cleanup(c.Close)
	return c
}

// own are the definitions under ids of this test alone.
func own(t *testing.T, c client.Client) []Definition {
	t.Helper()
	definitions := Definitions()
	for i := range definitions {
		definitions[i].ID = fmt.Sprintf("%s-test-%d", definitions[i].ID, time.Now().UnixNano())
		t.Cleanup(func() {
			err := c.ScheduleClient().GetHandle(context.Background(), definitions[i].ID).Delete(context.Background())
			var gone *serviceerror.NotFound
			require.True(t, err == nil || errors.As(err, &gone), "delete schedule: %v", err)
		})
	}
	return definitions
}

func apply(t *testing.T, c client.Client, definitions []Definition) string {
	t.Helper()
	var out bytes.Buffer
	require.NoError(t, Apply(t.Context(), c.ScheduleClient(), definitions, &out))
	return out.String()
}

func TestApplyingTwiceChangesNothing(t *testing.T) {
	c := dial(t)
	definitions := own(t, c)
	for _, want := range []string{"created", "unchanged", "unchanged"} {
		out := apply(t, c, definitions)
		for _, d := range definitions {
			require.Contains(t, out, d.ID+" "+want+"\n")
		}
	}
	for _, d := range definitions {
		description, err := c.ScheduleClient().GetHandle(t.Context(), d.ID).Describe(t.Context())
		require.NoError(t, err)
		action := description.Schedule.Action.(*client.ScheduleWorkflowAction)
		require.Equal(t, names.QueueScheduled, action.TaskQueue)
		require.Equal(t, d.ID, action.ID)
		require.Equal(t, d.Overlap, description.Schedule.Policy.Overlap)
		require.Equal(t, d.CatchUp, description.Schedule.Policy.CatchupWindow)
		require.Equal(t, d.Summary, description.Schedule.State.Note)
		require.Contains(t, string(description.Memo.GetFields()["purpose"].GetData()), d.Summary)
		require.False(t, description.Schedule.State.Paused)
		require.Equal(t, d.Offset, time.Duration(description.Info.NextActionTimes[0].UnixNano())%d.Every)
	}
}

func TestWhatDiffersIsChangedAndNamed(t *testing.T) {
	c := dial(t)
	definitions := own(t, c)[:2]
	apply(t, c, definitions)
	definitions[1].Every = 10 * time.Minute
	definitions[1].CatchUp = 2 * time.Hour
	definitions[1].Overlap = enums.SCHEDULE_OVERLAP_POLICY_SKIP
	definitions[1].Input = map[string]int{"lookback_buckets": 3}
	out := apply(t, c, definitions)
	require.Contains(t, out, definitions[0].ID+" unchanged\n")
	require.Contains(t, out, definitions[1].ID+` changed: catch-up window "1h0m0s" -> "2h0m0s", input [{}] -> [{"lookback_buckets":3}], `+
		`interval ["5m0s+2m0s"] -> ["10m0s+2m0s"], overlap "BufferOne" -> "Skip"`+"\n")
	require.Contains(t, apply(t, c, definitions), definitions[1].ID+" unchanged\n")
}

func TestAPauseStays(t *testing.T) {
	c := dial(t)
	definitions := own(t, c)[:1]
	apply(t, c, definitions)
	handle := c.ScheduleClient().GetHandle(t.Context(), definitions[0].ID)
	require.NoError(t, handle.Pause(t.Context(), client.SchedulePauseOptions{Note: "table is being moved"}))
	require.Contains(t, apply(t, c, definitions), "unchanged (paused: table is being moved)")
	definitions[0].Every = 2 * time.Minute
	require.Contains(t, apply(t, c, definitions), "changed: interval")
	description, err := handle.Describe(t.Context())
	require.NoError(t, err)
	require.True(t, description.Schedule.State.Paused)
	require.Equal(t, "table is being moved", description.Schedule.State.Note)
}

func TestOtherHandsAreUndone(t *testing.T) {
	c := dial(t)
	definitions := own(t, c)[1:2]
	apply(t, c, definitions)
	err := c.ScheduleClient().GetHandle(t.Context(), definitions[0].ID).Update(t.Context(), client.ScheduleUpdateOptions{
		DoUpdate: func(in client.ScheduleUpdateInput) (*client.ScheduleUpdate, error) {
			in.Description.Schedule.Spec.Jitter = time.Minute
			in.Description.Schedule.Spec.CronExpressions = []string{"0 3 * * *"}
			return &client.ScheduleUpdate{Schedule: &in.Description.Schedule}, nil
		},
	})
	require.NoError(t, err)
	out := apply(t, c, definitions)
	require.Contains(t, out, `jitter "1m0s" -> "0s"`)
	require.Contains(t, out, "calendars 1 -> 0")
	require.Contains(t, apply(t, c, definitions), "unchanged")
}

func TestEveryScheduleBoundsWhatItMakesUpFor(t *testing.T) {
	for _, d := range Definitions() {
		require.LessOrEqual(t, d.CatchUp, max(time.Hour, 2*d.Every), d.ID)
		require.Positive(t, d.CatchUp, d.ID)
		require.Less(t, d.Offset, d.Every, d.ID)
	}
}
