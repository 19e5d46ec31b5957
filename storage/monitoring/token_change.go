package monitoring

import (
	"context"
	"fmt"
	"time"

	"millrace/domain/monitoring"
	"millrace/storage/table"
)

// RevokeToken ends a token for good and removes its saved copy, in one
// transaction over both rows. A token revoked before keeps its first time. When
// others change the token all the time, or its two rows do not belong together,
// the error is ErrContended.
func (s Store) RevokeToken(ctx context.Context, owner, id string, now time.Time) (monitoring.Token, error) {
	at := now.UTC().Truncate(time.Millisecond)
	var token monitoring.Token
	err := contend(ctx, func() (err error) {
		token, err = s.Token(ctx, owner, id)
		if err != nil || token.RevokedAt != nil {
			return err
		}
		if err := s.revoke(ctx, token, at); err != nil {
			return err
		}
		token.RevokedAt, token.Recovery = &at, nil
		return nil
	})
	if err != nil {
		return monitoring.Token{}, fmt.Errorf("revoke token: %w", err)
	}
	return token, nil
}

func (s Store) revoke(ctx context.Context, token monitoring.Token, at time.Time) error {
	active := s.active()
	row, err := s.Table.UpdateWrite(table.Change{
		Key:    tokenKey(token.Owner, token.ID),
		Set:    map[string]any{"revoked_at": at, "GSI1PK": monitoring.RecoveryPK("")},
		Remove: []string{"recovery"}, Condition: &active,
	})
	if err != nil {
		return err
	}
	grant, err := s.Table.UpdateWrite(table.Change{
		Key: grantKey(token.Hash), Set: map[string]any{"revoked_at": at},
		Remove: []string{"recovery_key_id"}, Condition: &active,
	})
	if err != nil {
		return err
	}
	return s.Table.TransactRetrying(ctx, row, grant)
}

// active is the condition that a row exists and was not revoked.
func (s Store) active() table.Condition {
	present := s.Table.Present()
	present.Expression += " AND attribute_not_exists(#revoked_at)"
	present.Names["#revoked_at"] = "revoked_at"
	return present
}

// SaveRecovery gives a token a new saved copy in place of the one under
// grant.RecoveryKeyID, "" for none, in one transaction over both rows. When the
// token was revoked, deleted or given another copy since the grant was read,
// nothing changes and the error is ErrTokenChanged: a copy never brings a token
// back.
func (s Store) SaveRecovery(ctx context.Context, grant monitoring.Grant, envelope *monitoring.Envelope) error {
	rowCondition := s.underKey("recovery", "#recovery.#key_id", grant.RecoveryKeyID)
	row, err := s.Table.UpdateWrite(table.Change{
		Key: tokenKey(grant.Owner, grant.TokenID),
		// Both keys of the index: an older record may have none, and would be
		// missing where RekeyTokens looks.
		Set: map[string]any{
			"recovery": envelope, "GSI1PK": monitoring.RecoveryPK(envelope.KeyID),
			"GSI1SK": monitoring.RecoverySK(grant.Owner, grant.TokenID),
		},
		Condition: &rowCondition,
	})
	if err != nil {
		return err
	}
	grantCondition := s.underKey("recovery_key_id", "#recovery_key_id", grant.RecoveryKeyID)
	lookup, err := s.Table.UpdateWrite(table.Change{
		Key: grantKey(grant.Hash), Set: map[string]any{"recovery_key_id": envelope.KeyID}, Condition: &grantCondition,
	})
	if err != nil {
		return err
	}
	err = s.Table.TransactRetrying(ctx, row, lookup)
	if isConflict(err) {
		return ErrTokenChanged
	}
	if err != nil {
		return fmt.Errorf("save copy of token %s: %w", grant.TokenID, err)
	}
	return nil
}

// underKey is the condition that a row is active and its copy is still under this
// key; attribute is where the row keeps it, path is the key's id therein.
func (s Store) underKey(attribute, path, keyID string) table.Condition {
	condition := s.active()
	condition.Names["#"+attribute] = attribute
	if keyID == "" {
		condition.Expression += fmt.Sprintf(" AND attribute_not_exists(#%s)", attribute)
		return condition
	}
	if attribute == "recovery" {
		condition.Names["#key_id"] = "key_id"
	}
	condition.Expression += fmt.Sprintf(" AND %s = :key_id", path)
	condition.Values = table.Item{":key_id": table.String(keyID)}
	return condition
}

// RecordUse notes that a token was used at now, once a minute whatever the number
// of instances, and tells whether it wrote. A token that is gone is not brought
// back.
func (s Store) RecordUse(ctx context.Context, owner, id string, now time.Time) (bool, error) {
	minute := now.UTC().Truncate(time.Minute)
	condition := s.Table.Present()
	condition.Expression += " AND (attribute_not_exists(#last_used_at) OR #last_used_at < :minute)"
	condition.Names["#last_used_at"] = "last_used_at"
	condition.Values = table.Item{":minute": table.String(minute.Format(time.RFC3339))}
	err := s.Table.Update(ctx, table.Change{
		Key: tokenKey(owner, id), Set: map[string]any{"last_used_at": minute}, Condition: &condition,
	}, nil)
	if isConflict(err) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("record use of token %s: %w", id, err)
	}
	return true, nil
}
