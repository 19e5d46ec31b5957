package outbox

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

func put(t require.TestingT, dir *Dir, name string, modified time.Time) {
	path := dir.path(name)
	require.NoError(t, os.WriteFile(path, []byte("{}"), 0o600))
	require.NoError(t, os.Chtimes(path, modified, modified))
}

func entryNames(entries []Entry) []string {
	list := []string{}
	for _, entry := range entries {
		list = append(list, entry.Name)
	}
	return list
}

func TestScanIsOrderedByModificationTimeThenName(t *testing.T) {
	dir := open(t)
	base := time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC)
	put(t, dir, "a.json", base.Add(2*time.Second))
	put(t, dir, "c.json", base)
	put(t, dir, "b.json", base)
	put(t, dir, "z.json", base.Add(-time.Nanosecond))
	entries, err := dir.Scan(Entry{}, 10)
	require.NoError(t, err)
	require.Equal(t, []string{"z.json", "b.json", "c.json", "a.json"}, entryNames(entries))
}

func TestScanTakesOnlyMessages(t *testing.T) {
	dir := open(t)
	put(t, dir, "message.json", time.Now())
	for _, name := range []string{".hidden.json", ".snapshot-uploader-state.json", "notes.txt", "message.json.tmp", "json"} {
		put(t, dir, name, time.Now())
	}
	put(t, dir, filepath.Join(tmpName, "x.json"), time.Now())
	put(t, dir, filepath.Join(quarantineName, "x.json"), time.Now())
	require.NoError(t, os.Mkdir(dir.path("folder.json"), 0o700))
	require.NoError(t, os.Symlink(dir.path("message.json"), dir.path("link.json")))
	entries, err := dir.Scan(Entry{}, 10)
	require.NoError(t, err)
	require.Equal(t, []string{"message.json"}, entryNames(entries))
}

func TestScanInChunksSeesEveryEntryOnceInOrder(t *testing.T) {
	base := time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC)
	rapid.Check(t, func(t *rapid.T) {
		root, err := os.MkdirTemp("", "outbox")
		require.NoError(t, err)
		defer os.RemoveAll(root)
		dir, err := Open(root)
		require.NoError(t, err)
		ages := rapid.SliceOfN(rapid.IntRange(0, 5), 0, 40).Draw(t, "ages")
		for i, age := range ages {
			put(t, dir, fmt.Sprintf("%02d.json", i), base.Add(time.Duration(age)*time.Second))
		}
		whole, err := dir.Scan(Entry{}, len(ages)+1)
		require.NoError(t, err)
		require.Len(t, whole, len(ages))
		require.True(t, slices.IsSortedFunc(whole, Entry.Compare))

		limit := rapid.IntRange(1, 10).Draw(t, "limit")
		var walked []Entry
		for last := (Entry{}); ; last = walked[len(walked)-1] {
			chunk, err := dir.Scan(last, limit)
			require.NoError(t, err)
			require.LessOrEqual(t, len(chunk), limit)
			walked = append(walked, chunk...)
			if len(chunk) < limit {
				break
			}
		}
		require.Equal(t, whole, walked)
	})
}

func TestQuarantineNeverReplacesAnything(t *testing.T) {
	dir := open(t)
	now := time.Unix(1_780_000_000, 0)
	var got []string
	for range 3 {
		put(t, dir, "m.json", now)
		path, err := dir.Quarantine("m.json", now)
		require.NoError(t, err)
		got = append(got, filepath.Base(path))
	}
	require.Equal(t, []string{"m.json", "m.1780000000.json", "m.1780000001.json"}, got)
	require.Empty(t, names(t, dir.Root()))
	require.Len(t, names(t, dir.path(quarantineName)), 3)
}

func BenchmarkScan65000(b *testing.B) {
	dir, err := Open(filepath.Join(b.TempDir(), "outbox"), WithoutSync())
	require.NoError(b, err)
	for i := range 65_000 {
		require.NoError(b, os.WriteFile(dir.path(fmt.Sprintf("m%05d.json", i)), nil, 0o600))
	}
	b.ReportAllocs()
	for b.Loop() {
		entries, err := dir.Scan(Entry{}, 4096)
		require.NoError(b, err)
		require.Len(b, entries, 4096)
	}
}
