package alert

import (
	"encoding/json"
	"fmt"
	"strings"

	"millrace/domain/exact"
	"millrace/domain/factory"
)

// States of cloud sections.
const (
	statusNormal        = "normal"
	statusWarning       = "warning"
	statusCritical      = "critical"
	statusUnknown       = "unknown"
	statusNotConfigured = "not_configured"
)

// cloudSnapshot is what the cloud rules read of a snapshot: of CLOUD#infra/LATEST,
// of a history item or of a snapshot object.
type cloudSnapshot struct {
	UpdatedAt     *factory.Millis `json:"updated_at"`
	FastUpdatedAt *factory.Millis `json:"fast_updated_at"`
	SlowUpdatedAt *factory.Millis `json:"slow_updated_at"`
	Fast          *fastHalf       `json:"fast"`
	Slow          *slowHalf       `json:"slow"`
	// SourceKey is the snapshot's object; empty derives it from the time.
	SourceKey string `json:"-"`
}

type fastHalf struct {
	BackendRuntime   *backendRuntime  `json:"backend_runtime"`
	Datastores       *section         `json:"datastores"`
	DataPipeline     *dataPipeline    `json:"data_pipeline"`
	FactoryFreshness *section         `json:"factory_freshness"`
	Errors           []CollectorError `json:"errors"`
}

type slowHalf struct {
	EKS     *eksManagement   `json:"eks_management"`
	Storage *section         `json:"storage_freshness"`
	Errors  []CollectorError `json:"errors"`
}

// section is what every section has. Data fields are optional everywhere.
type section struct {
	Status  string           `json:"status"`
	Reasons []string         `json:"reasons"`
	Errors  []CollectorError `json:"errors"`
}

type backendRuntime struct {
	section
	ALB struct {
		TargetGroup string `json:"target_group_name"`
		Healthy     count  `json:"healthy_host_count"`
		Unhealthy   count  `json:"unhealthy_host_count"`
		Draining    count  `json:"draining_host_count"`
	} `json:"alb"`
}

type dataPipeline struct {
	section
	Lambdas []struct {
		Name      string `json:"name"`
		Errors    count  `json:"errors_5m"`
		Throttles count  `json:"throttles_5m"`
	} `json:"lambdas"`
	DynamoDB struct {
		Table          string `json:"table_name"`
		ReadThrottles  count  `json:"read_throttle_events_5m"`
		WriteThrottles count  `json:"write_throttle_events_5m"`
	} `json:"dynamodb"`
}

type eksManagement struct {
	section
	Cluster     named       `json:"cluster"`
	Nodegroups  []named     `json:"nodegroups"`
	Nodegroup   *named      `json:"nodegroup"`
	Autoscaling autoscaling `json:"autoscaling"`
	Nodes       *section    `json:"nodes"`
	Pods        *section    `json:"pods"`
	ArgoCD      *section    `json:"argocd"`
}

type named struct {
	Name   string `json:"name"`
	Status string `json:"status"`
}

type autoscaling struct {
	Desired count `json:"desired_capacity"`
	Healthy count `json:"healthy_instances"`
}

// count is a number that may be missing, null or no number: nil then.
type count struct{ n *exact.Decimal }

// UnmarshalJSON reads a number; anything else is "not known", never an error.
func (c *count) UnmarshalJSON(data []byte) error {
	text := strings.Trim(string(data), `"`)
	if d, err := exact.Parse(text); err == nil {
		c.n = &d
	}
	return nil
}

func (c count) positive() bool { return c.n != nil && c.n.Sign() > 0 }

func (c count) less(other count) bool { return c.n != nil && other.n != nil && c.n.Less(*other.n) }

func (c count) String() string {
	if c.n == nil {
		return "-"
	}
	return c.n.String()
}

func parseCloud(body []byte, sourceKey string) (cloudSnapshot, error) {
	s := cloudSnapshot{SourceKey: sourceKey}
	if err := json.Unmarshal(body, &s); err != nil {
		return cloudSnapshot{}, fmt.Errorf("read cloud snapshot: %w", typed(err))
	}
	return s, nil
}

// Fast decides on the JSON of a fast snapshot of the cloud infrastructure. The
// source key is the object it lies in; empty derives it from fast_updated_at.
func Fast(body []byte, sourceKey string) (Decision, error) {
	s, err := parseCloud(body, sourceKey)
	if err != nil {
		return Decision{}, err
	}
	at := s.FastUpdatedAt
	if at == nil {
		at = s.UpdatedAt
	}
	if at == nil {
		return Decision{}, fmt.Errorf("read cloud snapshot: %w", invalid("fast_updated_at", "is required, or updated_at"))
	}
	rules := cloudRules{source: SourceFast, track: partFast, at: *at, sourceKey: s.SourceKey}
	half := s.Fast
	if half == nil {
		half = &fastHalf{}
	}
	return rules.fast(*half), nil
}

// Slow decides on the JSON of a slow snapshot of the cloud infrastructure. The
// source key is the object it lies in; empty derives it from slow_updated_at.
func Slow(body []byte, sourceKey string) (Decision, error) {
	s, err := parseCloud(body, sourceKey)
	if err != nil {
		return Decision{}, err
	}
	at := s.SlowUpdatedAt
	if at == nil {
		at = s.UpdatedAt
	}
	if at == nil {
		return Decision{}, fmt.Errorf("read cloud snapshot: %w", invalid("slow_updated_at", "is required, or updated_at"))
	}
	rules := cloudRules{source: SourceSlow, track: partSlow, at: *at, sourceKey: s.SourceKey}
	half := s.Slow
	if half == nil {
		half = &slowHalf{}
	}
	return rules.slow(*half), nil
}
