package monitoring

import (
	"context"

	"millrace/domain/monitoring"
	"millrace/storage/table"
)

// TokensUnderKey reads a page of the tokens whose saved copy is under a key, and
// the cursor of the next page, "" at the end. The index lags a little behind the
// table: the tokens returned are read from the table itself, and those that are
// under another key by now are left out; a token just written may be missing.
func (s Store) TokensUnderKey(ctx context.Context, keyID, cursor string, limit int32) ([]monitoring.Token, string, error) {
	items, next, err := s.Table.Page(ctx, table.PageQuery{Index: Index, Partition: monitoring.RecoveryPK(keyID), Cursor: cursor, Limit: limit})
	if err != nil || len(items) == 0 {
		return nil, next, err
	}
	keys := make([]table.Key, len(items))
	for i, item := range items {
		var row tokenRow
		if err := table.Decode(item, &row); err != nil {
			return nil, "", err
		}
		keys[i] = table.Key{Partition: row.PK, Sort: row.SK}
	}
	items, err = s.Table.BatchGet(ctx, keys)
	if err != nil {
		return nil, "", err
	}
	tokens := make([]monitoring.Token, 0, len(items))
	for _, item := range items {
		var row tokenRow
		if err := table.Decode(item, &row); err != nil {
			return nil, "", err
		}
		if token := row.token(); token.RecoveryKeyID() == keyID {
			tokens = append(tokens, token)
		}
	}
	return tokens, next, nil
}
