package artifactcmd

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"os"
	"text/tabwriter"
	"time"

	"millrace/domain/artifact"
	storage "millrace/storage/artifact"
)

// StatusCommand shows a version.
type StatusCommand struct {
	Stores
	Target
}

// Run prints the status as JSON; that of a closed workflow still answers.
func (c StatusCommand) Run(ctx context.Context, logger *slog.Logger) error {
	store, err := c.store(ctx)
	if err != nil {
		return err
	}
	temporal, err := dial(ctx, logger)
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
	return printJSON(os.Stdout, status)
}

// WatchCommand follows a version.
type WatchCommand struct {
	Stores
	Target

	Every time.Duration `help:"How often to look." default:"1s"`
}

// Run prints each transition until the outcome is known.
func (c WatchCommand) Run(ctx context.Context) error {
	store, err := c.store(ctx)
	if err != nil {
		return err
	}
	target, err := c.resolve(ctx, store)
	if err != nil {
		return err
	}
	return watch(ctx, store, target, c.Every, os.Stdout)
}

func watch(ctx context.Context, store storage.Store, t Target, every time.Duration, out io.Writer) error {
	seen := 0
	for {
		transitions, err := store.Transitions(ctx, t.ID, t.Version)
		if err != nil {
			return err
		}
		for _, tr := range transitions[seen:] {
			if _, err := fmt.Fprintf(out, "%s %-20s %s %s\n", artifact.Timestamp(tr.CreatedAt), tr.To, tr.Actor, tr.Reason); err != nil {
				return fmt.Errorf("print: %w", err)
			}
		}
		seen = len(transitions)
		if seen > 0 && transitions[seen-1].To.Settled() {
			return nil
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(every):
		}
	}
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
		_, _ = fmt.Fprintf(table, "%s\t%d\t%s\t%s\t%s\t%s\n", v.ArtifactID, v.Version, v.Kind, v.Author, v.CreatedAt.Format(time.RFC3339), v.Reason)
	}
	return table.Flush()
}
