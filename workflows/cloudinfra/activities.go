package cloudinfra

import (
	"time"

	"millrace/domain/cloudinfra"
	"millrace/domain/exact"
	"millrace/domain/factory"
)

// Names of the activities besides the probes.
const (
	PlanActivity      = "PlanCloudInfraProbes"
	StoreFastActivity = "StoreCloudInfraFast"
	StoreSlowActivity = "StoreCloudInfraSlow"
)

// ActivityOf is the name of the activity that makes a probe.
func ActivityOf(p cloudinfra.Probe) string { return "ProbeCloudInfra:" + string(p) }

// PlanRequest asks which probes of a track are configured.
type PlanRequest struct {
	Track cloudinfra.Track `json:"track"`
}

// Plan are the probes that are configured.
type Plan struct {
	Configured []cloudinfra.Probe `json:"configured"`
}

// ProbeRequest asks for a probe as of the time a run began.
type ProbeRequest struct {
	AsOf time.Time `json:"as_of"`
}

// Found is what a probe measured and what of it could not be. A probe that
// could measure nothing at all fails instead.
type Found[T any] struct {
	Value  T                  `json:"value"`
	Errors []cloudinfra.Error `json:"errors,omitempty"`
}

// ALBFound is a target group and the load balancer in front of it, named as
// CloudWatch names both.
type ALBFound struct {
	ALB          cloudinfra.ALB `json:"alb"`
	TargetGroup  string         `json:"target_group"`
	LoadBalancer string         `json:"load_balancer,omitempty"`
}

// BackendMetricsRequest asks for the metrics of the backend's section. What is
// not known of the load balancer is empty and not measured.
type BackendMetricsRequest struct {
	ProbeRequest
	TargetGroup  string `json:"target_group,omitempty"`
	LoadBalancer string `json:"load_balancer,omitempty"`
}

// BackendMetrics are the metrics of the backend's section.
type BackendMetrics struct {
	ECS *cloudinfra.ECSMetrics `json:"ecs,omitempty"`
	ALB *cloudinfra.ALBMetrics `json:"alb,omitempty"`
}

// RedisFound is a replication group and the ids of its nodes.
type RedisFound struct {
	Redis cloudinfra.Redis `json:"redis"`
	Nodes []string         `json:"nodes"`
}

// DatastoreMetricsRequest asks for the metrics of the datastores' section.
type DatastoreMetricsRequest struct {
	ProbeRequest
	RedisNodes []string `json:"redis_nodes,omitempty"`
}

// DatastoreMetrics are the metrics of the datastores' section.
type DatastoreMetrics struct {
	Redis *cloudinfra.RedisMetrics `json:"redis,omitempty"`
	RDS   *cloudinfra.RDSMetrics   `json:"rds,omitempty"`
}

// PipelineMetrics are the metrics of the data pipeline's section.
type PipelineMetrics struct {
	Lambdas      []cloudinfra.Lambda  `json:"lambdas,omitempty"`
	DynamoDB     *cloudinfra.DynamoDB `json:"dynamodb,omitempty"`
	DLQOldestAge *exact.Decimal       `json:"dlq_oldest_age,omitempty"`
}

// AutoscalingRequest asks for the Auto Scaling groups of the node groups.
type AutoscalingRequest struct {
	ProbeRequest
	Groups []string `json:"groups"`
}

// StoreFastRequest asks to judge and store what a fast run measured. UpdatedAt
// follows from when the run began, so that a repeat writes the same keys.
type StoreFastRequest struct {
	UpdatedAt factory.Millis        `json:"updated_at"`
	Report    cloudinfra.FastReport `json:"report"`
	Writes    Writes                `json:"writes"`
}

// StoreSlowRequest asks to judge and store what a slow run measured.
type StoreSlowRequest struct {
	UpdatedAt factory.Millis        `json:"updated_at"`
	Report    cloudinfra.SlowReport `json:"report"`
	Writes    Writes                `json:"writes"`
}

// Writes say what of a run is written. Both are on unless an operator's run says
// otherwise; the object is never written without the table.
type Writes struct {
	DynamoDB *bool `json:"write_dynamodb,omitempty"`
	S3       *bool `json:"write_s3,omitempty"`
}

// ToTable tells whether the table is written.
func (w Writes) ToTable() bool { return w.DynamoDB == nil || *w.DynamoDB }

// ToBucket tells whether the object is written.
func (w Writes) ToBucket() bool { return w.ToTable() && (w.S3 == nil || *w.S3) }

// Statuses of results besides those of the store: committed, repeated and
// superseded.
const (
	// StatusLate means that the run came too late to say anything of now.
	StatusLate = "late"
	// StatusMeasured means that the run was told not to write.
	StatusMeasured = "measured"
)

// Result is what a run did.
type Result struct {
	Status        string             `json:"status"`
	ScheduledAt   time.Time          `json:"scheduled_at,omitzero"`
	LateSeconds   int64              `json:"late_seconds,omitempty"`
	UpdatedAt     *factory.Millis    `json:"updated_at,omitempty"`
	OverallStatus cloudinfra.Status  `json:"overall_status,omitempty"`
	DynamoDBSK    string             `json:"dynamodb_sk,omitempty"`
	S3Key         string             `json:"s3_key,omitempty"`
	Errors        []cloudinfra.Error `json:"errors"`
}
