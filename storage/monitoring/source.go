package monitoring

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"

	"millrace/domain/monitoring"
	"millrace/storage/table"
)

// Errors of sources.
var (
	// ErrSourceNotFound means that the owner has no such source.
	ErrSourceNotFound = errors.New("no such source")
	// ErrContended means that other writers of the same row won every attempt. The
	// write was not made and may be tried again.
	ErrContended = errors.New("the row is written by too many at once")
)

// sourceRow is the latest row of a source.
type sourceRow struct {
	PK string `json:"PK"`
	SK string `json:"SK"`
	monitoring.Source
}

func sourceKey(owner, id string) table.Key {
	return table.Key{Partition: monitoring.OwnerPK(owner), Sort: monitoring.SourceSK(id)}
}

// Source reads one source consistently; without one the error is
// ErrSourceNotFound.
func (s Store) Source(ctx context.Context, owner, id string) (monitoring.Source, error) {
	latest, err := s.latest(ctx, owner, id)
	if err != nil {
		return monitoring.Source{}, err
	}
	if latest == nil {
		return monitoring.Source{}, ErrSourceNotFound
	}
	return *latest, nil
}

func (s Store) latest(ctx context.Context, owner, id string) (*monitoring.Source, error) {
	var row sourceRow
	found, err := s.Table.Get(ctx, sourceKey(owner, id), &row)
	if err != nil || !found {
		return nil, err
	}
	return &row.Source, nil
}

// Configure edits the owner's part of a source. The edit gets the source as it
// is and returns its new configuration, or an error that ends the attempt; it is
// asked again when another edit came in between. Observations that come in
// between do not matter, and none is changed.
func (s Store) Configure(ctx context.Context, owner, id string, edit func(monitoring.Source) (monitoring.Configuration, error)) (monitoring.Source, error) {
	var edited sourceRow
	err := contend(ctx, func() error {
		source, err := s.Source(ctx, owner, id)
		if err != nil {
			return err
		}
		configuration, err := edit(source)
		if err != nil {
			return err
		}
		return s.Table.Update(ctx, table.Change{
			Key: sourceKey(owner, id), Set: map[string]any{"configuration": configuration},
			Condition: sameConfiguration(source),
		}, &edited)
	})
	if err != nil {
		return monitoring.Source{}, fmt.Errorf("configure source: %w", err)
	}
	return edited.Source, nil
}

// DeleteSource removes the latest row of a source; its minutes stay until they
// expire. Removing what is not there is no error.
func (s Store) DeleteSource(ctx context.Context, owner, id string) error {
	return contend(ctx, func() error { return s.Table.Delete(ctx, sourceKey(owner, id), nil) })
}

// sameObservation is the condition that a source has the life and the newest
// observation that were read.
func sameObservation(s monitoring.Source) *table.Condition {
	return &table.Condition{
		Expression: "#life = :life AND #rev = :rev",
		Names:      map[string]string{"#life": "life", "#rev": "rev"},
		Values:     table.Item{":life": table.String(s.Life), ":rev": table.Int(s.Rev)},
	}
}

// sameConfiguration is the condition that a source has the life and the
// configuration that were read.
func sameConfiguration(s monitoring.Source) *table.Condition {
	return &table.Condition{
		Expression: "#life = :life AND #configuration.#revision = :revision",
		Names:      map[string]string{"#life": "life", "#configuration": "configuration", "#revision": "revision"},
		Values:     table.Item{":life": table.String(s.Life), ":revision": table.Int(s.Configuration.Revision)},
	}
}

// newLife is a random name for the life of a source.
func newLife() string { return rand.Text() }
