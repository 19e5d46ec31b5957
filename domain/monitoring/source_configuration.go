package monitoring

import (
	"fmt"
	"slices"
	"time"
)

// Defaults and bounds of staleness.
const (
	DefaultStaleAfter = 5 * time.Minute

	minStaleSeconds = 10
	maxStaleSeconds = 7 * 24 * 60 * 60
	maxDisplayName  = 100
)

// Configuration is the owner's part of a source. Ingestion never changes it, and
// editing it changes no observation, receipt time or minute.
type Configuration struct {
	// Revision counts the edits; 0 is a source nobody edited.
	Revision    int64  `json:"revision"`
	DisplayName string `json:"displayName,omitempty"`
	// Definitions, when given, replace the sender's in what is shown: metrics
	// that do not match key and unit are hidden.
	Definitions []Definition `json:"metricDefinitions,omitempty"`
	// Order, when given, replaces the sender's order.
	Order []string `json:"metricOrder,omitempty"`
	// StaleAfterSeconds is the age of the last receipt after which the source is
	// stale; 0 is the default, 300.
	StaleAfterSeconds int64 `json:"staleAfterSeconds,omitempty"`
}

// ConfigurationEdit changes the fields that are given. A pointer to a zero value
// removes what was configured.
type ConfigurationEdit struct {
	DisplayName       *string
	Definitions       *[]Definition
	Order             *[]string
	StaleAfterSeconds *int64
}

// Apply is the configuration after an edit of the source, one revision later.
// An edit that breaks a rule is an *InvalidError.
func (e ConfigurationEdit) Apply(s Source) (Configuration, error) {
	c := s.Configuration
	if e.DisplayName != nil {
		c.DisplayName = *e.DisplayName
	}
	if e.Definitions != nil {
		c.Definitions = slices.Clone(*e.Definitions)
	}
	if e.Order != nil {
		c.Order = slices.Clone(*e.Order)
	}
	if e.StaleAfterSeconds != nil {
		c.StaleAfterSeconds = *e.StaleAfterSeconds
	}
	c.Revision++
	if err := c.check(s); err != nil || e.Order == nil {
		return c, err
	}
	return c, c.checkOrder(s)
}

func (c Configuration) check(s Source) error {
	if !shortText(c.DisplayName, maxDisplayName) {
		return invalid("displayName", "must have at most 100 visible characters")
	}
	if c.StaleAfterSeconds != 0 && (c.StaleAfterSeconds < minStaleSeconds || c.StaleAfterSeconds > maxStaleSeconds) {
		return invalid("staleAfterSeconds", fmt.Sprintf("must be between %d and %d", minStaleSeconds, maxStaleSeconds))
	}
	if len(c.Definitions) > 0 && s.Observation.Kind == Agent {
		return invalid("metricDefinitions", "must not be given for an agent")
	}
	return checkDefinitions("metricDefinitions", c.Definitions)
}

// checkOrder lets an order name what the owner or, for want of own definitions,
// the sender defines. It is checked when it is edited only: the sender may define
// something else later, and the order then skips what is gone.
func (c Configuration) checkOrder(s Source) error {
	definitions := c.Definitions
	if len(definitions) == 0 {
		definitions = s.Observation.defined()
	}
	return checkOrder("metricOrder", c.Order, definitions)
}
