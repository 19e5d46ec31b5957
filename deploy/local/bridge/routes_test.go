package bridge

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestChangesOfDestinations(t *testing.T) {
	r, err := NewRoutes(destinations, "")
	require.NoError(t, err)
	require.NoError(t, r.Apply(Change{Factory: "factory-x", Destinations: Destinations{Bucket: "other"}}))
	special := destinations
	special.Bucket = "other"
	require.Equal(t, special, r.Of("factory-x"))
	require.Equal(t, destinations, r.Of("factory-a"), "another factory is left alone")

	require.NoError(t, r.Apply(Change{Destinations: Destinations{TelemetryQueueURL: "q/2"}}))
	require.Equal(t, "q/2", r.Of("factory-a").TelemetryQueueURL)
	require.Equal(t, destinations.Bucket, r.Of("factory-a").Bucket, "what is not named stays")
	require.Equal(t, special, r.Of("factory-x"), "a factory with its own destinations keeps them")
}

func TestChangesSurviveARestartOfTheBridge(t *testing.T) {
	file := filepath.Join(t.TempDir(), "routes.json")
	r, err := NewRoutes(destinations, file)
	require.NoError(t, err)
	require.NoError(t, r.Apply(Change{Factory: "factory-x", Destinations: Destinations{Bucket: "other"}}))
	require.NoError(t, r.Apply(Change{Destinations: Destinations{Bucket: "base"}}))
	again, err := NewRoutes(destinations, file)
	require.NoError(t, err)
	require.Equal(t, "other", again.Of("factory-x").Bucket)
	require.Equal(t, "base", again.Of("factory-a").Bucket)
}

func TestBrokenRoutesFileIsNamed(t *testing.T) {
	file := filepath.Join(t.TempDir(), "routes.json")
	require.NoError(t, os.WriteFile(file, []byte("{"), 0o600))
	_, err := NewRoutes(destinations, file)
	require.ErrorContains(t, err, file)
}
