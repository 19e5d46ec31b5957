package monitoring

import (
	"fmt"
	"regexp"
	"slices"
	"time"

	"millrace/domain/exact"
)

// Kinds of a source. The sender names the kind; it never follows from the
// collector preset.
const (
	Agent    = "agent"
	Resource = "resource"
)

// MaxClockAhead is how far a sender's clock may run ahead of ours.
const MaxClockAhead = 5 * time.Minute

// earliestObservation is the oldest observedAt that is believed; older ones come
// from a clock that was never set.
var earliestObservation = time.Date(2020, 1, 1, 0, 0, 0, 0, time.UTC)

const (
	maxSourceID      = 128
	maxAccount       = 128
	maxResourceType  = 64
	maxStatusMessage = 500
)

// Observation is what a sender saw of a source at one moment: an agent, with the
// metrics of AgentMetrics, or a custom resource with metrics it defines itself.
// A nil measurement was not to be had; it is not counted.
type Observation struct {
	Identity
	// Preset names the collector's preset; it may change at any time.
	Preset        string       `json:"preset,omitempty"`
	Definitions   []Definition `json:"metricDefinitions,omitempty"`
	Order         []string     `json:"metricOrder,omitempty"`
	StatusMessage string       `json:"statusMessage,omitempty"`
	// ObservedAt is the sender's time.
	ObservedAt time.Time `json:"observedAt"`
	// Heartbeat tells that the source is alive and nothing else.
	Heartbeat bool                      `json:"-"`
	Metrics   map[string]*exact.Decimal `json:"metrics,omitempty"`
}

// Identity is what a source is. Kind, provider and account of a source never
// change; measurements of different identities are never put together.
type Identity struct {
	Kind     string `json:"kind"`
	Provider string `json:"provider,omitempty"`
	Account  string `json:"account,omitempty"`
	// ResourceType is what a custom resource is, for example "gpu-node".
	ResourceType string `json:"resourceType,omitempty"`
}

var slug = regexp.MustCompile(`^[a-z0-9][a-z0-9._-]{0,63}$`)

// CheckSourceID refuses what can't name a source: 1 to 128 visible characters
// without spaces, and no path steps.
func CheckSourceID(id string) error { return checkName("sourceId", id, maxSourceID) }

// checkName refuses what can't be a segment of a path and of a table key.
func checkName(field, name string, limit int) error {
	if name == "" || !shortText(name, limit) || slices.ContainsFunc([]rune(name), invisible) {
		return invalid(field, fmt.Sprintf("must have 1 to %d visible characters and no spaces", limit))
	}
	if name == "." || name == ".." {
		return invalid(field, "must not be a path step")
	}
	return nil
}

// CheckAccount refuses what can't name a provider's account: the provider is
// [a-z0-9][a-z0-9._-]{0,63}, the account has 1 to 128 visible characters.
func CheckAccount(provider, account string) error {
	if !slug.MatchString(provider) {
		return invalid("provider", "must match [a-z0-9][a-z0-9._-]{0,63}")
	}
	return checkName("account", account, maxAccount)
}

// Check refuses an observation that breaks a rule, as an *InvalidError.
func (o Observation) Check(now time.Time) error {
	for _, check := range []func() error{
		o.checkIdentity,
		func() error { return checkObservedAt(o.ObservedAt, now) },
		o.checkDescription,
		o.checkMetrics,
	} {
		if err := check(); err != nil {
			return err
		}
	}
	return nil
}

func checkObservedAt(at, now time.Time) error {
	switch {
	case at.IsZero():
		return invalid("observedAt", "must be given")
	case at.Before(earliestObservation):
		return invalid("observedAt", "must not be before 2020-01-01")
	case at.After(now.Add(MaxClockAhead)):
		return invalid("observedAt", "must not be more than 5 minutes ahead")
	}
	return nil
}

func (o Observation) checkIdentity() error {
	switch {
	case o.Kind != Agent && o.Kind != Resource:
		return invalid("kind", `must be "agent" or "resource"`)
	case o.Kind == Agent || o.Provider != "" || o.Account != "":
		if err := CheckAccount(o.Provider, o.Account); err != nil {
			return err
		}
	}
	if o.Preset != "" && !slug.MatchString(o.Preset) {
		return invalid("preset", "must match [a-z0-9][a-z0-9._-]{0,63}")
	}
	if o.Kind == Resource && (o.ResourceType != "" || !o.Heartbeat) {
		return checkName("resourceType", o.ResourceType, maxResourceType)
	}
	if o.Kind == Agent && o.ResourceType != "" {
		return invalid("resourceType", "must not be given for an agent")
	}
	return nil
}

// checkDescription checks what an observation says of itself. A heartbeat says
// nothing; an agent's metrics are defined by AgentMetrics.
func (o Observation) checkDescription() error {
	for _, part := range []struct {
		field string
		given bool
	}{
		{"metricDefinitions", len(o.Definitions) > 0},
		{"metricOrder", len(o.Order) > 0},
		{"statusMessage", o.StatusMessage != ""},
	} {
		switch {
		case part.given && o.Heartbeat:
			return invalid(part.field, "must not be given with a heartbeat")
		case part.given && o.Kind == Agent:
			return invalid(part.field, "must not be given for an agent")
		}
	}
	if !shortText(o.StatusMessage, maxStatusMessage) {
		return invalid("statusMessage", "must have at most 500 visible characters")
	}
	if err := checkDefinitions("metricDefinitions", o.Definitions); err != nil {
		return err
	}
	return checkOrder("metricOrder", o.Order, o.Definitions)
}

func (o Observation) checkMetrics() error {
	if o.Heartbeat && len(o.Metrics) > 0 {
		return invalid("metrics", "must not be given with a heartbeat")
	}
	defined := o.defined()
	for _, key := range sortedKeys(o.Metrics) {
		field := "metrics." + key
		d, found := definitionOf(defined, key)
		switch value := o.Metrics[key]; {
		case !metricKey.MatchString(key):
			return invalid("metrics", "must have keys that match [A-Za-z][A-Za-z0-9_.-]{0,63}")
		case !found && o.Kind == Agent:
			return invalid(field, "is not a metric of an agent")
		case !found:
			return invalid(field, "has no metric definition")
		case value == nil:
			continue
		case o.Kind == Agent:
			if err := d.checkAgentValue(field, *value); err != nil {
				return err
			}
		default:
			if err := d.checkValue(field, *value); err != nil {
				return err
			}
		}
	}
	return nil
}

// defined is the definitions of the observation's metrics.
func (o Observation) defined() []Definition {
	if o.Kind == Agent {
		return AgentMetrics
	}
	return o.Definitions
}

func sortedKeys(metrics map[string]*exact.Decimal) []string {
	keys := make([]string, 0, len(metrics))
	for key := range metrics {
		keys = append(keys, key)
	}
	slices.Sort(keys)
	return keys
}
