package cloudinfra

import (
	"encoding/json"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/stretchr/testify/require"

	"millrace/domain/cloudinfra"
	"millrace/domain/factory"
	"millrace/storage/storagetest"
	"millrace/storage/table"
)

var noon = time.Date(2026, 6, 1, 12, 0, 0, 0, time.UTC)

func newStore(t testing.TB) Store {
	return Store{
		Table: storagetest.Table(t, storagetest.Factory), Bucket: storagetest.Bucket(t), FastTTL: DefaultFastTTL, SlowTTL: DefaultSlowTTL,
	}
}

func at(seconds int) factory.Millis {
	return factory.MillisOf(noon.Add(time.Duration(seconds) * time.Second))
}

func fast(status cloudinfra.Status, seconds int) cloudinfra.Half {
	desired, running := int64(1), int64(1)
	if status == cloudinfra.Critical {
		running = 0
	}
	report := cloudinfra.FastReport{
		Outcome: cloudinfra.Outcome{Configured: []cloudinfra.Probe{cloudinfra.ProbeECS}},
		ECS:     &cloudinfra.ECS{ServiceName: fmt.Sprint("at ", seconds), DesiredCount: &desired, RunningCount: &running},
	}
	half := cloudinfra.EvaluateFast(report, cloudinfra.DefaultThresholds())
	return cloudinfra.Half{At: at(seconds), Fast: &half}
}

func slow(status cloudinfra.Status, seconds int) cloudinfra.Half {
	state := map[cloudinfra.Status]string{cloudinfra.Normal: "ACTIVE", cloudinfra.Warning: "UPDATING", cloudinfra.Critical: "FAILED"}[status]
	report := cloudinfra.SlowReport{
		Outcome: cloudinfra.Outcome{Configured: []cloudinfra.Probe{cloudinfra.ProbeCluster}},
		Cluster: &cloudinfra.Cluster{Name: fmt.Sprint("at ", seconds), Status: state},
	}
	half := cloudinfra.EvaluateSlow(report, cloudinfra.DefaultThresholds(), noon)
	return cloudinfra.Half{At: at(seconds), Slow: &half}
}

// commit commits a half with a writer's clock that agrees with the run's.
func commit(t *testing.T, s Store, half cloudinfra.Half) (*cloudinfra.History, string) {
	t.Helper()
	history, outcome, err := s.Commit(t.Context(), half, half.At.Time)
	require.NoError(t, err)
	return history, outcome
}

func latest(t *testing.T, s Store) cloudinfra.Latest {
	t.Helper()
	stored, err := s.Latest(t.Context())
	require.NoError(t, err)
	require.NotNil(t, stored)
	return *stored
}

func requireSame(t *testing.T, want, got any) {
	t.Helper()
	wanted, err := factory.EncodeJSON(want)
	require.NoError(t, err)
	gotten, err := factory.EncodeJSON(got)
	require.NoError(t, err)
	require.JSONEq(t, string(wanted), string(gotten))
}

func TestNothingWasStoredYet(t *testing.T) {
	stored, err := newStore(t).Latest(t.Context())
	require.NoError(t, err)
	require.Nil(t, stored)
}

func TestEachHalfKeepsTheOther(t *testing.T) {
	s := newStore(t)
	first, second := fast(cloudinfra.Normal, 0), slow(cloudinfra.Critical, 1)
	history, outcome := commit(t, s, first)
	require.Equal(t, Committed, outcome)
	require.Equal(t, cloudinfra.Normal, history.OverallStatus)
	history, _ = commit(t, s, second)
	require.Equal(t, cloudinfra.Critical, history.OverallStatus)
	requireSame(t, cloudinfra.Latest{}.With(first).With(second), latest(t, s))

	third := fast(cloudinfra.Critical, 60)
	commit(t, s, third)
	requireSame(t, cloudinfra.Latest{}.With(first).With(second).With(third), latest(t, s))
	requireSame(t, second.Slow, latest(t, s).Slow)
}

func TestARepeatChangesNothing(t *testing.T) {
	s := newStore(t)
	half := fast(cloudinfra.Normal, 0)
	first, _ := commit(t, s, half)
	commit(t, s, slow(cloudinfra.Critical, 1)) // the other collector came in between
	before := latest(t, s)
	repeated, outcome := commit(t, s, half)
	require.Equal(t, Repeated, outcome)
	requireSame(t, first, repeated)
	requireSame(t, before, latest(t, s))
}

func TestAnOlderRunNeverReplacesANewerOne(t *testing.T) {
	s := newStore(t)
	older, newer := fast(cloudinfra.Critical, 0), fast(cloudinfra.Normal, 60)
	commit(t, s, newer)
	history, outcome := commit(t, s, older)
	require.Equal(t, Superseded, outcome)
	require.Nil(t, history)
	require.Equal(t, at(60), *latest(t, s).FastUpdatedAt)
	items, err := s.History(t.Context(), cloudinfra.TrackFast, noon.Add(-time.Hour), noon.Add(time.Hour), 10)
	require.NoError(t, err)
	require.Len(t, items, 1, "a run that was overtaken leaves no history")
}

func TestARepeatThatWasOvertakenStillFindsItsHistory(t *testing.T) {
	s := newStore(t)
	older := fast(cloudinfra.Normal, 0)
	first, _ := commit(t, s, older)
	commit(t, s, fast(cloudinfra.Normal, 60))
	repeated, outcome := commit(t, s, older)
	require.Equal(t, Repeated, outcome)
	requireSame(t, first, repeated)
	require.Equal(t, at(60), *latest(t, s).FastUpdatedAt)
}

func TestAWrongClockDoesNotBlockTheCollectors(t *testing.T) {
	s := newStore(t)
	commit(t, s, fast(cloudinfra.Normal, 7*24*3600))
	half := fast(cloudinfra.Critical, 0)
	_, outcome := commit(t, s, half)
	require.Equal(t, Committed, outcome)
	require.Equal(t, at(0), *latest(t, s).FastUpdatedAt)

	_, outcome, err := s.Commit(t.Context(), fast(cloudinfra.Normal, -3600), noon)
	require.NoError(t, err)
	require.Equal(t, Superseded, outcome, "one clock alone that is behind replaces nothing")
}

func TestBothCollectorsAtTheSameTimeEraseNothing(t *testing.T) {
	s := newStore(t)
	const rounds = 12
	var writers sync.WaitGroup
	for _, half := range []func(cloudinfra.Status, int) cloudinfra.Half{fast, slow} {
		writers.Go(func() {
			for i := range rounds {
				status := cloudinfra.Normal
				if i%2 == 1 {
					status = cloudinfra.Critical
				}
				_, outcome, err := s.Commit(t.Context(), half(status, i), at(i).Time)
				require.NoError(t, err)
				require.Equal(t, Committed, outcome)
				stored := latest(t, s)
				require.Equal(t, cloudinfra.Latest{}.With(cloudinfra.Half{At: at(i), Fast: stored.Fast}).With(cloudinfra.Half{At: at(i), Slow: stored.Slow}).OverallStatus, stored.OverallStatus,
					"the overall status always follows from both halves")
			}
		})
	}
	writers.Wait()
	stored := latest(t, s)
	requireSame(t, cloudinfra.Latest{}.With(fast(cloudinfra.Critical, rounds-1)).With(slow(cloudinfra.Critical, rounds-1)), stored)
	for _, track := range []cloudinfra.Track{cloudinfra.TrackFast, cloudinfra.TrackSlow} {
		items, err := s.History(t.Context(), track, noon, noon.Add(time.Hour), 100)
		require.NoError(t, err)
		require.Len(t, items, rounds)
	}
}

func TestTwoRunsOfOneTrackAtTheSameTime(t *testing.T) {
	s := newStore(t)
	var writers sync.WaitGroup
	for i := range 6 {
		writers.Go(func() {
			_, _, err := s.Commit(t.Context(), fast(cloudinfra.Normal, i), at(i).Time)
			require.NoError(t, err)
		})
	}
	writers.Wait()
	require.Equal(t, at(5), *latest(t, s).FastUpdatedAt, "the newest stands whatever the order")
	require.Equal(t, "at 5", latest(t, s).Fast.BackendRuntime.ECS.ServiceName)
}

func TestItemsOfOtherWritersAreUnderstood(t *testing.T) {
	s := newStore(t)
	require.NoError(t, s.Table.Put(t.Context(), json.RawMessage(`{"pk":"CLOUD#infra","sk":"LATEST","schema_version":"cloud-infra-status-v1",
		"updated_at":"2026-06-01T11:59:00Z","fast_updated_at":"2026-06-01T11:59:00Z","slow_updated_at":"not a time","overall_status":"warning",
		"fast":{"backend_runtime":{"status":"warning","reasons":["x"],"errors":[{"collector":"a","error":"b"}]}},
		"slow":{"eks_management":{"status":"critical","nodegroup":{"name":"n"}}},"legacy":"kept"}`), nil))
	commit(t, s, fast(cloudinfra.Normal, 0))
	stored := latest(t, s)
	require.Equal(t, at(0), *stored.FastUpdatedAt)
	require.Equal(t, cloudinfra.Critical, stored.OverallStatus)
	var raw map[string]any
	found, err := s.Table.Get(t.Context(), latestKey, &raw)
	require.NoError(t, err)
	require.True(t, found)
	require.Equal(t, "kept", raw["legacy"], "only our own attributes change")
	require.Contains(t, raw["slow"].(map[string]any)["eks_management"], "nodegroup")
	commit(t, s, slow(cloudinfra.Normal, 1))
	require.Equal(t, cloudinfra.Normal, latest(t, s).OverallStatus)
}

func TestTheSnapshotIsTheHistoryWithoutItsTTL(t *testing.T) {
	s := newStore(t)
	history, _ := commit(t, s, slow(cloudinfra.Warning, 0))
	require.Equal(t, noon.Add(24*time.Hour).Unix(), history.TTL)
	require.NoError(t, s.PutSnapshot(t.Context(), *history))
	require.NoError(t, s.PutSnapshot(t.Context(), *history), "a repeat is no error")
	body, err := s.Bucket.Get(t.Context(), "processed/cloud_infra/slow/yyyy=2026/mm=06/dd=01/hh=12/2026-06-01T12:00:00.000Z.json", 1<<20)
	require.NoError(t, err)
	require.NotContains(t, string(body), `"ttl"`)
	requireSame(t, history.Snapshot(), json.RawMessage(body))
}

func TestHistoryIsBoundByTimeAndLimit(t *testing.T) {
	s := newStore(t)
	for i := range 5 {
		commit(t, s, fast(cloudinfra.Normal, i*60))
	}
	commit(t, s, slow(cloudinfra.Normal, 60))
	read := func(from, to, limit int) []string {
		items, err := s.History(t.Context(), cloudinfra.TrackFast, at(from).Time, at(to).Time, limit)
		require.NoError(t, err)
		keys := []string{}
		for _, item := range items {
			require.Nil(t, item.Slow)
			keys = append(keys, strings.TrimPrefix(item.SK, "HISTORY#FAST#2026-06-01T12:"))
		}
		return keys
	}
	require.Equal(t, []string{"01:00.000Z", "02:00.000Z", "03:00.000Z"}, read(60, 180, 10))
	require.Equal(t, []string{"03:00.000Z", "04:00.000Z"}, read(0, 600, 2), "the newest, oldest first")
	require.Equal(t, []string{}, read(-600, -1, 10))
}

func TestACommitCostsOneReadAndOneTransaction(t *testing.T) {
	s := newStore(t)
	var calls storagetest.Calls
	cfg := calls.Watch(storagetest.Config(t))
	s.Table.Client = dynamodb.NewFromConfig(cfg)
	commit(t, s, fast(cloudinfra.Normal, 0))
	require.Equal(t, map[string]int{"GetItem": 1, "TransactWriteItems": 1}, calls.Take())
	commit(t, s, fast(cloudinfra.Normal, 0))
	require.Equal(t, map[string]int{"GetItem": 2}, calls.Take())
}

func TestAChangeDuringACommitIsTakenIn(t *testing.T) {
	s := newStore(t)
	commit(t, s, fast(cloudinfra.Normal, 0))
	read := readLatest{}
	_, err := s.Table.Get(t.Context(), latestKey, &read)
	require.NoError(t, err)
	commit(t, s, slow(cloudinfra.Critical, 1))
	_, err = s.commit(t.Context(), read, fast(cloudinfra.Normal, 60))
	var changed *table.ConflictError
	require.ErrorAs(t, err, &changed)
	require.NotEmpty(t, changed.Current)
	items, err := s.History(t.Context(), cloudinfra.TrackFast, noon, noon.Add(time.Hour), 10)
	require.NoError(t, err)
	require.Len(t, items, 1, "the history item is written with the state or not at all")
	require.Equal(t, aws.String("2026-06-01T12:00:00.000Z"), read.fast)
}
