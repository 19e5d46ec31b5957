package factory

import "time"

// Health is the state of a factory's data pipeline.
type Health string

// The pipeline states, best first.
const (
	Normal   Health = "normal"
	Warning  Health = "warning"
	Critical Health = "critical"
)

// Freshness thresholds in seconds of silence of the infra_state stream (every
// 20 s nominally); all are exclusive.
const (
	staleWarningSeconds  = 60
	staleCriticalSeconds = 120
	staleOutageSeconds   = 300
)

// PipelineStatus tells how fresh a factory's data are. Ages are whole seconds,
// nil when nothing was ever received. Only the infra_state age decides Status.
type PipelineStatus struct {
	Status                       Health `json:"status"`
	LatestInfraStateAgeSeconds   *int64 `json:"latest_infra_state_age_seconds"`
	LatestFactoryStateAgeSeconds *int64 `json:"latest_factory_state_age_seconds"`
}

// EvaluatePipeline judges freshness at now from the newest source timestamps.
func EvaluatePipeline(lastInfra, lastFactory *time.Time, now time.Time) PipelineStatus {
	age := ageSeconds(lastInfra, now)
	return PipelineStatus{
		Status:                       healthOfAge(age),
		LatestInfraStateAgeSeconds:   age,
		LatestFactoryStateAgeSeconds: ageSeconds(lastFactory, now),
	}
}

func ageSeconds(at *time.Time, now time.Time) *int64 {
	if at == nil {
		return nil
	}
	age := int64(now.Sub(*at) / time.Second)
	return &age
}

func healthOfAge(age *int64) Health {
	switch {
	case age == nil || *age > staleCriticalSeconds:
		return Critical
	case *age > staleWarningSeconds:
		return Warning
	}
	return Normal
}
