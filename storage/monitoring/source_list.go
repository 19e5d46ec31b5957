package monitoring

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"millrace/domain/monitoring"
	"millrace/storage/table"
)

// maxFilteredPages bounds how many pages of the table one page of a filtered
// list reads; the rest is for the next page.
const maxFilteredPages = 20

// Account names a provider's account.
type Account struct {
	Provider string
	Account  string
}

// matches tells whether the source is of the account; nil takes every source.
func (a *Account) matches(s monitoring.Source) bool {
	return a == nil || (s.Observation.Provider == a.Provider && s.Observation.Account == a.Account)
}

// Sources reads a page of an owner's sources in the order of their ids, those of
// one account if it is given, and the cursor of the next page, "" at the end. A
// page may have fewer sources than the limit before the end. A cursor of another
// list is table.ErrBadCursor.
func (s Store) Sources(ctx context.Context, owner string, account *Account, cursor string, limit int) ([]monitoring.Source, string, error) {
	var found []monitoring.Source
	for range maxFilteredPages {
		page, next, err := s.sourcePage(ctx, owner, cursor, limit-len(found))
		if err != nil {
			return nil, "", err
		}
		for _, source := range page {
			if account.matches(source) {
				found = append(found, source)
			}
		}
		cursor = next
		if cursor == "" || len(found) == limit {
			break
		}
	}
	return found, cursor, nil
}

func (s Store) sourcePage(ctx context.Context, owner, cursor string, limit int) ([]monitoring.Source, string, error) {
	items, next, err := s.Table.Page(ctx, table.PageQuery{
		Partition: monitoring.OwnerPK(owner), Prefix: monitoring.SourcePrefix,
		Cursor: cursor, Limit: int32(limit), Consistent: true, //nolint:gosec // a page limit is small
	})
	if err != nil {
		return nil, "", fmt.Errorf("list sources: %w", err)
	}
	sources, err := decodeSources(items)
	return sources, next, err
}

// SourcesByID reads up to 100 sources of an owner by their ids, those of one
// account if it is given, in the order of their ids. Ids without a source are
// left out.
func (s Store) SourcesByID(ctx context.Context, owner string, account *Account, ids []string) ([]monitoring.Source, error) {
	keys := make([]table.Key, 0, len(ids))
	for _, id := range slices.Compact(slices.Sorted(slices.Values(ids))) {
		keys = append(keys, sourceKey(owner, id))
	}
	items, err := s.Table.BatchGet(ctx, keys)
	if err != nil {
		return nil, fmt.Errorf("read sources: %w", err)
	}
	sources, err := decodeSources(items)
	if err != nil {
		return nil, err
	}
	sources = slices.DeleteFunc(sources, func(s monitoring.Source) bool { return !account.matches(s) })
	slices.SortFunc(sources, func(a, b monitoring.Source) int { return strings.Compare(a.ID, b.ID) })
	return sources, nil
}

// agents reads all agents of an owner, of one account if it is given.
func (s Store) agents(ctx context.Context, owner string, account *Account) ([]monitoring.Source, error) {
	var agents []monitoring.Source
	cursor := ""
	for {
		page, next, err := s.sourcePage(ctx, owner, cursor, 0)
		if err != nil {
			return nil, err
		}
		for _, source := range page {
			if source.Observation.Kind == monitoring.Agent && account.matches(source) {
				agents = append(agents, source)
			}
		}
		if next == "" {
			return agents, nil
		}
		cursor = next
	}
}

func decodeSources(items []table.Item) ([]monitoring.Source, error) {
	sources := make([]monitoring.Source, len(items))
	for i, item := range items {
		var row sourceRow
		if err := table.Decode(item, &row); err != nil {
			return nil, err
		}
		sources[i] = row.Source
	}
	return sources, nil
}
