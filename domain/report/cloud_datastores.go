package report

import (
	"time"

	"millrace/domain/exact"
)

// CloudDatastores are the figures of caches and databases.
type CloudDatastores struct {
	CloudSection
	Redis *CloudStore `json:"redis,omitempty"`
	RDS   *CloudStore `json:"rds,omitempty"`
}

// CloudStore are the figures of one store. Status is the last known.
type CloudStore struct {
	AsOf        *time.Time    `json:"as_of"`
	ID          string        `json:"id"`
	Status      string        `json:"status"`
	Unavailable exact.Decimal `json:"unavailable_minutes"`
	CPU         *CloudStat    `json:"cpu_utilization_avg"`
	FreeableMiB *CloudStat    `json:"freeable_memory_mib"`
	Connections *CloudStat    `json:"connections"`
	// FreeStorageMiB is of databases, Evictions of caches.
	FreeStorageMiB *CloudStat   `json:"free_storage_mib,omitempty"`
	Evictions      CloudCounter `json:"evictions"`
}

const storeAvailable = "available"

func (s cloudSight) datastores() CloudDatastores {
	d := CloudDatastores{CloudSection: s.section()}
	if redis, ok := s.child("redis"); ok {
		d.Redis = redis.store("replication_group_id", "current_connections")
	}
	if rds, ok := s.child("rds"); ok {
		d.RDS = rds.store("db_instance_id", "database_connections")
	}
	return d
}

func (s cloudSight) store(id, connections string) *CloudStore {
	status := s.fields.name("status")
	return &CloudStore{
		AsOf: s.asOf(), ID: s.fields.name(id), Status: status, Unavailable: cloudWhen(status != "" && status != storeAvailable, s.span),
		CPU: s.stat("cpu_utilization_avg"), FreeableMiB: s.stat("freeable_memory_mib"), Connections: s.stat(connections),
		FreeStorageMiB: s.stat("free_storage_mib"), Evictions: s.counter("evictions_5m"),
	}
}

func (d CloudDatastores) merge(o CloudDatastores) CloudDatastores {
	return CloudDatastores{CloudSection: d.CloudSection.merge(o.CloudSection), Redis: d.Redis.merge(o.Redis), RDS: d.RDS.merge(o.RDS)}
}

func (c *CloudStore) merge(o *CloudStore) *CloudStore {
	if c == nil || o == nil {
		return cloudEither(c, o)
	}
	last := *c
	if cloudLater(c.AsOf, o.AsOf) {
		last = *o
	}
	last.Unavailable = c.Unavailable.Add(o.Unavailable)
	last.CPU, last.FreeableMiB, last.Connections = c.CPU.merge(o.CPU), c.FreeableMiB.merge(o.FreeableMiB), c.Connections.merge(o.Connections)
	last.FreeStorageMiB, last.Evictions = c.FreeStorageMiB.merge(o.FreeStorageMiB), c.Evictions.merge(o.Evictions)
	return &last
}
