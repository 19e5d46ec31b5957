package monitoring_test

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	domain "millrace/domain/monitoring"
	"millrace/storage/monitoring"
)

var errStale = errors.New("stale")

// rename edits the display name whatever the revision is.
func rename(name string) func(domain.Source) (domain.Configuration, error) {
	return domain.ConfigurationEdit{DisplayName: &name}.Apply
}

// renameAt edits the display name of that revision only.
func renameAt(revision int64, name string) func(domain.Source) (domain.Configuration, error) {
	return func(s domain.Source) (domain.Configuration, error) {
		if s.Configuration.Revision != revision {
			return domain.Configuration{}, errStale
		}
		return rename(name)(s)
	}
}

func TestAnEditChangesTheConfigurationOnly(t *testing.T) {
	store := newStore(t)
	ingest(t, store, "a", agentAt(0, 1))
	before, err := store.Source(t.Context(), owner, "a")
	require.NoError(t, err)
	edited, err := store.Configure(t.Context(), owner, "a", rename("Builder"))
	require.NoError(t, err)
	before.Configuration = domain.Configuration{Revision: 1, DisplayName: "Builder"}
	same(t, before, edited)
	after, err := store.Source(t.Context(), owner, "a")
	require.NoError(t, err)
	same(t, before, after)
	require.Equal(t, int64(1), minutesOf(t, store, "a")[0].SampleCount)
}

func TestObservationsKeepTheConfiguration(t *testing.T) {
	store := newStore(t)
	ingest(t, store, "a", agentAt(0, 1))
	_, err := store.Configure(t.Context(), owner, "a", rename("Builder"))
	require.NoError(t, err)
	ingest(t, store, "a", agentAt(time.Hour, 1))
	source, err := store.Source(t.Context(), owner, "a")
	require.NoError(t, err)
	require.Equal(t, domain.Configuration{Revision: 1, DisplayName: "Builder"}, source.Configuration)
}

func TestAConfigurationNeedsASource(t *testing.T) {
	_, err := newStore(t).Configure(t.Context(), owner, "a", rename("x"))
	require.ErrorIs(t, err, monitoring.ErrSourceNotFound)
}

func TestOneOfManyEditsOfARevisionWins(t *testing.T) {
	store := newStore(t)
	ingest(t, store, "a", agentAt(0, 1))
	ends := race(t, func(i int) error {
		_, err := store.Configure(t.Context(), owner, "a", renameAt(0, fmt.Sprint("name ", i)))
		return errors.Unwrap(err)
	})
	require.Equal(t, map[string]int{"<nil>": 1, "stale": actors - 1}, ends)
	source, err := store.Source(t.Context(), owner, "a")
	require.NoError(t, err)
	require.Equal(t, int64(1), source.Configuration.Revision)
}

func TestEditsAndObservationsDoNotLoseEachOther(t *testing.T) {
	store := newStore(t)
	ingest(t, store, "a", agentAt(0, 0))
	ends := race(t, func(i int) error {
		var err error
		if i < 10 {
			_, err = store.Configure(t.Context(), owner, "a", rename(fmt.Sprint("name ", i)))
		} else {
			_, err = store.Ingest(t.Context(), owner, "a", agentAt(time.Duration(i)*time.Second, 1), now)
		}
		return err
	})
	require.Equal(t, map[string]int{"<nil>": actors}, ends)
	source, err := store.Source(t.Context(), owner, "a")
	require.NoError(t, err)
	require.Equal(t, int64(10), source.Configuration.Revision)
	require.Equal(t, minute.Add((actors-1)*time.Second), source.Observation.ObservedAt)
	same(t, source.Minute, minutesOf(t, store, "a")[0])
}
