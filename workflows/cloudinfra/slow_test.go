package cloudinfra

import (
	"testing"
	"time"

	"github.com/stretchr/testify/mock"
	"github.com/stretchr/testify/require"

	"millrace/domain/cloudinfra"
	"millrace/domain/factory"
)

func TestASlowRunBringsEverythingTogether(t *testing.T) {
	w := newWorld(t, noon, noon, slowProbes...)
	w.OnActivity(ActivityOf(cloudinfra.ProbeAutoscaling), mock.Anything,
		AutoscalingRequest{ProbeRequest: ProbeRequest{AsOf: noon}, Groups: []string{"asg-1", "asg-2", "asg-3"}}).
		Return(Found[cloudinfra.Autoscaling]{Value: cloudinfra.Autoscaling{DesiredCapacity: 4}}, nil).Once()
	w.ExecuteWorkflow(CloudInfraSlow, Input{})
	result := w.result()
	require.Equal(t, "committed", result.Status)
	require.Equal(t, factory.MillisOf(noon), *result.UpdatedAt)
	r := w.slow.Report
	require.Empty(t, r.Failures)
	require.Equal(t, "ACTIVE", r.Cluster.Status)
	require.Len(t, r.Nodegroups, 2)
	require.Equal(t, int64(4), r.Autoscaling.DesiredCapacity)
	require.Equal(t, int64(2), *r.Nodes.Ready)
	require.Equal(t, int64(2), *r.Pods.Running)
	require.Equal(t, int64(2), *r.ArgoCD.Total)
	require.Len(t, r.Storage, 1)
	w.AssertExpectations(t)
}

func TestOneFailingSlowProbeHidesNothingElse(t *testing.T) {
	for _, p := range slowProbes {
		t.Run(string(p), func(t *testing.T) {
			w := newWorld(t, noon, noon, slowProbes...)
			w.failing[p] = told("api:Call", "AccessDenied")
			w.ExecuteWorkflow(CloudInfraSlow, Input{})
			w.result()
			require.Len(t, w.slow.Report.Failures, 1)
			require.Equal(t, p, w.slow.Report.Failures[0].Probe)
			s := cloudinfra.EvaluateSlow(w.slow.Report, cloudinfra.DefaultThresholds(), noon)
			failed := 0
			for _, state := range s.Probes {
				if state == cloudinfra.ProbeFailed {
					failed++
				}
			}
			require.Equal(t, 1, failed)
			if p == cloudinfra.ProbeNodegroups {
				w.AssertNotCalled(t, ActivityOf(cloudinfra.ProbeAutoscaling), mock.Anything, mock.Anything)
			}
		})
	}
}

func TestASlowRunEndsBeforeTheNext(t *testing.T) {
	w := newWorld(t, noon, noon, slowProbes...)
	for _, p := range slowProbes {
		w.failing[p] = errDown
	}
	w.ExecuteWorkflow(CloudInfraSlow, Input{})
	w.result()
	require.Len(t, w.slow.Report.Failures, len(slowProbes)-1, "without node groups there is nothing to scale")
	require.Less(t, w.Now().Sub(noon), 4*time.Minute)
}
