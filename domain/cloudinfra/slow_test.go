package cloudinfra

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"millrace/domain/factory"
)

func ago(age time.Duration) *time.Time {
	at := noon.Add(-age)
	return &at
}

func healthySlow() SlowReport {
	r := SlowReport{
		Cluster:     &Cluster{Name: "c", Status: "ACTIVE"},
		Nodegroups:  []Nodegroup{{Name: "g", Status: "ACTIVE"}},
		Autoscaling: &Autoscaling{DesiredCapacity: 2, HealthyInstances: 2, TotalInstances: 2},
		Nodes:       &Nodes{Ready: new(int64(2)), Total: new(int64(2))},
		Pods:        &Pods{Running: new(int64(20)), Pending: new(int64(0)), Failed: new(int64(0)), Unknown: new(int64(0)), Succeeded: new(int64(3))},
		ArgoCD:      &ArgoCD{Total: new(int64(3)), Synced: new(int64(3)), OutOfSync: new(int64(0)), Healthy: new(int64(3)), Degraded: new(int64(0))},
		Storage: []StorageFactory{{
			FactoryID: "factory-a", LatestRawAt: ago(299 * time.Second), LatestProcessedAt: ago(time.Minute), LatestProcessedAggAt: ago(899 * time.Second),
		}},
	}
	r.Configured = append(append(r.Configured, eksProbes...), storageProbes...)
	return r
}

func TestClusterRules(t *testing.T) {
	cases := []struct {
		name    string
		change  func(*SlowReport)
		status  Status
		reasons []string
	}{
		{"healthy", func(*SlowReport) {}, Normal, nil},
		{"cluster is updating", func(r *SlowReport) { r.Cluster.Status = "UPDATING" }, Warning, []string{"eks_cluster_status=UPDATING"}},
		{"cluster is creating", func(r *SlowReport) { r.Cluster.Status = "CREATING" }, Warning, []string{"eks_cluster_status=CREATING"}},
		{"cluster has failed", func(r *SlowReport) { r.Cluster.Status = "FAILED" }, Critical, []string{"eks_cluster_status=FAILED"}},
		{"node group is degraded", func(r *SlowReport) { r.Nodegroups[0].Status = "DEGRADED" }, Critical, []string{"eks_nodegroup_status=DEGRADED:g"}},
		{"node group has issues", func(r *SlowReport) { r.Nodegroups[0].HealthIssues = []string{"NodeCreationFailure"} }, Warning, []string{"eks_nodegroup_health_issues>0:g"}},
		{"no healthy instance", func(r *SlowReport) { r.Autoscaling.HealthyInstances = 0 }, Critical, []string{"autoscaling_healthy_instances=0"}},
		{"scaled to nothing", func(r *SlowReport) { r.Autoscaling.HealthyInstances, r.Autoscaling.DesiredCapacity = 0, 0 }, Normal, nil},
		{"too few instances", func(r *SlowReport) { r.Autoscaling.HealthyInstances = 1 }, Warning, []string{"autoscaling_healthy_instances<desired_capacity"}},
		{"no node is ready", func(r *SlowReport) { r.Nodes.Ready = new(int64(0)) }, Critical, []string{"nodes_ready=0"}},
		{"a node is not ready", func(r *SlowReport) { r.Nodes.Ready = new(int64(1)) }, Warning, []string{"nodes_ready<total"}},
		{"there are no nodes", func(r *SlowReport) { r.Nodes.Ready, r.Nodes.Total = new(int64(0)), new(int64(0)) }, Unknown, nil},
		{"one failed pod", func(r *SlowReport) { r.Pods.Failed = new(int64(1)) }, Warning, []string{"pods_failed=1"}},
		{"two failed pods", func(r *SlowReport) { r.Pods.Failed = new(int64(2)) }, Critical, []string{"pods_failed>=2"}},
		{"pending pods", func(r *SlowReport) { r.Pods.Pending = new(int64(1)) }, Warning, []string{"pods_pending>0"}},
		{"unknown pods", func(r *SlowReport) { r.Pods.Unknown = new(int64(1)) }, Warning, []string{"pods_unknown>0"}},
		{"a degraded application", func(r *SlowReport) { r.ArgoCD.Degraded = new(int64(1)) }, Critical, []string{"argocd_degraded>0"}},
		{"an application out of sync", func(r *SlowReport) { r.ArgoCD.OutOfSync = new(int64(1)) }, Warning, []string{"argocd_out_of_sync>0"}},
		{"argo cd is not installed", func(r *SlowReport) { r.ArgoCD = &ArgoCD{} }, Unknown, nil},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			r := healthySlow()
			c.change(&r)
			got := EvaluateSlow(r, DefaultThresholds(), noon).EKSManagement
			require.Equal(t, c.status, got.Status)
			require.Equal(t, append([]string{}, c.reasons...), got.Reasons)
		})
	}
}

func TestPartsOfTheClusterHaveTheirOwnStatus(t *testing.T) {
	r := healthySlow()
	r.Pods.Failed, r.ArgoCD.OutOfSync, r.Nodes.Ready = new(int64(2)), new(int64(1)), new(int64(1))
	got := EvaluateSlow(r, DefaultThresholds(), noon).EKSManagement
	require.Equal(t, []Status{Warning, Critical, Warning}, []Status{got.Nodes.Status, got.Pods.Status, got.ArgoCD.Status})
}

func TestAnUnauthorizedClusterIsUnknownNotCritical(t *testing.T) {
	r := healthySlow()
	r.Nodes, r.Pods, r.ArgoCD = nil, nil, nil
	for _, p := range []Probe{ProbeNodes, ProbePods, ProbeArgoCD} {
		r.Fail(p, NewError("kubernetes:List", "Unauthorized", "HTTP 401 Unauthorized", factory.MillisOf(noon)))
	}
	s := EvaluateSlow(r, DefaultThresholds(), noon)
	require.Equal(t, Unknown, s.EKSManagement.Status)
	require.Empty(t, s.EKSManagement.Reasons)
	require.Equal(t, []Status{Unknown, Unknown, Unknown}, []Status{s.EKSManagement.Nodes.Status, s.EKSManagement.Pods.Status, s.EKSManagement.ArgoCD.Status})
	require.Len(t, s.Errors, 3)
	require.Equal(t, Normal, s.StorageFreshness.Status)
	require.Equal(t, "ACTIVE", s.EKSManagement.Cluster.Status)
}

func TestStorageRules(t *testing.T) {
	cases := []struct {
		name    string
		change  func(*StorageFactory)
		status  Status
		reasons []string
	}{
		{"fresh", func(*StorageFactory) {}, Normal, nil},
		{"nothing is found", func(f *StorageFactory) { f.LatestRawAt, f.LatestProcessedAt, f.LatestProcessedAggAt = nil, nil, nil }, Unknown, nil},
		{"raw is old", func(f *StorageFactory) { f.LatestRawAt = ago(300 * time.Second) }, Warning, []string{"storage_raw_age>=threshold:factory-a"}},
		{"raw is missing", func(f *StorageFactory) { f.LatestRawAt = nil }, Warning, []string{"storage_raw_missing:factory-a"}},
		{"processed is old", func(f *StorageFactory) { f.LatestProcessedAt = ago(300 * time.Second) }, Warning, []string{"storage_processed_age>=threshold:factory-a"}},
		{"processed is missing", func(f *StorageFactory) { f.LatestProcessedAt = nil }, Warning, []string{"storage_processed_missing:factory-a"}},
		{"aggregates are old", func(f *StorageFactory) { f.LatestProcessedAggAt = ago(900 * time.Second) }, Warning, []string{"storage_processed_agg_age>=threshold:factory-a"}},
		{"aggregates are missing", func(f *StorageFactory) { f.LatestProcessedAggAt = nil }, Warning, []string{"storage_processed_agg_missing:factory-a"}},
		{"a clock is ahead", func(f *StorageFactory) { f.LatestRawAt = ago(-time.Minute) }, Normal, nil},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			r := healthySlow()
			c.change(&r.Storage[0])
			got := EvaluateSlow(r, DefaultThresholds(), noon).StorageFreshness
			require.Equal(t, c.status, got.Status)
			require.Equal(t, c.status, got.Factories[0].Status)
			require.Equal(t, append([]string{}, c.reasons...), got.Reasons)
		})
	}
}

func TestAFailedListingIsNotAMissingObject(t *testing.T) {
	r := healthySlow()
	r.Storage[0].LatestRawAt = nil
	r.Storage = append(r.Storage, StorageFactory{FactoryID: "factory-b", LatestRawAt: ago(0), LatestProcessedAt: ago(0), LatestProcessedAggAt: ago(0)})
	e := NewError("s3:ListObjectsV2", "SlowDown", "no", factory.MillisOf(noon))
	e.FactoryID = "factory-a"
	r.Fail(ProbeStorage, e)
	got := EvaluateSlow(r, DefaultThresholds(), noon).StorageFreshness
	require.Equal(t, Unknown, got.Status)
	require.Empty(t, got.Reasons)
	require.Equal(t, []Status{Unknown, Normal}, []Status{got.Factories[0].Status, got.Factories[1].Status})

	r.Storage[0].LatestProcessedAt = ago(time.Hour)
	got = EvaluateSlow(r, DefaultThresholds(), noon).StorageFreshness
	require.Equal(t, Warning, got.Status, "what was found too old counts")
}

func TestASlowHalfThatIsNotConfigured(t *testing.T) {
	s := EvaluateSlow(SlowReport{}, DefaultThresholds(), noon)
	for _, section := range s.sections() {
		require.Equal(t, NotConfigured, section.Status)
	}
	require.Nil(t, s.EKSManagement.Nodes, "a part that was not looked at says nothing")
	require.Equal(t, []StorageFactory{}, s.StorageFreshness.Factories)

	r := healthySlow()
	r.Configured, r.ArgoCD = []Probe{ProbeCluster, ProbeNodes, ProbePods}, nil
	eks := EvaluateSlow(r, DefaultThresholds(), noon).EKSManagement
	require.Nil(t, eks.ArgoCD)
	require.Equal(t, Normal, eks.Status)
}
