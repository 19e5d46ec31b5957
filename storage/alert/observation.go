package alert

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"time"

	"millrace/domain/alert"
	"millrace/domain/exact"
	"millrace/storage/table"
)

// observation is the item OBSERVATION#...
type observation struct {
	Count           int64  `json:"observation_count"`
	LastObservedAt  int64  `json:"last_observed_at"`
	SourceUpdatedAt string `json:"last_source_updated_at"`
	Token           string `json:"observation_id"`
}

// ErrStale tells that the same or a newer snapshot was observed already.
var ErrStale = errors.New("the same or a newer snapshot was observed already")

// maxRaces bounds how often a lost race is tried again: each loss means that
// another observation was counted.
const maxRaces = 5

// Observe counts an observation at a time and returns how many there were in a
// row, each within the window of the one before. The token names this delivery
// of the snapshot: a retry with the same token counts once and returns the same
// count, any other repeat is ErrStale.
func (s Store) Observe(ctx context.Context, a alert.Alert, token string, at time.Time, window time.Duration) (int64, error) {
	t, key, ttl := s.place(a, a.ObservationKey())
	order := orderOf(a, at).String()
	oldest := at.Add(-window).Unix()
	set := map[string]any{
		"last_observed_at": at.Unix(), "last_source_updated_at": order, "observation_id": token,
		"source_type": a.SourceType, "reason": alert.Slug(a.Reason), ttl: expiry(at, window),
	}
	for range maxRaces {
		var after observation
		err := t.Update(ctx, increment(key, set, order, oldest), &after)
		var refused *table.ConflictError
		if err == nil {
			return after.Count, nil
		}
		if !errors.As(err, &refused) {
			return 0, fmt.Errorf("count observation: %w", err)
		}
		var stored observation
		if err := table.Decode(refused.Current, &stored); err != nil {
			return 0, fmt.Errorf("count observation: %w", err)
		}
		if stored.Token == token && token != "" {
			return stored.Count, nil
		}
		if refused.Current != nil && stored.SourceUpdatedAt >= order {
			return 0, ErrStale
		}
		err = t.Update(ctx, restart(key, set, order, oldest), nil)
		if err == nil {
			return 1, nil
		}
		if !errors.As(err, &refused) {
			return 0, fmt.Errorf("restart observation: %w", err)
		}
	}
	return 0, fmt.Errorf("count observation of %s: %w", key.Sort, ErrStale)
}

func increment(key table.Key, set map[string]any, order string, oldest int64) table.Change {
	return table.Change{
		Key: key, Set: set, Add: map[string]exact.Decimal{"observation_count": exact.FromInt(1)},
		Condition: &table.Condition{
			Expression: "#observed >= :oldest AND #source < :source",
			Names:      map[string]string{"#observed": "last_observed_at", "#source": "last_source_updated_at"},
			Values:     table.Item{":oldest": table.Int(oldest), ":source": table.String(order)},
		},
	}
}

func restart(key table.Key, set map[string]any, order string, oldest int64) table.Change {
	first := map[string]any{"observation_count": 1}
	maps.Copy(first, set)
	return table.Change{Key: key, Set: first, Condition: &table.Condition{
		Expression: "attribute_not_exists(#source) OR (#source < :source AND #observed < :oldest)",
		Names:      map[string]string{"#observed": "last_observed_at", "#source": "last_source_updated_at"},
		Values:     table.Item{":oldest": table.Int(oldest), ":source": table.String(order)},
	}}
}
