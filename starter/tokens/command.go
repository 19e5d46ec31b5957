// Package tokens has the operator's commands for tokens and their recovery keys.
package tokens

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"millrace/domain/monitoring"
	"millrace/platform/awsconf"
	storage "millrace/storage/monitoring"
)

// Command has what can be done about tokens. It needs no token itself: whoever
// may write the table may make tokens.
type Command struct {
	Create CreateCommand `cmd:"" help:"Make a token. Prints the plaintext, which is shown only here, to standard output and the rest to standard error."`
	List   ListCommand   `cmd:"" help:"List an owner's tokens, newest first."`
	Reveal RevealCommand `cmd:"" help:"Print the plaintext of an active token with a saved copy."`
	Revoke RevokeCommand `cmd:"" help:"End a token's access for good."`
	Delete DeleteCommand `cmd:"" help:"Remove a token and its metadata."`
	Rekey  RekeyCommand  `cmd:"" help:"Start the workflow that seals the saved copies under an older key again under the current one."`
	Keys   KeysCommand   `cmd:"" help:"Manage the key ring of the saved copies."`
}

// Table names the table of tokens.
type Table struct {
	MonitoringTable string `help:"Table of the monitoring API." default:"millrace-monitoring" env:"MILLRACE_MONITORING_TABLE"`
}

func (t Table) store(ctx context.Context) (storage.Store, error) {
	cfg, err := awsconf.Load(ctx)
	if err != nil {
		return storage.Store{}, err
	}
	return storage.New(dynamodb.NewFromConfig(cfg), t.MonitoringTable), nil
}

// KeyFile says where the key ring is.
type KeyFile struct {
	TokenKeysFile string `help:"Key ring of the saved copies of tokens; empty reads MILLRACE_TOKEN_KEYS." env:"MILLRACE_TOKEN_KEYS_FILE" placeholder:"FILE"`
}

// Owner says whose tokens are meant.
type Owner struct {
	Owner string `help:"Whose tokens: user:NAME or app:ID." required:"" placeholder:"ACTOR"`
}

// Validate refuses what is no owner.
func (o Owner) Validate() error { return monitoring.CheckOwner(o.Owner) }

// ListCommand lists tokens.
type ListCommand struct {
	Table
	Owner
}

// Run prints a line for each token of the owner.
func (c ListCommand) Run(ctx context.Context) error {
	store, err := c.store(ctx)
	if err != nil {
		return err
	}
	return list(ctx, store, c.Owner.Owner, os.Stdout)
}

// RevokeCommand revokes a token.
type RevokeCommand struct {
	Table
	Owner
	ID string `arg:"" help:"Id of the token, tok_..."`
}

// Run revokes the token; a second time changes nothing.
func (c RevokeCommand) Run(ctx context.Context) error {
	store, err := c.store(ctx)
	if err != nil {
		return err
	}
	token, err := store.RevokeToken(ctx, c.Owner.Owner, c.ID, time.Now())
	if err != nil {
		return named(c.ID, err)
	}
	_, err = fmt.Fprintf(os.Stdout, "%s revoked since %s\n", token.ID, token.RevokedAt.Format(time.RFC3339))
	return err
}

// DeleteCommand deletes a token.
type DeleteCommand struct {
	Table
	Owner
	ID string `arg:"" help:"Id of the token, tok_..."`
}

// Run deletes the token.
func (c DeleteCommand) Run(ctx context.Context) error {
	store, err := c.store(ctx)
	if err != nil {
		return err
	}
	if err := store.DeleteToken(ctx, c.Owner.Owner, c.ID); err != nil {
		return named(c.ID, err)
	}
	_, err = fmt.Fprintf(os.Stdout, "%s deleted\n", c.ID)
	return err
}

// RevealCommand reveals a token. Unlike the API it reveals those with the scope
// admin too: it is for whoever holds the key ring.
type RevealCommand struct {
	Table
	KeyFile
	Owner
	ID string `arg:"" help:"Id of the token, tok_..."`
}

// Run prints the plaintext.
func (c RevealCommand) Run(ctx context.Context) error {
	store, err := c.store(ctx)
	if err != nil {
		return err
	}
	ring, err := storage.LoadKeyRing(c.TokenKeysFile)
	if err != nil {
		return err
	}
	return reveal(ctx, store, ring, c.Owner.Owner, c.ID, os.Stdout)
}

func reveal(ctx context.Context, store storage.Store, ring monitoring.KeyRing, owner, id string, out io.Writer) error {
	token, err := store.Token(ctx, owner, id)
	if err != nil {
		return named(id, err)
	}
	if !token.CanReveal() {
		return named(id, errors.New("the token is revoked or has no saved copy"))
	}
	secret, err := ring.Open(*token.Recovery, token.Owner, token.ID)
	if err != nil {
		return named(id, err)
	}
	_, err = fmt.Fprintln(out, secret.Plaintext())
	return err
}

func named(id string, err error) error { return fmt.Errorf("token %s: %w", id, err) }
