package artifact_test

import (
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"millrace/domain/artifact"
	storage "millrace/storage/artifact"
)

func claim(fingerprint, holder string, at time.Time) storage.Reservation {
	return storage.NewReservation(artifact.Request{ArtifactID: "fix", Version: 1}, fingerprint, holder, at)
}

func TestOneOfManySubmissionsGetsANumber(t *testing.T) {
	w := newWorld(t)
	var won, lost atomic.Int64
	var all sync.WaitGroup
	for n := range 20 {
		all.Go(func() {
			_, err := w.store.Reserve(t.Context(), claim(fmt.Sprint("hash", n), fmt.Sprint("attempt", n), noon))
			switch {
			case err == nil:
				won.Add(1)
			case errors.Is(err, storage.ErrTaken):
				lost.Add(1)
			}
		})
	}
	all.Wait()
	require.EqualValues(t, 1, won.Load())
	require.EqualValues(t, 19, lost.Load())
}

func TestAReservationPassesToTheSameSubmissionAndWhenItsTimeIsOver(t *testing.T) {
	w := newWorld(t)
	overtook, err := w.store.Reserve(t.Context(), claim("a", "first", noon))
	require.NoError(t, err)
	require.False(t, overtook)
	overtook, err = w.store.Reserve(t.Context(), claim("a", "retry", noon.Add(time.Second)))
	require.NoError(t, err)
	require.True(t, overtook)

	require.NoError(t, w.store.Release(t.Context(), claim("a", "first", noon)), "it passed to the retry")
	held, found, err := w.store.Reservation(t.Context(), "fix", 1)
	require.NoError(t, err)
	require.True(t, found)
	require.Equal(t, "retry", held.Holder)

	_, err = w.store.Reserve(t.Context(), claim("b", "other", noon.Add(storage.ReservationTime)))
	require.ErrorIs(t, err, storage.ErrTaken)
	overtook, err = w.store.Reserve(t.Context(), claim("b", "other", noon.Add(2*storage.ReservationTime)))
	require.NoError(t, err)
	require.False(t, overtook, "what came before was another submission")

	require.NoError(t, w.store.Release(t.Context(), claim("b", "other", noon)))
	_, found, err = w.store.Reservation(t.Context(), "fix", 1)
	require.NoError(t, err)
	require.False(t, found)
	versions, err := w.store.Versions(t.Context(), "fix")
	require.NoError(t, err)
	require.Empty(t, versions, "a reservation is no version")
}
