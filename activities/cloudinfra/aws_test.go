package cloudinfra

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/aws/smithy-go/encoding/cbor"
	"github.com/stretchr/testify/require"

	"millrace/domain/cloudinfra"
	workflows "millrace/workflows/cloudinfra"
)

const service = `{"services":[{"serviceName":"api","status":"ACTIVE","desiredCount":2,"runningCount":1,"pendingCount":1,
	"loadBalancers":[{"targetGroupArn":"arn:aws:elasticloadbalancing:ap-south-1:1:targetgroup/green/2"}]}],"failures":[]}`

func TestECS(t *testing.T) {
	f := newFakeAWS(t)
	f.onJSON("DescribeServices", service)
	got := must[cloudinfra.ECS](t, f.collector(), cloudinfra.ProbeECS, ask)
	require.Equal(t, "cluster", got.ClusterName)
	require.Equal(t, "api", got.ServiceName)
	require.Equal(t, "ACTIVE", got.Status)
	require.Equal(t, []int64{2, 1, 1}, []int64{*got.DesiredCount, *got.RunningCount, *got.PendingCount})
	require.Nil(t, got.CPUMax)
	require.JSONEq(t, `{"cluster":"cluster","services":["api"]}`, string(f.of("DescribeServices")[0].body))

	f.onJSON("DescribeServices", `{"services":[],"failures":[{"arn":"a","reason":"MISSING"}]}`)
	_, err := run[cloudinfra.ECS](t, f.collector(), cloudinfra.ProbeECS, ask)
	e, final := failureOf(t, err)
	require.Contains(t, e.Message, "MISSING")
	require.True(t, final)
}

func healthOf(states ...string) string {
	var b strings.Builder
	for _, s := range states {
		b.WriteString("<member><Target><Id>i</Id></Target><TargetHealth><State>" + s + "</State></TargetHealth></member>")
	}
	return "<TargetHealthDescriptions>" + b.String() + "</TargetHealthDescriptions>"
}

const groups = `<TargetGroups><member><TargetGroupName>green</TargetGroupName>
	<TargetGroupArn>arn:aws:elasticloadbalancing:ap-south-1:1:targetgroup/green/2</TargetGroupArn>
	<LoadBalancerArns><member>arn:aws:elasticloadbalancing:ap-south-1:1:loadbalancer/app/lb/9</member></LoadBalancerArns></member></TargetGroups>`

func TestHostsAreCountedByState(t *testing.T) {
	f := newFakeAWS(t)
	f.onJSON("DescribeServices", service)
	f.onXML("DescribeTargetGroups", groups)
	f.onXML("DescribeTargetHealth", healthOf("healthy", "healthy", "unhealthy", "draining", "unhealthy.draining", "initial", "unused", "unavailable", "strange"))
	got := must[workflows.ALBFound](t, f.collector(), cloudinfra.ProbeALB, ask)
	require.Equal(t, "targetgroup/green/2", got.TargetGroup)
	require.Equal(t, "app/lb/9", got.LoadBalancer)
	require.Equal(t, "green", got.ALB.TargetGroupName)
	a := got.ALB
	require.Equal(t, []int64{2, 1, 2, 1, 1, 2}, []int64{*a.HealthyHosts, *a.UnhealthyHosts, *a.DrainingHosts, *a.InitialHosts, *a.UnusedHosts, *a.UnknownHosts})
	require.Equal(t, "arn:aws:elasticloadbalancing:ap-south-1:1:targetgroup/green/2", f.of("DescribeTargetGroups")[0].form.Get("TargetGroupArns.member.1"),
		"the group that is attached to the service is preferred")
}

func TestTheNameFindsTheTargetGroupWhenTheServiceDoesNot(t *testing.T) {
	f := newFakeAWS(t)
	f.fails("DescribeServices", 400, "AccessDeniedException", "no")
	f.onXML("DescribeTargetGroups", groups)
	f.onXML("DescribeTargetHealth", healthOf())
	got := must[workflows.ALBFound](t, f.collector(), cloudinfra.ProbeALB, ask)
	require.Equal(t, int64(0), *got.ALB.HealthyHosts)
	require.Equal(t, "tg", f.of("DescribeTargetGroups")[0].form.Get("Names.member.1"))
}

func TestBackendMetricsAreOneRequest(t *testing.T) {
	f := newFakeAWS(t)
	f.onMetrics(series{
		"AWS/ECS/CPUUtilization/Average/cluster/api":                                         {18.2, 90},
		"AWS/ECS/CPUUtilization/Maximum/cluster/api":                                         {94.4, 12},
		"AWS/ECS/MemoryUtilization/Average/cluster/api":                                      {34.1},
		"AWS/ApplicationELB/HTTPCode_Target_5XX_Count/Sum/targetgroup/green/2/app/lb/9":      {3, 0, 4},
		"AWS/ApplicationELB/TargetResponseTime/p95/targetgroup/green/2/app/lb/9":             {1.9, 7},
		"AWS/ApplicationELB/TargetResponseTime/Average/targetgroup/green/2/app/lb/9":         {0.1},
		"AWS/ApplicationELB/HTTPCode_Target_5XX_Count/Sum/targetgroup/other/2/app/lb/9":      {1000},
		"AWS/ApplicationELB/HTTPCode_Target_5XX_Count/Average/targetgroup/green/2/app/lb/9":  {1000},
		"AWS/ApplicationELB/HTTPCode_Target_5XX_Count/Sum/targetgroup/green/2/app/lb/9/more": {1000},
	}, 0)
	request := workflows.BackendMetricsRequest{ProbeRequest: ask, TargetGroup: "targetgroup/green/2", LoadBalancer: "app/lb/9"}
	got := must[workflows.BackendMetrics](t, f.collector(), cloudinfra.ProbeBackendMetrics, request)
	require.Equal(t, "18.2", got.ECS.CPUAvg.String(), "gauges are those of the newest minute")
	require.Equal(t, "94.4", got.ECS.CPUMax.String())
	require.Equal(t, "34.1", got.ECS.MemoryAvg.String())
	require.Nil(t, got.ECS.MemoryMax, "what was not measured is not zero")
	require.Equal(t, "7", got.ALB.Target5xx.String(), "counters are summed over the window")
	require.Equal(t, "1.9", got.ALB.ResponseTimeP95Seconds.String())
	require.Equal(t, "0.1", got.ALB.ResponseTimeAvg.String())

	calls := f.of("GetMetricData")
	require.Len(t, calls, 1)
	decoded, err := cbor.Decode(calls[0].body)
	require.NoError(t, err)
	sent := decoded.(cbor.Map)
	require.Equal(t, cbor.String("TimestampDescending"), sent["ScanBy"])
	begin, err := cbor.AsTime(sent["StartTime"])
	require.NoError(t, err)
	end, err := cbor.AsTime(sent["EndTime"])
	require.NoError(t, err)
	require.Equal(t, noon.Truncate(time.Minute), end.UTC(), "whole minutes only")
	require.Equal(t, 5*time.Minute, end.Sub(begin))
}

func TestMetricsOfAnUnknownLoadBalancerAreNotAskedFor(t *testing.T) {
	f := newFakeAWS(t)
	f.onMetrics(series{"AWS/ECS/CPUUtilization/Average/cluster/api": {1}}, 0)
	got := must[workflows.BackendMetrics](t, f.collector(), cloudinfra.ProbeBackendMetrics, workflows.BackendMetricsRequest{ProbeRequest: ask})
	require.Nil(t, got.ALB)
	require.Equal(t, "1", got.ECS.CPUAvg.String())
}

func TestPagesOfMetricsAreFollowed(t *testing.T) {
	f := newFakeAWS(t)
	f.onMetrics(series{
		"AWS/Lambda/Errors/Sum/aggregate": {1, 2}, "AWS/Lambda/Throttles/Sum/ingest": {0}, "AWS/Lambda/Duration/p95/ingest": {320.25},
		"AWS/DynamoDB/SystemErrors/Sum/status/Query": {1}, "AWS/DynamoDB/SystemErrors/Sum/status/PutItem": {2, 3},
		"AWS/DynamoDB/ReadThrottleEvents/Sum/status": {0, 0}, "AWS/SQS/ApproximateAgeOfOldestMessage/Maximum/letters": {61, 1},
	}, 3)
	got := must[workflows.PipelineMetrics](t, f.collector(), cloudinfra.ProbePipelineMetrics, ask)
	require.Len(t, f.of("GetMetricData"), 6, "18 queries, 3 a page")
	require.Equal(t, "ingest", got.Lambdas[0].Name)
	require.Nil(t, got.Lambdas[0].Errors)
	require.Equal(t, "0", got.Lambdas[0].Throttles.String())
	require.Equal(t, "320.25", got.Lambdas[0].DurationP95.String())
	require.Equal(t, "3", got.Lambdas[1].Errors.String())
	require.Equal(t, "6", got.DynamoDB.SystemErrors.String(), "of all operations together")
	require.Equal(t, "0", got.DynamoDB.ReadThrottles.String())
	require.Nil(t, got.DynamoDB.WriteThrottles)
	require.Equal(t, "61", got.DLQOldestAge.String())
}

func TestDatastores(t *testing.T) {
	f := newFakeAWS(t)
	f.onXML("DescribeReplicationGroups", `<ReplicationGroups><ReplicationGroup><ReplicationGroupId>cache</ReplicationGroupId><Status>available</Status>
		<MemberClusters><ClusterId>cache-001</ClusterId><ClusterId>cache-002</ClusterId></MemberClusters></ReplicationGroup></ReplicationGroups>`)
	cache := must[workflows.RedisFound](t, f.collector(), cloudinfra.ProbeRedis, ask)
	require.Equal(t, []string{"cache-001", "cache-002"}, cache.Nodes)
	require.Equal(t, "available", cache.Redis.Status)
	require.Equal(t, int64(2), *cache.Redis.NodeCount)

	f.onXML("DescribeDBInstances", `<DBInstances><DBInstance><DBInstanceIdentifier>db</DBInstanceIdentifier><DBInstanceStatus>available</DBInstanceStatus>
		<AllocatedStorage>20</AllocatedStorage></DBInstance></DBInstances>`)
	database := must[cloudinfra.RDS](t, f.collector(), cloudinfra.ProbeRDS, ask)
	require.Equal(t, int64(20), *database.AllocatedGiB)
	require.Nil(t, database.MaxAllocatedGiB)

	f.onMetrics(series{
		"AWS/ElastiCache/CPUUtilization/Average/cache-001": {3.2}, "AWS/ElastiCache/CPUUtilization/Average/cache-002": {90, 1},
		"AWS/ElastiCache/FreeableMemory/Average/cache-001": {398458880}, "AWS/ElastiCache/FreeableMemory/Average/cache-002": {134217728},
		"AWS/ElastiCache/CurrConnections/Average/cache-001": {4}, "AWS/ElastiCache/CurrConnections/Average/cache-002": {5},
		"AWS/ElastiCache/Evictions/Sum/cache-001": {1, 2}, "AWS/RDS/FreeStorageSpace/Average/db": {1572864}, "AWS/RDS/DatabaseConnections/Average/db": {3},
	}, 0)
	got := must[workflows.DatastoreMetrics](t, f.collector(), cloudinfra.ProbeDatastoreMetrics, workflows.DatastoreMetricsRequest{ProbeRequest: ask, RedisNodes: cache.Nodes})
	require.Equal(t, "90", got.Redis.CPUAvg.String(), "the busiest node")
	require.Equal(t, "128", got.Redis.FreeableMiB.String(), "the fullest node")
	require.Equal(t, "9", got.Redis.Connections.String())
	require.Equal(t, "3", got.Redis.Evictions.String())
	require.Nil(t, got.Redis.MemoryPercent)
	require.Equal(t, "1.5", got.RDS.FreeStorageMiB.String())
	require.Equal(t, "3", got.RDS.Connections.String())
	require.Nil(t, got.RDS.CPUAvg)
}

func TestCloudFrontIsTheMeanOfTheWindow(t *testing.T) {
	f := newFakeAWS(t)
	f.onMetrics(series{"AWS/CloudFront/5xxErrorRate/Average/DIST/Global": {2, 0, 1}}, 0)
	require.Equal(t, "1", must[cloudinfra.CloudFront](t, f.collector(), cloudinfra.ProbeCloudFront, ask).ErrorRate5xx.String())
}

func TestQueues(t *testing.T) {
	f := newFakeAWS(t)
	f.onJSON("GetQueueUrl", `{"QueueUrl":"`+f.url+`/letters"}`)
	f.onJSON("GetQueueAttributes", `{"Attributes":{"ApproximateNumberOfMessages":"2","ApproximateNumberOfMessagesNotVisible":"3"}}`)
	require.Equal(t, int64(2), *must[cloudinfra.DLQ](t, f.collector(), cloudinfra.ProbeDLQ, ask).MessagesVisible)
	require.Equal(t, []cloudinfra.Queue{
		{Name: "telemetry", MessagesVisible: 2, MessagesInFlight: 3}, {Name: "telemetry-dlq", MessagesVisible: 2, MessagesInFlight: 3, IsDLQ: true},
	}, must[[]cloudinfra.Queue](t, f.collector(), cloudinfra.ProbeQueues, ask))

	f.fails("GetQueueUrl", 400, "AWS.SimpleQueueService.NonExistentQueue", "no such queue")
	_, err := run[cloudinfra.DLQ](t, f.collector(), cloudinfra.ProbeDLQ, ask)
	e, _ := failureOf(t, err)
	require.Equal(t, "sqs:GetQueueUrl", e.Source)
}

func TestOneOfManyThatFailsDoesNotHideTheOthers(t *testing.T) {
	f := newFakeAWS(t)
	f.onJSON("GET /schedules/refresh", `{"Name":"refresh","State":"ENABLED"}`)
	f.fails("GET /schedules/report", 404, "ResourceNotFoundException", "Schedule report does not exist.")
	found, err := run[[]cloudinfra.Scheduler](t, f.collector(), cloudinfra.ProbeSchedulers, ask)
	require.NoError(t, err)
	require.Equal(t, []cloudinfra.Scheduler{{Name: "refresh", State: "ENABLED"}}, found.Value)
	require.Len(t, found.Errors, 1)
	require.Equal(t, []string{"scheduler:GetSchedule", "ResourceNotFoundException"}, []string{found.Errors[0].Source, found.Errors[0].Code})
	require.Equal(t, "nightly", f.of("GET /schedules/report")[0].query.Get("groupName"))

	f.fails("GET /schedules/refresh", 404, "ResourceNotFoundException", "Schedule refresh does not exist.")
	_, err = run[[]cloudinfra.Scheduler](t, f.collector(), cloudinfra.ProbeSchedulers, ask)
	e, final := failureOf(t, err)
	require.Equal(t, "ResourceNotFoundException", e.Code)
	require.True(t, final)
}

func TestFailuresAreToldInTheWordsOfTheService(t *testing.T) {
	cases := []struct {
		name, operation string
		probe           cloudinfra.Probe
		status          int
		code            string
		final           bool
	}{
		{"json throttled", "DescribeServices", cloudinfra.ProbeECS, 400, "ThrottlingException", false},
		{"json denied", "DescribeServices", cloudinfra.ProbeECS, 400, "AccessDeniedException", true},
		{"json server fault", "DescribeServices", cloudinfra.ProbeECS, 500, "ServerException", false},
		{"query throttled", "DescribeReplicationGroups", cloudinfra.ProbeRedis, 400, "Throttling", false},
		{"query missing", "DescribeDBInstances", cloudinfra.ProbeRDS, 404, "DBInstanceNotFound", true},
		{"rest denied", "GET /clusters/aegis", cloudinfra.ProbeCluster, 403, "AccessDeniedException", true},
		{"cbor throttled", "GetMetricData", cloudinfra.ProbePipelineMetrics, 400, "ThrottlingException", false},
		{"cbor server fault", "GetMetricData", cloudinfra.ProbePipelineMetrics, 500, "InternalServiceFault", false},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			f := newFakeAWS(t)
			f.fails(c.operation, c.status, c.code, "Rate exceeded, X-Amz-Security-Token=verysecret")
			_, err := run[any](t, f.collector(), c.probe, ask)
			e, final := failureOf(t, err)
			require.Contains(t, e.Code, strings.TrimSuffix(c.code, "Exception"))
			require.Equal(t, c.final, final)
			require.Equal(t, workflows.SourceOf(c.probe), e.Source)
			require.Contains(t, e.Message, "Rate exceeded")
			require.NotContains(t, err.Error(), "verysecret")
			require.True(t, e.At.Equal(noon))
		})
	}
}

func TestAProbeThatHangsSaysSo(t *testing.T) {
	f := newFakeAWS(t)
	f.hangs("DescribeServices")
	c := f.collector()
	hung := limited(50*time.Millisecond, c.probeECS)
	_, err := hung(t.Context(), ask)
	e, final := failureOf(t, err)
	require.Equal(t, []string{"ecs:DescribeServices", "Timeout", "no answer in time"}, []string{e.Source, e.Code, e.Message})
	require.False(t, final)
}

func TestAnAnswerThatMakesNoSenseIsAnError(t *testing.T) {
	f := newFakeAWS(t)
	f.onJSON("GetQueueUrl", `{"QueueUrl":"`+f.url+`/letters"}`)
	f.onJSON("GetQueueAttributes", `{"Attributes":{}}`)
	_, err := run[cloudinfra.DLQ](t, f.collector(), cloudinfra.ProbeDLQ, ask)
	e, _ := failureOf(t, err)
	require.Equal(t, codeUnreadable, e.Code)

	f.on("DescribeServices", func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte("<html>proxy</html>")) })
	_, err = run[cloudinfra.ECS](t, f.collector(), cloudinfra.ProbeECS, ask)
	e, _ = failureOf(t, err)
	require.Equal(t, "ecs:DescribeServices", e.Source)
}

func TestSeriesThatAreForbiddenAreErrors(t *testing.T) {
	f := newFakeAWS(t)
	f.on("GetMetricData", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Smithy-Protocol", "rpc-v2-cbor")
		w.Header().Set("Content-Type", "application/cbor")
		_, _ = w.Write(cbor.Encode(cbor.Map{"MetricDataResults": cbor.List{
			cbor.Map{"Id": cbor.String("m0"), "Label": cbor.String("5xxErrorRate"), "StatusCode": cbor.String("Forbidden")},
		}}))
	})
	found, err := run[cloudinfra.CloudFront](t, f.collector(), cloudinfra.ProbeCloudFront, ask)
	require.NoError(t, err)
	require.Nil(t, found.Value.ErrorRate5xx)
	require.Len(t, found.Errors, 1)
	require.Contains(t, found.Errors[0].Message, "5xxErrorRate: Forbidden")
}

func TestThePlanFollowsTheSettings(t *testing.T) {
	c := Collector{}
	plan, err := c.Plan(t.Context(), workflows.PlanRequest{Track: cloudinfra.TrackFast})
	require.NoError(t, err)
	require.Equal(t, []cloudinfra.Probe{}, plan.Configured)
	c.Settings.ECSServiceName, c.Settings.ArgoCDNamespace = "api", "argocd"
	c.Settings.WatchedTaskQueues, c.Settings.WatchedSchedules = []string{"q"}, []string{"*"}
	c.Queues, c.FactoryIDs = []WatchedQueue{{Name: "none"}}, []string{"factory-a"}
	plan, _ = c.Plan(t.Context(), workflows.PlanRequest{Track: cloudinfra.TrackFast})
	require.Equal(t, []cloudinfra.Probe{
		cloudinfra.ProbeECS, cloudinfra.ProbeBackendMetrics, cloudinfra.ProbeTaskQueues, cloudinfra.ProbeSchedules, cloudinfra.ProbeFreshness,
	}, plan.Configured)
	plan, _ = c.Plan(t.Context(), workflows.PlanRequest{Track: cloudinfra.TrackSlow})
	require.Equal(t, []cloudinfra.Probe{cloudinfra.ProbeStorage}, plan.Configured, "Argo CD needs a cluster")

	f := newFakeAWS(t)
	full, all := f.collector(), 0
	full.Settings.WatchedTaskQueues, full.Settings.WatchedSchedules = []string{"q"}, []string{"*"}
	for _, track := range []cloudinfra.Track{cloudinfra.TrackFast, cloudinfra.TrackSlow} {
		plan, _ = full.Plan(t.Context(), workflows.PlanRequest{Track: track})
		for _, p := range plan.Configured {
			require.Contains(t, full.Activities(), workflows.ActivityOf(p), "every probe has an activity")
		}
		all += len(plan.Configured)
	}
	require.Equal(t, 21, all)
}
