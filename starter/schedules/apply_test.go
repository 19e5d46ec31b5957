package schedules

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"testing"
	"time"

	"github.com/alecthomas/kong"
	"github.com/stretchr/testify/require"
	"go.temporal.io/api/enums/v1"
	"go.temporal.io/api/serviceerror"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/contrib/envconfig"

	"millrace/platform/config"
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

var midnight = config.ReportTime{Timezone: "Asia/Seoul", Time: "00:30"}

// own are the definitions under ids of this test alone.
func own(t *testing.T, c client.Client) []Definition {
	t.Helper()
	definitions := Definitions(midnight)
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
		require.Equal(t, d.taskQueue(), action.TaskQueue)
		require.Equal(t, d.ID, action.ID)
		require.Equal(t, d.Overlap, description.Schedule.Policy.Overlap)
		require.Equal(t, d.CatchUp, description.Schedule.Policy.CatchupWindow)
		require.Equal(t, d.Summary, description.Schedule.State.Note)
		require.Contains(t, string(description.Memo.GetFields()["purpose"].GetData()), d.Summary)
		require.False(t, description.Schedule.State.Paused)
		if d.Daily != nil {
			require.Equal(t, "15:30:00", description.Info.NextActionTimes[0].UTC().Format(time.TimeOnly), "half past midnight in Seoul")
			continue
		}
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
	for _, d := range Definitions(midnight) {
		every := d.Every
		if d.Daily != nil {
			every = 24 * time.Hour
		}
		require.LessOrEqual(t, d.CatchUp, max(time.Hour, 2*every), d.ID)
		require.Positive(t, d.CatchUp, d.ID)
		require.Less(t, d.Offset, every, d.ID)
	}
}

func TestTheDailyReportFollowsItsZone(t *testing.T) {
	c := dial(t)
	definition := own(t, c)
	report := definition[len(definition)-1:]
	require.Equal(t, names.DailyReport, report[0].Workflow)
	require.Equal(t, names.QueueReports, report[0].taskQueue())
	apply(t, c, report)
	require.Contains(t, apply(t, c, report), "unchanged")

	moved := daily(config.ReportTime{Timezone: "Europe/Berlin", Time: "06:15"})
	moved.ID = report[0].ID
	out := apply(t, c, []Definition{moved})
	require.Contains(t, out, `time of day ["00:30:00"] -> ["06:15:00"]`)
	require.Contains(t, out, `zone "Asia/Seoul" -> "Europe/Berlin"`)
	require.Contains(t, out, `input [{"timezone":"Asia/Seoul","report_type":"daily_factory_operations_draft"}] -> [{"timezone":"Europe/Berlin"`)
	require.Contains(t, apply(t, c, []Definition{moved}), "unchanged")
	description, err := c.ScheduleClient().GetHandle(t.Context(), moved.ID).Describe(t.Context())
	require.NoError(t, err)
	berlin, err := time.LoadLocation("Europe/Berlin")
	require.NoError(t, err)
	for _, next := range description.Info.NextActionTimes {
		require.Equal(t, "06:15", next.In(berlin).Format("15:04"))
	}

	hand := func(in client.ScheduleUpdateInput) (*client.ScheduleUpdate, error) {
		in.Description.Schedule.Spec.Calendars[0].DayOfWeek = []client.ScheduleRange{{Start: 1, End: 5}}
		return &client.ScheduleUpdate{Schedule: &in.Description.Schedule}, nil
	}
	require.NoError(t, c.ScheduleClient().GetHandle(t.Context(), moved.ID).Update(t.Context(), client.ScheduleUpdateOptions{DoUpdate: hand}))
	require.Contains(t, apply(t, c, []Definition{moved}), `time of day ["06:15:00 on some days"] -> ["06:15:00"]`)
}

func TestTimesThatAreNoneAreRefusedAtTheDoor(t *testing.T) {
	var cli struct {
		Apply ApplyCommand `cmd:""`
	}
	parser, err := kong.New(&cli)
	require.NoError(t, err)
	_, err = parser.Parse([]string{"apply", "--report-timezone=Mars/Olympus"})
	require.ErrorContains(t, err, "MILLRACE_REPORT_TIMEZONE")
}
