package artifactcmd

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"os"
	"text/tabwriter"
	"time"

	"go.temporal.io/api/enums/v1"
	"go.temporal.io/sdk/client"

	"millrace/domain/artifact"
	storage "millrace/storage/artifact"
	workflows "millrace/workflows/artifact"
	"millrace/workflows/names"
)

// StatusCommand shows a version.
type StatusCommand struct {
	Stores
	Target
}

// Run prints the status as JSON; that of a closed workflow still answers.
func (c StatusCommand) Run(ctx context.Context, logger *slog.Logger) error {
	store, temporal, err := c.open(ctx, logger)
	if err != nil {
		return err
	}
	defer temporal.Close()
	target, err := c.resolve(ctx, store)
	if err != nil {
		return err
	}
	status, err := query(ctx, temporal, target)
	if err != nil {
		return err
	}
	if status.State == artifact.None {
		return unborn(ctx, temporal, target, status)
	}
	return printJSON(os.Stdout, status)
}

// unborn tells of a lifecycle that has written no version whether it is still at
// it, or why it refused what was submitted.
func unborn(ctx context.Context, temporal client.Client, t Target, status workflows.Status) error {
	id := names.ArtifactLifecycleID(t.ID, t.Version)
	described, err := temporal.DescribeWorkflow(ctx, id, "")
	if err != nil {
		return fmt.Errorf("look at %s: %w", id, err)
	}
	if described.Status != enums.WORKFLOW_EXECUTION_STATUS_RUNNING {
		if err := temporal.GetWorkflow(ctx, id, "").Get(ctx, nil); err != nil {
			return whyNot(err, t)
		}
	}
	status.ArtifactID, status.Version, status.WaitingFor = t.ID, t.Version, "the content to be checked"
	return printJSON(os.Stdout, status)
}

// WatchCommand follows a version.
type WatchCommand struct {
	Stores
	Target

	Every time.Duration `help:"How often to look." default:"1s"`
}

// Run prints each transition, and how far each factory of a rollout is, until the
// outcome is known.
func (c WatchCommand) Run(ctx context.Context, logger *slog.Logger) error {
	store, temporal, err := c.open(ctx, logger)
	if err != nil {
		return err
	}
	defer temporal.Close()
	target, err := c.resolve(ctx, store)
	if err != nil {
		return err
	}
	w := watcher{store: store, target: target, every: c.Every, out: os.Stdout, rollout: func(ctx context.Context) *workflows.Rollout {
		status, err := query(ctx, temporal, target)
		if err != nil {
			return nil // a workflow that is busy or gone tells nothing new
		}
		return status.Rollout
	}}
	return w.watch(ctx)
}

// watcher follows one version.
type watcher struct {
	store   storage.Store
	target  Target
	every   time.Duration
	out     io.Writer
	rollout func(context.Context) *workflows.Rollout
	// told is the last line of each factory.
	told map[string]string
}

func (w watcher) watch(ctx context.Context) error {
	w.told = map[string]string{}
	seen := 0
	for {
		transitions, err := w.store.Transitions(ctx, w.target.ID, w.target.Version)
		if err != nil {
			return err
		}
		for _, tr := range transitions[seen:] {
			if _, err := fmt.Fprintf(w.out, "%s %-20s %s %s\n", artifact.Timestamp(tr.CreatedAt), tr.To, tr.Actor, artifact.Printable(tr.Reason)); err != nil {
				return fmt.Errorf("print: %w", err)
			}
		}
		if err := w.progress(ctx); err != nil {
			return err
		}
		if seen = len(transitions); seen > 0 {
			over, err := w.over(ctx, transitions[seen-1].To)
			if err != nil || over {
				return err
			}
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(w.every):
		}
	}
}

// over tells whether nothing more happens by itself: HEAD is held as long as an
// undo is to follow a failure.
func (w watcher) over(ctx context.Context, state artifact.State) (bool, error) {
	if state != artifact.Failed {
		return state.Settled(), nil
	}
	head, err := w.store.Head(ctx, w.target.ID)
	return head.ExecutingRun == "" || head.ApprovedVersion != w.target.Version, err
}

// progress prints what is new of each factory.
func (w watcher) progress(ctx context.Context) error {
	rollout := w.rollout(ctx)
	if rollout == nil {
		return nil
	}
	for _, f := range rollout.Factories {
		line := fmt.Sprintf("wave %d of %d  %-24s %s", f.Wave, rollout.Waves, f.FactoryID, f.State)
		if f.Detail != "" {
			line += ": " + f.Detail
		}
		if f.Undo != nil {
			line += fmt.Sprintf("; undo %s, attempt %d", f.Undo.State, f.Undo.Attempts)
		}
		if f.State == workflows.FactoryWaiting || w.told[f.FactoryID] == line {
			continue
		}
		w.told[f.FactoryID] = line
		if _, err := fmt.Fprintln(w.out, artifact.Printable(line)); err != nil {
			return fmt.Errorf("print: %w", err)
		}
	}
	return nil
}

// ListCommand lists versions.
type ListCommand struct {
	Stores

	State string `help:"State of the versions." default:"in_review"`
	Limit int32  `help:"At most so many." default:"50"`
}

// Run prints a line for each version, the newest first.
func (c ListCommand) Run(ctx context.Context) error {
	store, err := c.store(ctx)
	if err != nil {
		return err
	}
	return list(ctx, store, artifact.State(c.State), c.Limit, os.Stdout)
}

func list(ctx context.Context, store storage.Store, state artifact.State, limit int32, out io.Writer) error {
	if !state.Known() {
		return fmt.Errorf("--state: must be one of %v", artifact.States())
	}
	versions, _, err := store.InState(ctx, state, storage.Page{Limit: limit, Descending: true})
	if err != nil {
		return err
	}
	table := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	_, _ = fmt.Fprintln(table, "ARTIFACT\tVERSION\tKIND\tAUTHOR\tCREATED\tREASON") // errors show at Flush
	for _, v := range versions {
		_, _ = fmt.Fprintf(table, "%s\t%d\t%s\t%s\t%s\t%s\n", v.ArtifactID, v.Version, v.Kind, v.Author, v.CreatedAt.Format(time.RFC3339), artifact.Printable(v.Reason))
	}
	return table.Flush()
}
