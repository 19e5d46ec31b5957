package report

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"millrace/domain/alert"
	"millrace/domain/cloudinfra"
	"millrace/domain/exact"
)

// CloudEventType is what kind of trouble an event is: one for each alert rule
// (factory.md, 6.4).
type CloudEventType string

// The 17 event types.
const (
	CloudLambdaErrors       CloudEventType = "lambda_errors"
	CloudLambdaThrottles    CloudEventType = "lambda_throttles"
	CloudDynamoDBThrottles  CloudEventType = "dynamodb_throttles"
	CloudUnhealthyHosts     CloudEventType = "alb_unhealthy_hosts"
	CloudBackendStatus      CloudEventType = "backend_runtime_status"
	CloudPipelineStatus     CloudEventType = "data_pipeline_status"
	CloudDatastoresCritical CloudEventType = "datastores_critical"
	CloudCollectorError     CloudEventType = "collector_error"
	CloudUnauthorized       CloudEventType = "collector_unauthorized"
	CloudStorageStatus      CloudEventType = "storage_freshness_status"
	CloudClusterNotActive   CloudEventType = "eks_cluster_not_active"
	CloudGroupNotActive     CloudEventType = "eks_nodegroup_not_active"
	CloudAutoscaling        CloudEventType = "autoscaling_unhealthy_instances"
	CloudNodesStatus        CloudEventType = "nodes_status"
	CloudPodsStatus         CloudEventType = "pods_status"
	CloudArgoCDStatus       CloudEventType = "argocd_status"
	CloudEKSStatus          CloudEventType = "eks_management_status"
)

// cloudEventTypes are the types by the alerts' reasons; a reason that ends in a
// status stands here without it.
var cloudEventTypes = map[string]CloudEventType{
	"data_pipeline_lambda_errors": CloudLambdaErrors, "data_pipeline_lambda_throttles": CloudLambdaThrottles,
	"dynamodb_throttles": CloudDynamoDBThrottles, "alb_unhealthy_hosts": CloudUnhealthyHosts,
	"backend_runtime": CloudBackendStatus, "data_pipeline": CloudPipelineStatus, "datastores_critical": CloudDatastoresCritical,
	"storage_freshness": CloudStorageStatus, "eks_cluster_not_active": CloudClusterNotActive, "eks_nodegroup_not_active": CloudGroupNotActive,
	"autoscaling_unhealthy_instances": CloudAutoscaling,
	"nodes":                           CloudNodesStatus, "pods": CloudPodsStatus, "argocd": CloudArgoCDStatus, "eks_management": CloudEKSStatus,
}

// cloudEventType is the type of an alert and what of it varies within the type:
// the status, or the collector.
func cloudEventType(a alert.Alert) (CloudEventType, string) {
	if t, ok := cloudEventTypes[a.Reason]; ok {
		return t, ""
	}
	for _, status := range []cloudinfra.Status{cloudinfra.Warning, cloudinfra.Critical, cloudinfra.Unknown} {
		if name, ok := strings.CutSuffix(a.Reason, "_"+string(status)); ok {
			if t, ok := cloudEventTypes[name]; ok {
				return t, string(status)
			}
		}
	}
	if name, ok := strings.CutSuffix(a.Reason, "_unauthorized"); ok {
		return CloudUnauthorized, cloudName(name)
	}
	return CloudCollectorError, cloudName(strings.TrimSuffix(a.Reason, "_error"))
}

// CloudEvent is one condition over a time: samples close together that raised the
// same alert. A sample stands until the next one is due, so that an event may end
// a little after its hour.
type CloudEvent struct {
	Type     CloudEventType `json:"type"`
	Severity Severity       `json:"severity"`
	// Subject is the status of a section or the collector that failed.
	Subject string    `json:"subject,omitempty"`
	Track   string    `json:"track"`
	Start   time.Time `json:"start_utc"`
	End     time.Time `json:"end_utc"`
	// TimeRange is HH:MM~HH:MM of local time.
	TimeRange       string `json:"time_range"`
	DurationSeconds int64  `json:"duration_seconds"`
	// Samples raised the alert; between them there may have been good ones.
	Samples       int64         `json:"samples"`
	Minutes       exact.Decimal `json:"affected_minutes"`
	SeverityScore exact.Decimal `json:"severity_score"`
	Evidence      CloudEvidence `json:"evidence"`
}

// CloudEvidence is what the first sample of an event showed and where it lies.
type CloudEvidence struct {
	Reason    string      `json:"alert_reason"`
	Status    string      `json:"status"`
	SourceKey string      `json:"source_key"`
	Facts     []CloudFact `json:"facts,omitempty"`
}

// CloudFact is one observed value.
type CloudFact struct {
	Name  string `json:"name"`
	Value string `json:"value"`
}

const maxCloudFacts = 5

func (s cloudSample) event(a alert.Alert, interval time.Duration) CloudEvent {
	kind, subject := cloudEventType(a)
	e := CloudEvent{
		Type: kind, Severity: SeverityWarning, Subject: subject, Track: s.half,
		Start: s.at, End: s.at.Add(interval), Samples: 1, Minutes: s.span,
		Evidence: CloudEvidence{Reason: cloudName(a.Reason), Status: cloudName(a.Status), SourceKey: a.SourceKey},
	}
	if a.Severity == alert.Danger {
		e.Severity = SeverityDanger
	}
	for _, fact := range a.Details.Facts[:min(len(a.Details.Facts), maxCloudFacts)] {
		e.Evidence.Facts = append(e.Evidence.Facts, CloudFact{Name: cloudName(fact.Name), Value: cloudReason(fact.Value)})
	}
	return e
}

// compare orders events by time and then by kind, so that the order of reading
// changes nothing.
func (e CloudEvent) compare(o CloudEvent) int {
	return cmp.Or(e.Start.Compare(o.Start), cmp.Compare(e.Type, o.Type), cmp.Compare(e.Subject, o.Subject), cmp.Compare(e.Severity, o.Severity), cmp.Compare(e.Track, o.Track))
}

func (e CloudEvent) same(o CloudEvent) bool {
	return e.Type == o.Type && e.Subject == o.Subject && e.Severity == o.Severity && e.Track == o.Track
}

// mergeCloudEvents joins events of one kind that are at most gap apart, within an
// hour as over its edges. The result is in the order of time.
func mergeCloudEvents(events []CloudEvent, gap time.Duration) []CloudEvent {
	events = slices.Clone(events)
	slices.SortFunc(events, CloudEvent.compare)
	merged := []CloudEvent{}
	for _, e := range events {
		into := -1
		for i := len(merged) - 1; i >= 0 && into < 0; i-- {
			if merged[i].same(e) {
				into = i
			}
		}
		if into < 0 || e.Start.Sub(merged[into].End) > gap {
			merged = append(merged, e)
			continue
		}
		m := &merged[into]
		m.End, m.Samples, m.Minutes = latest(m.End, e.End), m.Samples+e.Samples, m.Minutes.Add(e.Minutes)
	}
	return merged
}

// Weights of severities in the score of an event.
var (
	cloudWarningWeight = exact.FromInt(50)
	cloudDangerWeight  = exact.FromInt(80)
	cloudMinutesWeight = exact.FromInt(20)
)

// finish fits an event into the day and works out what follows from its times.
func (e CloudEvent) finish(day Day) CloudEvent {
	e.End = earliest(e.End, latest(day.Window().End, e.Start))
	e.TimeRange = day.clockRange(Span{Start: e.Start, End: e.End})
	e.DurationSeconds = int64(e.End.Sub(e.Start) / time.Second)
	weight := cloudWarningWeight
	if e.Severity == SeverityDanger {
		weight = cloudDangerWeight
	}
	e.SeverityScore = weight.Add(exact.Min(cloudMinutesOf(e.End.Sub(e.Start)), cloudMinutesWeight))
	return e
}

// worstCloudFirst orders events by severity score, then by time.
func worstCloudFirst(a, b CloudEvent) int {
	return cmp.Or(b.SeverityScore.Cmp(a.SeverityScore), a.compare(b))
}

// CloudEventCounts are numbers of events by type.
type CloudEventCounts map[CloudEventType]int64

func countCloudEvents(events []CloudEvent) CloudEventCounts {
	counts := CloudEventCounts{}
	for _, e := range events {
		counts[e.Type]++
	}
	return counts
}
