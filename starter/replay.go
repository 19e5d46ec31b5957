package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"time"

	"go.temporal.io/sdk/client"

	"millrace/domain/factory"
	"millrace/starter/printing"
	workflows "millrace/workflows/factory"
	"millrace/workflows/names"
)

// replayCommand rebuilds the read models of a factory from raw/.
type replayCommand struct {
	Factory   string `help:"Factory whose read models are built again." required:"" placeholder:"ID"`
	From      string `help:"First source time (RFC 3339)." required:"" placeholder:"TIME"`
	To        string `help:"Source time at which to stop, not included (RFC 3339)." required:"" placeholder:"TIME"`
	LateDays  int    `help:"How many days after --to messages may have been received; 0 is 7." default:"0" placeholder:"DAYS"`
	DryRun    bool   `help:"Count what would change; change nothing."`
	Overwrite bool   `help:"Replace processed objects that exist."`
	Wait      bool   `help:"Show progress until the replay is done."`
}

// Run starts the replay, or joins it when it runs already.
func (c *replayCommand) Run(ctx context.Context, logger *slog.Logger) error {
	request, err := c.request()
	if err != nil {
		return err
	}
	temporal, err := dial(ctx, logger)
	if err != nil {
		return err
	}
	defer temporal.Close()
	return c.replay(ctx, temporal, request, os.Stdout)
}

func (c *replayCommand) request() (workflows.ReplayRequest, error) {
	from, errFrom := instant("--from", c.From)
	to, errTo := instant("--to", c.To)
	request := workflows.ReplayRequest{
		FactoryID: c.Factory, From: from, To: to, DryRun: c.DryRun, Overwrite: c.Overwrite, LateDays: c.LateDays,
	}
	if err := errors.Join(errFrom, errTo); err != nil {
		return request, err
	}
	return request, request.Check()
}

func instant(flag, text string) (time.Time, error) {
	at, err := factory.ParseInstant(text)
	if err != nil {
		return time.Time{}, fmt.Errorf("%s: %q must be an RFC 3339 instant with a zone, such as 2026-05-14T12:00:00Z", flag, text)
	}
	return at, nil
}

func (c *replayCommand) replay(ctx context.Context, temporal client.Client, request workflows.ReplayRequest, out io.Writer) error {
	id := names.RawReplayID(request.FactoryID, request.From.Format(time.RFC3339Nano))
	options := client.StartWorkflowOptions{ID: id, TaskQueue: names.QueueTelemetry, StaticSummary: c.summary(request)}
	started, err := start(ctx, temporal, options, names.RawReplay, workflows.ReplayInput{Request: request})
	if err != nil {
		return err
	}
	state := "started"
	if !started {
		state = "runs already"
	}
	if _, err := fmt.Fprintf(out, "%s %s\n", id, state); err != nil || !c.Wait {
		return err
	}
	return follow(ctx, temporal, id, out)
}

func (c *replayCommand) summary(request workflows.ReplayRequest) string {
	what := "Rebuilds"
	if request.DryRun {
		what = "Counts what a rebuild would change of"
	}
	return fmt.Sprintf("%s %s from %s to %s", what, request.FactoryID, request.From.Format(time.RFC3339), request.To.Format(time.RFC3339))
}

// followEvery is how often progress is asked for; a line is printed when it
// changed.
const followEvery = 2 * time.Second

// follow prints a replay's progress until it ends, then its result. Giving up
// leaves the replay running.
func follow(ctx context.Context, temporal client.Client, id string, out io.Writer) error {
	ended := make(chan error, 1)
	var result workflows.ReplayStatus
	go func() { ended <- temporal.GetWorkflow(ctx, id, "").Get(ctx, &result) }()
	tick := time.NewTicker(followEvery)
	defer tick.Stop()
	last := ""
	for {
		select {
		case err := <-ended:
			if ctx.Err() != nil {
				return fmt.Errorf("stopped watching, %s goes on: %w", id, ctx.Err())
			}
			if err != nil {
				return fmt.Errorf("%s: %w", id, err)
			}
			return printing.JSON(out, result)
		case <-tick.C:
			line := progressOf(ctx, temporal, id)
			if line == last {
				continue
			}
			if _, err := fmt.Fprintln(out, line); err != nil {
				return fmt.Errorf("print progress: %w", err)
			}
			last = line
		}
	}
}

func progressOf(ctx context.Context, temporal client.Client, id string) string {
	ctx, stop := context.WithTimeout(ctx, followEvery)
	defer stop()
	value, err := temporal.QueryWorkflow(ctx, id, "", workflows.StatusQuery)
	if err != nil {
		return "waiting for a worker on task queue " + names.QueueTelemetry
	}
	var status workflows.ReplayStatus
	if err := value.Get(&status); err != nil {
		return "progress is unreadable: " + err.Error()
	}
	c := status.Counts
	return fmt.Sprintf("received on %s (last %s): %d messages, %d processed, %d overwritten, %d history, %d late, %d quarantined",
		status.Day.Format(time.DateOnly), status.LastDay.Format(time.DateOnly), c.Messages, c.Processed, c.Overwritten, c.History, c.Late, c.Quarantined)
}
