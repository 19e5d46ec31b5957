package monitoring

import (
	"context"
	"errors"
	"fmt"
	"time"

	"millrace/domain/monitoring"
	"millrace/storage/table"
)

// Errors of tokens.
var (
	// ErrTokenNotFound means that the owner has no such token.
	ErrTokenNotFound = errors.New("no such token")
	// ErrTokenChanged means that the token is no longer as it was read: revoked,
	// deleted, or its copy made anew by another.
	ErrTokenChanged = errors.New("the token was changed by another")
)

// tokenRow is a token's metadata.
type tokenRow struct {
	PK         string               `json:"PK"`
	SK         string               `json:"SK"`
	GSI1PK     string               `json:"GSI1PK"`
	GSI1SK     string               `json:"GSI1SK"`
	Owner      string               `json:"owner"`
	TokenID    string               `json:"token_id"`
	Name       string               `json:"name"`
	Scopes     monitoring.Scopes    `json:"scopes"`
	Hash       string               `json:"hash"`
	CreatedAt  time.Time            `json:"created_at"`
	RevokedAt  *time.Time           `json:"revoked_at,omitempty"`
	LastUsedAt *time.Time           `json:"last_used_at,omitempty"`
	Recovery   *monitoring.Envelope `json:"recovery,omitempty"`
}

// grantRow is what authentication reads.
type grantRow struct {
	PK            string            `json:"PK"`
	SK            string            `json:"SK"`
	Owner         string            `json:"owner"`
	TokenID       string            `json:"token_id"`
	Scopes        monitoring.Scopes `json:"scopes"`
	RevokedAt     *time.Time        `json:"revoked_at,omitempty"`
	RecoveryKeyID string            `json:"recovery_key_id,omitempty"`
}

func rowOf(t monitoring.Token) tokenRow {
	return tokenRow{
		PK: monitoring.OwnerPK(t.Owner), SK: monitoring.TokenSK(t.ID),
		GSI1PK: monitoring.RecoveryPK(t.RecoveryKeyID()), GSI1SK: monitoring.RecoverySK(t.Owner, t.ID),
		Owner: t.Owner, TokenID: t.ID, Name: t.Name, Scopes: t.Scopes, Hash: t.Hash,
		CreatedAt: t.CreatedAt, RevokedAt: t.RevokedAt, LastUsedAt: t.LastUsedAt, Recovery: t.Recovery,
	}
}

func (r tokenRow) token() monitoring.Token {
	return monitoring.Token{
		ID: r.TokenID, Owner: r.Owner, Name: r.Name, Scopes: r.Scopes, Hash: r.Hash,
		CreatedAt: r.CreatedAt, RevokedAt: r.RevokedAt, LastUsedAt: r.LastUsedAt, Recovery: r.Recovery,
	}
}

func grantRowOf(t monitoring.Token) grantRow {
	return grantRow{
		PK: monitoring.TokenGrantPK(t.Hash), SK: monitoring.TokenGrantSK,
		Owner: t.Owner, TokenID: t.ID, Scopes: t.Scopes, RevokedAt: t.RevokedAt, RecoveryKeyID: t.RecoveryKeyID(),
	}
}

func tokenKey(owner, id string) table.Key {
	return table.Key{Partition: monitoring.OwnerPK(owner), Sort: monitoring.TokenSK(id)}
}

func grantKey(hash string) table.Key {
	return table.Key{Partition: monitoring.TokenGrantPK(hash), Sort: monitoring.TokenGrantSK}
}

// Grant reads what a token's hash allows: one consistent read of one row. It
// tells whether there is such a token.
func (s Store) Grant(ctx context.Context, hash string) (monitoring.Grant, bool, error) {
	var row grantRow
	found, err := s.Table.Get(ctx, grantKey(hash), &row)
	if err != nil || !found {
		return monitoring.Grant{}, false, err
	}
	return monitoring.Grant{
		Hash: hashOf(row.PK), Owner: row.Owner, TokenID: row.TokenID, Scopes: row.Scopes,
		RevokedAt: row.RevokedAt, RecoveryKeyID: row.RecoveryKeyID,
	}, true, nil
}

func hashOf(grantPK string) string {
	prefix := len(monitoring.TokenGrantPK(""))
	if len(grantPK) < prefix {
		return ""
	}
	return grantPK[prefix:]
}

// CreateToken writes both rows of a new token.
func (s Store) CreateToken(ctx context.Context, t monitoring.Token) error {
	absent := s.Table.Absent()
	row, err := s.Table.PutWrite(rowOf(t), &absent)
	if err != nil {
		return err
	}
	grant, err := s.Table.PutWrite(grantRowOf(t), &absent)
	if err != nil {
		return err
	}
	if err := s.Table.TransactRetrying(ctx, row, grant); err != nil {
		return fmt.Errorf("create token %s: %w", t.ID, err)
	}
	return nil
}

// Token reads one token of an owner consistently; without one the error is
// ErrTokenNotFound.
func (s Store) Token(ctx context.Context, owner, id string) (monitoring.Token, error) {
	var row tokenRow
	found, err := s.Table.Get(ctx, tokenKey(owner, id), &row)
	if err != nil {
		return monitoring.Token{}, err
	}
	if !found {
		return monitoring.Token{}, ErrTokenNotFound
	}
	return row.token(), nil
}

// Tokens reads a page of an owner's tokens, newest first, and the cursor of the
// next page, "" at the end.
func (s Store) Tokens(ctx context.Context, owner, cursor string, limit int32) ([]monitoring.Token, string, error) {
	items, next, err := s.Table.Page(ctx, table.PageQuery{
		Partition: monitoring.OwnerPK(owner), Prefix: monitoring.TokenPrefix,
		Cursor: cursor, Limit: limit, Descending: true, Consistent: true,
	})
	if err != nil {
		return nil, "", err
	}
	tokens := make([]monitoring.Token, len(items))
	for i, item := range items {
		var row tokenRow
		if err := table.Decode(item, &row); err != nil {
			return nil, "", err
		}
		tokens[i] = row.token()
	}
	return tokens, next, nil
}

// DeleteToken removes both rows of a token in one transaction. Of several
// deletions at once one finds it; to the others it is ErrTokenNotFound.
func (s Store) DeleteToken(ctx context.Context, owner, id string) error {
	token, err := s.Token(ctx, owner, id)
	if err != nil {
		return err
	}
	present := s.Table.Present()
	err = s.Table.TransactRetrying(ctx,
		s.Table.DeleteWrite(tokenKey(owner, id), &present),
		s.Table.DeleteWrite(grantKey(token.Hash), nil))
	if isConflict(err) {
		return ErrTokenNotFound
	}
	if err != nil {
		return fmt.Errorf("delete token %s: %w", id, err)
	}
	return nil
}

func isConflict(err error) bool {
	var conflict *table.ConflictError
	return errors.As(err, &conflict)
}
