package outbox

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"millrace/domain/factory"
)

const messageID = "factory-b:factory_state:worker1:2026-11-30T12:00:03Z"

func open(t *testing.T) *Dir {
	t.Helper()
	dir, err := Open(filepath.Join(t.TempDir(), "outbox"), WithoutSync())
	require.NoError(t, err)
	return dir
}

func names(t *testing.T, path string) []string {
	t.Helper()
	entries, err := os.ReadDir(path)
	require.NoError(t, err)
	list := []string{}
	for _, entry := range entries {
		if !entry.IsDir() {
			list = append(list, entry.Name())
		}
	}
	return list
}

func TestWritePutsOneLineUnderTheMessageID(t *testing.T) {
	dir, err := Open(filepath.Join(t.TempDir(), "var", "outbox"))
	require.NoError(t, err)
	path, written, err := dir.Write(messageID, []byte(`{"a":1}`))
	require.NoError(t, err)
	require.True(t, written)
	require.Equal(t, filepath.Join(dir.Root(), messageID+".json"), path)
	content, err := os.ReadFile(path)
	require.NoError(t, err)
	require.Equal(t, "{\"a\":1}\n", string(content))
	require.Empty(t, names(t, dir.path(tmpName)))
}

func TestFilesAndDirectoriesAreForTheGroupWhateverTheUmask(t *testing.T) {
	defer syscall.Umask(syscall.Umask(0o077))
	dir := open(t)
	path, _, err := dir.Write(messageID, []byte("{}"))
	require.NoError(t, err)
	for path, mode := range map[string]os.FileMode{
		path: 0o640, dir.Root(): 0o770, dir.path(tmpName): 0o770, dir.path(quarantineName): 0o770,
	} {
		info, err := os.Stat(path)
		require.NoError(t, err)
		require.Equal(t, mode, info.Mode().Perm(), path)
	}
}

func TestWriteAgainChangesNothing(t *testing.T) {
	dir := open(t)
	first, _, err := dir.Write(messageID, []byte(`{"first":true}`))
	require.NoError(t, err)
	second, written, err := dir.Write(messageID, []byte(`{"first":false}`))
	require.NoError(t, err)
	require.False(t, written)
	require.Equal(t, first, second)
	content, err := os.ReadFile(first)
	require.NoError(t, err)
	require.Contains(t, string(content), "true")
}

func TestMessageIDsStayInTheDirectory(t *testing.T) {
	dir := open(t)
	for _, id := range []string{
		"", ".", "..", "../escape", "a/b", "/etc/passwd", `a\b`, "a\x00b", "a..b", ".hidden", "tmp/x",
		strings.Repeat("a", 251), strings.Repeat("a", 1000), "naïve", "a b", "a\n",
	} {
		_, _, err := dir.Write(id, []byte("{}"))
		var invalid *factory.InvalidError
		require.ErrorAs(t, err, &invalid, "%q", id)
		require.Equal(t, "message_id", invalid.Field)
	}
	require.Empty(t, names(t, dir.Root()))
	require.Empty(t, names(t, filepath.Dir(dir.Root())))
}

func TestLongestMessageIDStillFitsAFileName(t *testing.T) {
	dir := open(t)
	id := strings.Repeat("a", 250)
	_, written, err := dir.Write(id, []byte("{}"))
	require.NoError(t, err)
	require.True(t, written)
	for range 3 {
		_, err := dir.Quarantine(id+suffix, time.Unix(1, 0))
		require.NoError(t, err)
		_, _, err = dir.Write(id, []byte("{}"))
		require.NoError(t, err)
	}
	require.Len(t, names(t, dir.path(quarantineName)), 3)
}

// TestAWriteThatStopsAnywhereLeavesAllOrNothing fails a write after each of its
// steps, as a full disk would, and tries again.
func TestAWriteThatStopsAnywhereLeavesAllOrNothing(t *testing.T) {
	full := errors.New("disk full")
	for _, failing := range []string{stepCreated, stepWritten, stepSynced, stepReadied, stepRenamed} {
		t.Run(failing, func(t *testing.T) {
			dir := open(t)
			dir.step = func(step string) error {
				if step == failing {
					return full
				}
				return nil
			}
			_, _, err := dir.Write(messageID, []byte(`{"whole":1}`))
			require.ErrorIs(t, err, full)
			require.Empty(t, names(t, dir.path(tmpName)), "a failed write cleans up")
			requireWhole(t, dir)

			dir.step = func(string) error { return nil }
			_, _, err = dir.Write(messageID, []byte(`{"whole":1}`))
			require.NoError(t, err)
			require.Equal(t, []string{messageID + suffix}, names(t, dir.Root()))
			requireWhole(t, dir)
		})
	}
}

func requireWhole(t *testing.T, dir *Dir) {
	t.Helper()
	for _, name := range names(t, dir.Root()) {
		content, err := os.ReadFile(dir.path(name))
		require.NoError(t, err)
		require.Equal(t, "{\"whole\":1}\n", string(content))
	}
}

func TestOpenRefusesAFileInThePlaceOfADirectory(t *testing.T) {
	root := filepath.Join(t.TempDir(), "outbox")
	require.NoError(t, os.WriteFile(root, nil, 0o600))
	_, err := Open(root)
	require.ErrorContains(t, err, "is not a directory")
}

func TestSweepRemovesOnlyOldLeftoversOfWriters(t *testing.T) {
	dir := open(t)
	now := time.Now()
	for name, age := range map[string]time.Duration{
		"message-1.tmp": 2 * time.Hour, "message-2.tmp": time.Minute, "foreign": 2 * time.Hour,
	} {
		path := dir.path(tmpName, name)
		require.NoError(t, os.WriteFile(path, nil, 0o600))
		require.NoError(t, os.Chtimes(path, now.Add(-age), now.Add(-age)))
	}
	removed, err := dir.Sweep(now.Add(-time.Hour))
	require.NoError(t, err)
	require.Equal(t, 1, removed)
	require.ElementsMatch(t, []string{"message-2.tmp", "foreign"}, names(t, dir.path(tmpName)))
}

func TestOnlyOnePublisherHoldsTheLock(t *testing.T) {
	dir := open(t)
	unlock, err := dir.Lock()
	require.NoError(t, err)
	_, err = dir.Lock()
	require.ErrorIs(t, err, ErrLocked)
	unlock()
	unlock, err = dir.Lock()
	require.NoError(t, err)
	unlock()
	entries, err := dir.Scan(Entry{}, 10)
	require.NoError(t, err)
	require.Empty(t, entries, "the lock is no message")
}

func TestReadAndRemoveOfAFileThatIsGone(t *testing.T) {
	dir := open(t)
	_, err := dir.Read("gone.json", 10)
	require.ErrorIs(t, err, fs.ErrNotExist)
	require.NoError(t, dir.Remove("gone.json"))
}

func TestReadTakesOneByteMoreThanTheLimit(t *testing.T) {
	dir := open(t)
	require.NoError(t, os.WriteFile(dir.path("x.json"), []byte("0123456789"), 0o600))
	content, err := dir.Read("x.json", 4)
	require.NoError(t, err)
	require.Equal(t, "01234", string(content))
}

func BenchmarkWrite(b *testing.B) {
	for name, options := range map[string][]Option{"durable": nil, "relaxed": {WithoutSync()}} {
		b.Run(name, func(b *testing.B) {
			dir, err := Open(filepath.Join(b.TempDir(), "outbox"), options...)
			require.NoError(b, err)
			body := []byte(strings.Repeat("x", 600))
			for i := 0; b.Loop(); i++ {
				if _, _, err := dir.Write(fmt.Sprintf("m%d", i), body); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
