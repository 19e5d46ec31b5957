package report

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// Each body is a snapshot on which the alert rules raise one reason.
func TestEveryAlertRuleHasItsEventType(t *testing.T) {
	const well = `"backend_runtime":{"status":"normal"},"data_pipeline":{"status":"normal"}`
	const wellSlow = `"storage_freshness":{"status":"normal"},"eks_management":{"status":"normal"`
	seen := map[CloudEventType]bool{}
	for _, c := range []struct {
		body     cloudBody
		kind     CloudEventType
		severity Severity
		subject  string
	}{
		{fastBody(`"backend_runtime":{"status":"normal"},"data_pipeline":{"status":"warning","lambdas":[{"name":"f","errors_5m":1}]}`), CloudLambdaErrors, SeverityWarning, ""},
		{fastBody(`"backend_runtime":{"status":"normal"},"data_pipeline":{"status":"warning","lambdas":[{"name":"f","throttles_5m":1}]}`), CloudLambdaThrottles, SeverityWarning, ""},
		{fastBody(`"backend_runtime":{"status":"normal"},"data_pipeline":{"status":"critical","dynamodb":{"read_throttle_events_5m":1}}`), CloudDynamoDBThrottles, SeverityDanger, ""},
		{fastBody(`"backend_runtime":{"status":"critical","alb":{"unhealthy_host_count":1}},"data_pipeline":{"status":"normal"}`), CloudUnhealthyHosts, SeverityDanger, ""},
		{fastBody(`"backend_runtime":{"status":"unknown"},"data_pipeline":{"status":"normal"}`), CloudBackendStatus, SeverityWarning, "unknown"},
		{fastBody(`"backend_runtime":{"status":"normal"},"data_pipeline":{"status":"critical"}`), CloudPipelineStatus, SeverityDanger, "critical"},
		{fastBody(well + `,"datastores":{"status":"critical"}`), CloudDatastoresCritical, SeverityDanger, ""},
		{fastBody(well + `,"errors":[{"source":"ecs:DescribeServices","code":"Throttling"}]`), CloudCollectorError, SeverityWarning, "ecs"},
		{slowBody(wellSlow + `},"errors":[{"source":"kubernetes:ListNodes","code":"401"}]`), CloudUnauthorized, SeverityWarning, "kubernetes_api"},
		{slowBody(`"storage_freshness":{},"eks_management":{"status":"normal"}`), CloudStorageStatus, SeverityWarning, "unknown"},
		{slowBody(wellSlow + `,"cluster":{"status":"UPDATING"}}`), CloudClusterNotActive, SeverityDanger, ""},
		{slowBody(wellSlow + `,"nodegroups":[{"name":"g","status":"DEGRADED"}]}`), CloudGroupNotActive, SeverityDanger, ""},
		{slowBody(wellSlow + `,"autoscaling":{"desired_capacity":2,"healthy_instances":1}}`), CloudAutoscaling, SeverityDanger, ""},
		{slowBody(wellSlow + `,"nodes":{"status":"warning","ready":1,"total":2}}`), CloudNodesStatus, SeverityWarning, "warning"},
		{slowBody(wellSlow + `,"pods":{"status":"critical"}}`), CloudPodsStatus, SeverityDanger, "critical"},
		{slowBody(wellSlow + `,"argocd":{"status":"warning"}}`), CloudArgoCDStatus, SeverityWarning, "warning"},
		{slowBody(`"storage_freshness":{"status":"normal"},"eks_management":{"status":"warning"}`), CloudEKSStatus, SeverityWarning, "warning"},
	} {
		s := hourOf(t, c.body)
		require.Len(t, s.Events, 1, c.kind)
		e := s.Events[0]
		require.Equal(t, c.kind, e.Type)
		require.Equal(t, c.severity, e.Severity, c.kind)
		require.Equal(t, c.subject, e.Subject, c.kind)
		require.Equal(t, "10:00~"+map[string]string{CloudFast: "10:01", CloudSlow: "10:05"}[c.body.half], e.TimeRange, c.kind)
		require.Positive(t, e.SeverityScore.Sign())
		seen[e.Type] = true
	}
	require.Len(t, seen, 17)
}
