package monitoring_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	domain "millrace/domain/monitoring"
	"millrace/storage/monitoring"
)

func TestKeyRingFileIsMadeOnceAndPrivate(t *testing.T) {
	file := filepath.Join(t.TempDir(), "keys.json")
	require.NoError(t, monitoring.InitKeyRing(file, "k1"))
	info, err := os.Stat(file)
	require.NoError(t, err)
	require.Equal(t, os.FileMode(0o600), info.Mode().Perm())

	first, err := monitoring.LoadKeyRing(file)
	require.NoError(t, err)
	require.NoError(t, monitoring.InitKeyRing(file, "k9"), "a file that exists is left alone")
	second, err := monitoring.LoadKeyRing(file)
	require.NoError(t, err)
	require.Equal(t, first, second)
	require.Equal(t, "k1", first.Current)
}

func TestKeyRingRotationKeepsOldKeys(t *testing.T) {
	file := filepath.Join(t.TempDir(), "keys.json")
	require.NoError(t, monitoring.InitKeyRing(file, "k1"))
	before, err := monitoring.LoadKeyRing(file)
	require.NoError(t, err)
	after, err := monitoring.RotateKeyRing(file, "k2")
	require.NoError(t, err)
	loaded, err := monitoring.LoadKeyRing(file)
	require.NoError(t, err)
	require.Equal(t, after, loaded)
	require.Equal(t, "k2", loaded.Current)
	require.Equal(t, before.Keys["k1"], loaded.Keys["k1"])
	info, err := os.Stat(file)
	require.NoError(t, err)
	require.Equal(t, os.FileMode(0o600), info.Mode().Perm())
	_, err = monitoring.RotateKeyRing(file, "k1")
	require.Error(t, err)
	names, err := os.ReadDir(filepath.Dir(file))
	require.NoError(t, err)
	require.Len(t, names, 1, "no temporary file is left")
}

func TestKeyRingComesFromTheEnvironmentWithoutAFile(t *testing.T) {
	t.Setenv(monitoring.KeyRingVariable, "")
	ring, err := monitoring.LoadKeyRing("")
	require.NoError(t, err)
	require.Equal(t, domain.KeyRing{}, ring)

	text, err := domain.MarshalKeyRing(newRing(t, "k1"))
	require.NoError(t, err)
	t.Setenv(monitoring.KeyRingVariable, string(text))
	ring, err = monitoring.LoadKeyRing("")
	require.NoError(t, err)
	require.Equal(t, "k1", ring.Current)

	t.Setenv(monitoring.KeyRingVariable, `{"current":"k1","keys":{"k1":"c2VjcmV0"}}`)
	_, err = monitoring.LoadKeyRing("")
	require.ErrorContains(t, err, monitoring.KeyRingVariable)
	require.NotContains(t, err.Error(), "c2VjcmV0")
}

func TestKeyRingFilesThatCanNotBeUsed(t *testing.T) {
	dir := t.TempDir()
	_, err := monitoring.LoadKeyRing(filepath.Join(dir, "absent"))
	require.ErrorIs(t, err, os.ErrNotExist)
	require.Error(t, monitoring.InitKeyRing(filepath.Join(dir, "no", "such", "folder"), "k1"))
	require.Error(t, monitoring.InitKeyRing(filepath.Join(dir, "keys"), "a#b"))
}
