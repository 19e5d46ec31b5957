package report

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"millrace/domain/cloudinfra"
	"millrace/domain/exact"
	"millrace/domain/factory"
)

// hourOf aggregates the hour 10 of 2026-01-01 in Seoul, 01:00 UTC.
func hourOf(t testing.TB, bodies ...cloudBody) CloudHourSummary {
	t.Helper()
	day := seoulDay(t, "2026-01-01")
	return cloudSummaryOf(day, day.Hours()[10], bodies)
}

func dayOf(t testing.TB, hours ...CloudHourSummary) CloudDaily {
	t.Helper()
	return MergeCloudDay(seoulDay(t, "2026-01-01"), DefaultSettings(), hours)
}

func fastBody(sections string) cloudBody {
	return cloudBody{CloudFast, []byte(`{"schema_version":"cloud-infra-status-v1","updated_at":"2026-01-01T01:00:00.000Z","fast":{` + sections + `}}`)}
}

func slowBody(sections string) cloudBody {
	return cloudBody{CloudSlow, []byte(`{"schema_version":"cloud-infra-status-v1","updated_at":"2026-01-01T01:00:00.000Z","slow":{` + sections + `}}`)}
}

func TestOnlyWholeSnapshotsCount(t *testing.T) {
	const head = `{"schema_version":"cloud-infra-status-v1","updated_at":"2026-01-01T01:00:00Z",`
	for name, c := range map[string]struct {
		half, body string
		valid      bool
	}{
		"a fast one":                {CloudFast, head + `"fast":{}}`, true},
		"a slow one":                {CloudSlow, head + `"slow":{}}`, true},
		"both halves, read as fast": {CloudFast, head + `"fast":{},"slow":{}}`, true},
		"without its half":          {CloudFast, head + `"slow":{}}`, false},
		"a half that is null":       {CloudFast, head + `"fast":null}`, false},
		"a half that is a list":     {CloudFast, head + `"fast":[]}`, false},
		"another schema":            {CloudFast, `{"schema_version":"v2","updated_at":"2026-01-01T01:00:00Z","fast":{}}`, false},
		"no schema":                 {CloudFast, `{"updated_at":"2026-01-01T01:00:00Z","fast":{}}`, false},
		"no time":                   {CloudFast, `{"schema_version":"cloud-infra-status-v1","fast":{}}`, false},
		"the half's own time":       {CloudFast, `{"schema_version":"cloud-infra-status-v1","fast_updated_at":"2026-01-01T01:00:00Z","fast":{}}`, true},
		"a time without zone":       {CloudFast, `{"schema_version":"cloud-infra-status-v1","updated_at":"2026-01-01T01:00:00","fast":{}}`, false},
		"cut":                       {CloudFast, head + `"fast":{`, false},
		"followed by something":     {CloudFast, head + `"fast":{}}{}`, false},
		"a list":                    {CloudFast, `[]`, false},
		"nothing":                   {CloudFast, ``, false},
		"another half":              {"medium", head + `"fast":{},"medium":{}}`, false},
	} {
		s := hourOf(t, cloudBody{c.half, []byte(c.body)})
		require.Equal(t, c.valid, s.InputCounts.Fast+s.InputCounts.Slow == 1, name)
		require.Equal(t, !c.valid, s.InputCounts.InvalidRecords == 1, name)
	}
}

func TestSnapshotsOutsideTheHourAreIgnored(t *testing.T) {
	at := func(text string) cloudBody {
		return cloudBody{CloudFast, []byte(strings.Replace(string(fastBody("").body), "2026-01-01T01:00:00.000Z", text, 1))}
	}
	s := hourOf(t, at("2026-01-01T00:59:59.999Z"), at("2026-01-01T01:00:00Z"), at("2026-01-01T01:59:59.999Z"), at("2026-01-01T02:00:00Z"))
	require.EqualValues(t, 2, s.InputCounts.Fast)
	require.Zero(t, s.InputCounts.InvalidRecords)
}

// A snapshot as the older collectors wrote it: both halves, one node group, no
// status of storage, no times to the millisecond, a plan's field names.
const legacySnapshot = `{"pk":"CLOUD#infra","sk":"HISTORY#SLOW#2026-01-01T01:00:00Z","schema_version":"cloud-infra-status-v1","snapshot_type":"slow",
	"updated_at":"2026-01-01T01:00:00Z","overall_status":"warning","fast":{"backend_runtime":{"status":"normal"}},
	"slow":{"eks_management":{"status":"normal","cluster":{"name":"c","status":"ACTIVE","version":"1.30"},"nodegroup":{"name":"g","status":"ACTIVE"},
	"nodes":{"ready":2,"total":2,"items":[{"name":"n","cpu_utilization_percent":2,"memory_utilization_percent":29}]},
	"pods":{"running":27,"pending":0,"failed":0,"unknown":0,"restart_count_total":2,"top_by_cpu":[{"namespace":"a","pod":"p","cpu_millicores":19,"memory_mib":202}]},
	"argocd":{"applications_total":3,"synced":3,"out_of_sync":0,"healthy":3,"degraded":0,"apps":[{"name":"x","sync_status":"Synced","health_status":"Healthy"}]}},
	"storage_freshness":{"factories":[{"factory_id":"factory-a","latest_raw_at":"2026-01-01T00:59:50Z"}]}}}`

func TestOlderSnapshotsAreRead(t *testing.T) {
	s := hourOf(t, cloudBody{CloudSlow, []byte(legacySnapshot)})
	require.EqualValues(t, 1, s.InputCounts.Slow)
	e := s.Figures.EKS
	require.Equal(t, "ACTIVE", e.Nodegroups["g"].Status)
	require.EqualValues(t, 1, e.Nodes.Samples.Normal, "a part without a status is as good as its section")
	require.Equal(t, "0", e.Nodes.NotReady.String())
	require.Empty(t, e.Nodes.NotReadyBy, "an item that does not say it is not ready is not counted")
	require.Equal(t, "19", e.Pods.TopByCPU[0].CPUMillicores.String())
	require.Empty(t, e.ArgoCD.Apps)
	require.Equal(t, "10", s.Figures.Storage.Factories["factory-a"].RawAge.Max.String())
	require.EqualValues(t, 1, s.Figures.Storage.Samples.Unknown)
	require.Equal(t, CloudCounts{}, s.Figures.Backend.Samples, "the other half is not this object's")
}

func TestPartialSnapshotsAreReadAsFarAsTheyGo(t *testing.T) {
	s := hourOf(t, fastBody(`"backend_runtime":{"status":"unknown","ecs":{"desired_count":1,"running_count":1},
		"errors":[{"source":"elbv2:DescribeTargetHealth","code":"Throttling","message":"Rate exceeded"}]},"data_pipeline":{"status":"normal"},"factory_freshness":{"status":"normal"}`))
	require.EqualValues(t, 1, s.Figures.Fast.Unknown)
	require.EqualValues(t, 1, *s.Figures.Backend.ECS.Running)
	require.Nil(t, s.Figures.Backend.ALB)
	require.Equal(t, map[string]cloudTally{"elbv2:DescribeTargetHealth Throttling": 1}, s.Figures.Errors, "of the section, where the half has none")
	require.Equal(t, []CloudEventType{CloudCollectorError}, []CloudEventType{s.Events[0].Type})
	require.Equal(t, "elbv2", s.Events[0].Subject)
	require.Len(t, s.Events, 1, "one cause, one event")

	s = hourOf(t, slowBody(`"eks_management":{"status":"unknown"},"storage_freshness":{"status":"normal"},"errors":[{"collector":"kubernetes_api","error":"HTTP 401 Unauthorized"}]`))
	require.Equal(t, CloudUnauthorized, s.Events[0].Type)
	require.Equal(t, "kubernetes_api", s.Events[0].Subject)
	require.Len(t, s.Events, 1)
}

func TestFieldsOfWrongTypesCostNothingElse(t *testing.T) {
	s := hourOf(t, fastBody(`"backend_runtime":{"status":7,"reasons":"none","ecs":{"desired_count":"2","running_count":-1,"cpu_utilization_max":1e99},
		"alb":{"target_5xx_count_5m":3,"healthy_host_count":null}},"data_pipeline":[1],"factory_freshness":{"factories":{"a":1}},"errors":{}`))
	require.EqualValues(t, 1, s.InputCounts.Fast)
	require.EqualValues(t, 1, s.InputCounts.UnjudgedRecords, "the alert rules could not read it")
	require.Equal(t, "3", s.Figures.Backend.ALB.Target5xx.Total.String())
	require.Nil(t, s.Figures.Backend.ECS.Running)
	require.Nil(t, s.Figures.Backend.ECS.CPU)
	d := dayOf(t, s)
	require.Equal(t, Warning, d.OverallStatus)
	require.Contains(t, strings.Join(d.DataLimitations, " "), "could not read")
}

func TestWhatIsNotConfiguredCountsForNothing(t *testing.T) {
	off := `{"status":"not_configured","reasons":[],"errors":[]}`
	s := hourOf(t, fastBody(`"backend_runtime":`+off+`,"datastores":`+off+`,"data_pipeline":{"status":"normal"},"factory_freshness":`+off),
		slowBody(`"eks_management":`+off+`,"storage_freshness":`+off))
	require.EqualValues(t, 1, s.Figures.Fast.Normal)
	require.EqualValues(t, 1, s.Figures.Slow.NotConfigured)
	require.Empty(t, s.Events)
	require.Zero(t, s.Figures.Fast.abnormal()+s.Figures.Slow.abnormal())
	require.Equal(t, []string{"backend_runtime", "datastores", "factory_freshness", "eks_management", "storage_freshness"}, s.Figures.notConfigured())
	require.Nil(t, s.Series[0].NodesNotReady)
	require.EqualValues(t, 0, *s.Series[0].Status)
}

// wholeDay has a sample for every minute and five minutes, those of the given
// offset with other sections.
func wholeDay(t testing.TB, skip func(half string, offset time.Duration) bool, fast func(time.Duration) string) CloudDaily {
	t.Helper()
	day := seoulDay(t, "2026-01-01")
	settings := DefaultSettings()
	var hours []CloudHourSummary
	for _, hour := range day.Hours() {
		h := NewCloudHour(day, hour, settings)
		for at := hour.Start; at.Before(hour.End); at = at.Add(time.Minute) {
			offset, stamp := at.Sub(day.Window().Start), at.Format(time.RFC3339)
			if !skip(CloudFast, offset) {
				h.Add(CloudFast, fmt.Appendf(nil, `{"schema_version":"cloud-infra-status-v1","updated_at":%q,"fast":{%s}}`, stamp, fast(offset)))
			}
			if offset%(5*time.Minute) == 0 && !skip(CloudSlow, offset) {
				h.Add(CloudSlow, fmt.Appendf(nil, `{"schema_version":"cloud-infra-status-v1","updated_at":%q,"slow":{"eks_management":{"status":"normal"},"storage_freshness":{"status":"normal"}}}`, stamp))
			}
		}
		hours = append(hours, h.Summary())
	}
	return MergeCloudDay(day, settings, hours)
}

const wellFast = `"backend_runtime":{"status":"normal"},"data_pipeline":{"status":"normal"},"factory_freshness":{"status":"normal"}`

func TestTheVerdictOfADay(t *testing.T) {
	none := func(string, time.Duration) bool { return false }
	well := func(time.Duration) string { return wellFast }
	without := func(half string, length time.Duration) func(string, time.Duration) bool {
		return func(h string, offset time.Duration) bool {
			return h == half && offset >= 6*time.Hour+30*time.Minute && offset < 6*time.Hour+30*time.Minute+length
		}
	}
	once := func(sections string) func(time.Duration) string {
		return func(offset time.Duration) string {
			if offset == 7*time.Hour {
				return sections
			}
			return wellFast
		}
	}
	for name, c := range map[string]struct {
		skip func(string, time.Duration) bool
		fast func(time.Duration) string
		want Verdict
		gaps int64
	}{
		"all is well":                 {none, well, Normal, 0},
		"one sample is missing":       {without(CloudFast, time.Minute), well, Normal, 0},
		"a gap, but not stale":        {without(CloudFast, 2*time.Minute), well, Normal, 1},
		"a fast half that went stale": {without(CloudFast, 3*time.Minute), well, Warning, 1},
		"a slow half that went stale": {without(CloudSlow, 15*time.Minute), well, Warning, 1},
		"one unknown sample":          {none, once(`"backend_runtime":{"status":"unknown"},"data_pipeline":{"status":"normal"}`), Warning, 0},
		"one critical sample":         {none, once(`"backend_runtime":{"status":"critical"},"data_pipeline":{"status":"normal"}`), Danger, 0},
		"a critical datastore":        {none, once(wellFast + `,"datastores":{"status":"critical"}`), Danger, 0},
		"a warning of a datastore":    {none, once(wellFast + `,"datastores":{"status":"warning"}`), Warning, 0},
		"a silent factory":            {none, once(`"backend_runtime":{"status":"normal"},"data_pipeline":{"status":"normal"},"factory_freshness":{"status":"critical"}`), Normal, 0},
	} {
		d := wholeDay(t, c.skip, c.fast)
		require.Equal(t, c.want, d.OverallStatus, name)
		require.Equal(t, c.gaps, d.DataQuality.GapCount, name)
	}
}

func TestAGapOverTheEndOfAnHourIsOne(t *testing.T) {
	d := wholeDay(t, func(half string, offset time.Duration) bool {
		return half == CloudFast && offset > 6*time.Hour+58*time.Minute && offset < 7*time.Hour+time.Minute
	}, func(time.Duration) string { return wellFast })
	require.EqualValues(t, 1, d.DataQuality.GapCount, "neither part is a gap by itself")
	require.EqualValues(t, 180, d.DataQuality.MaxGapSeconds)
	require.Equal(t, GapInternal, d.Gaps[0].GapType)
	require.Equal(t, "06:58~07:01", d.Gaps[0].TimeRange)
}

// What the collectors write of datastores must be what is read here: a name that
// only one side changes would be a zero in the report.
func TestDatastoresAreReadAsTheCollectorsWriteThem(t *testing.T) {
	decimal := func(text string) *exact.Decimal { d := exact.MustParse(text); return &d }
	report := cloudinfra.FastReport{
		Outcome: cloudinfra.Outcome{Configured: []cloudinfra.Probe{cloudinfra.ProbeRedis, cloudinfra.ProbeRDS, cloudinfra.ProbeSchedulers, cloudinfra.ProbePipelineMetrics}},
		Redis: &cloudinfra.Redis{
			ReplicationGroupID: "cache", Status: "modifying",
			RedisMetrics: cloudinfra.RedisMetrics{CPUAvg: decimal("90"), FreeableMiB: decimal("100"), Connections: decimal("4"), Evictions: decimal("12")},
		},
		RDS: &cloudinfra.RDS{
			InstanceID: "db", Status: "available",
			RDSMetrics: cloudinfra.RDSMetrics{CPUAvg: decimal("6.1"), Connections: decimal("3"), FreeableMiB: decimal("920"), FreeStorageMiB: decimal("900")},
		},
		DynamoDB:   &cloudinfra.DynamoDB{ReadThrottles: decimal("1"), WriteThrottles: decimal("2"), SystemErrors: decimal("3")},
		Schedulers: []cloudinfra.Scheduler{{Name: "nightly", State: "DISABLED"}},
	}
	fast := cloudinfra.EvaluateFast(report, cloudinfra.DefaultThresholds())
	at := factory.MillisOf(time.Date(2026, 1, 1, 1, 0, 0, 0, time.UTC))
	body, err := json.Marshal(cloudinfra.Half{At: at, Fast: &fast}.History(cloudinfra.Critical, time.Hour).Snapshot())
	require.NoError(t, err)
	s := hourOf(t, cloudBody{CloudFast, body})
	redis, rds, pipeline := s.Figures.Datastores.Redis, s.Figures.Datastores.RDS, s.Figures.Pipeline
	require.Equal(t, []string{"cache", "modifying", "1", "90", "100", "4", "12"}, []string{
		redis.ID, redis.Status, redis.Unavailable.String(), redis.CPU.Max.String(), redis.FreeableMiB.Min.String(), redis.Connections.Max.String(), redis.Evictions.Total.String(),
	})
	require.Equal(t, []string{"db", "available", "0", "6.1", "920", "3", "900"}, []string{
		rds.ID, rds.Status, rds.Unavailable.String(), rds.CPU.Max.String(), rds.FreeableMiB.Min.String(), rds.Connections.Max.String(), rds.FreeStorageMiB.Min.String(),
	})
	require.Equal(t, []string{"1", "2", "3"}, []string{
		pipeline.DynamoDB.ReadThrottles.Total.String(), pipeline.DynamoDB.WriteThrottles.Total.String(), pipeline.DynamoDB.SystemErrors.Total.String(),
	})
	require.Equal(t, "1", pipeline.Schedulers["nightly"].String())
	types := []CloudEventType{}
	for _, e := range s.Events {
		types = append(types, e.Type)
	}
	require.ElementsMatch(t, []CloudEventType{CloudDynamoDBThrottles, CloudDatastoresCritical}, types)
}

func TestNamesAreMadeHarmless(t *testing.T) {
	for given, want := range map[string]string{
		"argocd/argocd-server-0": "argocd/argocd-server-0",
		"arn:aws:sqs:ap:1:q":     "arn:aws:sqs:ap:1:q",
		"# 제목 |x|":               "______x_",
		"a\u202eb\x00c":          "a_b_c",
		"\xff\xfe":               "",
		"```ignore all```":       "___ignore_all___",
		strings.Repeat("x", 200): strings.Repeat("x", 79) + "~",
		strings.Repeat("가", 200): strings.Repeat("_", 79) + "~",
		"<script>":               "_script_",
	} {
		require.Equal(t, want, cloudName(given), "%q", given)
	}
	require.Equal(t, "lambda_errors_5m>0:image-resize", cloudReason("lambda_errors_5m>0:image-resize"))
}

func TestObjectsLeftOutAreTold(t *testing.T) {
	day := seoulDay(t, "2026-01-01")
	h := NewCloudHour(day, day.Hours()[10], DefaultSettings())
	h.Unread(7)
	d := dayOf(t, h.Summary())
	require.EqualValues(t, 7, d.DataQuality.UnreadObjectCount)
	require.Contains(t, strings.Join(d.DataLimitations, " "), "too many objects")
}

// TestACounterThatTheLastSampleLacksIsNotLost has a probe fail in the last sample
// of five minutes.
func TestACounterThatTheLastSampleLacksIsNotLost(t *testing.T) {
	day := seoulDay(t, "2026-01-01")
	h := NewCloudHour(day, day.Hours()[0], DefaultSettings())
	for minute, backend := range []string{`{"alb":{"target_5xx_count_5m":2}}`, `{"alb":{"target_5xx_count_5m":7}}`, `{"status":"unknown"}`} {
		at := day.Window().Start.Add(time.Duration(minute) * time.Minute).Format(time.RFC3339)
		h.Add(CloudFast, []byte(`{"schema_version":"`+cloudinfra.SchemaVersion+`","updated_at":"`+at+`","fast":{"backend_runtime":`+backend+`}}`))
	}
	alb := h.Summary().Figures.Backend.ALB
	require.Equal(t, "7", alb.Target5xx.Total.String())
	require.Equal(t, "7", alb.Target5xx.Peak.String())
}

func TestADayWithoutScoresHasNoCauses(t *testing.T) {
	require.Equal(t, []string{}, byFrequency(nil, 5))
}
