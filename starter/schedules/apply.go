package schedules

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"os"
	"slices"
	"strings"

	"github.com/prometheus/client_golang/prometheus"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/temporal"

	"millrace/platform/config"
	"millrace/platform/temporalconf"
)

// Command has what can be done about schedules.
type Command struct {
	Apply ApplyCommand `cmd:"" help:"Create the schedules that are missing and change those that differ. A pause stays."`
}

// ApplyCommand makes the schedules what they should be.
type ApplyCommand struct {
	config.ReportTime
}

// Run prints what it did about each schedule.
func (c *ApplyCommand) Run(ctx context.Context, logger *slog.Logger) error {
	temporal, err := temporalconf.Dial(ctx, logger, prometheus.NewRegistry())
	if err != nil {
		return err
	}
	defer temporal.Close()
	return Apply(ctx, temporal.ScheduleClient(), Definitions(c.ReportTime), os.Stdout)
}

// Apply creates or updates schedules and prints a line for each. Applying twice
// changes nothing, and a paused schedule stays paused.
func Apply(ctx context.Context, schedules client.ScheduleClient, definitions []Definition, out io.Writer) error {
	for _, d := range definitions {
		outcome, err := d.apply(ctx, schedules)
		if err != nil {
			return fmt.Errorf("apply schedule %s: %w", d.ID, err)
		}
		if _, err := fmt.Fprintf(out, "%-20s %s\n", d.ID, outcome); err != nil {
			return fmt.Errorf("print: %w", err)
		}
	}
	return nil
}

func (d Definition) apply(ctx context.Context, schedules client.ScheduleClient) (outcome string, err error) {
	_, err = schedules.Create(ctx, d.options())
	switch {
	case err == nil:
		return "created", nil
	case !errors.Is(err, temporal.ErrScheduleAlreadyRunning):
		return "", err
	}
	err = schedules.GetHandle(ctx, d.ID).Update(ctx, client.ScheduleUpdateOptions{
		DoUpdate: func(in client.ScheduleUpdateInput) (*client.ScheduleUpdate, error) {
			current := in.Description.Schedule
			wanted := client.Schedule{Action: d.action(), Spec: new(d.spec()), Policy: d.policy(), State: current.State}
			changes := difference(aspects(current), aspects(wanted))
			outcome = describe(changes, current.State)
			if len(changes) == 0 {
				return nil, temporal.ErrSkipScheduleUpdate
			}
			return &client.ScheduleUpdate{Schedule: &wanted}, nil
		},
	})
	return outcome, err
}

// difference lists the aspects that differ, in the order of their names.
func difference(current, wanted map[string]string) []string {
	var changes []string
	for _, name := range slices.Sorted(maps.Keys(wanted)) {
		if current[name] != wanted[name] {
			changes = append(changes, fmt.Sprintf("%s %s -> %s", name, current[name], wanted[name]))
		}
	}
	return changes
}

func describe(changes []string, state *client.ScheduleState) string {
	outcome := "unchanged"
	if len(changes) > 0 {
		outcome = "changed: " + strings.Join(changes, ", ")
	}
	if state != nil && state.Paused {
		outcome += fmt.Sprintf(" (paused: %s)", state.Note)
	}
	return outcome
}
