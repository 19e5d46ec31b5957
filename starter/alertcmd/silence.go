package alertcmd

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"os"
	"os/user"
	"strings"
	"time"

	"millrace/domain/alert"
	"millrace/domain/factory"
	storage "millrace/storage/alert"
)

// SilenceCommand has what can be done about silences.
type SilenceCommand struct {
	Add  AddSilence   `cmd:"" default:"withargs" help:"Silence a scope, or one reason of it (the default command)."`
	List ListSilences `cmd:"" help:"List the silences of a scope that hold now."`
	End  EndSilence   `cmd:"" help:"End a silence."`
}

// AddSilence makes a silence.
type AddSilence struct {
	Table
	Scope  string        `arg:"" help:"A factory id, cloud-infra, artifacts, observability or app.ID."`
	Reason string        `help:"Only alerts of this reason, such as nodes_all_not_ready." placeholder:"SLUG"`
	For    time.Duration `help:"How long." xor:"end" placeholder:"DURATION"`
	Until  string        `help:"Until when (RFC 3339)." xor:"end" placeholder:"TIME"`
	Why    string        `help:"Why; shown with every alert that is held back." required:"" placeholder:"TEXT"`
	By     string        `help:"Who; the operating system's user by default." placeholder:"NAME"`
}

// Run makes the silence and prints its id.
func (c AddSilence) Run(ctx context.Context) error {
	store, err := c.store(ctx)
	if err != nil {
		return err
	}
	return c.add(ctx, store, time.Now(), os.Stdout)
}

func (c AddSilence) add(ctx context.Context, store storage.Store, now time.Time, out io.Writer) error {
	s, err := c.silence(now)
	if err != nil {
		return err
	}
	if err := store.CreateSilence(ctx, s); err != nil {
		return err
	}
	_, err = fmt.Fprintf(out, "%s silenced until %s: %s\n", what(s), s.Until, s.ID)
	return err
}

func (c AddSilence) silence(now time.Time) (alert.Silence, error) {
	at := factory.MillisOf(now)
	s := alert.Silence{
		ID: strings.ToLower(rand.Text()), Scope: c.Scope, Reason: c.Reason, Why: c.Why, CreatedBy: c.By, CreatedAt: at, UpdatedAt: at,
	}
	switch {
	case c.For > 0:
		s.Until = factory.MillisOf(now.Add(c.For))
	case c.Until != "":
		until, err := factory.ParseInstant(c.Until)
		if err != nil {
			return s, errors.New("--until: must be an RFC 3339 instant with a zone")
		}
		s.Until = factory.MillisOf(until)
	default:
		return s, errors.New("give --for DURATION or --until TIME")
	}
	if s.CreatedBy == "" {
		current, err := user.Current()
		if err != nil {
			return s, errors.New("--by: is required, the user of this process has no name")
		}
		s.CreatedBy = current.Username
	}
	return s, s.Check(now)
}

func what(s alert.Silence) string {
	if s.Reason == "" {
		return "all of " + s.Scope
	}
	return s.Reason + " of " + s.Scope
}

// ListSilences lists silences.
type ListSilences struct {
	Table
	Scope string `arg:"" help:"The scope."`
}

// Run prints a line for each silence that holds now.
func (c ListSilences) Run(ctx context.Context) error {
	store, err := c.store(ctx)
	if err != nil {
		return err
	}
	return c.list(ctx, store, time.Now(), os.Stdout)
}

func (c ListSilences) list(ctx context.Context, store storage.Store, now time.Time, out io.Writer) error {
	if err := alert.CheckScope(c.Scope); err != nil {
		return err
	}
	silences, err := store.Silences(ctx, c.Scope, now)
	if err != nil {
		return err
	}
	for _, s := range silences {
		if _, err := fmt.Fprintf(out, "%s  %s until %s by %s: %s\n", s.ID, what(s), s.Until, s.CreatedBy, s.Why); err != nil {
			return fmt.Errorf("print silences: %w", err)
		}
	}
	return nil
}

// EndSilence ends a silence.
type EndSilence struct {
	Table
	Scope string `arg:"" help:"The scope."`
	ID    string `arg:"" help:"Id of the silence."`
}

// Run ends the silence; ending it again changes nothing.
func (c EndSilence) Run(ctx context.Context) error {
	store, err := c.store(ctx)
	if err != nil {
		return err
	}
	return c.end(ctx, store, os.Stdout)
}

func (c EndSilence) end(ctx context.Context, store storage.Store, out io.Writer) error {
	if err := errors.Join(alert.CheckScope(c.Scope), alert.CheckSilenceID(c.ID)); err != nil {
		return err
	}
	if err := store.DeleteSilence(ctx, c.Scope, c.ID); err != nil {
		return err
	}
	_, err := fmt.Fprintf(out, "%s ended\n", c.ID)
	return err
}
