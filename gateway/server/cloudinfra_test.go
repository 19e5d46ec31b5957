package server_test

import (
	"fmt"
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"millrace/domain/cloudinfra"
	"millrace/domain/factory"
	"millrace/domain/monitoring"
	"millrace/gateway/server"
	cloudstore "millrace/storage/cloudinfra"
	"millrace/storage/storagetest"
)

// infra is a status table of its own with a gateway in front of it.
type infra struct {
	*fixture
	store cloudstore.Store
	clock *clock
	token string
}

func newInfra(t *testing.T) *infra {
	t.Helper()
	i := &infra{
		store: cloudstore.Store{Table: storagetest.Table(t, storagetest.Factory), FastTTL: cloudstore.DefaultFastTTL, SlowTTL: cloudstore.DefaultSlowTTL},
		clock: &clock{},
	}
	store, calls := newTable(t)
	i.fixture = start(t, store, calls, newRing(t, "k1"), server.Config{Now: i.clock.Now}, server.CloudInfra(i.store, i.clock.Now))
	_, i.token = i.issue("user:kim", monitoring.ScopeRead)
	return i
}

// collect stores a snapshot of each track, as of so long before now.
func (i *infra) collect(fastAge, slowAge time.Duration) {
	i.t.Helper()
	visible := int64(3)
	fast := cloudinfra.EvaluateFast(cloudinfra.FastReport{
		Outcome: cloudinfra.Outcome{Configured: []cloudinfra.Probe{cloudinfra.ProbeDLQ}}, DLQ: &cloudinfra.DLQ{QueueName: "letters", MessagesVisible: &visible},
	}, cloudinfra.DefaultThresholds())
	slow := cloudinfra.EvaluateSlow(cloudinfra.SlowReport{
		Outcome: cloudinfra.Outcome{Configured: []cloudinfra.Probe{cloudinfra.ProbeCluster}}, Cluster: &cloudinfra.Cluster{Name: "aegis", Status: "ACTIVE"},
	}, cloudinfra.DefaultThresholds(), i.clock.Now())
	for _, half := range []cloudinfra.Half{
		{At: factory.MillisOf(i.clock.Now().Add(-fastAge)), Fast: &fast}, {At: factory.MillisOf(i.clock.Now().Add(-slowAge)), Slow: &slow},
	} {
		_, _, err := i.store.Commit(i.t.Context(), half, i.clock.Now())
		require.NoError(i.t, err)
	}
}

type cloudAnswer struct {
	Available     bool             `json:"available"`
	FastAge       *int64           `json:"fast_age_seconds"`
	SlowAge       *int64           `json:"slow_age_seconds"`
	FastStale     bool             `json:"fast_stale"`
	SlowStale     bool             `json:"slow_stale"`
	StaleAfter    map[string]int64 `json:"stale_threshold_seconds"`
	OverallStatus string           `json:"overall_status"`
	Fast          *struct {
		Status       string `json:"status"`
		DataPipeline struct {
			Status  string   `json:"status"`
			Reasons []string `json:"reasons"`
			DLQ     struct {
				MessagesVisible int64 `json:"messages_visible"`
			} `json:"dlq"`
		} `json:"data_pipeline"`
	} `json:"fast"`
	Slow map[string]any `json:"slow"`
}

func (i *infra) get() cloudAnswer {
	i.t.Helper()
	a := i.call(http.MethodGet, "/v1/cloud-infra", i.token, "")
	require.Equal(i.t, http.StatusOK, a.Status, string(a.Body))
	var body cloudAnswer
	a.decode(&body)
	return body
}

func TestBeforeAnyCollectorRanNothingIsAvailable(t *testing.T) {
	i := newInfra(t)
	body := i.get()
	require.False(t, body.Available)
	require.Equal(t, "unknown", body.OverallStatus)
	require.Nil(t, body.Fast)
	require.Equal(t, map[string]int64{"fast": 180, "slow": 900}, body.StaleAfter)
	a := i.call(http.MethodGet, "/v1/cloud-infra/history", i.token, "")
	require.Equal(t, "[]", string(a.Body[:2]))
}

func TestTheStateIsShownWithItsAges(t *testing.T) {
	i := newInfra(t)
	i.collect(35*time.Second, 320*time.Second)
	body := i.get()
	require.True(t, body.Available)
	require.Equal(t, []int64{35, 320}, []int64{*body.FastAge, *body.SlowAge})
	require.False(t, body.FastStale || body.SlowStale)
	require.Equal(t, "warning", body.OverallStatus)
	require.Equal(t, []string{"dlq_messages_visible>0"}, body.Fast.DataPipeline.Reasons)
	require.Equal(t, int64(3), body.Fast.DataPipeline.DLQ.MessagesVisible)
	require.Contains(t, body.Slow, "eks_management")
}

func TestADeadCollectorIsSeenWhenItIsRead(t *testing.T) {
	i := newInfra(t)
	i.collect(0, 0)
	i.clock.Advance(181 * time.Second)
	body := i.get()
	require.True(t, body.FastStale)
	require.False(t, body.SlowStale)
	require.Equal(t, "unknown", body.Fast.Status)
	require.Equal(t, "unknown", body.Fast.DataPipeline.Status)
	require.Empty(t, body.Fast.DataPipeline.Reasons)
	require.Equal(t, int64(3), body.Fast.DataPipeline.DLQ.MessagesVisible, "what was measured last is still shown")
	i.clock.Advance(720 * time.Second)
	body = i.get()
	require.True(t, body.SlowStale)
	require.Equal(t, "unknown", body.Slow["status"])
	require.Equal(t, "warning", body.OverallStatus)
}

func TestHistoryOfTheCloudInfrastructure(t *testing.T) {
	i := newInfra(t)
	for _, age := range []time.Duration{25 * time.Hour, 7 * time.Hour, 5 * time.Hour, 30 * time.Minute, time.Minute} {
		i.collect(age, age)
	}
	read := func(query string) (times []string) {
		a := i.call(http.MethodGet, "/v1/cloud-infra/history"+query, i.token, "")
		require.Equal(t, http.StatusOK, a.Status, string(a.Body))
		var items []map[string]any
		a.decode(&items)
		for _, item := range items {
			at, err := time.Parse(time.RFC3339, fmt.Sprint(item["updated_at"]))
			require.NoError(t, err)
			times = append(times, fmt.Sprint(item["snapshot_type"], " ", i.clock.Now().Sub(at)))
		}
		return times
	}
	require.Equal(t, []string{"fast 30m0s", "fast 1m0s"}, read(""))
	require.Equal(t, []string{"fast 5h0m0s", "fast 30m0s", "fast 1m0s"}, read("?window=6h"))
	require.Equal(t, []string{"slow 7h0m0s", "slow 5h0m0s", "slow 30m0s", "slow 1m0s"}, read("?window=24h&track=slow"))
	require.Equal(t, []string{"slow 30m0s", "slow 1m0s"}, read("?window=24h&track=slow&limit=2"), "the newest, oldest first")
}

func TestWrongHistoryQueriesAreNamed(t *testing.T) {
	i := newInfra(t)
	for query, field := range map[string]string{"window=2d": "query.window", "track=medium": "query.track", "limit=0": "query.limit", "limit=2001": "query.limit", "foo=1": "query.foo"} {
		p := i.call(http.MethodGet, "/v1/cloud-infra/history?"+query, i.token, "").problem(http.StatusBadRequest, "invalid-input")
		require.Len(t, p.Errors, 1, query)
		require.Equal(t, field, p.Errors[0].Field)
	}
}

func TestTheCloudInfrastructureNeedsReadScope(t *testing.T) {
	i := newInfra(t)
	_, writer := i.issue("user:lee", monitoring.ScopeWrite)
	for _, path := range []string{"/v1/cloud-infra", "/v1/cloud-infra/history"} {
		i.call(http.MethodGet, path, "", "").problem(http.StatusUnauthorized, "unauthenticated")
		i.call(http.MethodGet, path, writer, "").problem(http.StatusForbidden, "forbidden")
	}
}

func TestTheContractDescribesTheCloudInfrastructure(t *testing.T) {
	i := newInfra(t)
	document := i.call(http.MethodGet, "/openapi.json", "", "")
	for _, name := range []string{"/v1/cloud-infra/history", "stale_threshold_seconds", "temporal", "backlog_age_seconds", "eks_management"} {
		require.Contains(t, string(document.Body), name)
	}
}
