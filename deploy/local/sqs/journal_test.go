package sqs

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
)

const testQueue = "/" + Account + "/q"

func newJournal(t testing.TB) *journal {
	t.Helper()
	return reopen(t, filepath.Join(t.TempDir(), journalFile))
}

func reopen(t testing.TB, path string) *journal {
	t.Helper()
	j, err := openJournal(path)
	require.NoError(t, err)
	t.Cleanup(func() { _ = j.close() }) // some tests close it before
	return j
}

func message(id, handle, body string) line {
	text, err := json.Marshal(body)
	if err != nil {
		panic(err)
	}
	return line{ID: id, Queue: testQueue, Handles: []string{handle}, Body: text, Attributes: json.RawMessage(`{"a":{"DataType":"String","StringValue":"<b>"}}`)}
}

func bodyOf(t testing.TB, j *journal, id string) string {
	t.Helper()
	l, ok, err := j.message(id)
	require.NoError(t, err)
	require.True(t, ok, id)
	var body string
	require.NoError(t, json.Unmarshal(l.Body, &body))
	require.JSONEq(t, `{"a":{"DataType":"String","StringValue":"<b>"}}`, string(l.Attributes))
	require.Equal(t, testQueue, l.Queue)
	return body
}

func TestJournalKnowsWhatWasReceivedAndNotDeletedAfterItIsOpenedAgain(t *testing.T) {
	j := newJournal(t)
	require.NoError(t, j.received([]line{message("1", "h1", "one\n\"<>&"), message("2", "h2", "two"), message("3", "h3", "three")}))
	require.NoError(t, j.deleted("h2", "unknown"))
	require.NoError(t, j.deleted("unknown"))
	for _, known := range []*journal{j, reopen(t, j.path)} {
		require.Equal(t, []string{"1", "3"}, known.ids(testQueue))
		require.Empty(t, known.ids("/other"))
		require.Equal(t, "one\n\"<>&", bodyOf(t, known, "1"))
		require.Equal(t, "three", bodyOf(t, known, "3"))
		_, ok, err := known.message("2")
		require.NoError(t, err)
		require.False(t, ok)
	}
}

func TestMessageReceivedTwiceIsOneEntryThatAnyOfItsHandlesDeletes(t *testing.T) {
	for _, handle := range []string{"old", "new"} {
		j := newJournal(t)
		require.NoError(t, j.received([]line{message("1", "old", "body")}))
		size := j.size
		require.NoError(t, j.received([]line{message("1", "new", "body")}))
		require.Less(t, j.size-size, size, "the body is written once")
		for _, known := range []*journal{j, reopen(t, j.path)} {
			require.Equal(t, []string{"1"}, known.ids(""))
			require.Equal(t, "body", bodyOf(t, known, "1"))
		}
		known := reopen(t, j.path)
		require.NoError(t, known.compactNow())
		known = reopen(t, j.path)
		require.NoError(t, known.deleted(handle))
		require.Empty(t, known.ids(""))
		require.Empty(t, known.owners)
		require.Empty(t, reopen(t, j.path).ids(""))
	}
}

func TestHandlesOfOneMessageAreBounded(t *testing.T) {
	j := newJournal(t)
	for i := range 10 * maxHandles {
		require.NoError(t, j.received([]line{message("1", fmt.Sprint("h", i), "body")}))
	}
	require.Len(t, j.owners, maxHandles)
	require.NoError(t, j.deleted("h0"))
	require.Len(t, j.ids(""), 1, "kumo forgot this handle long ago")
	require.NoError(t, j.deleted(fmt.Sprint("h", 10*maxHandles-1)))
	require.Empty(t, j.ids(""))
}

func TestTornLastLineIsIgnoredAndCutOff(t *testing.T) {
	j := newJournal(t)
	require.NoError(t, j.received([]line{message("1", "h1", "one")}))
	whole := j.size
	require.NoError(t, j.received([]line{message("2", "h2", "two")}))
	for size := j.size - 1; size >= whole; size-- {
		require.NoError(t, os.Truncate(j.path, size))
		torn := reopen(t, j.path)
		require.Equal(t, []string{"1"}, torn.ids(""))
		require.NoError(t, torn.received([]line{message("3", "h3", "three")}))
		require.Equal(t, []string{"1", "3"}, reopen(t, j.path).ids(""))
		require.NoError(t, torn.close())
	}
}

func TestUnreadableLineCostsNoOther(t *testing.T) {
	j := newJournal(t)
	require.NoError(t, j.received([]line{message("1", "h1", "one")}))
	require.NoError(t, j.close())
	file, err := os.OpenFile(j.path, os.O_APPEND|os.O_WRONLY, 0o600)
	require.NoError(t, err)
	_, err = file.WriteString("{\"id\":\n\x00\x00\n")
	require.NoError(t, err)
	require.NoError(t, file.Close())
	j = reopen(t, j.path)
	require.NoError(t, j.received([]line{message("2", "h2", "two")}))
	require.Equal(t, []string{"1", "2"}, reopen(t, j.path).ids(""))
	require.Equal(t, "two", bodyOf(t, j, "2"))
}

func TestJournalIsCompactedWhenItGrows(t *testing.T) {
	j := newJournal(t)
	large := strings.Repeat("x", 256<<10)
	require.NoError(t, j.received([]line{message("kept", "kept", "kept")}))
	for i := range 3 * compactFrom / len(large) {
		id := fmt.Sprint(i)
		require.NoError(t, j.received([]line{message(id, id, large)}))
		require.NoError(t, j.deleted(id))
		require.LessOrEqual(t, j.size, int64(compactFrom))
	}
	info, err := os.Stat(j.path)
	require.NoError(t, err)
	require.Equal(t, info.Size(), j.size)
	require.Less(t, j.size, int64(compactFrom))
	for _, known := range []*journal{j, reopen(t, j.path)} {
		require.Equal(t, []string{"kept"}, known.ids(""))
		require.Equal(t, "kept", bodyOf(t, known, "kept"))
	}
	require.NoFileExists(t, j.path+".new")
}

func TestLongListInFlightIsNotCompactedAtEveryWrite(t *testing.T) {
	j := newJournal(t)
	large := strings.Repeat("x", 1<<20)
	for i := range 10 {
		require.NoError(t, j.received([]line{message(fmt.Sprint(i), fmt.Sprint(i), large)}))
	}
	require.Len(t, j.ids(""), 10)
	require.Greater(t, j.limit, j.size)
	require.Equal(t, large, bodyOf(t, j, "9"))
}

func TestMessageSentAgainLivesOnUnderItsNewID(t *testing.T) {
	j := newJournal(t)
	require.NoError(t, j.received([]line{message("old", "h", "body")}))
	require.NoError(t, j.resent("old", "new"))
	for _, known := range []*journal{j, reopen(t, j.path)} {
		require.Equal(t, []string{"new"}, known.ids(testQueue))
		require.Equal(t, "body", bodyOf(t, known, "new"))
		require.Empty(t, known.owners)
	}
	require.NoError(t, j.compactNow())
	require.NoError(t, j.received([]line{message("new", "h2", "body")}))
	require.Equal(t, "body", bodyOf(t, reopen(t, j.path), "new"))
	require.NoError(t, j.deleted("h2"))
	require.Empty(t, reopen(t, j.path).ids(""))
}

func TestJournalThatCannotBeWrittenSaysSo(t *testing.T) {
	j := newJournal(t)
	require.NoError(t, j.received([]line{message("1", "h1", "one")}))
	require.NoError(t, j.close())
	require.Error(t, j.received([]line{message("2", "h2", "two")}))
	require.Error(t, j.deleted("h1"))
	require.Equal(t, []string{"1"}, j.ids(""))
	_, err := openJournal(t.TempDir())
	require.Error(t, err)
}

func TestJournalIsUsedByManyAtOnce(t *testing.T) {
	j := newJournal(t)
	j.limit = 4 << 10 // compactions in between
	var wg sync.WaitGroup
	for worker := range 8 {
		wg.Go(func() {
			for i := range 50 {
				id := fmt.Sprintf("%d-%d", worker, i)
				j.ids(testQueue)
				if j.received([]line{message(id, id, "body of "+id)}) != nil || i%5 != 0 && j.deleted(id) != nil {
					t.Error("not noted: " + id)
				}
			}
		})
	}
	wg.Wait()
	for _, known := range []*journal{j, reopen(t, j.path)} {
		ids := known.ids("")
		require.Len(t, ids, 8*10)
		for _, id := range ids {
			require.Equal(t, "body of "+id, bodyOf(t, known, id))
		}
	}
}
