package factory

import (
	"encoding/json"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"millrace/domain/factory"
	storage "millrace/storage/factory"
	"millrace/storage/objects"
	"millrace/storage/storagetest"
	workflows "millrace/workflows/factory"
)

// replayAll drives the activities as the workflow does, and gives the counts.
func replayAll(t *testing.T, r Replayer, req workflows.ReplayRequest, startedAt time.Time, limit int) workflows.ReplayCounts {
	t.Helper()
	var counts workflows.ReplayCounts
	chunk := workflows.ReplayChunk{Request: req, StartedAt: startedAt, Day: dayOf(req.From).AddDate(0, 0, -1), Limit: limit}
	for !chunk.Day.After(dayOf(startedAt)) {
		result, err := r.replay(t.Context(), chunk, attempt{record: func(replayProgress) {}})
		require.NoError(t, err)
		counts.Add(result.Counts)
		chunk.After, chunk.State = result.After, result.State
		if result.DayDone {
			chunk.Day, chunk.After = chunk.Day.AddDate(0, 0, 1), workflows.ReplayPosition{}
		}
	}
	if chunk.State == nil {
		return counts
	}
	restored, err := r.RestoreLatestState(t.Context(), workflows.RestoreRequest{State: *chunk.State, DryRun: req.DryRun})
	require.NoError(t, err)
	counts.Latest = count(restored.Restored)
	return counts
}

func (a *archive) replayer(store storage.Store) Replayer {
	return Replayer{Store: store, Now: func() time.Time { return a.now }, Logger: quiet()}
}

// today is the day until the world's now.
func today() workflows.ReplayRequest {
	return workflows.ReplayRequest{FactoryID: "factory-x", From: at("00:00:00"), To: at("23:59:59"), LateDays: 1}
}

// flow processes half an hour of messages, the last 16 minutes ago: in order but
// for one that is late, one that is refused and a picture.
func flow(a *archive) {
	start := at("07:42:00")
	for i := range 40 {
		sent := start.Add(time.Duration(i) * 45 * time.Second)
		switch {
		case i%10 == 0:
			a.process(messageOf(factory.SourceInfraState, sent), sent.Add(time.Second))
		case i == 25:
			a.process(messageWith(factory.SourceFactoryState, sent, `[]`), sent.Add(time.Second))
		case i == 26:
			a.process(messageOf(factory.SourceImageSnapshot, sent), sent.Add(time.Second))
		case i == 27:
			late := start.Add(12*45*time.Second + time.Second)
			a.process(messageOf(factory.SourceFactoryState, late), sent.Add(time.Second))
		default:
			a.process(messageOf(factory.SourceFactoryState, sent), sent.Add(time.Second))
		}
	}
}

// items are the history items of a store by sort key, without their revision:
// a replay counts its own.
func items(a *archive, store storage.Store) map[string]factory.Latest {
	other := *a.world
	other.store = store
	found := make(map[string]factory.Latest)
	for _, row := range other.history("factory-x") {
		row.Rev = 0
		found[row.SK] = row
	}
	return found
}

// documents are the objects of a store below a prefix, without revisions.
func (a *archive) documents(store storage.Store, prefix string) map[string]string {
	other := *a
	world := *a.world
	world.store = store
	other.world = &world
	found := other.bodies(prefix)
	for key, body := range found {
		var document map[string]any
		require.NoError(a.t, json.Unmarshal([]byte(body), &document))
		delete(document, "rev")
		plain, err := json.Marshal(document)
		require.NoError(a.t, err)
		found[key] = string(plain)
	}
	return found
}

func latestOf(t *testing.T, store storage.Store) factory.Latest {
	t.Helper()
	latest, err := store.Latest(t.Context(), "factory-x")
	require.NoError(t, err)
	require.NotNil(t, latest)
	return *latest
}

func TestAReplayIntoEmptyStoresGivesWhatIngestGave(t *testing.T) {
	a := newArchive(t)
	flow(a)
	target := a.emptied(t)
	counts := replayAll(t, a.replayer(target), today(), a.now, 7)

	require.Equal(t, a.documents(a.store, "processed/"), a.documents(target, "processed/"))
	require.Equal(t, a.documents(a.store, "quarantine/"), a.documents(target, "quarantine/"))
	require.Equal(t, items(a, a.store), items(a, target))
	want, got := latestOf(t, a.store), latestOf(t, target)
	require.Equal(t, want.FactoryState, got.FactoryState)
	require.Equal(t, want.InfraState, got.InfraState)
	require.Equal(t, want.LatestImageSnapshot, got.LatestImageSnapshot)
	require.Equal(t, want.EnvironmentType, got.EnvironmentType)
	require.Equal(t, want.MessageID, got.MessageID)
	require.Equal(t, workflows.ReplayCounts{
		Messages: 40, Late: 1, Quarantined: 1, Processed: 39, Risks: 33, Snapshots: 37, History: 37, DirtyBuckets: counts.DirtyBuckets, Latest: 1,
	}, counts)
	require.Positive(t, counts.DirtyBuckets)
}

// whole is all that a store holds that a replay may write.
func (a *archive) whole(store storage.Store) any {
	latest, err := store.Latest(a.t.Context(), "factory-x")
	require.NoError(a.t, err)
	return []any{a.documents(store, ""), items(a, store), latest}
}

func TestAReplayOfWhatIsThereChangesNothing(t *testing.T) {
	a := newArchive(t)
	flow(a)
	before := a.whole(a.store)
	dirty := a.dirty()
	counts := replayAll(t, a.replayer(a.store), today(), a.now, 1000)
	require.Equal(t, before, a.whole(a.store))
	require.Equal(t, dirty, a.dirty())
	require.Equal(t, workflows.ReplayCounts{Messages: 40, Late: 1, Quarantined: 1}, counts)
}

func TestASecondReplayLeavesTheSameItems(t *testing.T) {
	a := newArchive(t)
	flow(a)
	target := a.emptied(t)
	replayAll(t, a.replayer(target), today(), a.now, 1000)
	once := a.whole(target)
	a.now = a.now.Add(10 * time.Minute)
	counts := replayAll(t, a.replayer(target), today(), a.now, 13)
	require.Equal(t, once, a.whole(target))
	require.Zero(t, counts.Processed+counts.History+counts.Snapshots+counts.Risks+counts.Latest+counts.DirtyBuckets)
}

func TestADryRunCountsAndChangesNothing(t *testing.T) {
	a := newArchive(t)
	flow(a)
	target := a.emptied(t)
	dry := today()
	dry.DryRun = true
	before := a.documents(target, "processed/")
	would := replayAll(t, a.replayer(target), dry, a.now, 1000)
	require.Equal(t, before, a.documents(target, "processed/"))
	require.Empty(t, a.documents(target, "quarantine/"))
	require.Empty(t, items(a, target))
	does := replayAll(t, a.replayer(target), today(), a.now, 1000)
	does.DirtyBuckets = 0
	require.Equal(t, does, would)
}

func TestOnlyOverwriteReplacesProcessedObjects(t *testing.T) {
	a := newArchive(t)
	flow(a)
	want := a.documents(a.store, "processed/")
	spoilt := ""
	for i, key := range a.keys("processed/factory-x/factory_state/") {
		spoilt = key
		damage := []string{`{}`, `{"late":`, `[]`}[i%3]
		require.NoError(t, a.store.Bucket.Put(t.Context(), key, objects.JSON, []byte(damage)))
	}
	require.NoError(t, a.store.Bucket.Put(t.Context(), spoilt, objects.JSON, []byte(`{}`)))
	replayAll(t, a.replayer(a.store), today(), a.now, 1000)
	require.Equal(t, `{}`, a.documents(a.store, spoilt)[spoilt])

	over := today()
	over.Overwrite = true
	counts := replayAll(t, a.replayer(a.store), over, a.now, 1000)
	require.Equal(t, int64(39), counts.Overwritten)
	got := a.documents(a.store, "processed/")
	// Whether a message was late is read from the object that was spoilt.
	for key := range want {
		got[key], want[key] = strings.ReplaceAll(got[key], `"late":true,`, ""), strings.ReplaceAll(want[key], `"late":true,`, "")
	}
	require.Equal(t, want, got)
	again := replayAll(t, a.replayer(a.store), over, a.now, 1000)
	require.Equal(t, counts, again)
	require.Len(t, items(a, a.store), 37)
}

func TestAnOverwriteOfWhatIsRightChangesNothing(t *testing.T) {
	a := newArchive(t)
	flow(a)
	before := a.whole(a.store)
	over := today()
	over.Overwrite = true
	replayAll(t, a.replayer(a.store), over, a.now, 1000)
	require.Equal(t, before, a.whole(a.store))
}

func TestAReplayNeverRewindsTheCurrentState(t *testing.T) {
	a := newArchive(t)
	flow(a)
	a.process(messageOf(factory.SourceFactoryState, at("08:27:00")), at("08:27:01")) // too young for a replay
	before := latestOf(t, a.store)
	counts := replayAll(t, a.replayer(a.store), today(), a.now, 1000)
	require.Zero(t, counts.Latest)
	require.Equal(t, before, latestOf(t, a.store))
}

func TestTheRangeIsBySourceTimeWhateverTheDayOfReceipt(t *testing.T) {
	a := newArchive(t)
	midnight := at("00:00:00")
	ahead := a.receive(messageOf(factory.SourceFactoryState, midnight.Add(time.Second)), midnight.Add(-time.Second))
	inside := a.receive(messageOf(factory.SourceFactoryState, midnight.Add(4*time.Second)), midnight.Add(5*time.Second))
	delayed := a.receive(messageOf(factory.SourceInfraState, midnight.Add(5*time.Second)), midnight.AddDate(0, 0, 2))
	a.receive(messageOf(factory.SourceFactoryState, midnight.Add(-time.Second)), midnight)
	a.receive(messageOf(factory.SourceFactoryState, midnight.Add(time.Minute)), midnight.Add(61*time.Second))
	odd := a.receive(plainLeaf("odd", midnight.Add(7*time.Second)), midnight.Add(8*time.Second))
	a.receive(plainLeaf("outside", midnight.Add(time.Hour)), midnight.Add(9*time.Second))
	a.now = midnight.AddDate(0, 0, 3)

	request := workflows.ReplayRequest{FactoryID: "factory-x", From: midnight, To: midnight.Add(time.Minute), LateDays: 7}
	counts := replayAll(t, a.replayer(a.store), request, a.now, 1)
	require.Equal(t, int64(4), counts.Processed)
	var want []string
	for _, e := range []Envelope{ahead, inside, delayed, odd} {
		m, err := factory.ParseMessage(e.Body, a.now)
		require.NoError(t, err)
		want = append(want, processedKey(m))
	}
	got := append(a.keys("processed/factory-x/factory_state/"), a.keys("processed/factory-x/infra_state/")...)
	require.ElementsMatch(t, want, got)
	require.Empty(t, a.history("factory-x"), "history of that day has expired")
}

func TestAFirstStateHasTheInfraStateBeforeIt(t *testing.T) {
	a := newArchive(t)
	a.process(messageOf(factory.SourceInfraState, at("07:59:50")), at("07:59:51"))
	a.process(messageOf(factory.SourceFactoryState, at("08:00:00")), at("08:00:01"))
	target := a.emptied(t)
	request := today()
	request.From = at("08:00:00")
	replayAll(t, a.replayer(target), request, a.now, 1000)
	key := "processed/factory-x/risk_score/yyyy=2026/mm=05/dd=20/hh=08/"
	require.Equal(t, a.documents(a.store, key), a.documents(target, key))
	require.Empty(t, a.documents(target, "processed/factory-x/infra_state/"))
}

func TestHistoryOfATakenMillisecondGoesToTheNext(t *testing.T) {
	a := newArchive(t)
	a.receive(messageOf(factory.SourceFactoryState, at("08:00:00")), at("08:00:01"))
	refresh := factory.Latest{PK: factory.PK("factory-x"), SK: factory.LatestSK, FactoryID: "factory-x", UpdatedAt: factory.MillisOf(at("08:00:01"))}
	require.NoError(t, a.store.Table.Put(t.Context(), refresh.History(a.store.HistoryTTL), nil))
	replayAll(t, a.replayer(a.store), today(), a.now, 1000)
	once := a.whole(a.store)
	rows := a.history("factory-x")
	require.Len(t, rows, 2)
	require.Equal(t, "HISTORY#STATE#2026-05-20T08:00:01.001Z", rows[1].SK)
	require.Equal(t, at("10:00:01").Unix(), rows[1].TTL)
	require.Contains(t, a.keys("processed/factory-x/state_snapshot/"), factory.SnapshotKey("factory-x", rows[1].UpdatedAt))
	replayAll(t, a.replayer(a.store), today(), a.now, 1000)
	require.Equal(t, once, a.whole(a.store))
}

func TestDamagedRawObjectsAreCountedAndPassedOver(t *testing.T) {
	a := newArchive(t)
	huge := a.receive(messageOf(factory.SourceFactoryState, at("08:00:00")), at("08:00:01"))
	require.NoError(t, a.store.Bucket.Put(t.Context(), huge.rawKey(), "", make([]byte, factory.MaxBody+1)))
	a.receive(messageOf(factory.SourceFactoryState, at("08:00:03")), at("08:00:04"))
	counts := replayAll(t, a.replayer(a.store), today(), a.now, 1000)
	require.Equal(t, int64(1), counts.Unreadable)
	require.Equal(t, int64(1), counts.Processed)
}

// smallFlow is short enough to be killed at every step.
func smallFlow(a *archive) {
	a.receive(messageOf(factory.SourceInfraState, at("07:50:00")), at("07:50:01"))
	a.receive(messageOf(factory.SourceFactoryState, at("07:50:03")), at("07:50:04"))
	a.receive(messageOf(factory.SourceFactoryState, at("07:50:00")), at("07:50:05"))
	a.receive(messageWith(factory.SourceFactoryState, at("07:50:06"), `7`), at("07:50:07"))
	a.receive(messageOf(factory.SourceFactoryState, at("07:56:00")), at("07:56:01"))
}

func TestAKillBetweenEveryPairOfStepsLeavesTheSameInTheEnd(t *testing.T) {
	source := newArchive(t)
	smallFlow(source)
	whole := source.emptied(t)
	replayAll(t, source.replayer(whole), today(), source.now, 1000)
	want := source.whole(whole)

	for step := 1; ; step++ {
		target := source.emptied(t)
		r := source.replayer(target)
		chunk := workflows.ReplayChunk{Request: today(), StartedAt: source.now, Day: at("00:00:00"), Limit: 1000}
		var mu sync.Mutex
		last := new(replayProgress)
		record := func(p replayProgress) {
			mu.Lock()
			defer mu.Unlock()
			*last = p
		}
		r.At = killAt(step)
		_, err := r.replay(t.Context(), chunk, attempt{record: record})
		killed := err != nil
		if killed {
			require.ErrorIs(t, err, errKilled)
		}
		r.At = nil
		result, err := r.replay(t.Context(), chunk, attempt{repeated: killed, last: last, record: record})
		require.NoError(t, err)
		_, err = r.RestoreLatestState(t.Context(), workflows.RestoreRequest{State: *result.State})
		require.NoError(t, err)
		require.Equal(t, want, source.whole(target), "killed at step %d", step)
		other := world{t: t, store: target}
		require.Equal(t, 2, other.dirty(), "killed at step %d", step)
		if !killed {
			require.Greater(t, step, 12)
			break
		}
	}
}

func TestTheActivityResumesFromItsHeartbeat(t *testing.T) {
	a := newArchive(t)
	first := a.receive(messageOf(factory.SourceFactoryState, at("07:50:00")), at("07:50:01"))
	a.receive(messageOf(factory.SourceFactoryState, at("07:50:03")), at("07:50:04"))
	r := a.replayer(a.store)
	env := repairEnvironment()
	env.RegisterActivity(r.ReplayRaw)
	env.SetHeartbeatDetails(replayProgress{
		After:   workflows.ReplayPosition{ReceivedAt: at("07:50:01"), SourceAt: at("07:50:00"), Key: first.rawKey()},
		Counts:  workflows.ReplayCounts{Messages: 1},
		Pending: []time.Time{at("06:00:00")},
	})
	value, err := env.ExecuteActivity(r.ReplayRaw, workflows.ReplayChunk{Request: today(), StartedAt: a.now, Day: at("00:00:00"), Limit: 1000})
	require.NoError(t, err)
	var result workflows.ReplayChunkResult
	require.NoError(t, value.Get(&result))
	require.Equal(t, int64(2), result.Counts.Messages)
	require.Len(t, a.keys("processed/factory-x/factory_state/"), 1)
	require.Equal(t, 2, a.dirty(), "the pending bucket and the one replayed")
}

func TestARestoredStateIsCommittedAgainstOtherWriters(t *testing.T) {
	store := storage.Store{Table: storagetest.Table(t, storagetest.Factory), Bucket: storagetest.Bucket(t), HistoryTTL: time.Hour}
	r := Replayer{Store: store, Now: newClock, Logger: quiet()}
	var state *factory.Latest
	for _, e := range []Envelope{messageOf(factory.SourceInfraState, at("07:50:00")), messageOf(factory.SourceFactoryState, at("07:50:03"))} {
		m, block, err := Ingester{Now: newClock}.read(e)
		require.NoError(t, err)
		next := factory.Apply(state, m, block, newClock())
		state = &next
	}
	var racing sync.WaitGroup
	errs := make([]error, 4)
	for i := range errs {
		racing.Go(func() {
			_, errs[i] = r.RestoreLatestState(t.Context(), workflows.RestoreRequest{State: *state})
		})
	}
	racing.Wait()
	for _, err := range errs {
		require.NoError(t, err)
	}
	got := latestOf(t, store)
	require.Equal(t, int64(1), got.Rev)
	require.Equal(t, state.FactoryState, got.FactoryState)
	require.Equal(t, state.InfraState, got.InfraState)
}

func BenchmarkReplayOrder(b *testing.B) {
	run := &replayRun{chunk: workflows.ReplayChunk{Request: today()}}
	all := make([]rawEntry, 28800)
	for i := range all {
		sent := at("00:00:00").Add(time.Duration(i) * 3 * time.Second)
		key := fmt.Sprintf("factory-x:factory_state:n1:%s.json", sent.Format(time.RFC3339))
		all[i] = rawEntry{source: factory.SourceFactoryState, rawObject: newRawObject("", objects.Object{Key: key, LastModified: sent.Add(time.Second)})}
	}
	b.ReportAllocs()
	for b.Loop() {
		run.inRange(all)
	}
}
