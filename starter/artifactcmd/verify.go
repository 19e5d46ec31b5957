package artifactcmd

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"

	"millrace/domain/artifact"
	storage "millrace/storage/artifact"
)

// VerifyCommand checks what is known of an artifact.
type VerifyCommand struct {
	Stores

	ID          string   `arg:"" optional:"" help:"Id of the artifact."`
	File        string   `help:"Provenance document or export to check instead, without any store." type:"existingfile" placeholder:"FILE"`
	PublicKey   string   `help:"File with the public key that an export is signed with: authorized_keys or PEM." type:"existingfile" env:"MILLRACE_PROVENANCE_PUBLIC_KEY_FILE" placeholder:"FILE"`
	GatewayKeys []string `name:"gateway-public-keys" sep:";" help:"Public keys of the gateways, separated by semicolons." env:"MILLRACE_GATEWAY_PUBLIC_KEYS" placeholder:"KEY"`
}

// Validate wants exactly one of the two.
func (c VerifyCommand) Validate() error {
	if (c.ID == "") == (c.File == "") {
		return errors.New("name an artifact or a --file")
	}
	return nil
}

// Run prints a line for each version and fails when one is not in order.
func (c VerifyCommand) Run(ctx context.Context) error {
	if c.File != "" {
		return c.file(os.Stdout)
	}
	store, err := c.store(ctx)
	if err != nil {
		return err
	}
	if original, version, undo := artifact.ParseCompensationID(c.ID); undo {
		// It has no chain of its own: its original's tells of it.
		if _, err := store.Version(ctx, c.ID, 1); err != nil {
			return err
		}
		_, _ = fmt.Fprintf(os.Stdout, "%s is the undo of %s v%d\n", c.ID, original, version) // the verdict follows
		c.ID = original
	}
	findings, err := store.Audit(ctx, c.ID, c.GatewayKeys)
	if err != nil {
		return err
	}
	return report(findings, "in order", os.Stdout)
}

// report prints a line for each finding and joins their errors.
func report(findings []storage.Finding, good string, out io.Writer) error {
	var problems []error
	for _, f := range findings {
		verdict := good
		if f.Err == nil && f.State == artifact.Archived {
			verdict += "; content: restore needed"
		}
		if f.Err != nil {
			verdict = "BROKEN: " + f.Err.Error()
			problems = append(problems, fmt.Errorf("version %d: %w", f.Version, f.Err))
		}
		what := fmt.Sprintf("%s v%d %s", f.ArtifactID, f.Version, f.State)
		if f.Version == 0 {
			what = f.ArtifactID
		}
		if _, err := fmt.Fprintf(out, "%s: %s\n", what, verdict); err != nil {
			return fmt.Errorf("print: %w", err)
		}
	}
	return errors.Join(problems...)
}
