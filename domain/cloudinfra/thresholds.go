package cloudinfra

import (
	"time"

	"millrace/domain/exact"
)

// Thresholds are the limits that sections are judged by. All are inclusive but
// the lower ones of memory and storage, which warn below them.
type Thresholds struct {
	// CPU and memory in percent.
	ECSCPU, ECSMemory, RedisCPU, RDSCPU exact.Decimal
	// ALBLatency is in seconds.
	ALBLatency exact.Decimal
	// RedisFreeable and RDSFreeStorage are in MiB.
	RedisFreeable, RDSFreeStorage exact.Decimal
	// CloudFront5xx is in percent of requests.
	CloudFront5xx exact.Decimal
	// BacklogAge is how old the oldest task of a task queue may be.
	BacklogAge time.Duration
	// ScheduleIntervals is by how many of its intervals a schedule may be late.
	ScheduleIntervals int64
	// RawAge, ProcessedAge and AggregateAge are how old the newest object of a
	// factory may be.
	RawAge, ProcessedAge, AggregateAge time.Duration
}

// DefaultThresholds are those of factory.md, sections 5.2 to 5.4.
func DefaultThresholds() Thresholds {
	percent := exact.FromInt(85)
	return Thresholds{
		ECSCPU: percent, ECSMemory: percent, RedisCPU: percent, RDSCPU: percent,
		ALBLatency: exact.FromInt(1), RedisFreeable: exact.FromInt(128), RDSFreeStorage: exact.FromInt(1024), CloudFront5xx: exact.FromInt(1),
		BacklogAge: 2 * time.Minute, ScheduleIntervals: 2,
		RawAge: 5 * time.Minute, ProcessedAge: 5 * time.Minute, AggregateAge: 15 * time.Minute,
	}
}
