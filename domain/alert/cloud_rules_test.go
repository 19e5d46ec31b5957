package alert

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func fastJSON(sections string) []byte {
	return fmt.Appendf(nil, `{"snapshot_type":"fast","updated_at":"2026-06-02T02:00:09Z","fast_updated_at":"2026-06-02T02:00:00.000Z","fast":{%s}}`, sections)
}

func slowJSON(sections string) []byte {
	return fmt.Appendf(nil, `{"snapshot_type":"slow","slow_updated_at":"2026-06-02T02:00:00.000Z","slow":{%s}}`, sections)
}

const (
	normalRuntime  = `"backend_runtime":{"status":"normal","alb":{"unhealthy_host_count":0}}`
	normalPipeline = `"data_pipeline":{"status":"normal","lambdas":[{"name":"f","errors_5m":0,"throttles_5m":null}],"dynamodb":{"read_throttle_events_5m":0}}`
	normalEKS      = `"eks_management":{"status":"normal","cluster":{"status":"ACTIVE"},"nodes":{"status":"normal"},"pods":{"status":"normal"},"argocd":{"status":"not_configured"}}`
	normalStorage  = `"storage_freshness":{"status":"normal"}`
)

func TestFastVectors(t *testing.T) {
	for name, test := range map[string]struct {
		sections   string
		alerts     []string
		suppressed []string
	}{
		"normal": {normalRuntime + "," + normalPipeline, []string{}, []string{}},
		"lambda errors": {
			normalRuntime + `,"data_pipeline":{"status":"warning","reasons":["lambda_errors_5m>0:f"],"lambdas":[{"name":"f","errors_5m":1},{"name":"g","errors_5m":2}]}`,
			[]string{"warning#data_pipeline_lambda_errors#fast"},
			[]string{"warning#data_pipeline_warning#fast: specific_alert_covers:data_pipeline_lambda_errors"},
		},
		"lambda throttles": {
			normalRuntime + `,"data_pipeline":{"status":"warning","lambdas":[{"name":"f","throttles_5m":3}]}`,
			[]string{"warning#data_pipeline_lambda_throttles#fast"},
			[]string{"warning#data_pipeline_warning#fast: specific_alert_covers:data_pipeline_lambda_throttles"},
		},
		"table throttles": {
			normalRuntime + `,"data_pipeline":{"status":"warning","dynamodb":{"write_throttle_events_5m":"2"}}`,
			[]string{"warning#dynamodb_throttles#fast"},
			[]string{"warning#data_pipeline_warning#fast: specific_alert_covers:dynamodb_throttles"},
		},
		"a critical pipeline makes its specific alerts danger": {
			normalRuntime + `,"data_pipeline":{"status":"critical","lambdas":[{"errors_5m":1}]}`,
			[]string{"danger#data_pipeline_lambda_errors#fast"},
			[]string{"danger#data_pipeline_critical#fast: specific_alert_covers:data_pipeline_lambda_errors"},
		},
		"dead letters have no rule of their own": {
			normalRuntime + `,"data_pipeline":{"status":"warning","reasons":["dlq_messages_visible>0"]}`,
			[]string{"warning#data_pipeline_warning#fast"},
			[]string{},
		},
		"two draining hosts": {`"backend_runtime":{"status":"normal","alb":{"draining_host_count":2,"unhealthy_host_count":0}},` + normalPipeline, []string{}, []string{}},
		"unhealthy hosts": {
			`"backend_runtime":{"status":"critical","alb":{"healthy_host_count":0,"unhealthy_host_count":2}},` + normalPipeline,
			[]string{"danger#alb_unhealthy_hosts#fast"},
			[]string{"danger#backend_runtime_critical#fast: specific_alert_covers:alb_unhealthy_hosts"},
		},
		"a slow backend":    {`"backend_runtime":{"status":"warning"},` + normalPipeline, []string{"warning#backend_runtime_warning#fast"}, []string{}},
		"unknown is warned": {`"backend_runtime":{"status":"unknown"},` + normalPipeline, []string{"warning#backend_runtime_unknown#fast"}, []string{}},
		"a missing section is unknown": {
			normalRuntime, []string{"warning#data_pipeline_unknown#fast"}, []string{},
		},
		"a section that is not configured is ignored": {`"backend_runtime":{"status":"not_configured","alb":{"unhealthy_host_count":3}},"data_pipeline":{"status":"not_configured"},"datastores":{"status":"not_configured"}`, []string{}, []string{}},
		"an error explains the unknown": {
			`"backend_runtime":{"status":"unknown"},` + normalPipeline + `,"errors":[{"source":"ecs:DescribeServices","code":"ThrottlingException","message":"Rate exceeded"}]`,
			[]string{"warning#ecs_error#fast"},
			[]string{"warning#backend_runtime_unknown#fast: collector_error_covers:ecs"},
		},
		"an error does not hide what was measured": {
			`"backend_runtime":{"status":"critical","errors":[{"source":"cloudwatch:GetMetricData","message":"x"}]},` + normalPipeline,
			[]string{"warning#cloudwatch_error#fast", "danger#backend_runtime_critical#fast"},
			[]string{},
		},
		"an error of a section and of the half is one": {
			`"backend_runtime":{"status":"normal","errors":[{"source":"ecs:A","message":"x"}]},` + normalPipeline + `,"errors":[{"source":"ecs:A","message":"x"},{"source":"ecs:B","message":"HTTP 401"}]`,
			[]string{"warning#ecs_unauthorized#fast"},
			[]string{},
		},
		"datastores down":                   {normalRuntime + "," + normalPipeline + `,"datastores":{"status":"critical","reasons":["rds_status!=available"]}`, []string{"danger#datastores_critical#fast"}, []string{}},
		"datastores slow":                   {normalRuntime + "," + normalPipeline + `,"datastores":{"status":"warning"}`, []string{}, []string{}},
		"a stale factory has its own alert": {normalRuntime + "," + normalPipeline + `,"factory_freshness":{"status":"critical"}`, []string{}, []string{"danger#factory_freshness_critical#fast: factory_alerts_cover"}},
	} {
		t.Run(name, func(t *testing.T) {
			d, err := Fast(fastJSON(test.sections), "")
			require.NoError(t, err)
			require.Equal(t, test.alerts, sks(d))
			require.Equal(t, test.suppressed, whys(d))
			for _, a := range d.Alerts {
				require.NoError(t, a.Trimmed().Check())
				require.Equal(t, "2026-06-02T02:00:00.000Z", a.SourceUpdatedAt.String(), "fast_updated_at wins")
				require.Equal(t, "processed/cloud_infra/fast/yyyy=2026/mm=06/dd=02/hh=02/2026-06-02T02:00:00.000Z.json", a.SourceKey)
			}
		})
	}
}

func TestSlowVectors(t *testing.T) {
	unknownEKS := `"eks_management":{"status":"unknown","cluster":{"status":"ACTIVE"},"nodegroups":[{"status":"ACTIVE"}],"autoscaling":{"desired_capacity":2,"healthy_instances":2},"nodes":{"status":"unknown"},"pods":{"status":"unknown"},"argocd":{"status":"unknown"}}`
	for name, test := range map[string]struct {
		sections   string
		alerts     []string
		suppressed []string
	}{
		"normal": {normalEKS + "," + normalStorage, []string{}, []string{}},
		"Kubernetes 401, older shape": {
			unknownEKS + "," + normalStorage + `,"errors":[{"collector":"kubernetes_api","error":"HTTP 401 Unauthorized"}]`,
			[]string{"warning#kubernetes_api_unauthorized#slow"},
			[]string{
				"warning#nodes_unknown#slow: collector_error_covers:kubernetes_api", "warning#pods_unknown#slow: collector_error_covers:kubernetes_api",
				"warning#argocd_unknown#slow: collector_error_covers:kubernetes_api", "warning#eks_management_unknown#slow: collector_error_covers:kubernetes_api",
			},
		},
		"Kubernetes 401, newer shape, every call": {
			unknownEKS + "," + normalStorage + `,"errors":[{"source":"kubernetes:ListNodes","code":"401","message":"Unauthorized"},{"source":"kubernetes:ListPods","code":"401","message":"Unauthorized"},{"source":"kubernetes:ListApplications","message":"timeout"}]`,
			[]string{"warning#kubernetes_api_unauthorized#slow"},
			[]string{
				"warning#nodes_unknown#slow: collector_error_covers:kubernetes_api", "warning#pods_unknown#slow: collector_error_covers:kubernetes_api",
				"warning#argocd_unknown#slow: collector_error_covers:kubernetes_api", "warning#eks_management_unknown#slow: collector_error_covers:kubernetes_api",
			},
		},
		"an error without a source": {normalEKS + "," + normalStorage + `,"errors":["boom"]`, []string{"warning#collector_error#slow"}, []string{}},
		"a number 401 inside a word is no refusal": {
			normalEKS + "," + normalStorage + `,"errors":[{"source":"eks:DescribeCluster","message":"request 840125 failed"}]`,
			[]string{"warning#eks_error#slow"},
			[]string{},
		},
		"independent facts still alert beside a 401": {
			`"eks_management":{"status":"critical","cluster":{"name":"c","status":"FAILED"},"nodes":{"status":"unknown"}},"storage_freshness":{"status":"unknown"},"errors":[{"collector":"kubernetes_api","error":"401"}]`,
			[]string{"warning#kubernetes_api_unauthorized#slow", "warning#storage_freshness_unknown#slow", "danger#eks_cluster_not_active#slow"},
			[]string{"warning#nodes_unknown#slow: collector_error_covers:kubernetes_api", "danger#eks_management_critical#slow: specific_alert_covers:eks_cluster_not_active"},
		},
		"pods critical": {
			`"eks_management":{"status":"critical","pods":{"status":"critical"}},` + normalStorage,
			[]string{"danger#pods_critical#slow"},
			[]string{"danger#eks_management_critical#slow: specific_alert_covers:pods_critical"},
		},
		"the cluster is not active, older nodegroup": {
			`"eks_management":{"status":"critical","cluster":{"status":"DELETING"},"nodegroup":{"status":"DEGRADED"}},` + normalStorage,
			[]string{"danger#eks_cluster_not_active#slow", "danger#eks_nodegroup_not_active#slow"},
			[]string{"danger#eks_management_critical#slow: specific_alert_covers:eks_cluster_not_active"},
		},
		"autoscaling": {
			`"eks_management":{"status":"warning","autoscaling":{"desired_capacity":3,"healthy_instances":2}},` + normalStorage,
			[]string{"danger#autoscaling_unhealthy_instances#slow"},
			[]string{"warning#eks_management_warning#slow: specific_alert_covers:autoscaling_unhealthy_instances"},
		},
		"only the section is bad":                  {`"eks_management":{"status":"warning","nodes":{"status":"normal"}},` + normalStorage, []string{"warning#eks_management_warning#slow"}, []string{}},
		"parts of a normal section need no status": {`"eks_management":{"status":"normal","nodes":{"ready":2},"pods":{}},` + normalStorage, []string{}, []string{}},
		"a part without a status is unknown":       {`"eks_management":{"status":"warning","nodes":{"ready":1}},` + normalStorage, []string{"warning#nodes_unknown#slow"}, []string{"warning#eks_management_warning#slow: specific_alert_covers:nodes_unknown"}},
		"storage missing, eks missing":             {``, []string{"warning#storage_freshness_unknown#slow", "warning#eks_management_unknown#slow"}, []string{}},
		"storage critical":                         {normalEKS + `,"storage_freshness":{"status":"critical"}`, []string{"danger#storage_freshness_critical#slow"}, []string{}},
		"nothing is configured":                    {`"eks_management":{"status":"not_configured","nodes":{"status":"unknown"}},"storage_freshness":{"status":"not_configured"}`, []string{}, []string{}},
	} {
		t.Run(name, func(t *testing.T) {
			d, err := Slow(slowJSON(test.sections), "")
			require.NoError(t, err)
			require.Equal(t, test.alerts, sks(d))
			require.Equal(t, test.suppressed, whys(d))
			for _, a := range d.Alerts {
				require.NoError(t, a.Trimmed().Check())
			}
		})
	}
}

func TestOnlyBlipsNeedConfirmation(t *testing.T) {
	for _, test := range []struct {
		source   SourceType
		severity Severity
		reason   string
		want     *Confirmation
	}{
		{SourceFast, Warning, "data_pipeline_lambda_errors", &Confirmation{2, 90 * time.Second}},
		{SourceFast, Danger, "data_pipeline_lambda_errors", nil},
		{SourceFast, Warning, "backend_runtime_warning", &Confirmation{2, 90 * time.Second}},
		{SourceFast, Warning, "dynamodb_throttles", nil},
		{SourceSlow, Warning, "pods_warning", &Confirmation{2, 450 * time.Second}},
		{SourceSlow, Warning, "data_pipeline_warning", nil},
		{SourceFactory, Warning, "pods_warning", nil},
	} {
		got, ok := Alert{SourceType: test.source, Severity: test.severity, Reason: test.reason}.Confirmation()
		require.Equal(t, test.want != nil, ok, test.reason)
		if ok {
			require.Equal(t, *test.want, got)
		}
	}
}

func TestCloudSnapshotsWithoutATimeAreRefused(t *testing.T) {
	for name, decide := range map[string]func([]byte, string) (Decision, error){"fast": Fast, "slow": Slow} {
		_, err := decide([]byte(`{"`+name+`":{}}`), "")
		require.ErrorContains(t, err, name+"_updated_at")
		_, err = decide([]byte(`[]`), "")
		require.Error(t, err)
	}
}

func FuzzCloudSnapshots(f *testing.F) {
	f.Add(fastJSON(normalRuntime), slowJSON(normalEKS))
	f.Add(fastJSON(`"errors":["x",{"source":":"}]`), slowJSON(`"eks_management":{"pods":{"status":"#/ "}}`))
	f.Fuzz(func(t *testing.T, fast, slow []byte) {
		for _, d := range []func() (Decision, error){
			func() (Decision, error) { return Fast(fast, "") }, func() (Decision, error) { return Slow(slow, "") },
		} {
			decision, err := d()
			if err != nil {
				return
			}
			for _, a := range decision.Alerts {
				require.LessOrEqual(t, len([]rune(Text(a, Korean))), MaxMessage)
				require.False(t, strings.ContainsAny(strings.ReplaceAll(a.Key().SK, "#", ""), "#"))
			}
		}
	})
}

func BenchmarkFast(b *testing.B) {
	body := fastJSON(normalRuntime + "," + normalPipeline)
	b.ReportAllocs()
	for b.Loop() {
		if _, err := Fast(body, ""); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "snapshots/s")
}
