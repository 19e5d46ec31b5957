package artifactcmd

import (
	"bufio"
	"cmp"
	"context"
	"fmt"
	"io"
	"log/slog"
	"os"
	"strings"

	"github.com/alecthomas/kong"

	"millrace/domain/artifact"
	storage "millrace/storage/artifact"
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
	store, temporal, err := s.open(ctx, logger)
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
	said := artifact.Command{Verb: verb, Actor: s.Actor.Actor, At: now(), BundleHash: bundle, Comment: s.Comment}
	if err := said.CheckWords(); err != nil {
		return err
	}
	c, err := s.sign(said, target.ID, target.Version)
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
type ApproveCommand struct {
	Said

	Yes bool `help:"Approve the latest version, whatever it is, without asking."`
}

// Run shows what is approved and sends the approval of exactly that.
func (c ApproveCommand) Run(ctx context.Context, logger *slog.Logger) error {
	store, err := c.store(ctx)
	if err != nil {
		return err
	}
	named := c.Version != 0 || c.Bundle != "" || c.Yes
	if c.Target, err = c.present(ctx, store, missingPatience); err != nil {
		return err
	}
	v, err := store.Version(ctx, c.ID, c.Version)
	if err != nil {
		return err
	}
	if err := show(ctx, store, v, os.Stdout); err != nil {
		return err
	}
	if !named {
		if err := confirm(os.Stdin, os.Stdout, v); err != nil {
			return err
		}
	}
	c.Bundle = cmp.Or(c.Bundle, v.BundleHash)
	return c.run(ctx, logger, workflows.DoorDecide, artifact.Approve)
}

// confirm asks at a terminal whether a version is what is meant.
func confirm(in *os.File, out io.Writer, v storage.Artifact) error {
	info, err := in.Stat()
	if err != nil || info.Mode()&os.ModeCharDevice == 0 {
		return errUnsaid
	}
	return ask(in, out, v)
}

func ask(in io.Reader, out io.Writer, v storage.Artifact) error {
	if _, err := fmt.Fprintf(out, "\napprove %s v%d, %s? [yes/no] ", v.ArtifactID, v.Version, v.BundleHash); err != nil {
		return fmt.Errorf("print: %w", err)
	}
	answer, _ := bufio.NewReader(in).ReadString('\n') // what ends early is no yes
	if strings.TrimSpace(answer) != "yes" {
		return errUnsaid
	}
	return nil
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
