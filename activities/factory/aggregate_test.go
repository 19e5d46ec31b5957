package factory

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/temporal"

	"millrace/domain/factory"
	storage "millrace/storage/factory"
	"millrace/storage/storagetest"
	"millrace/storage/table"
	workflows "millrace/workflows/factory"
)

// monthEnd is the last bucket of a day and of a month.
var monthEnd = time.Date(2026, 5, 31, 23, 55, 0, 0, time.UTC)

func (w *world) aggregator() Aggregator {
	return Aggregator{
		Store: w.store, Factories: []string{"factory-x"}, Rules: factory.DefaultGraphRules(),
		Now: func() time.Time { return w.now }, Logger: slog.New(slog.DiscardHandler),
	}
}

func runAggregate(a Aggregator, req workflows.AggregateRequest) (workflows.AggregateResult, error) {
	env := activityEnvironment()
	env.RegisterActivity(a.AggregateGraphs)
	var result workflows.AggregateResult
	value, err := env.ExecuteActivity(a.AggregateGraphs, req)
	if err == nil {
		err = value.Get(&result)
	}
	return result, err
}

// aggregate computes buckets two minutes and a bit after the last of them, or
// later where the clock is.
func (w *world) aggregate(starts ...time.Time) workflows.AggregateResult {
	w.t.Helper()
	if due := starts[len(starts)-1].Add(factory.BucketLength + 2*time.Minute + time.Second); w.now.Before(due) {
		w.now = due
	}
	result, err := runAggregate(w.aggregator(), workflows.AggregateRequest{Buckets: starts})
	require.NoError(w.t, err)
	return result
}

// climateAt is a factory_state message whose values follow from its time.
func climateAt(at time.Time) Envelope {
	return messageWith(factory.SourceFactoryState, at, fmt.Sprintf(
		`{"aggregation_window_seconds":3,"sensor":{"sample_count":2,"temperature_celsius_avg":%d.%d375,"humidity_percent_avg":48.%02d,"pressure_hpa_avg":null},`+
			`"ai_result":{"sample_count":2,"fire_score":0.%d,"fall_score":0,"bend_score":0.7,"abnormal_sound":"none"}}`,
		20+at.Second()%7, at.Minute()%10, at.Second(), at.Second()%10))
}

// clusterAt is an infra_state message whose values follow from its time.
func clusterAt(at time.Time) Envelope {
	return messageWith(factory.SourceInfraState, at, fmt.Sprintf(
		`{"heartbeat":{"agent_status":"alive"},"node_summary":{"total":2,"ready":2,"not_ready":0},"nodes":[`+
			`{"node_id":"head","role":"control-plane","ready":true,"cpu_usage_percent":%d.33333,"memory_usage_percent":null,"disk_usage_percent":24,"network_reachability":"ok"},`+
			`{"node_id":"arm","role":"worker","ready":true,"cpu_usage_percent":12,"memory_usage_percent":41.5,"disk_usage_percent":%d,"network_reachability":"ok"}],`+
			`"workload_summary":{"total":1,"running":1,"not_running":0},"workloads":[],"devices":{"bme280":{"available":true}}}`,
		at.Second(), 30+at.Minute()%10))
}

// live lets a factory run from one time to another as it does in production:
// messages as they come, half a second after they were made, and a refresh every
// minute.
func (w *world) live(from, to time.Time) {
	w.t.Helper()
	for at := from; at.Before(to); at = at.Add(10 * time.Second) {
		w.now = at.Add(500 * time.Millisecond)
		w.take(climateAt(at))
		if at.Second()%20 == 0 {
			w.take(clusterAt(at))
		}
		if at.Second() == 30 {
			w.now = w.now.Add(time.Second)
			_, err := runRefresh(w.refresher("factory-x"), w.now)
			require.NoError(w.t, err)
		}
	}
	w.now = to
}

// stored are the item and the archive of a bucket, byte for byte.
func (w *world) stored(start time.Time) (item, archive string) {
	w.t.Helper()
	graph, err := w.store.Graph(w.t.Context(), "factory-x", start)
	require.NoError(w.t, err)
	require.NotNil(w.t, graph)
	body, err := factory.EncodeJSON(graph)
	require.NoError(w.t, err)
	copied, err := w.store.Bucket.Get(w.t.Context(), factory.AggregateKey("factory-x", start), maxProcessed)
	require.NoError(w.t, err)
	expected, err := factory.EncodeJSON(graph.Archive())
	require.NoError(w.t, err)
	require.Equal(w.t, string(expected), string(copied), "the archive is of the item")
	return string(body), string(copied)
}

// expire removes what DynamoDB's TTL would have by now.
func (w *world) expire(prefix string) {
	w.t.Helper()
	for item, err := range w.store.Table.Query(w.t.Context(), table.Range{Partition: factory.PK("factory-x"), From: prefix, To: prefix + "~"}) {
		require.NoError(w.t, err)
		var key struct {
			SK string `json:"sk"`
		}
		require.NoError(w.t, table.Decode(item, &key))
		require.NoError(w.t, w.store.Table.Delete(w.t.Context(), table.Key{Partition: factory.PK("factory-x"), Sort: key.SK}, nil))
	}
}

func TestBothPathsGiveTheSameBytesOverMidnightAtMonthEnd(t *testing.T) {
	w := newWorld(t)
	midnight := monthEnd.Add(factory.BucketLength)
	w.live(monthEnd.Add(-time.Minute), midnight.Add(6*time.Minute))

	result := w.aggregate(monthEnd, midnight)
	require.Len(t, result.Processed, 2)
	require.Equal(t, workflows.ProcessedBucket{
		FactoryID: "factory-x", BucketStart: monthEnd, SourceCount: 45, DynamoDBSK: "GRAPH#5M#2026-05-31T23:55:00Z",
		S3Key:  "processed_agg/factory-x/metrics_5m/yyyy=2026/mm=05/dd=31/hh=23/mm=55.json",
		Source: workflows.FromHistory, Reason: workflows.ReasonScheduled,
	}, result.Processed[0])
	require.Equal(t, "processed_agg/factory-x/metrics_5m/yyyy=2026/mm=06/dd=01/hh=00/mm=00.json", result.Processed[1].S3Key)
	item, archive := w.stored(monthEnd)
	itemAfter, archiveAfter := w.stored(midnight)
	require.Contains(t, item, `"score":{"unit":"score","count":50`, "45 messages and 5 refreshes")

	for _, later := range []time.Duration{10 * time.Hour, 49 * time.Hour} {
		w.now = monthEnd.Add(later)
		w.expire(factory.HistoryPrefix)
		w.expire(factory.GraphPrefix)
		result = w.aggregate(monthEnd, midnight)
		require.Equal(t, workflows.FromProcessed, result.Processed[0].Source)
		again, archiveAgain := w.stored(monthEnd)
		require.Equal(t, item, again)
		require.Equal(t, archive, archiveAgain)
		again, archiveAgain = w.stored(midnight)
		require.Equal(t, itemAfter, again)
		require.Equal(t, archiveAfter, archiveAgain)
	}
}

func TestTheFirstSecondOfABucketCounts(t *testing.T) {
	w := newWorld(t)
	w.now = monthEnd.Add(time.Millisecond)
	w.take(messageOf(factory.SourceFactoryState, monthEnd))
	require.EqualValues(t, 1, w.aggregate(monthEnd).Processed[0].SourceCount)
}

func TestEmptyAndUnseenFactoriesGetExplicitBuckets(t *testing.T) {
	w := newWorld(t)
	require.Zero(t, w.aggregate(monthEnd).Processed[0].SourceCount)
	item, _ := w.stored(monthEnd)
	require.Contains(t, item, `"is_empty":true`)
}

func TestALateMessageComesIntoItsBucketForGood(t *testing.T) {
	w := newWorld(t)
	w.live(monthEnd, monthEnd.Add(6*time.Minute))
	before := w.aggregate(monthEnd).Processed[0]
	require.Equal(t, Late, w.take(climateAt(monthEnd.Add(15*time.Second))).Outcome)

	w.now = w.now.Add(2 * time.Minute)
	result, err := runAggregate(w.aggregator(), workflows.AggregateRequest{Unfinished: &workflows.Span{From: monthEnd, To: monthEnd}})
	require.NoError(t, err)
	require.Equal(t, []workflows.ProcessedBucket{{
		FactoryID: "factory-x", BucketStart: monthEnd, SourceCount: before.SourceCount + 1,
		DynamoDBSK: before.DynamoDBSK, S3Key: before.S3Key, Source: workflows.FromProcessed, Reason: workflows.ReasonDirty,
	}}, result.Processed)
	require.Zero(t, w.dirty())
	item, _ := w.stored(monthEnd)

	again := w.aggregate(monthEnd).Processed[0]
	require.Equal(t, workflows.FromHistory, again.Source, "the history lacks the late message")
	require.True(t, again.Kept)
	require.Equal(t, before.SourceCount+1, again.SourceCount)
	kept, _ := w.stored(monthEnd)
	require.Equal(t, item, kept)
}

func TestAMarkOutlivesWhatItMayNotCover(t *testing.T) {
	request := workflows.AggregateRequest{Unfinished: &workflows.Span{From: monthEnd, To: monthEnd}}
	t.Run("the bucket is not over", func(t *testing.T) {
		w := newWorld(t)
		w.live(monthEnd, monthEnd.Add(3*time.Minute))
		w.take(climateAt(monthEnd.Add(15 * time.Second)))
		for _, now := range []time.Time{w.now, monthEnd.Add(factory.BucketLength + time.Minute)} {
			w.now = now
			before := monthEnd.Add(-factory.BucketLength)
			result, err := runAggregate(w.aggregator(), workflows.AggregateRequest{Buckets: []time.Time{before}, Unfinished: &workflows.Span{From: before, To: before}})
			require.NoError(t, err)
			require.Len(t, result.Processed, 1)
			require.Equal(t, before, result.Processed[0].BucketStart, "its rows may still be coming")
			require.Equal(t, 1, w.dirty())
		}
	})
	t.Run("its rows are still coming when it is computed by hand", func(t *testing.T) {
		w := newWorld(t)
		w.live(monthEnd, monthEnd.Add(2*time.Minute))
		w.take(climateAt(monthEnd.Add(15 * time.Second)))
		w.now = monthEnd.Add(factory.BucketLength + time.Second)
		_, err := runAggregate(w.aggregator(), workflows.AggregateRequest{Buckets: []time.Time{monthEnd}})
		require.NoError(t, err)
		require.Equal(t, 1, w.dirty())
		w.take(climateAt(monthEnd.Add(4 * time.Minute)))
		w.take(clusterAt(monthEnd.Add(4 * time.Minute)))
		bucket := w.aggregate(monthEnd).Processed[0]
		require.Equal(t, workflows.FromProcessed, bucket.Source)
		require.EqualValues(t, 18+1+2, bucket.SourceCount)
		require.Zero(t, w.dirty())
	})
	t.Run("its object may not be written yet", func(t *testing.T) {
		w := newWorld(t)
		w.now = monthEnd.Add(10 * time.Minute)
		require.NoError(t, w.store.MarkDirty(t.Context(), "factory-x", monthEnd, w.now))
		_, err := runAggregate(w.aggregator(), request)
		require.NoError(t, err)
		require.Equal(t, 1, w.dirty())
		w.now = w.now.Add(5 * time.Minute)
		_, err = runAggregate(w.aggregator(), request)
		require.NoError(t, err)
		require.Zero(t, w.dirty())
	})
	t.Run("it was made again meanwhile", func(t *testing.T) {
		w := newWorld(t)
		w.now = monthEnd.Add(10 * time.Minute)
		require.NoError(t, w.store.MarkDirty(t.Context(), "factory-x", monthEnd, w.now.Add(-5*time.Minute)))
		a := w.aggregator()
		a.At = func(step Step) error {
			if step == StepArchive {
				return w.store.MarkDirty(t.Context(), "factory-x", monthEnd, w.now)
			}
			return nil
		}
		_, err := runAggregate(a, request)
		require.NoError(t, err)
		require.Equal(t, 1, w.dirty())
	})
}

func TestAKillBetweenItemAndArchiveIsMendedByTheNextRun(t *testing.T) {
	for _, step := range []Step{StepGraph, StepArchive} {
		t.Run(string(step), func(t *testing.T) {
			w := newWorld(t)
			w.live(monthEnd, monthEnd.Add(6*time.Minute))
			require.NoError(t, w.store.MarkDirty(t.Context(), "factory-x", monthEnd, w.now.Add(-5*time.Minute)))
			a := w.aggregator()
			a.At = func(at Step) error {
				if at == step {
					return errKilled
				}
				return nil
			}
			w.now = monthEnd.Add(8 * time.Minute)
			_, err := runAggregate(a, workflows.AggregateRequest{Buckets: []time.Time{monthEnd}})
			require.ErrorContains(t, err, "killed")
			require.Equal(t, 1, w.dirty(), "the mark goes only after everything is written")

			require.False(t, w.aggregate(monthEnd).Processed[0].Kept)
			w.stored(monthEnd)
			require.Zero(t, w.dirty())
		})
	}
}

func TestTwoAggregatesAtOnceEndWithTheFullerOneEverywhere(t *testing.T) {
	for _, step := range []Step{StepGraph, StepArchive} {
		t.Run("the other comes in after "+string(step), func(t *testing.T) {
			w := newWorld(t)
			w.live(monthEnd, monthEnd.Add(6*time.Minute))
			w.now = monthEnd.Add(8 * time.Minute)
			slower := w.aggregator()
			var once bool
			slower.At = func(at Step) error {
				if at != step || once {
					return nil
				}
				once = true
				w.take(climateAt(monthEnd.Add(15 * time.Second)))
				fuller := w.aggregate(monthEnd).Processed[0]
				require.EqualValues(t, 46, fuller.SourceCount)
				return nil
			}
			result, err := runAggregate(slower, workflows.AggregateRequest{Buckets: []time.Time{monthEnd}})
			require.NoError(t, err)
			require.EqualValues(t, 46, result.Processed[0].SourceCount)
			item, _ := w.stored(monthEnd)
			require.Contains(t, item, `"source_count":46`)
		})
	}
}

func TestUnfinishedBucketsAreMadeUpFor(t *testing.T) {
	w := newWorld(t)
	w.live(monthEnd, monthEnd.Add(16*time.Minute))
	second := monthEnd.Add(factory.BucketLength)
	w.aggregate(second)
	third := second.Add(factory.BucketLength)
	w.now = third.Add(8 * time.Minute)
	result, err := runAggregate(w.aggregator(), workflows.AggregateRequest{
		Buckets: []time.Time{third}, Unfinished: &workflows.Span{From: monthEnd, To: third},
	})
	require.NoError(t, err)
	require.Len(t, result.Processed, 2)
	require.Equal(t, workflows.ReasonUnfinished, result.Processed[0].Reason)
	require.Equal(t, monthEnd, result.Processed[0].BucketStart)
	require.EqualValues(t, 45, result.Processed[0].SourceCount)
	require.Equal(t, workflows.ReasonScheduled, result.Processed[1].Reason)
}

func TestMissingSnapshotsArePutFromHistory(t *testing.T) {
	for name, marked := range map[string]bool{"clean": false, "dirty": true} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.now = monthEnd.Add(4 * time.Second)
			e := climateAt(monthEnd.Add(3 * time.Second))
			w.killAfter(StepCommitted, e)
			require.Empty(t, w.keys("processed/factory-x/state_snapshot/"))
			if marked {
				require.NoError(t, w.store.MarkDirty(t.Context(), "factory-x", monthEnd, w.now))
			}
			w.aggregate(monthEnd)
			row := w.history("factory-x")[0]
			var snapshot factory.Latest
			require.NoError(t, w.store.Read(t.Context(), factory.SnapshotKey("factory-x", row.UpdatedAt), &snapshot))
			require.Zero(t, snapshot.TTL)
			require.Equal(t, row.SK, snapshot.SK)
			item, _ := w.stored(monthEnd)
			require.Contains(t, item, `"score":{"unit":"score","count":1`)
		})
	}
}

func TestIdsOfAnyFormAreCounted(t *testing.T) {
	w := newWorld(t)
	w.now = monthEnd.Add(4 * time.Minute)
	ids := []string{"m-1", "factory-x:factory_state:n1:yesterday", "factory-x:factory_state:n1:2026-01-01T00:00:00Z"}
	for i, id := range ids {
		at := monthEnd.Add(time.Duration(i+1) * time.Second)
		e := climateAt(at)
		e.Body = []byte(strings.Replace(string(e.Body), `"message_id":"factory-x:factory_state:n1:`+at.Format(time.RFC3339), `"message_id":"`+id, 1))
		require.Equal(t, id, w.take(e).Message.MessageID)
	}
	w.now = monthEnd.Add(5 * time.Hour)
	bucket := w.aggregate(monthEnd).Processed[0]
	require.Equal(t, workflows.FromProcessed, bucket.Source)
	require.EqualValues(t, 3, bucket.SourceCount)
}

func TestAFullerArchiveOfAnExpiredItemIsKept(t *testing.T) {
	w := newWorld(t)
	w.live(monthEnd, monthEnd.Add(6*time.Minute))
	w.aggregate(monthEnd)
	_, archive := w.stored(monthEnd)
	w.expire(factory.GraphPrefix)
	w.now = monthEnd.Add(72 * time.Hour)
	a := w.aggregator()
	standing, err := a.write(t.Context(), factory.NewAccumulator("factory-x", monthEnd, a.Rules).Graph())
	require.NoError(t, err)
	require.EqualValues(t, 45, standing.Quality.SourceCount)
	body, err := w.store.Bucket.Get(t.Context(), factory.AggregateKey("factory-x", monthEnd), maxProcessed)
	require.NoError(t, err)
	require.Equal(t, archive, string(body))
}

// TestCallsPerBucket asserts what a bucket costs on AWS besides the two queries
// of a run (dirty marks, unfinished buckets). From history: the rows, the names
// of the snapshots, the item, its archive and the check that both agree. From
// objects: three lists and one read for each object of the bucket.
func TestCallsPerBucket(t *testing.T) {
	w := newWorld(t)
	w.live(monthEnd, monthEnd.Add(6*time.Minute))
	w.now = monthEnd.Add(8 * time.Minute)
	request := workflows.AggregateRequest{Buckets: []time.Time{monthEnd}, Unfinished: &workflows.Span{From: monthEnd, To: monthEnd}}
	calls := w.watch()
	_, err := runAggregate(w.aggregator(), request)
	require.NoError(t, err)
	require.Equal(t, map[string]int{"Query": 2 + 1, "ListObjectsV2": 1, "PutItem": 1, "PutObject": 1, "GetItem": 1}, calls.Take())

	w.now = monthEnd.Add(3 * time.Hour)
	_, err = runAggregate(w.aggregator(), request)
	require.NoError(t, err)
	messages, snapshots := 45, 50
	require.Equal(t, map[string]int{
		"Query": 2, "ListObjectsV2": 3, "GetObject": messages + snapshots, "PutItem": 1, "PutObject": 1, "GetItem": 1,
	}, calls.Take())
}

func TestOneFactoryThatFailsKeepsNoOtherFromIt(t *testing.T) {
	w := newWorld(t)
	w.live(monthEnd, monthEnd.Add(2*time.Minute))
	w.now = monthEnd.Add(3 * time.Hour)
	key := w.keys("processed/factory-x/factory_state/")[0]
	require.NoError(t, w.store.Bucket.Put(t.Context(), key, "application/json", []byte(`{"data":[]}`)))
	a := w.aggregator()
	a.Factories = []string{"factory-x", "factory-y"}

	_, err := runAggregate(a, workflows.AggregateRequest{Buckets: []time.Time{monthEnd}})
	var failure *temporal.ApplicationError
	require.ErrorAs(t, err, &failure)
	require.Equal(t, kindIntegrity, failure.Type())
	require.True(t, failure.NonRetryable(), "reading it again is no use")
	require.ErrorContains(t, err, key)
	var done workflows.AggregateResult
	require.NoError(t, failure.Details(&done))
	require.Len(t, done.Processed, 1)
	require.Equal(t, "factory-y", done.Processed[0].FactoryID)
	graph, err := w.store.Graph(t.Context(), "factory-x", monthEnd)
	require.NoError(t, err)
	require.Nil(t, graph, "nothing is written of a bucket that could not be read")
}

func TestARetryGoesOnWhereTheLastAttemptEnded(t *testing.T) {
	w := newWorld(t)
	w.now = monthEnd.Add(8 * time.Minute)
	a := w.aggregator()
	a.Factories = []string{"factory-x", "factory-y"}
	env := activityEnvironment()
	env.RegisterActivity(a.AggregateGraphs)
	earlier := workflows.ProcessedBucket{FactoryID: "factory-x", BucketStart: monthEnd, SourceCount: 7}
	env.SetHeartbeatDetails(map[string]workflows.ProcessedBucket{"factory-x/2026-05-31T23:55:00Z": earlier})
	value, err := env.ExecuteActivity(a.AggregateGraphs, workflows.AggregateRequest{Buckets: []time.Time{monthEnd}})
	require.NoError(t, err)
	var result workflows.AggregateResult
	require.NoError(t, value.Get(&result))
	require.Len(t, result.Processed, 2)
	require.Equal(t, earlier, result.Processed[0])
	graph, err := w.store.Graph(t.Context(), "factory-x", monthEnd)
	require.NoError(t, err)
	require.Nil(t, graph)
}

func TestAnOutageIsWorthARetry(t *testing.T) {
	w := newWorld(t)
	w.now = monthEnd.Add(8 * time.Minute)
	w.watch().Fail(func(string) error { return errors.New("no answer") })
	_, err := runAggregate(w.aggregator(), workflows.AggregateRequest{Buckets: []time.Time{monthEnd}})
	var failure *temporal.ApplicationError
	require.ErrorAs(t, err, &failure)
	require.False(t, failure.NonRetryable())
}

func TestTooManyDirtyBucketsAreLeftForTheNextRun(t *testing.T) {
	a := Aggregator{Now: func() time.Time { return monthEnd }}
	var marks []storage.Dirty
	for i := range maxDirty + 5 {
		marks = append(marks, storage.Dirty{FactoryID: "factory-x", Start: monthEnd.Add(-time.Duration(i+2) * factory.BucketLength), Rev: 1})
	}
	marks = append(marks, storage.Dirty{FactoryID: "another", Start: monthEnd.Add(-time.Hour), Rev: 1})
	set := targetSet{}
	require.Equal(t, 5, a.addDirty(set, []string{"factory-x"}, marks))
	require.Len(t, set, maxDirty)
	_, newest := set[target{factoryID: "factory-x", start: marks[0].Start}.name()]
	require.True(t, newest)
}

// BenchmarkAggregateBucket computes one full bucket: 100 factory_state and 15
// infra_state messages and 5 refreshes.
func BenchmarkAggregateBucket(b *testing.B) {
	for name, now := range map[string]time.Time{"history": monthEnd.Add(8 * time.Minute), "processed": monthEnd.Add(3 * time.Hour)} {
		b.Run(name, func(b *testing.B) {
			a := benchmarkBucket(b, now)
			b.ResetTimer()
			for b.Loop() {
				graph, _, err := a.compute(context.Background(), target{factoryID: "factory-x", start: monthEnd}, func() {})
				require.NoError(b, err)
				require.EqualValues(b, 115, graph.Quality.SourceCount)
			}
		})
	}
}

func benchmarkBucket(b *testing.B, now time.Time) Aggregator {
	store := storage.Store{Table: storagetest.Table(b, storagetest.Factory), Bucket: storagetest.Bucket(b), HistoryTTL: 2 * time.Hour}
	clock := monthEnd
	at := func() time.Time { return clock }
	for second := 0; second < 300; second += 3 {
		clock = monthEnd.Add(time.Duration(second)*time.Second + 500*time.Millisecond)
		envelopes := []Envelope{climateAt(clock.Truncate(time.Second))}
		if second%20 < 3 {
			envelopes = append(envelopes, clusterAt(clock.Truncate(time.Second)))
		}
		for _, e := range envelopes {
			_, err := take(b.Context(), Ingester{Store: store, Now: at}, e)
			require.NoError(b, err)
		}
	}
	return Aggregator{Store: store, Rules: factory.DefaultGraphRules(), Now: func() time.Time { return now }}
}
