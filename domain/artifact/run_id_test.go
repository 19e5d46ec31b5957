package artifact_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"millrace/domain/artifact"
)

func TestRunIDsAreSortableAndRepeatable(t *testing.T) {
	id := artifact.NewRunID(noon, "a")
	require.NoError(t, artifact.CheckRunID(id))
	require.Equal(t, id, artifact.NewRunID(noon, "a"))
	require.NotEqual(t, id, artifact.NewRunID(noon, "b"))
	require.Less(t, id, artifact.NewRunID(noon.Add(time.Millisecond), "a"))
}
