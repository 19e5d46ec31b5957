package cloudinfra

import (
	"context"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ecs"
	ecstypes "github.com/aws/aws-sdk-go-v2/service/ecs/types"
	elbv2 "github.com/aws/aws-sdk-go-v2/service/elasticloadbalancingv2"
	elbtypes "github.com/aws/aws-sdk-go-v2/service/elasticloadbalancingv2/types"

	"millrace/domain/cloudinfra"
	workflows "millrace/workflows/cloudinfra"
)

func (c Collector) probeECS(ctx context.Context, _ workflows.ProbeRequest) (workflows.Found[cloudinfra.ECS], error) {
	service, err := c.describeService(ctx)
	if err != nil {
		return workflows.Found[cloudinfra.ECS]{}, c.fail(workflows.SourceOf(cloudinfra.ProbeECS), err)
	}
	return found(cloudinfra.ECS{
		ClusterName: c.Settings.ECSClusterName, ServiceName: c.Settings.ECSServiceName, Status: aws.ToString(service.Status),
		DesiredCount: count(service.DesiredCount), RunningCount: count(service.RunningCount), PendingCount: count(service.PendingCount),
	}), nil
}

func (c Collector) describeService(ctx context.Context) (ecstypes.Service, error) {
	out, err := c.ECS.DescribeServices(ctx, &ecs.DescribeServicesInput{
		Cluster: &c.Settings.ECSClusterName, Services: []string{c.Settings.ECSServiceName},
	})
	switch {
	case err != nil:
		return ecstypes.Service{}, err
	case len(out.Services) == 0:
		reason := "none"
		if len(out.Failures) > 0 {
			reason = aws.ToString(out.Failures[0].Reason)
		}
		return ecstypes.Service{}, &unreadableError{what: "no such service: " + reason}
	}
	return out.Services[0], nil
}

func count(n int32) *int64 { return aws.Int64(int64(n)) }

func (c Collector) probeALB(ctx context.Context, _ workflows.ProbeRequest) (workflows.Found[workflows.ALBFound], error) {
	none := workflows.Found[workflows.ALBFound]{}
	groups, err := c.ELB.DescribeTargetGroups(ctx, c.targetGroup(ctx))
	switch {
	case err != nil:
		return none, c.fail("elbv2:DescribeTargetGroups", err)
	case len(groups.TargetGroups) == 0:
		return none, c.fail("elbv2:DescribeTargetGroups", &unreadableError{what: "no such target group"})
	}
	group := groups.TargetGroups[0]
	health, err := c.ELB.DescribeTargetHealth(ctx, &elbv2.DescribeTargetHealthInput{TargetGroupArn: group.TargetGroupArn})
	if err != nil {
		return none, c.fail(workflows.SourceOf(cloudinfra.ProbeALB), err)
	}
	result := workflows.ALBFound{ALB: hosts(health.TargetHealthDescriptions), TargetGroup: resourceOf(aws.ToString(group.TargetGroupArn), "")}
	result.ALB.TargetGroupName, result.ALB.TargetGroupARN = aws.ToString(group.TargetGroupName), aws.ToString(group.TargetGroupArn)
	if len(group.LoadBalancerArns) > 0 {
		result.LoadBalancer = resourceOf(group.LoadBalancerArns[0], "loadbalancer/")
	}
	return found(result), nil
}

// targetGroup asks for the target group that is attached to the ECS service: a
// blue/green deployment changes it. Where that is not known, the configured name.
func (c Collector) targetGroup(ctx context.Context) *elbv2.DescribeTargetGroupsInput {
	if c.Settings.ECSServiceName != "" {
		if service, err := c.describeService(ctx); err == nil {
			for _, balancer := range service.LoadBalancers {
				if arn := aws.ToString(balancer.TargetGroupArn); arn != "" {
					return &elbv2.DescribeTargetGroupsInput{TargetGroupArns: []string{arn}}
				}
			}
		}
	}
	return &elbv2.DescribeTargetGroupsInput{Names: []string{c.Settings.ALBTargetGroupName}}
}

// hosts counts targets by state.
func hosts(targets []elbtypes.TargetHealthDescription) cloudinfra.ALB {
	counts := map[elbtypes.TargetHealthStateEnum]int64{}
	for _, target := range targets {
		state := elbtypes.TargetHealthStateEnum("")
		if target.TargetHealth != nil {
			state = target.TargetHealth.State
		}
		switch state {
		case elbtypes.TargetHealthStateEnumHealthy, elbtypes.TargetHealthStateEnumUnhealthy, elbtypes.TargetHealthStateEnumDraining,
			elbtypes.TargetHealthStateEnumInitial, elbtypes.TargetHealthStateEnumUnused:
			counts[state]++
		case elbtypes.TargetHealthStateEnumUnhealthyDraining:
			counts[elbtypes.TargetHealthStateEnumDraining]++
		default:
			counts[elbtypes.TargetHealthStateEnumUnavailable]++
		}
	}
	of := func(state elbtypes.TargetHealthStateEnum) *int64 { return aws.Int64(counts[state]) }
	return cloudinfra.ALB{
		HealthyHosts: of(elbtypes.TargetHealthStateEnumHealthy), UnhealthyHosts: of(elbtypes.TargetHealthStateEnumUnhealthy),
		DrainingHosts: of(elbtypes.TargetHealthStateEnumDraining), InitialHosts: of(elbtypes.TargetHealthStateEnumInitial),
		UnusedHosts: of(elbtypes.TargetHealthStateEnumUnused), UnknownHosts: of(elbtypes.TargetHealthStateEnumUnavailable),
	}
}

// resourceOf is the last part of an ARN, as CloudWatch names it.
func resourceOf(arn, prefix string) string {
	parts := strings.SplitN(arn, ":", 6)
	return strings.TrimPrefix(parts[len(parts)-1], prefix)
}

func (c Collector) measureBackend(ctx context.Context, req workflows.BackendMetricsRequest) (workflows.Found[workflows.BackendMetrics], error) {
	m := &metrics{}
	service := c.ecsMetrics(m)
	balancer := albMetrics(m, req)
	if err := m.read(ctx, c.CloudWatch, req.AsOf, c.Settings.MetricWindow); err != nil {
		return workflows.Found[workflows.BackendMetrics]{}, c.fail(getMetricData, err)
	}
	return found(workflows.BackendMetrics{ECS: service(), ALB: balancer()}, c.metricErrors(m)...), nil
}

func (c Collector) ecsMetrics(m *metrics) func() *cloudinfra.ECSMetrics {
	if c.Settings.ECSServiceName == "" {
		return func() *cloudinfra.ECSMetrics { return nil }
	}
	add := func(name, stat string) string {
		return m.add(metric{"AWS/ECS", name, stat, []string{"ClusterName", c.Settings.ECSClusterName, "ServiceName", c.Settings.ECSServiceName}})
	}
	cpuAvg, cpuMax := add("CPUUtilization", "Average"), add("CPUUtilization", "Maximum")
	memoryAvg, memoryMax := add("MemoryUtilization", "Average"), add("MemoryUtilization", "Maximum")
	return func() *cloudinfra.ECSMetrics {
		return &cloudinfra.ECSMetrics{
			CPUAvg: m.newest(cpuAvg), CPUMax: m.newest(cpuMax), MemoryAvg: m.newest(memoryAvg), MemoryMax: m.newest(memoryMax),
		}
	}
}

func albMetrics(m *metrics, req workflows.BackendMetricsRequest) func() *cloudinfra.ALBMetrics {
	if req.TargetGroup == "" || req.LoadBalancer == "" {
		return func() *cloudinfra.ALBMetrics { return nil }
	}
	add := func(name, stat string) string {
		return m.add(metric{"AWS/ApplicationELB", name, stat, []string{"TargetGroup", req.TargetGroup, "LoadBalancer", req.LoadBalancer}})
	}
	failed, avg, p95 := add("HTTPCode_Target_5XX_Count", "Sum"), add("TargetResponseTime", "Average"), add("TargetResponseTime", "p95")
	return func() *cloudinfra.ALBMetrics {
		measured := cloudinfra.ALBMetrics{Target5xx: m.sum(failed)}.WithTimes(m.newest(avg), m.newest(p95))
		return &measured
	}
}

func (c Collector) probeCloudFront(ctx context.Context, req workflows.ProbeRequest) (workflows.Found[cloudinfra.CloudFront], error) {
	m := &metrics{}
	rate := m.add(metric{"AWS/CloudFront", "5xxErrorRate", "Average", []string{"DistributionId", c.Settings.CloudFrontDistributionID, "Region", "Global"}})
	if err := m.read(ctx, c.GlobalCloudWatch, req.AsOf, c.Settings.MetricWindow); err != nil {
		return workflows.Found[cloudinfra.CloudFront]{}, c.fail(getMetricData, err)
	}
	return found(cloudinfra.CloudFront{DistributionID: c.Settings.CloudFrontDistributionID, ErrorRate5xx: m.mean(rate)}, c.metricErrors(m)...), nil
}
