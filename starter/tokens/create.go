package tokens

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"text/tabwriter"
	"time"

	"millrace/domain/monitoring"
	"millrace/platform/config"
	storage "millrace/storage/monitoring"
)

// CreateCommand makes a token.
type CreateCommand struct {
	Table
	KeyFile
	Owner
	config.Factories

	Name   string   `help:"What to call it." required:""`
	Scopes []string `help:"What it shall allow; all stands for every scope, with the image uploads of the watched factories." required:"" placeholder:"SCOPE"`
}

// Validate refuses what can't be a token.
func (c CreateCommand) Validate() error {
	return errors.Join(c.Owner.Validate(), c.Factories.Validate())
}

// Run makes the token.
func (c CreateCommand) Run(ctx context.Context) error {
	store, err := c.store(ctx)
	if err != nil {
		return err
	}
	ring, err := storage.LoadKeyRing(c.TokenKeysFile)
	if err != nil {
		return err
	}
	return create(ctx, store, ring, monitoring.Request{Owner: c.Owner.Owner, Name: c.Name, Scopes: c.scopes()}, os.Stdout, os.Stderr)
}

func (c CreateCommand) scopes() []string {
	if len(c.Scopes) != 1 || c.Scopes[0] != "all" {
		return c.Scopes
	}
	var names []string
	for _, scope := range monitoring.AllScopes(c.FactoryIDs...) {
		names = append(names, string(scope))
	}
	return names
}

// create writes the plaintext alone to out, so that a script can take it, and
// what else there is to say to info.
func create(ctx context.Context, store storage.Store, ring monitoring.KeyRing, request monitoring.Request, out, info io.Writer) error {
	token, secret, err := monitoring.Issue(request, ring, rand.Reader, time.Now())
	if err != nil {
		return err
	}
	if err := store.CreateToken(ctx, token); err != nil {
		return err
	}
	recovery := "it has no saved copy: keep it, nothing can show it again"
	if token.CanReveal() {
		recovery = "it has a saved copy"
	}
	if _, err := fmt.Fprintf(info, "%s of %s, scopes %s; %s\n", token.ID, token.Owner, joined(token.Scopes), recovery); err != nil {
		return err
	}
	_, err = fmt.Fprintln(out, secret.Plaintext())
	return err
}

func joined(scopes monitoring.Scopes) string {
	names := make([]string, len(scopes))
	for i, scope := range scopes {
		names[i] = string(scope)
	}
	return strings.Join(names, ",")
}

// listPage is how many tokens one request reads.
const listPage = 100

func list(ctx context.Context, store storage.Store, owner string, out io.Writer) error {
	table := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	if _, err := fmt.Fprintln(table, "ID\tNAME\tSCOPES\tCREATED\tLAST USED\tSTATE"); err != nil {
		return err
	}
	for cursor := ""; ; {
		tokens, next, err := store.Tokens(ctx, owner, cursor, listPage)
		if err != nil {
			return fmt.Errorf("list tokens of %s: %w", owner, err)
		}
		for _, token := range tokens {
			if _, err := fmt.Fprintf(table, "%s\t%s\t%s\t%s\t%s\t%s\n", token.ID, token.Name, joined(token.Scopes),
				token.CreatedAt.Format(time.RFC3339), when(token.LastUsedAt), stateOf(token)); err != nil {
				return err
			}
		}
		if cursor = next; cursor == "" {
			return table.Flush()
		}
	}
}

func when(at *time.Time) string {
	if at == nil {
		return "never"
	}
	return at.Format(time.RFC3339)
}

func stateOf(token monitoring.Token) string {
	switch {
	case token.RevokedAt != nil:
		return "revoked since " + token.RevokedAt.Format(time.RFC3339)
	case token.CanReveal():
		return "active, copy under " + token.RecoveryKeyID()
	}
	return "active, no saved copy"
}
