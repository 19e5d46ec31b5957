package alert

import (
	"encoding/json"
	"regexp"
	"slices"
	"strings"
)

// CollectorError is a failed look at the infrastructure, in either of its
// shapes: source, code, message and at, or the older collector and error.
type CollectorError struct {
	Source    string `json:"source,omitempty"`
	Code      string `json:"code,omitempty"`
	Message   string `json:"message,omitempty"`
	At        string `json:"at,omitempty"`
	FactoryID string `json:"factory_id,omitempty"`
	Collector string `json:"collector,omitempty"`
	Error     string `json:"error,omitempty"`
}

// UnmarshalJSON reads both shapes, and a plain text as a message.
func (e *CollectorError) UnmarshalJSON(data []byte) error {
	type plain CollectorError
	if len(data) > 0 && data[0] == '"' {
		return json.Unmarshal(data, &e.Message)
	}
	return json.Unmarshal(data, (*plain)(e))
}

// Kubernetes is one API behind several calls, so that an expired access to it
// is one alert whichever call failed.
var collectorsOf = map[string]string{"kubernetes": "kubernetes_api", "k8s": "kubernetes_api", "metrics.k8s.io": "kubernetes_api", "argoproj.io": "kubernetes_api"}

// collector names who failed: the older field, else the service of the source
// (ecs of ecs:DescribeServices), else "collector".
func (e CollectorError) collector() string {
	if e.Collector != "" {
		return Slug(e.Collector)
	}
	service, _, _ := strings.Cut(strings.ToLower(strings.TrimSpace(e.Source)), ":")
	if name, ok := collectorsOf[service]; ok {
		return name
	}
	if service == "" {
		return "collector"
	}
	return Slug(service)
}

func (e CollectorError) text() string {
	return strings.TrimSpace(strings.Join(slices.DeleteFunc([]string{e.Code, e.Message, e.Error}, func(s string) bool { return s == "" }), " "))
}

var unauthorizedPattern = regexp.MustCompile(`(?i)\b401\b|unauthorized`)

func (e CollectorError) unauthorized() bool { return unauthorizedPattern.MatchString(e.text()) }

// allErrors are the half's errors and those that only a section carries, each
// once.
func allErrors(half []CollectorError, sections ...[]CollectorError) []CollectorError {
	all := slices.Clone(half)
	for _, errors := range sections {
		for _, e := range errors {
			known := slices.ContainsFunc(all, func(k CollectorError) bool {
				return k.collector() == e.collector() && k.text() == e.text()
			})
			if !known {
				all = append(all, e)
			}
		}
	}
	return all
}
