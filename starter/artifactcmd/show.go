package artifactcmd

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"millrace/domain/artifact"
	storage "millrace/storage/artifact"
)

// ShowCommand shows what is to be decided about.
type ShowCommand struct {
	Stores
	Target
}

// Run prints all that a reviewer must know of a version.
func (c ShowCommand) Run(ctx context.Context) error {
	store, err := c.store(ctx)
	if err != nil {
		return err
	}
	v, err := c.stored(ctx, store)
	if err != nil {
		return err
	}
	return show(ctx, store, v, os.Stdout)
}

// DiffCommand shows what a version changes.
type DiffCommand struct {
	Stores
	Target

	Role string `help:"Which file; spec is how it runs and who must approve." enum:"all,primary,rollback,spec" default:"all"`
}

// Run prints the unified differences.
func (c DiffCommand) Run(ctx context.Context) error {
	store, err := c.store(ctx)
	if err != nil {
		return err
	}
	v, err := c.stored(ctx, store)
	if err != nil {
		return err
	}
	roles := []artifact.Role{artifact.Role(c.Role)}
	if c.Role == "all" {
		roles = compared
	}
	before, err := store.LastExecuted(ctx, v)
	if err != nil {
		return err
	}
	return differences(ctx, store, before, v, roles, os.Stdout)
}

// compared are the roles that are compared, in this order.
var compared = []artifact.Role{storage.RoleSpec, artifact.Primary, artifact.Rollback}

// stored is the version that is meant, the latest where none is named.
func (t Target) stored(ctx context.Context, store storage.Store) (storage.Artifact, error) {
	target, err := t.resolve(ctx, store)
	if err != nil {
		return storage.Artifact{}, err
	}
	return store.Version(ctx, target.ID, target.Version)
}

// show prints a version for its reviewers, with what it changes.
func show(ctx context.Context, store storage.Store, v storage.Artifact, out io.Writer) error {
	tally, err := tallyOf(ctx, store, v)
	if err != nil {
		return err
	}
	lines := []string{
		fmt.Sprintf("%s v%d is %s since %s", v.ArtifactID, v.Version, v.State, v.StateSince.UTC().Format(time.RFC3339)),
		fmt.Sprintf("asked by    %s (%s) at %s", v.Author, v.Submission, v.CreatedAt.UTC().Format(time.RFC3339)),
		"reason      " + artifact.Printable(v.Reason),
		"kind        " + string(v.Kind),
		"bundle hash " + v.BundleHash,
	}
	for _, f := range v.Files {
		lines = append(lines, fmt.Sprintf("%-11s %s, %d bytes, %s", f.Role, f.Filename, f.Size, f.ContentHash))
	}
	lines = append(lines,
		fmt.Sprintf("approvals   %d of %d: %s", len(tally.Approvals), tally.Required, strings.Join(tally.Approvals, ", ")),
		"rejections  "+strings.Join(tally.Rejections, ", "),
		"wanted      "+strings.Join(tally.Wanted, ", "))
	spec, err := v.SpecText()
	if err != nil {
		return err
	}
	lines = append(lines, "", "how it runs and who must approve it:", artifact.PrintableLines(string(spec)))
	if _, err := fmt.Fprintln(out, strings.Join(lines, "\n")); err != nil {
		return fmt.Errorf("print: %w", err)
	}
	before, err := store.LastExecuted(ctx, v)
	if err != nil {
		return err
	}
	roles := compared
	if before.Version == 0 {
		roles = roles[1:] // the whole spec was shown
	}
	return differences(ctx, store, before, v, roles, out)
}

func tallyOf(ctx context.Context, store storage.Store, v storage.Artifact) (artifact.Tally, error) {
	approvals, err := store.Approvals(ctx, v.ArtifactID, v.Version)
	if err != nil {
		return artifact.Tally{}, err
	}
	var decisions []artifact.Decision
	for _, a := range approvals {
		decisions = append(decisions, a.Decision)
	}
	return v.Spec.Policy.Tally(v.Author, v.BundleHash, decisions), nil
}

// differences prints what a version changes against the last executed one.
func differences(ctx context.Context, store storage.Store, before, v storage.Artifact, roles []artifact.Role, out io.Writer) error {
	against := "no version was executed before: everything is new"
	if before.Version > 0 {
		against = fmt.Sprintf("compared with v%d, the last executed", before.Version)
	}
	if _, err := fmt.Fprintln(out, against); err != nil {
		return fmt.Errorf("print: %w", err)
	}
	for _, role := range roles {
		difference, err := store.Compare(ctx, before, v, role)
		if err != nil {
			return err
		}
		if difference == "" {
			difference = "no change\n"
		}
		if _, err := fmt.Fprintf(out, "\n%s:\n%s", role, difference); err != nil {
			return fmt.Errorf("print: %w", err)
		}
	}
	return nil
}

// errUnsaid refuses an approval of what nobody named.
var errUnsaid = errors.New("say what you approve: name the version or its --bundle-hash, answer yes at a terminal, or give --yes")
