package cloudinfra

import (
	"context"
	"fmt"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/autoscaling"
	astypes "github.com/aws/aws-sdk-go-v2/service/autoscaling/types"
	"github.com/aws/aws-sdk-go-v2/service/eks"
	ekstypes "github.com/aws/aws-sdk-go-v2/service/eks/types"
	"go.temporal.io/sdk/activity"

	"millrace/domain/cloudinfra"
	workflows "millrace/workflows/cloudinfra"
)

func (c Collector) probeCluster(ctx context.Context, _ workflows.ProbeRequest) (workflows.Found[cloudinfra.Cluster], error) {
	out, err := c.EKS.DescribeCluster(ctx, &eks.DescribeClusterInput{Name: &c.Settings.EKSClusterName})
	if err == nil && out.Cluster == nil {
		err = &unreadableError{what: "the answer has no cluster"}
	}
	if err != nil {
		return workflows.Found[cloudinfra.Cluster]{}, c.fail(workflows.SourceOf(cloudinfra.ProbeCluster), err)
	}
	return found(cloudinfra.Cluster{
		Name: c.Settings.EKSClusterName, Status: string(out.Cluster.Status), Version: aws.ToString(out.Cluster.Version), CreatedAt: out.Cluster.CreatedAt,
	}), nil
}

// maxNodegroups bounds the node groups that are described.
const maxNodegroups = 50

func (c Collector) probeNodegroups(ctx context.Context, _ workflows.ProbeRequest) (workflows.Found[[]cloudinfra.Nodegroup], error) {
	var names []string
	pages := eks.NewListNodegroupsPaginator(c.EKS, &eks.ListNodegroupsInput{ClusterName: &c.Settings.EKSClusterName})
	for pages.HasMorePages() && len(names) < maxNodegroups {
		page, err := pages.NextPage(ctx)
		if err != nil {
			return workflows.Found[[]cloudinfra.Nodegroup]{}, c.fail("eks:ListNodegroups", err)
		}
		names = append(names, page.Nodegroups...)
		activity.RecordHeartbeat(ctx, len(names))
	}
	names = names[:min(len(names), maxNodegroups)]
	return gather(names, workflows.SourceOf(cloudinfra.ProbeNodegroups), c, func(name string) (cloudinfra.Nodegroup, error) {
		out, err := c.EKS.DescribeNodegroup(ctx, &eks.DescribeNodegroupInput{ClusterName: &c.Settings.EKSClusterName, NodegroupName: &name})
		if err == nil && out.Nodegroup == nil {
			err = &unreadableError{what: "the answer has no node group"}
		}
		if err != nil {
			return cloudinfra.Nodegroup{}, fmt.Errorf("node group %s: %w", name, err)
		}
		activity.RecordHeartbeat(ctx, name)
		return nodegroupOf(name, *out.Nodegroup), nil
	})
}

func nodegroupOf(name string, g ekstypes.Nodegroup) cloudinfra.Nodegroup {
	group := cloudinfra.Nodegroup{
		Name: name, Status: string(g.Status), CapacityType: string(g.CapacityType),
		InstanceTypes: append([]string{}, g.InstanceTypes...), HealthIssues: []string{}, AutoscalingGroups: []string{},
	}
	if s := g.ScalingConfig; s != nil {
		group.DesiredSize, group.MinSize, group.MaxSize = widened(s.DesiredSize), widened(s.MinSize), widened(s.MaxSize)
	}
	if g.Health != nil {
		for _, issue := range g.Health.Issues {
			group.HealthIssues = append(group.HealthIssues, string(issue.Code))
		}
	}
	if g.Resources != nil {
		for _, a := range g.Resources.AutoScalingGroups {
			group.AutoscalingGroups = append(group.AutoscalingGroups, aws.ToString(a.Name))
		}
	}
	return group
}

func (c Collector) probeAutoscaling(ctx context.Context, req workflows.AutoscalingRequest) (workflows.Found[cloudinfra.Autoscaling], error) {
	total := cloudinfra.Autoscaling{Groups: []string{}}
	pages := autoscaling.NewDescribeAutoScalingGroupsPaginator(c.Autoscaling, &autoscaling.DescribeAutoScalingGroupsInput{AutoScalingGroupNames: req.Groups})
	for pages.HasMorePages() {
		page, err := pages.NextPage(ctx)
		if err != nil {
			return workflows.Found[cloudinfra.Autoscaling]{}, c.fail(workflows.SourceOf(cloudinfra.ProbeAutoscaling), err)
		}
		for _, group := range page.AutoScalingGroups {
			total.Groups = append(total.Groups, aws.ToString(group.AutoScalingGroupName))
			total.DesiredCapacity += int64(aws.ToInt32(group.DesiredCapacity))
			total.TotalInstances += int64(len(group.Instances))
			total.HealthyInstances += healthy(group.Instances)
		}
		activity.RecordHeartbeat(ctx, len(total.Groups))
	}
	return found(total), nil
}

// healthy counts the instances that are in service and pass their checks.
func healthy(instances []astypes.Instance) int64 {
	var n int64
	for _, i := range instances {
		if aws.ToString(i.HealthStatus) == "Healthy" && i.LifecycleState == astypes.LifecycleStateInService {
			n++
		}
	}
	return n
}
