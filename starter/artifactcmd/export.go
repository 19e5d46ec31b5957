package artifactcmd

import (
	"context"
	"crypto/ed25519"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/secretsmanager"

	"millrace/domain/artifact"
	"millrace/platform/awsconf"
	"millrace/platform/secret"
	storage "millrace/storage/artifact"
)

// ExportCommand exports provenance.
type ExportCommand struct {
	Stores
	Target

	SigningKey string `help:"Reference (env:NAME, file:PATH or aws-secret:ID) of the Ed25519 private key, OpenSSH or PEM, that signs each line as a DSSE envelope." env:"MILLRACE_PROVENANCE_SIGNING_KEY" placeholder:"REFERENCE"`
}

// Run prints an in-toto statement a line, in a signed envelope where there is a
// key.
func (c ExportCommand) Run(ctx context.Context) error {
	key, err := c.key(ctx)
	if err != nil {
		return err
	}
	store, err := c.store(ctx)
	if err != nil {
		return err
	}
	target, err := c.resolve(ctx, store)
	if err != nil {
		return err
	}
	return export(ctx, store, target, key, os.Stdout)
}

// key is the signing key; nil when none is named.
func (c ExportCommand) key(ctx context.Context) (ed25519.PrivateKey, error) {
	if c.SigningKey == "" {
		return nil, nil
	}
	if err := secret.Reference(c.SigningKey).Check(); err != nil {
		return nil, fmt.Errorf("MILLRACE_PROVENANCE_SIGNING_KEY: %w", err)
	}
	cfg, err := awsconf.Load(ctx)
	if err != nil {
		return nil, err
	}
	reader := secret.Reader{AWS: secretsmanager.NewFromConfig(cfg), Now: time.Now}
	text, err := reader.Read(ctx, secret.Reference(c.SigningKey))
	if err != nil {
		return nil, err
	}
	key, err := artifact.ParseSealingKey([]byte(text))
	if err != nil {
		return nil, fmt.Errorf("MILLRACE_PROVENANCE_SIGNING_KEY: %w", err)
	}
	return key, nil
}

func export(ctx context.Context, store storage.Store, t Target, key ed25519.PrivateKey, out io.Writer) error {
	d, err := store.Dossier(ctx, t.ID, t.Version)
	if err != nil {
		return err
	}
	var files []artifact.File
	for _, f := range d.Artifact.Files {
		files = append(files, f.File())
	}
	for _, r := range d.Records {
		line, err := exported(r.Statement(t.ID, files), key)
		if err != nil {
			return err
		}
		if _, err := fmt.Fprintf(out, "%s\n", line); err != nil {
			return fmt.Errorf("print: %w", err)
		}
	}
	return nil
}

// exported is a line of an export.
func exported(s artifact.Statement, key ed25519.PrivateKey) ([]byte, error) {
	statement, err := artifact.Canonical(s)
	if err != nil || key == nil {
		return statement, err
	}
	envelope, err := artifact.Seal(statement, artifact.StatementPayload, key)
	if err != nil {
		return nil, err
	}
	return artifact.Canonical(envelope)
}
