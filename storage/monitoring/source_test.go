package monitoring_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/stretchr/testify/require"

	"millrace/domain/exact"
	domain "millrace/domain/monitoring"
	"millrace/storage/monitoring"
	"millrace/storage/storagetest"
	"millrace/storage/table"
)

const owner = "user:kim"

var minute = domain.MinuteOf(now)

func requests(n int64) map[string]*exact.Decimal {
	d := exact.FromInt(n)
	return map[string]*exact.Decimal{"requests": &d}
}

// agentAt is an observation of an agent, at an offset from the minute's start.
func agentAt(offset time.Duration, n int64) domain.Observation {
	return domain.Observation{
		Identity:   domain.Identity{Kind: domain.Agent, Provider: "anthropic", Account: "team-a"},
		ObservedAt: minute.Add(offset), Metrics: requests(n),
	}
}

func resourceAt(offset time.Duration, resourceType string, temperature int64) domain.Observation {
	d := exact.FromInt(temperature)
	return domain.Observation{
		Identity:    domain.Identity{Kind: domain.Resource, ResourceType: resourceType},
		Preset:      "modbus",
		Definitions: []domain.Definition{{Key: "temperature", Unit: "celsius", Kind: domain.Gauge}},
		ObservedAt:  minute.Add(offset), Metrics: map[string]*exact.Decimal{"temperature": &d},
	}
}

func ingest(t testing.TB, store monitoring.Store, id string, o domain.Observation) monitoring.Ingested {
	t.Helper()
	done, err := store.Ingest(t.Context(), owner, id, o, now)
	require.NoError(t, err)
	return done
}

func minutesOf(t testing.TB, store monitoring.Store, id string) []domain.Minute {
	t.Helper()
	minutes, cursor, err := store.Minutes(t.Context(), monitoring.MinuteRange{
		Owner: owner, SourceID: id, From: minute.Add(-time.Hour), To: minute.Add(time.Hour), Limit: 100, Now: now,
	})
	require.NoError(t, err)
	require.Empty(t, cursor)
	return minutes
}

// same compares by JSON: a decimal has several forms in memory.
func same(t testing.TB, want, got any) {
	t.Helper()
	a, err := json.Marshal(want)
	require.NoError(t, err)
	b, err := json.Marshal(got)
	require.NoError(t, err)
	require.JSONEq(t, string(a), string(b))
}

func sumOf(m domain.Minute) string { return m.Parts[0].Series[0].Sum.String() }

func TestAnAcceptedObservationIsInTheLatestRowAndItsMinute(t *testing.T) {
	store := newStore(t)
	first := ingest(t, store, "a", agentAt(0, 1))
	require.True(t, first.Created)
	require.Equal(t, 1, first.Attempts)
	ingest(t, store, "a", agentAt(20*time.Second, 2))
	ingest(t, store, "a", agentAt(59*time.Second, 3))
	ingest(t, store, "a", agentAt(60*time.Second, 10))

	source, err := store.Source(t.Context(), owner, "a")
	require.NoError(t, err)
	require.Equal(t, int64(4), source.Rev)
	require.Equal(t, now, source.CreatedAt)
	require.Equal(t, minute.Add(60*time.Second), source.Observation.ObservedAt)

	minutes := minutesOf(t, store, "a")
	require.Len(t, minutes, 2)
	require.Equal(t, int64(3), minutes[0].SampleCount)
	require.Equal(t, "6", sumOf(minutes[0]))
	require.Equal(t, "2", minutes[0].Parts[0].Series[0].Mean.String())
	require.Equal(t, "3", minutes[0].Parts[0].Series[0].Max.String())
	same(t, source.Minute, minutes[1])
}

func TestRowsHaveTheKeysAndTheExpiryOfTheDesign(t *testing.T) {
	store := newStore(t)
	ingest(t, store, "a#b", agentAt(0, 1))
	var row map[string]any
	found, err := store.Table.Get(t.Context(), table.Key{Partition: "OWNER#user:kim", Sort: "SOURCE#a%23b"}, &row)
	require.NoError(t, err)
	require.True(t, found)
	require.NotContains(t, row, "expires_at")
	require.NotContains(t, row, "stale")
	row = nil
	found, err = store.Table.Get(t.Context(), table.Key{Partition: "OWNER#user:kim#SOURCE#a%23b", Sort: "MINUTE#2026-11-30T12:00Z"}, &row)
	require.NoError(t, err)
	require.True(t, found)
	require.EqualValues(t, minute.Add(14*24*time.Hour).Unix(), row["expires_at"])
	require.EqualValues(t, 1, row["sampleCount"])
}

func TestDuplicatesReversedOnesAndHeartbeatsAddNoSample(t *testing.T) {
	store := newStore(t)
	ingest(t, store, "a", agentAt(10*time.Second, 1))
	before, err := store.Source(t.Context(), owner, "a")
	require.NoError(t, err)

	require.Equal(t, domain.Duplicate, ingest(t, store, "a", agentAt(10*time.Second, 9)).Outcome)
	require.Equal(t, domain.Reversed, ingest(t, store, "a", agentAt(9*time.Second, 9)).Outcome)
	after, err := store.Source(t.Context(), owner, "a")
	require.NoError(t, err)
	same(t, before, after)

	beat := agentAt(20*time.Second, 0)
	beat.Heartbeat, beat.Metrics = true, nil
	done, err := store.Ingest(t.Context(), owner, "a", beat, now.Add(time.Minute))
	require.NoError(t, err)
	require.Equal(t, domain.Alive, done.Outcome)
	after, err = store.Source(t.Context(), owner, "a")
	require.NoError(t, err)
	before.ReceivedAt = now.Add(time.Minute)
	same(t, before, after)
	require.Equal(t, int64(1), minutesOf(t, store, "a")[0].SampleCount)
}

func TestAHeartbeatCreatesNothing(t *testing.T) {
	store := newStore(t)
	beat := agentAt(0, 0)
	beat.Heartbeat, beat.Metrics = true, nil
	_, err := store.Ingest(t.Context(), owner, "a", beat, now)
	var unknown *domain.UnknownSourceError
	require.ErrorAs(t, err, &unknown)
	_, err = store.Source(t.Context(), owner, "a")
	require.ErrorIs(t, err, monitoring.ErrSourceNotFound)
}

func TestADeletedSourceLeavesItsMinutesAndItsIDStartsAnew(t *testing.T) {
	store := newStore(t)
	ingest(t, store, "a", agentAt(0, 1))
	ingest(t, store, "a", agentAt(10*time.Second, 2))
	require.NoError(t, store.DeleteSource(t.Context(), owner, "a"))
	require.NoError(t, store.DeleteSource(t.Context(), owner, "a"), "again")
	_, err := store.Source(t.Context(), owner, "a")
	require.ErrorIs(t, err, monitoring.ErrSourceNotFound)
	require.Equal(t, "3", sumOf(minutesOf(t, store, "a")[0]))

	again := ingest(t, store, "a", agentAt(10*time.Second, 2))
	require.True(t, again.Created)
	require.False(t, again.Sampled, "the minute counts it already")
	require.Equal(t, "3", sumOf(minutesOf(t, store, "a")[0]))

	ingest(t, store, "a", agentAt(20*time.Second, 4))
	require.Equal(t, "7", sumOf(minutesOf(t, store, "a")[0]))

	require.NoError(t, store.DeleteSource(t.Context(), owner, "a"))
	ingest(t, store, "a", resourceAt(5*time.Second, "oven", 20))
	m := minutesOf(t, store, "a")[0]
	require.Len(t, m.Parts, 2)
	require.Equal(t, "7", sumOf(m), "the new life does not touch the old one's sums")
	require.Equal(t, domain.Resource, m.Parts[1].Kind)
}

func TestARolloverIntoARetainedMinuteMergesIt(t *testing.T) {
	store := newStore(t)
	ingest(t, store, "a", agentAt(61*time.Second, 5))
	require.NoError(t, store.DeleteSource(t.Context(), owner, "a"))
	ingest(t, store, "a", agentAt(0, 1))
	done := ingest(t, store, "a", agentAt(62*time.Second, 7))
	require.Equal(t, 2, done.Attempts)
	require.Equal(t, "12", sumOf(minutesOf(t, store, "a")[1]))
	ingest(t, store, "a", agentAt(63*time.Second, 1))
	require.Equal(t, "13", sumOf(minutesOf(t, store, "a")[1]))
}

func TestOneOfManyEqualObservationsIsCounted(t *testing.T) {
	store := newStore(t)
	outcomes := tally(t, func(int) (domain.Outcome, error) {
		done, err := store.Ingest(t.Context(), owner, "a", agentAt(0, 3), now)
		return done.Outcome, err
	})
	require.Equal(t, map[string]int{"accepted": 1, "duplicate": actors - 1}, outcomes)
	require.Equal(t, "3", sumOf(minutesOf(t, store, "a")[0]))
}

// tally races the actors and counts their outcomes and errors.
func tally(t testing.TB, f func(int) (domain.Outcome, error)) map[string]int {
	t.Helper()
	return race(t, func(i int) error {
		outcome, err := f(i)
		if err != nil {
			return err
		}
		return errors.New(string(outcome))
	})
}

func TestConcurrentObservationsSumUpToWhatWasAccepted(t *testing.T) {
	store := newStore(t)
	var accepted, sum, attempts atomic.Int64
	outcomes := tally(t, func(i int) (domain.Outcome, error) {
		done, err := store.Ingest(t.Context(), owner, "a", agentAt(time.Duration(i)*time.Second, int64(i)), now)
		attempts.Add(int64(done.Attempts))
		if done.Outcome == domain.Accepted {
			accepted.Add(1)
			sum.Add(int64(i))
		}
		return done.Outcome, err
	})
	require.Equal(t, actors, outcomes["accepted"]+outcomes["reversed"], outcomes)
	m := minutesOf(t, store, "a")[0]
	require.Equal(t, accepted.Load(), m.SampleCount)
	require.Equal(t, exact.FromInt(sum.Load()).String(), sumOf(m))
	source, err := store.Source(t.Context(), owner, "a")
	require.NoError(t, err)
	require.Equal(t, minute.Add((actors-1)*time.Second), source.Observation.ObservedAt, "the newest wins")
	same(t, source.Minute, m)
	t.Logf("%d accepted, %.2f attempts each of %d writers", accepted.Load(), float64(attempts.Load())/actors, actors)
}

// TestNoneOfManyInsistentWritersIsLost has every actor look again, later and
// later in the minute, until it is accepted.
func TestNoneOfManyInsistentWritersIsLost(t *testing.T) {
	store := newStore(t)
	var clock, attempts, tries atomic.Int64
	ends := race(t, func(int) error {
		for {
			at := time.Duration(clock.Add(1)) * time.Millisecond
			done, err := store.Ingest(t.Context(), owner, "a", agentAt(at, 1), now)
			attempts.Add(int64(done.Attempts))
			tries.Add(1)
			if err != nil || done.Outcome == domain.Accepted {
				return err
			}
		}
	})
	require.Equal(t, map[string]int{"<nil>": actors}, ends)
	m := minutesOf(t, store, "a")[0]
	require.Equal(t, int64(actors), m.SampleCount)
	require.Equal(t, fmt.Sprint(actors), sumOf(m))
	t.Logf("%.2f writes and %.2f observations for each accepted one", float64(attempts.Load())/actors, float64(tries.Load())/actors)
}

func TestOneKindWinsANewID(t *testing.T) {
	store := newStore(t)
	var kinds sync.Map
	ends := tally(t, func(i int) (domain.Outcome, error) {
		o := agentAt(time.Duration(i)*time.Second, 1)
		if i%2 == 0 {
			o = resourceAt(time.Duration(i)*time.Second, "oven", 1)
		}
		done, err := store.Ingest(t.Context(), owner, "a", o, now)
		if _, other := errors.AsType[*domain.IdentityError](err); other {
			return "identity", nil
		}
		if err == nil {
			kinds.Store(o.Kind, true)
		}
		return done.Outcome, err
	})
	require.Equal(t, actors/2, ends["identity"], ends)
	source, err := store.Source(t.Context(), owner, "a")
	require.NoError(t, err)
	n := 0
	kinds.Range(func(kind, _ any) bool {
		n++
		require.Equal(t, source.Observation.Kind, kind)
		return true
	})
	require.Equal(t, 1, n)
}

func TestSamplesSurviveDeletionsInBetween(t *testing.T) {
	store := newStore(t)
	var clock, sampled atomic.Int64
	ends := race(t, func(i int) error {
		if i%5 == 0 {
			return store.DeleteSource(t.Context(), owner, "a")
		}
		done, err := store.Ingest(t.Context(), owner, "a", agentAt(time.Duration(clock.Add(1))*time.Millisecond, 1), now)
		if done.Sampled {
			sampled.Add(1)
		}
		return err
	})
	require.Equal(t, map[string]int{"<nil>": actors}, ends)
	m := minutesOf(t, store, "a")[0]
	require.Equal(t, sampled.Load(), m.SampleCount)
	require.Equal(t, fmt.Sprint(sampled.Load()), sumOf(m))
}

// between runs once before the first transaction of a store, so that a test can
// put another writer between its read and its write.
type between struct {
	table.API
	once sync.Once
	run  func()
}

func (b *between) TransactWriteItems(ctx context.Context, in *dynamodb.TransactWriteItemsInput, o ...func(*dynamodb.Options)) (*dynamodb.TransactWriteItemsOutput, error) {
	b.once.Do(b.run)
	return b.API.TransactWriteItems(ctx, in, o...)
}

func TestAWriterNeverBuildsOnADeletedLife(t *testing.T) {
	store := newStore(t)
	ingest(t, store, "a", agentAt(0, 1))
	late := store
	late.Table.Client = &between{API: store.Table.Client, run: func() {
		require.NoError(t, store.DeleteSource(t.Context(), owner, "a"))
		ingest(t, store, "a", agentAt(10*time.Second, 2)) // again revision 1, of another life
	}}
	done, err := late.Ingest(t.Context(), owner, "a", agentAt(20*time.Second, 4), now)
	require.NoError(t, err)
	require.Equal(t, 2, done.Attempts)
	require.Equal(t, "7", sumOf(minutesOf(t, store, "a")[0]))
}

func TestACreationNeverBuildsOnAMinuteThatMovedOn(t *testing.T) {
	store := newStore(t)
	ingest(t, store, "a", agentAt(0, 1))
	require.NoError(t, store.DeleteSource(t.Context(), owner, "a"))
	late := store
	late.Table.Client = &between{API: store.Table.Client, run: func() {
		ingest(t, store, "a", agentAt(10*time.Second, 2))
		require.NoError(t, store.DeleteSource(t.Context(), owner, "a"))
	}}
	done, err := late.Ingest(t.Context(), owner, "a", agentAt(20*time.Second, 4), now)
	require.NoError(t, err)
	require.True(t, done.Created)
	require.Equal(t, "7", sumOf(minutesOf(t, store, "a")[0]))
}

// silent makes the first transaction and loses its answer.
type silent struct {
	table.API
	lost atomic.Bool
}

var errAnswerLost = errors.New("answer lost")

func (s *silent) TransactWriteItems(ctx context.Context, in *dynamodb.TransactWriteItemsInput, o ...func(*dynamodb.Options)) (*dynamodb.TransactWriteItemsOutput, error) {
	out, err := s.API.TransactWriteItems(ctx, in, o...)
	if err == nil && s.lost.CompareAndSwap(false, true) {
		return nil, errAnswerLost
	}
	return out, err
}

func TestAnObservationWhoseAnswerWasLostCountsOnce(t *testing.T) {
	store := newStore(t)
	ingest(t, store, "a", agentAt(0, 1))
	store.Table.Client = &silent{API: store.Table.Client}
	_, err := store.Ingest(t.Context(), owner, "a", agentAt(10*time.Second, 2), now)
	require.ErrorIs(t, err, errAnswerLost)
	require.Equal(t, domain.Duplicate, ingest(t, store, "a", agentAt(10*time.Second, 2)).Outcome)
	require.Equal(t, "3", sumOf(minutesOf(t, store, "a")[0]))
}

func TestWhatRequestsCost(t *testing.T) {
	store := newStore(t)
	var calls storagetest.Calls
	store.Table.Client = dynamodb.NewFromConfig(calls.Watch(storagetest.Config(t)))
	account := &monitoring.Account{Provider: "anthropic", Account: "team-a"}
	span, err := domain.SpanOf("hour", now)
	require.NoError(t, err)
	address, err := domain.NewMemoryAddress("p", "k")
	require.NoError(t, err)
	beat := agentAt(0, 0)
	beat.Heartbeat, beat.Metrics = true, nil
	for _, c := range []struct {
		name string
		run  func() error
		want map[string]int
	}{
		{"creation", func() error { ingest(t, store, "a", agentAt(0, 1)); return nil }, map[string]int{"GetItem": 1, "TransactWriteItems": 1}},
		{"same minute", func() error { ingest(t, store, "a", agentAt(1, 1)); return nil }, map[string]int{"GetItem": 1, "TransactWriteItems": 1}},
		{"next minute", func() error { ingest(t, store, "a", agentAt(time.Minute, 1)); return nil }, map[string]int{"GetItem": 1, "TransactWriteItems": 1}},
		{"duplicate", func() error { ingest(t, store, "a", agentAt(time.Minute, 1)); return nil }, map[string]int{"GetItem": 1}},
		{"heartbeat", func() error { ingest(t, store, "a", beat); return nil }, map[string]int{"GetItem": 1, "UpdateItem": 1}},
		{"configuration", func() error { _, err := store.Configure(t.Context(), owner, "a", rename("x")); return err }, map[string]int{"GetItem": 1, "UpdateItem": 1}},
		{"list", func() error { _, _, err := store.Sources(t.Context(), owner, account, "", 10); return err }, map[string]int{"Query": 1}},
		{"by id", func() error {
			_, err := store.SourcesByID(t.Context(), owner, nil, []string{"a", "b", "c"})
			return err
		}, map[string]int{"BatchGetItem": 1}},
		{"minutes", func() error { minutesOf(t, store, "a"); return nil }, map[string]int{"Query": 1}},
		{"trend of one source", func() error { _, err := store.Trend(t.Context(), owner, account, span, now); return err }, map[string]int{"Query": 2}},
		{"statistics", func() error { _, err := store.Stats(t.Context(), owner); return err }, map[string]int{"Query": 2}},
		{"memory put", func() error { _, err := store.PutMemory(t.Context(), owner, address, "v", now); return err }, map[string]int{"UpdateItem": 1}},
		{"memory get", func() error { _, err := store.Memory(t.Context(), owner, address); return err }, map[string]int{"GetItem": 1}},
		{"deletion", func() error { return store.DeleteSource(t.Context(), owner, "a") }, map[string]int{"DeleteItem": 1}},
	} {
		require.NoError(t, c.run(), c.name)
		require.Equal(t, c.want, calls.Take(), c.name)
	}
}

func BenchmarkIngest(b *testing.B) {
	store := newStore(b)
	var calls storagetest.Calls
	store.Table.Client = dynamodb.NewFromConfig(calls.Watch(storagetest.Config(b)))
	attempts, n := 0, 0
	for b.Loop() {
		n++
		done := ingest(b, store, "a", agentAt(time.Duration(n)*time.Millisecond, int64(n)))
		attempts += done.Attempts
	}
	b.ReportMetric(float64(attempts)/float64(n), "attempts/op")
	total := 0
	for _, count := range calls.Take() {
		total += count
	}
	b.ReportMetric(float64(total)/float64(n), "calls/op")
}

func BenchmarkIngestParallelSources(b *testing.B) {
	store := newStore(b)
	var sources, attempts, writes atomic.Int64
	b.SetParallelism(8)
	b.RunParallel(func(pb *testing.PB) {
		id, n := fmt.Sprint("source-", sources.Add(1)), 0
		for pb.Next() {
			n++
			done, err := store.Ingest(b.Context(), owner, id, agentAt(time.Duration(n)*time.Millisecond, int64(n)), now)
			if err != nil {
				b.Error(err)
				return
			}
			attempts.Add(int64(done.Attempts))
			writes.Add(1)
		}
	})
	b.ReportMetric(float64(attempts.Load())/float64(writes.Load()), "attempts/op")
	b.ReportMetric(float64(writes.Load())/b.Elapsed().Seconds(), "writes/s")
}
