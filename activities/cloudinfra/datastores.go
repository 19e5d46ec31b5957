package cloudinfra

import (
	"context"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/elasticache"
	"github.com/aws/aws-sdk-go-v2/service/rds"

	"millrace/domain/cloudinfra"
	"millrace/domain/exact"
	workflows "millrace/workflows/cloudinfra"
)

func (c Collector) probeRedis(ctx context.Context, _ workflows.ProbeRequest) (workflows.Found[workflows.RedisFound], error) {
	source := workflows.SourceOf(cloudinfra.ProbeRedis)
	out, err := c.ElastiCache.DescribeReplicationGroups(ctx, &elasticache.DescribeReplicationGroupsInput{ReplicationGroupId: &c.Settings.RedisReplicationGroupID})
	switch {
	case err != nil:
		return workflows.Found[workflows.RedisFound]{}, c.fail(source, err)
	case len(out.ReplicationGroups) == 0:
		return workflows.Found[workflows.RedisFound]{}, c.fail(source, &unreadableError{what: "no such replication group"})
	}
	group := out.ReplicationGroups[0]
	return found(workflows.RedisFound{Nodes: group.MemberClusters, Redis: cloudinfra.Redis{
		ReplicationGroupID: c.Settings.RedisReplicationGroupID, Status: aws.ToString(group.Status),
		NodeCount: aws.Int64(int64(len(group.MemberClusters))),
	}}), nil
}

func (c Collector) probeRDS(ctx context.Context, _ workflows.ProbeRequest) (workflows.Found[cloudinfra.RDS], error) {
	source := workflows.SourceOf(cloudinfra.ProbeRDS)
	out, err := c.RDS.DescribeDBInstances(ctx, &rds.DescribeDBInstancesInput{DBInstanceIdentifier: &c.Settings.RDSInstanceID})
	switch {
	case err != nil:
		return workflows.Found[cloudinfra.RDS]{}, c.fail(source, err)
	case len(out.DBInstances) == 0:
		return workflows.Found[cloudinfra.RDS]{}, c.fail(source, &unreadableError{what: "no such instance"})
	}
	instance := out.DBInstances[0]
	return found(cloudinfra.RDS{
		InstanceID: c.Settings.RDSInstanceID, Status: aws.ToString(instance.DBInstanceStatus),
		AllocatedGiB: widened(instance.AllocatedStorage), MaxAllocatedGiB: widened(instance.MaxAllocatedStorage),
	}), nil
}

func widened(n *int32) *int64 {
	if n == nil {
		return nil
	}
	return count(*n)
}

// maxRedisNodes bounds the nodes that are measured: four queries each, of the 500
// that one request may have.
const maxRedisNodes = 50

func (c Collector) measureDatastores(ctx context.Context, req workflows.DatastoreMetricsRequest) (workflows.Found[workflows.DatastoreMetrics], error) {
	m := &metrics{}
	cache, database := redisMetrics(m, req.RedisNodes), rdsMetrics(m, c.Settings.RDSInstanceID)
	if err := m.read(ctx, c.CloudWatch, req.AsOf, c.Settings.MetricWindow); err != nil {
		return workflows.Found[workflows.DatastoreMetrics]{}, c.fail(getMetricData, err)
	}
	return found(workflows.DatastoreMetrics{Redis: cache(), RDS: database()}, c.metricErrors(m)...), nil
}

func redisMetrics(m *metrics, nodes []string) func() *cloudinfra.RedisMetrics {
	if len(nodes) == 0 {
		return func() *cloudinfra.RedisMetrics { return nil }
	}
	var cpu, memory, freeable, connections, evictions []string
	for _, node := range nodes[:min(len(nodes), maxRedisNodes)] {
		add := func(name, stat string) string {
			return m.add(metric{"AWS/ElastiCache", name, stat, []string{"CacheClusterId", node}})
		}
		cpu = append(cpu, add("CPUUtilization", "Average"))
		memory = append(memory, add("DatabaseMemoryUsagePercentage", "Average"))
		freeable = append(freeable, add("FreeableMemory", "Average"))
		connections = append(connections, add("CurrConnections", "Average"))
		evictions = append(evictions, add("Evictions", "Sum"))
	}
	return func() *cloudinfra.RedisMetrics {
		return &cloudinfra.RedisMetrics{
			CPUAvg: m.of(cpu, exact.Max), MemoryPercent: m.of(memory, exact.Max), FreeableMiB: mebibytes(m.of(freeable, exact.Min)),
			Connections: m.of(connections, exact.Decimal.Add), Evictions: m.sum(evictions...),
		}
	}
}

func rdsMetrics(m *metrics, instance string) func() *cloudinfra.RDSMetrics {
	if instance == "" {
		return func() *cloudinfra.RDSMetrics { return nil }
	}
	add := func(name string) string {
		return m.add(metric{"AWS/RDS", name, "Average", []string{"DBInstanceIdentifier", instance}})
	}
	cpu, connections, freeable, storage := add("CPUUtilization"), add("DatabaseConnections"), add("FreeableMemory"), add("FreeStorageSpace")
	return func() *cloudinfra.RDSMetrics {
		return &cloudinfra.RDSMetrics{
			CPUAvg: m.newest(cpu), Connections: m.newest(connections),
			FreeableMiB: mebibytes(m.newest(freeable)), FreeStorageMiB: mebibytes(m.newest(storage)),
		}
	}
}
