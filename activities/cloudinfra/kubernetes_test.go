package cloudinfra

import (
	"encoding/base64"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"millrace/domain/cloudinfra"
	workflows "millrace/workflows/cloudinfra"
)

const (
	nodesPath       = "/api/v1/nodes"
	podsPath        = "/api/v1/pods"
	nodeMetricsPath = "/apis/metrics.k8s.io/v1beta1/nodes"
	podMetricsPath  = "/apis/metrics.k8s.io/v1beta1/pods"
	appsPath        = "/apis/argoproj.io/v1alpha1/namespaces/argocd/applications"
)

func cluster(t *testing.T) (*fakeKubernetes, *fakeAWS, Collector) {
	t.Helper()
	f, k := newFakeAWS(t), newFakeKubernetes(t)
	k.attach(f)
	return k, f, f.collector()
}

func node(name, readiness string) map[string]any {
	return object(fmt.Sprintf(`{"kind":"Node","apiVersion":"v1","metadata":{"name":%q},"status":{
		"conditions":[{"type":"MemoryPressure","status":"False"},{"type":"Ready","status":%q}],
		"allocatable":{"cpu":"2","memory":"4Gi"},"capacity":{"cpu":"4","memory":"8Gi"}}}`, name, readiness))
}

func TestNodes(t *testing.T) {
	k, _, c := cluster(t)
	k.put(nodesPath, node("b", "True"), node("a", "True"), node("c", "Unknown"))
	k.put(nodeMetricsPath,
		object(`{"kind":"NodeMetrics","apiVersion":"metrics.k8s.io/v1beta1","metadata":{"name":"a"},"usage":{"cpu":"250000000n","memory":"1Gi"}}`),
		object(`{"kind":"NodeMetrics","apiVersion":"metrics.k8s.io/v1beta1","metadata":{"name":"b"},"usage":{"cpu":"what","memory":"41943040Ki"}}`))
	got := must[cloudinfra.Nodes](t, c, cloudinfra.ProbeNodes, ask)
	require.Equal(t, []int64{2, 3}, []int64{*got.Ready, *got.Total})
	require.Equal(t, []string{"c", "a", "b"}, []string{got.Items[0].Name, got.Items[1].Name, got.Items[2].Name}, "what is not ready comes first")
	require.False(t, got.Items[0].Ready)
	require.Nil(t, got.Items[0].CPUPercent)
	require.Equal(t, "12.5", got.Items[1].CPUPercent.String(), "of what is allocatable")
	require.Equal(t, "25", got.Items[1].MemoryPercent.String())
	require.Nil(t, got.Items[2].CPUPercent, "what can't be read is not known")
	require.Equal(t, "1000", got.Items[2].MemoryPercent.String())
}

func TestWithoutAMetricsServerTheUtilisationIsNull(t *testing.T) {
	for _, status := range []int{http.StatusNotFound, http.StatusServiceUnavailable} {
		k, _, c := cluster(t)
		k.put(nodesPath, node("a", "True"))
		k.status[nodeMetricsPath] = status
		got := must[cloudinfra.Nodes](t, c, cloudinfra.ProbeNodes, ask)
		require.Equal(t, int64(1), *got.Ready)
		require.Nil(t, got.Items[0].CPUPercent)
	}
	k, _, c := cluster(t)
	k.put(nodesPath, node("a", "True"))
	k.status[nodeMetricsPath] = http.StatusForbidden
	found, err := run[cloudinfra.Nodes](t, c, cloudinfra.ProbeNodes, ask)
	require.NoError(t, err)
	require.Equal(t, int64(1), *found.Value.Ready, "the nodes are known all the same")
	require.Equal(t, []string{"metrics.k8s.io:ListNodes", "Forbidden"}, []string{found.Errors[0].Source, found.Errors[0].Code})
}

func TestAllPagesOfPodsAreCounted(t *testing.T) {
	k, _, c := cluster(t)
	phases := []string{"Running", "Running", "Running", "Pending", "Failed", "Succeeded", "Unknown"}
	for i := range 1403 {
		k.lists[podsPath] = append(k.lists[podsPath], object(fmt.Sprintf(`{"kind":"Pod","apiVersion":"v1","metadata":{"namespace":"n","name":"p%d"},
			"status":{"phase":%q,"containerStatuses":[{"restartCount":1},{"restartCount":2}]}}`, i, phases[i%len(phases)])))
	}
	usage := func(namespace, name, cpu, memory string) map[string]any {
		return object(fmt.Sprintf(`{"kind":"PodMetrics","apiVersion":"metrics.k8s.io/v1beta1","metadata":{"namespace":%q,"name":%q},
			"containers":[{"name":"a","usage":{"cpu":%q,"memory":%q}},{"name":"b","usage":{"cpu":"1m","memory":"1Mi"}}]}`, namespace, name, cpu, memory))
	}
	k.put(podMetricsPath, usage("n", "idle", "0", "0"), usage("n", "busy", "18500000n", "100Mi"), usage("n", "big", "1m", "2Gi"), usage("a", "big", "1m", "2Gi"))
	got := must[cloudinfra.Pods](t, c, cloudinfra.ProbePods, ask)
	require.Equal(t, 3, k.pages[podsPath])
	require.Equal(t, int64(1403), *got.Running+*got.Pending+*got.Failed+*got.Succeeded+*got.Unknown)
	require.Equal(t, []int64{603, 200, 200, 200, 200}, []int64{*got.Running, *got.Pending, *got.Failed, *got.Succeeded, *got.Unknown})
	require.Equal(t, int64(1403*3), *got.RestartCount)
	require.Len(t, got.TopByCPU, 2)
	require.Equal(t, "busy", got.TopByCPU[0].Pod)
	require.Equal(t, "19.5", got.TopByCPU[0].CPUMillicores.String(), "all containers together")
	require.Equal(t, "101", got.TopByCPU[0].MemoryMiB.String())
	require.Equal(t, []string{"a/big", "n/big"}, []string{
		got.TopByMemory[0].Namespace + "/" + got.TopByMemory[0].Pod, got.TopByMemory[1].Namespace + "/" + got.TopByMemory[1].Pod,
	}, "ties are broken by name")
}

func TestApplications(t *testing.T) {
	k, _, c := cluster(t)
	app := func(name, sync, health string) map[string]any {
		return object(fmt.Sprintf(`{"kind":"Application","apiVersion":"argoproj.io/v1alpha1","metadata":{"name":%q},"status":{"sync":{"status":%q},"health":{"status":%q}}}`, name, sync, health))
	}
	k.put(appsPath, app("a", "Synced", "Healthy"), app("b", "OutOfSync", "Healthy"), app("c", "Synced", "Degraded"), app("d", "Unknown", "Progressing"))
	got := must[cloudinfra.ArgoCD](t, c, cloudinfra.ProbeArgoCD, ask)
	require.Equal(t, []int64{4, 2, 1, 2, 1}, []int64{*got.Total, *got.Synced, *got.OutOfSync, *got.Healthy, *got.Degraded})
	require.Equal(t, "a", got.Apps[3].Name, "what is wrong comes first")

	k, _, c = cluster(t)
	got = must[cloudinfra.ArgoCD](t, c, cloudinfra.ProbeArgoCD, ask)
	require.Nil(t, got.Total, "without its resource definition nothing is known")
	require.Empty(t, k.lists)
}

func TestARefusedTokenIsOneKindOfErrorForAllProbes(t *testing.T) {
	k, f, c := cluster(t)
	for _, path := range []string{nodesPath, podsPath, appsPath} {
		k.lists[path], k.status[path] = nil, http.StatusUnauthorized
	}
	for _, p := range []cloudinfra.Probe{cloudinfra.ProbeNodes, cloudinfra.ProbePods, cloudinfra.ProbeArgoCD} {
		_, err := run[any](t, c, p, ask)
		e, final := failureOf(t, err)
		require.Equal(t, workflows.SourceOf(p), e.Source)
		require.Equal(t, "Unauthorized", e.Code)
		require.Contains(t, e.Message, "HTTP 401 Unauthorized")
		require.False(t, final)
		require.NotContains(t, err.Error(), tokenPrefix)
	}
	require.Len(t, f.of("GET /clusters/aegis"), 3, "after a refusal the cluster is looked up again: it may have been rebuilt")
}

func TestTheClusterIsLookedUpOnceInAWhile(t *testing.T) {
	k, f, c := cluster(t)
	k.put(nodesPath, node("a", "True"))
	k.put(podsPath)
	must[cloudinfra.Nodes](t, c, cloudinfra.ProbeNodes, ask)
	must[cloudinfra.Pods](t, c, cloudinfra.ProbePods, ask)
	require.Len(t, f.of("GET /clusters/aegis"), 1)
}

func TestTheTokenIsASignedRequestThatNamesTheCluster(t *testing.T) {
	k, _, c := cluster(t)
	k.put(nodesPath)
	must[cloudinfra.Nodes](t, c, cloudinfra.ProbeNodes, ask)
	encoded, ok := strings.CutPrefix(k.tokens[0], "k8s-aws-v1.")
	require.True(t, ok)
	decoded, err := base64.RawURLEncoding.DecodeString(encoded)
	require.NoError(t, err)
	signed, err := url.Parse(string(decoded))
	require.NoError(t, err)
	query := signed.Query()
	require.Equal(t, "GetCallerIdentity", query.Get("Action"))
	require.Equal(t, "60", query.Get("X-Amz-Expires"))
	require.Equal(t, "host;x-k8s-aws-id", query.Get("X-Amz-SignedHeaders"))
	require.NotEmpty(t, query.Get("X-Amz-Signature"))
	require.Contains(t, query.Get("X-Amz-Credential"), "/ap-south-1/sts/aws4_request")
}

func TestAClusterWithoutAnEndpoint(t *testing.T) {
	f := newFakeAWS(t)
	for name, body := range map[string]string{
		"creating":      `{"cluster":{"name":"aegis","status":"CREATING"}}`,
		"bad authority": `{"cluster":{"endpoint":"https://127.0.0.1:1","certificateAuthority":{"data":"%%"}}}`,
		"no cluster":    `{}`,
	} {
		f.onJSON("GET /clusters/aegis", body)
		_, err := run[cloudinfra.Nodes](t, f.collector(), cloudinfra.ProbeNodes, ask)
		e, _ := failureOf(t, err)
		require.Equal(t, codeUnreadable, e.Code, name)
	}
	f.onJSON("GET /clusters/aegis", `{"cluster":{"endpoint":"https://127.0.0.1:1","certificateAuthority":{"data":""}}}`)
	_, err := run[cloudinfra.Nodes](t, f.collector(), cloudinfra.ProbeNodes, ask)
	e, final := failureOf(t, err)
	require.Equal(t, codeUnreachable, e.Code)
	require.False(t, final)
}

func TestAStrangersCertificateIsRefused(t *testing.T) {
	f, k, stranger := newFakeAWS(t), newFakeKubernetes(t), newFakeAWS(t)
	k.attach(f)
	k.put(nodesPath, node("a", "True"))
	require.Equal(t, "ACTIVE", must[cloudinfra.Cluster](t, f.collector(), cloudinfra.ProbeCluster, ask).Status)
	stranger.onJSON("GET /clusters/aegis", fmt.Sprintf(`{"cluster":{"endpoint":%q,"certificateAuthority":{"data":""}}}`, k.URL))
	_, err := run[cloudinfra.Nodes](t, stranger.collector(), cloudinfra.ProbeNodes, ask)
	e, _ := failureOf(t, err)
	require.Contains(t, e.Message, "certificate")
	require.Empty(t, k.tokens, "no token goes to a stranger")
}

func TestClusterNodegroupsAndAutoscaling(t *testing.T) {
	_, f, c := cluster(t)
	got := must[cloudinfra.Cluster](t, c, cloudinfra.ProbeCluster, ask)
	require.Equal(t, []string{"aegis", "ACTIVE", "1.34"}, []string{got.Name, got.Status, got.Version})
	require.NotNil(t, got.CreatedAt)

	f.on("GET /clusters/aegis/node-groups", func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Query().Get("nextToken") == "" {
			_, _ = w.Write([]byte(`{"nodegroups":["blue"],"nextToken":"more"}`))
			return
		}
		_, _ = w.Write([]byte(`{"nodegroups":["green"]}`))
	})
	f.onJSON("GET /clusters/aegis/node-groups/blue", `{"nodegroup":{"status":"ACTIVE","capacityType":"SPOT","instanceTypes":["t3.large"],
		"scalingConfig":{"desiredSize":2,"minSize":1,"maxSize":3},"health":{"issues":[{"code":"AsgInstanceLaunchFailures","message":"m"}]},
		"resources":{"autoScalingGroups":[{"name":"asg-blue"}]}}}`)
	f.onJSON("GET /clusters/aegis/node-groups/green", `{"nodegroup":{"status":"DEGRADED"}}`)
	groups := must[[]cloudinfra.Nodegroup](t, c, cloudinfra.ProbeNodegroups, ask)
	require.Len(t, groups, 2)
	require.Equal(t, []int64{2, 1, 3}, []int64{*groups[0].DesiredSize, *groups[0].MinSize, *groups[0].MaxSize})
	require.Equal(t, [][]string{{"t3.large"}, {"AsgInstanceLaunchFailures"}, {"asg-blue"}}, [][]string{groups[0].InstanceTypes, groups[0].HealthIssues, groups[0].AutoscalingGroups})
	require.Equal(t, "DEGRADED", groups[1].Status)
	require.Equal(t, []string{}, groups[1].AutoscalingGroups)

	f.onXML("DescribeAutoScalingGroups", `<AutoScalingGroups><member><AutoScalingGroupName>asg-blue</AutoScalingGroupName><DesiredCapacity>3</DesiredCapacity><Instances>
		<member><HealthStatus>Healthy</HealthStatus><LifecycleState>InService</LifecycleState></member>
		<member><HealthStatus>Healthy</HealthStatus><LifecycleState>Pending</LifecycleState></member>
		<member><HealthStatus>Unhealthy</HealthStatus><LifecycleState>InService</LifecycleState></member></Instances></member></AutoScalingGroups>`)
	request := workflows.AutoscalingRequest{ProbeRequest: ask, Groups: []string{"asg-blue"}}
	require.Equal(t, cloudinfra.Autoscaling{Groups: []string{"asg-blue"}, DesiredCapacity: 3, HealthyInstances: 1, TotalInstances: 3},
		must[cloudinfra.Autoscaling](t, c, cloudinfra.ProbeAutoscaling, request))
	require.Equal(t, "asg-blue", f.of("DescribeAutoScalingGroups")[0].form.Get("AutoScalingGroupNames.member.1"))
}
