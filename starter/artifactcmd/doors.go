package artifactcmd

import (
	"context"
	"fmt"
	"log/slog"
	"os"

	"github.com/alecthomas/kong"

	"millrace/domain/artifact"
	workflows "millrace/workflows/artifact"
)

// Said is what a person says about a version.
type Said struct {
	Stores
	Actor
	Target

	Comment string `help:"What to say about it."`
	Bundle  string `name:"bundle-hash" help:"Hash of what you mean; without it, that of the version as it is now."`
}

func (s Said) run(ctx context.Context, logger *slog.Logger, door string, verb artifact.Verb) error {
	store, err := s.store(ctx)
	if err != nil {
		return err
	}
	temporal, err := dial(ctx, logger)
	if err != nil {
		return err
	}
	defer temporal.Close()
	target, err := s.present(ctx, store, missingPatience)
	if err != nil {
		return err
	}
	bundle := s.Bundle
	if bundle == "" {
		status, err := query(ctx, temporal, target)
		if err != nil {
			return err
		}
		bundle = status.BundleHash
	}
	c, err := s.sign(artifact.Command{Verb: verb, Actor: s.Actor.Actor, At: now(), BundleHash: bundle, Comment: s.Comment}, target.ID, target.Version)
	if err != nil {
		return err
	}
	status, err := send(ctx, temporal, target, door, c)
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(os.Stdout, "%s v%d is %s\n", target.ID, target.Version, status.State)
	return err
}

// ApproveCommand approves a version.
type ApproveCommand struct{ Said }

// Run sends the approval.
func (c ApproveCommand) Run(ctx context.Context, logger *slog.Logger) error {
	return c.run(ctx, logger, workflows.DoorDecide, artifact.Approve)
}

// RejectCommand rejects a version.
type RejectCommand struct{ Said }

// Run sends the rejection.
func (c RejectCommand) Run(ctx context.Context, logger *slog.Logger) error {
	return c.run(ctx, logger, workflows.DoorDecide, artifact.Reject)
}

// DoorCommand is a command whose door has its name.
type DoorCommand struct{ Said }

// Run sends what the command is called.
func (c DoorCommand) Run(ctx context.Context, logger *slog.Logger, parsed *kong.Context) error {
	door := parsed.Selected().Name
	return c.run(ctx, logger, door, artifact.Verb(door))
}
