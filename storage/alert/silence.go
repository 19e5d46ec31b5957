package alert

import (
	"context"
	"errors"
	"fmt"
	"time"

	"millrace/domain/alert"
	"millrace/domain/factory"
	"millrace/storage/table"
)

const silencePrefix = "SILENCE#"

// silenceKeep is how long a silence can still be looked up after it ended.
const silenceKeep = 30 * 24 * time.Hour

// Errors of silences.
var (
	ErrNoSilence      = errors.New("there is no such silence")
	ErrSilenceExists  = errors.New("a silence with this id exists already")
	ErrSilenceChanged = errors.New("the silence was changed by someone else")
)

// silenceRow is the item of a silence.
type silenceRow struct {
	PK string `json:"pk"`
	SK string `json:"sk"`
	alert.Silence
	TTL int64 `json:"ttl"`
}

func silenceKey(scope, id string) table.Key {
	return table.Key{Partition: silencePrefix + scope, Sort: id}
}

func silenceRowOf(s alert.Silence) silenceRow {
	k := silenceKey(s.Scope, s.ID)
	return silenceRow{PK: k.Partition, SK: k.Sort, Silence: s, TTL: s.Until.Add(silenceKeep).Unix()}
}

// CreateSilence stores a new silence. The same silence again is no error;
// another one with its id is ErrSilenceExists.
func (s Store) CreateSilence(ctx context.Context, silence alert.Silence) error {
	absent := s.Status.Absent()
	err := s.Status.Put(ctx, silenceRowOf(silence), &absent)
	var refused *table.ConflictError
	if !errors.As(err, &refused) {
		return wrapSilence(err)
	}
	var stored alert.Silence
	if err := table.Decode(refused.Current, &stored); err != nil {
		return wrapSilence(err)
	}
	if stored != silence {
		return ErrSilenceExists
	}
	return nil
}

// Silence reads one silence, over or not; ErrNoSilence when there is none.
func (s Store) Silence(ctx context.Context, scope, id string) (alert.Silence, error) {
	var row silenceRow
	found, err := s.Status.Get(ctx, silenceKey(scope, id), &row)
	if err == nil && !found {
		err = ErrNoSilence
	}
	return row.Silence, wrapSilence(err)
}

// ChangeSilence replaces a silence that was read with updated_at was.
func (s Store) ChangeSilence(ctx context.Context, silence alert.Silence, was factory.Millis) error {
	err := s.Status.Put(ctx, silenceRowOf(silence), &table.Condition{
		Expression: "#updated = :was", Names: map[string]string{"#updated": "updated_at"}, Values: table.Item{":was": table.String(was.String())},
	})
	var refused *table.ConflictError
	switch {
	case !errors.As(err, &refused):
		return wrapSilence(err)
	case refused.Current == nil:
		return ErrNoSilence
	}
	return ErrSilenceChanged
}

// DeleteSilence removes a silence; removing none is no error.
func (s Store) DeleteSilence(ctx context.Context, scope, id string) error {
	return wrapSilence(s.Status.Delete(ctx, silenceKey(scope, id), nil))
}

// maxSilences bounds how many silences of a scope are looked at.
const maxSilences = 200

// Silences are the silences of a scope that hold at now.
func (s Store) Silences(ctx context.Context, scope string, now time.Time) ([]alert.Silence, error) {
	silences := []alert.Silence{}
	for item, err := range s.Status.Query(ctx, table.Range{Partition: silencePrefix + scope, From: "0", To: "~", Consistent: true}) {
		if err != nil {
			return nil, wrapSilence(err)
		}
		var row silenceRow
		if err := table.Decode(item, &row); err != nil {
			return nil, wrapSilence(err)
		}
		if row.Until.After(now) {
			silences = append(silences, row.Silence)
		}
		if len(silences) == maxSilences {
			break
		}
	}
	return silences, nil
}

// SilenceOf is the silence that holds an alert back at now, nil when none does.
func (s Store) SilenceOf(ctx context.Context, a alert.Alert, now time.Time) (*alert.Silence, error) {
	silences, err := s.Silences(ctx, a.Scope, now)
	if err != nil {
		return nil, err
	}
	for _, silence := range silences {
		if silence.Covers(a, now) {
			return &silence, nil
		}
	}
	return nil, nil
}

func wrapSilence(err error) error {
	if err == nil || errors.Is(err, ErrNoSilence) {
		return err
	}
	return fmt.Errorf("keep silence: %w", err)
}
