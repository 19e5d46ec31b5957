package stack

import (
	"os"
	"path/filepath"
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestADirectoryIsLockedOnce(t *testing.T) {
	name := filepath.Join(t.TempDir(), "lock")
	unlock, err := lock(name)
	require.NoError(t, err)
	_, err = lock(name)
	require.ErrorContains(t, err, "process "+strconv.Itoa(os.Getpid()))
	unlock()
	unlock, err = lock(name)
	require.NoError(t, err)
	unlock()
}
