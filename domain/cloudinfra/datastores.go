package cloudinfra

import "millrace/domain/exact"

// Datastores is the section of caches and databases.
type Datastores struct {
	Section
	Redis *Redis `json:"redis,omitempty"`
	RDS   *RDS   `json:"rds,omitempty"`
}

// Redis is a replication group of ElastiCache. A null was not measured.
type Redis struct {
	ReplicationGroupID string `json:"replication_group_id,omitempty"`
	Status             string `json:"status,omitempty"`
	NodeCount          *int64 `json:"node_count"`
	RedisMetrics
}

// RedisMetrics are the newest minute of a group: the worst node's CPU and memory,
// all nodes' connections, and the evictions of five minutes.
type RedisMetrics struct {
	CPUAvg        *exact.Decimal `json:"cpu_utilization_avg"`
	MemoryPercent *exact.Decimal `json:"memory_usage_percent"`
	FreeableMiB   *exact.Decimal `json:"freeable_memory_mib"`
	Connections   *exact.Decimal `json:"current_connections"`
	Evictions     *exact.Decimal `json:"evictions_5m"`
}

// RDS is a database instance. A null was not measured.
type RDS struct {
	InstanceID      string `json:"db_instance_id,omitempty"`
	Status          string `json:"status,omitempty"`
	AllocatedGiB    *int64 `json:"allocated_storage_gib"`
	MaxAllocatedGiB *int64 `json:"max_allocated_storage_gib"`
	RDSMetrics
}

// RDSMetrics are the newest minute of an instance.
type RDSMetrics struct {
	CPUAvg         *exact.Decimal `json:"cpu_utilization_avg"`
	Connections    *exact.Decimal `json:"database_connections"`
	FreeableMiB    *exact.Decimal `json:"freeable_memory_mib"`
	FreeStorageMiB *exact.Decimal `json:"free_storage_mib"`
}

const available = "available"

func evaluateDatastores(r FastReport, t Thresholds) Datastores {
	if !r.Has(datastoreProbes...) {
		return Datastores{Section: notConfigured()}
	}
	s := Datastores{Redis: r.Redis, RDS: r.RDS}
	var v verdict
	if e := s.Redis; e != nil {
		v.part(
			isCritical(e.Status != "" && e.Status != available, "redis_status!=available"),
			warns(atLeast(e.CPUAvg, t.RedisCPU), "redis_cpu_utilization_avg>=threshold"),
			warns(below(e.FreeableMiB, t.RedisFreeable), "redis_freeable_memory_low"),
			warns(positive(e.Evictions), "redis_evictions_5m>0"),
		)
	}
	if e := s.RDS; e != nil {
		v.part(
			isCritical(e.Status != "" && e.Status != available, "rds_status!=available"),
			warns(atLeast(e.CPUAvg, t.RDSCPU), "rds_cpu_utilization_avg>=threshold"),
			warns(below(e.FreeStorageMiB, t.RDSFreeStorage), "rds_free_storage_low"),
		)
	}
	s.Section = v.section(r.errors(datastoreProbes...))
	return s
}
