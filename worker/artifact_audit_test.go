package main

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	storage "millrace/storage/artifact"
)

// inOrder wants everything that is told of artifacts to be what their chains say,
// once their last snapshots are written.
func inOrder(t testing.TB, store storage.Store, ids ...string) {
	t.Helper()
	for _, id := range ids {
		var problem error
		require.Eventually(t, func() bool {
			findings, err := store.Audit(t.Context(), id, nil)
			problem = err
			for _, f := range findings {
				if f.Err != nil {
					problem = f.Err
				}
			}
			return problem == nil
		}, 20*time.Second, 200*time.Millisecond, "%s", id)
		require.NoError(t, problem, id)
	}
}
