package cloudinfra

import (
	"encoding/json"
	"errors"
	"log/slog"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/smithy-go"
	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/temporal"

	"millrace/domain/alert"
	"millrace/domain/cloudinfra"
	"millrace/domain/factory"
	storage "millrace/storage/cloudinfra"
	"millrace/storage/storagetest"
	workflows "millrace/workflows/cloudinfra"
)

func storing(t *testing.T) (Collector, *seen) {
	t.Helper()
	observer := &seen{}
	return Collector{
		Rules: cloudinfra.DefaultThresholds(), Observer: observer, Now: func() time.Time { return noon }, Logger: slog.New(slog.DiscardHandler),
		Store: storage.Store{
			Table: storagetest.Table(t, storagetest.Factory), Bucket: storagetest.Bucket(t), FastTTL: storage.DefaultFastTTL, SlowTTL: storage.DefaultSlowTTL,
		},
	}, observer
}

func fastRequest(at time.Time, letters int64) workflows.StoreFastRequest {
	return workflows.StoreFastRequest{UpdatedAt: factory.MillisOf(at), Report: cloudinfra.FastReport{
		Outcome: cloudinfra.Outcome{Configured: []cloudinfra.Probe{cloudinfra.ProbeDLQ}}, DLQ: &cloudinfra.DLQ{QueueName: "q", MessagesVisible: &letters},
	}}
}

const fastKey = "processed/cloud_infra/fast/yyyy=2026/mm=06/dd=01/hh=12/2026-06-01T12:00:20.000Z.json"

func store(t *testing.T, c Collector, name string, request any) (workflows.Result, error) {
	t.Helper()
	var result workflows.Result
	value, err := activities(c).ExecuteActivity(name, request)
	if err == nil {
		require.NoError(t, value.Get(&result))
	}
	return result, err
}

func TestWhatWasMeasuredIsJudgedStoredAndShown(t *testing.T) {
	c, observer := storing(t)
	result, err := store(t, c, workflows.StoreFastActivity, fastRequest(noon, 3))
	require.NoError(t, err)
	at := factory.MillisOf(noon)
	require.Equal(t, workflows.Result{
		Status: storage.Committed, UpdatedAt: &at, OverallStatus: cloudinfra.Warning, DynamoDBSK: "HISTORY#FAST#2026-06-01T12:00:20.000Z", S3Key: fastKey, Errors: []cloudinfra.Error{},
	}, result)
	latest, err := c.Store.Latest(t.Context())
	require.NoError(t, err)
	require.Equal(t, []string{"dlq_messages_visible>0"}, latest.Fast.DataPipeline.Reasons)
	require.Equal(t, []string{"fast " + fastKey}, observer.shown)
	body, err := c.Store.Bucket.Get(t.Context(), fastKey, 1<<20)
	require.NoError(t, err)
	require.JSONEq(t, string(body), string(observer.bodies[0]))

	slow := workflows.StoreSlowRequest{UpdatedAt: at, Report: cloudinfra.SlowReport{
		Outcome: cloudinfra.Outcome{Configured: []cloudinfra.Probe{cloudinfra.ProbeCluster}}, Cluster: &cloudinfra.Cluster{Status: "FAILED"},
	}}
	result, err = store(t, c, workflows.StoreSlowActivity, slow)
	require.NoError(t, err)
	require.Equal(t, cloudinfra.Critical, result.OverallStatus)
	require.Len(t, observer.shown, 2)
}

func TestWhatIsStoredIsWhatTheAlertRulesRead(t *testing.T) {
	c, observer := storing(t)
	request := fastRequest(noon, 0)
	one := *decimal(t, "1")
	request.Report.Configured = append(request.Report.Configured, cloudinfra.ProbePipelineMetrics)
	request.Report.Lambdas = []cloudinfra.Lambda{{Name: "f", Errors: &one}}
	_, err := store(t, c, workflows.StoreFastActivity, request)
	require.NoError(t, err)
	decision, err := alert.Fast(observer.bodies[0], fastKey)
	require.NoError(t, err)
	require.Len(t, decision.Alerts, 1)
	require.Equal(t, "data_pipeline_lambda_errors", decision.Alerts[0].Reason)

	slow := workflows.StoreSlowRequest{UpdatedAt: factory.MillisOf(noon), Report: cloudinfra.SlowReport{
		Outcome: cloudinfra.Outcome{Configured: []cloudinfra.Probe{cloudinfra.ProbeCluster, cloudinfra.ProbeNodes, cloudinfra.ProbePods, cloudinfra.ProbeArgoCD}},
		Cluster: &cloudinfra.Cluster{Status: "ACTIVE"},
	}}
	for _, p := range slow.Report.Configured[1:] {
		slow.Report.Fail(p, cloudinfra.NewError(workflows.SourceOf(p), "Unauthorized", "HTTP 401 Unauthorized", factory.MillisOf(noon)))
	}
	_, err = store(t, c, workflows.StoreSlowActivity, slow)
	require.NoError(t, err)
	decision, err = alert.Slow(observer.bodies[1], "")
	require.NoError(t, err)
	require.Len(t, decision.Alerts, 1, "one root cause, one alert")
	require.Equal(t, "kubernetes_api_unauthorized", decision.Alerts[0].Reason)
}

func TestARunThatLooksOnlyWritesNothing(t *testing.T) {
	c, observer := storing(t)
	no := false
	request := fastRequest(noon, 1)
	request.Writes = workflows.Writes{DynamoDB: &no}
	result, err := store(t, c, workflows.StoreFastActivity, request)
	require.NoError(t, err)
	require.Equal(t, workflows.StatusMeasured, result.Status)
	require.Equal(t, cloudinfra.Warning, result.OverallStatus)
	latest, err := c.Store.Latest(t.Context())
	require.NoError(t, err)
	require.Nil(t, latest)
	require.Empty(t, observer.shown)

	request.Writes = workflows.Writes{S3: &no}
	result, err = store(t, c, workflows.StoreFastActivity, request)
	require.NoError(t, err)
	require.Empty(t, result.S3Key)
	exists, err := c.Store.Bucket.Exists(t.Context(), fastKey)
	require.NoError(t, err)
	require.False(t, exists)
}

func TestAKillBetweenTableAndBucketIsHealedByTheRetry(t *testing.T) {
	c, observer := storing(t)
	healthy := c.Store.Bucket
	var calls storagetest.Calls
	c.Store.Bucket.Client = s3.NewFromConfig(calls.Watch(storagetest.Config(t)), func(o *s3.Options) { o.UsePathStyle, o.RetryMaxAttempts = true, 1 })
	calls.Fail(func(string) error { return errors.New("killed") })
	_, err := store(t, c, workflows.StoreFastActivity, fastRequest(noon, 1))
	require.ErrorContains(t, err, "killed")
	exists, err := healthy.Exists(t.Context(), fastKey)
	require.NoError(t, err)
	require.False(t, exists)
	require.Equal(t, []string{"fast " + fastKey}, observer.shown, "a bucket that is down keeps no alert from people")
	first, err := c.Store.Latest(t.Context())
	require.NoError(t, err)
	require.NotNil(t, first)

	calls.Fail(nil)
	for range 2 {
		result, err := store(t, c, workflows.StoreFastActivity, fastRequest(noon, 1))
		require.NoError(t, err)
		require.Equal(t, storage.Repeated, result.Status)
		require.Equal(t, fastKey, result.S3Key)
	}
	latest, err := c.Store.Latest(t.Context())
	require.NoError(t, err)
	require.Equal(t, first.FastUpdatedAt, latest.FastUpdatedAt)
	history, err := c.Store.History(t.Context(), cloudinfra.TrackFast, noon.Add(-time.Hour), noon.Add(time.Hour), 10)
	require.NoError(t, err)
	require.Len(t, history, 1)
	body, err := healthy.Get(t.Context(), fastKey, 1<<20)
	require.NoError(t, err)
	want, err := factory.EncodeJSON(history[0].Snapshot())
	require.NoError(t, err)
	require.JSONEq(t, string(want), string(body))
	require.Len(t, observer.shown, 3, "showing the same again is the observer's to tell")
}

func TestARunThatWasOvertakenIsDropped(t *testing.T) {
	c, observer := storing(t)
	_, err := store(t, c, workflows.StoreFastActivity, fastRequest(noon.Add(time.Minute), 0))
	require.NoError(t, err)
	result, err := store(t, c, workflows.StoreFastActivity, fastRequest(noon, 9))
	require.NoError(t, err)
	require.Equal(t, storage.Superseded, result.Status)
	require.Empty(t, result.S3Key)
	exists, err := c.Store.Bucket.Exists(t.Context(), fastKey)
	require.NoError(t, err)
	require.False(t, exists)
	require.Len(t, observer.shown, 1)
}

func TestAnObserverThatFailsFailsNothing(t *testing.T) {
	c, observer := storing(t)
	observer.err = errors.New("no Temporal")
	result, err := store(t, c, workflows.StoreFastActivity, fastRequest(noon, 0))
	require.NoError(t, err)
	require.Equal(t, storage.Committed, result.Status)
	c.Observer = nil
	_, err = store(t, c, workflows.StoreFastActivity, fastRequest(noon.Add(time.Minute), 0))
	require.NoError(t, err)
}

func TestOnlyARequestThatCanNeverBeTakenIsFinal(t *testing.T) {
	var application *temporal.ApplicationError
	require.ErrorAs(t, storeError(&smithy.GenericAPIError{Code: "ValidationException"}), &application)
	require.True(t, application.NonRetryable())
	throttled := &smithy.GenericAPIError{Code: "ThrottlingException"}
	require.Equal(t, error(throttled), storeError(throttled))
}

// TestAHalfFitsItsItem bounds what a large cluster and many failures make of an
// item: both halves together must stay far below 400 KB.
func TestAHalfFitsItsItem(t *testing.T) {
	c, _ := storing(t)
	request := workflows.StoreSlowRequest{UpdatedAt: factory.MillisOf(noon)}
	request.Report.Configured = []cloudinfra.Probe{cloudinfra.ProbeNodes, cloudinfra.ProbePods, cloudinfra.ProbeStorage}
	var items []cloudinfra.Node
	for range 5000 {
		items = append(items, cloudinfra.Node{Name: string(make([]byte, 253))})
	}
	nodes := nodesOf(items, map[string]usage{}, map[string]usage{})
	request.Report.Nodes = &nodes
	for range 500 {
		request.Report.Fail(cloudinfra.ProbePods, cloudinfra.NewError("kubernetes:ListPods", "x", string(make([]byte, 5000))+"x", factory.MillisOf(noon)))
	}
	_, err := store(t, c, workflows.StoreSlowActivity, request)
	require.NoError(t, err)
	latest, err := c.Store.Latest(t.Context())
	require.NoError(t, err)
	body, err := json.Marshal(latest)
	require.NoError(t, err)
	require.Less(t, len(body), 300_000)
	require.Equal(t, int64(5000), *latest.Slow.EKSManagement.Nodes.Total)
}
