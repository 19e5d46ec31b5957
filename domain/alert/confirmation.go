package alert

import "time"

// Confirmation says how often an alert must be seen before it is sent.
type Confirmation struct {
	Required int64         `json:"required"`
	Window   time.Duration `json:"window"`
}

// Windows leave half a period for a late collector: 60 s and 300 s.
const (
	fastWindow = 90 * time.Second
	slowWindow = 450 * time.Second
)

// confirmed are the warnings that a single blip raises easily.
var confirmed = map[SourceType]map[string]Confirmation{
	SourceFast: {
		"backend_runtime_warning":     {Required: 2, Window: fastWindow},
		"data_pipeline_warning":       {Required: 2, Window: fastWindow},
		"data_pipeline_lambda_errors": {Required: 2, Window: fastWindow},
	},
	SourceSlow: {
		"eks_management_warning": {Required: 2, Window: slowWindow},
		"pods_warning":           {Required: 2, Window: slowWindow},
	},
}

// Confirmation is what must be seen before this alert is sent, and whether
// anything must.
func (a Alert) Confirmation() (Confirmation, bool) {
	if a.Severity != Warning {
		return Confirmation{}, false
	}
	c, ok := confirmed[a.SourceType][Slug(a.Reason)]
	return c, ok
}
