package server

import (
	"bytes"
	"context"
	"encoding/json"
	"net/http"
	"reflect"
	"strings"

	"github.com/danielgtaylor/huma/v2"

	"millrace/domain/monitoring"
)

// ConfigurationPatch is a JSON merge patch (RFC 7396) of a configuration: fields
// left out stay, null removes.
type ConfigurationPatch struct {
	DisplayName       Field[string]             `json:"displayName,omitzero" doc:"At most 100 characters."`
	MetricDefinitions Field[[]MetricDefinition] `json:"metricDefinitions,omitzero" doc:"Definitions to show a custom resource by, instead of the sender's: measurements that do not match key and unit are hidden."`
	MetricOrder       Field[[]string]           `json:"metricOrder,omitzero" doc:"Order to show metrics in, instead of the sender's."`
	StaleAfterSeconds Field[int64]              `json:"staleAfterSeconds,omitzero" doc:"Seconds that the source may be silent: 10 to 604800, by default 300."`
}

// Field is a field of a merge patch: not given, or a value, or null.
type Field[T any] struct {
	given bool
	value T
}

// UnmarshalJSON reads the value; null is the zero value.
func (f *Field[T]) UnmarshalJSON(data []byte) error {
	f.given = true
	if bytes.Equal(data, []byte("null")) {
		return nil
	}
	return json.Unmarshal(data, &f.value)
}

// Schema describes the value or null.
func (f Field[T]) Schema(r huma.Registry) *huma.Schema {
	schema := *r.Schema(reflect.TypeFor[T](), false, "")
	schema.Nullable = true
	return &schema
}

// edit is the value to set, nil to leave it; the zero value removes.
func (f Field[T]) edit() *T {
	if !f.given {
		return nil
	}
	return &f.value
}

type configurationOutput struct {
	ETag string `header:"ETag" doc:"What If-Match takes."`
	Body Configuration
}

type patchConfigurationInput struct {
	SourcePath
	IfMatch string             `header:"If-Match" maxLength:"1024" doc:"The etag of the configuration that the edit builds on, or *. Without it the answer is 428."`
	Body    ConfigurationPatch `contentType:"application/merge-patch+json"`
}

func (s sourceRoutes) configurationRoutes(r *Router) {
	const path = "/v1/sources/{source_id}/configuration"
	Handle(r, sourceOperation("get-source-configuration", http.MethodGet, path, "Read a source's configuration", "", http.StatusNotFound), s.configuration)
	Handle(r, sourceOperation("patch-source-configuration", http.MethodPatch, path, "Edit a source's configuration",
		"Changes the owner's part of the source only: no observation, receipt time or minute. The edit is made only if the configuration still is the one that If-Match names (else 412, with the current ETag). "+
			"A retry after a lost answer gets 412: read the configuration to see whether the edit was made.",
		http.StatusNotFound, http.StatusPreconditionFailed, http.StatusPreconditionRequired, http.StatusServiceUnavailable), s.configure)
}

func (s sourceRoutes) configuration(ctx context.Context, in *SourcePath) (*configurationOutput, error) {
	source, err := s.source(ctx, in.SourceID)
	if err != nil {
		return nil, err
	}
	return &configurationOutput{ETag: configurationTag(source), Body: configurationOf(source)}, nil
}

func (s sourceRoutes) configure(ctx context.Context, in *patchConfigurationInput) (*configurationOutput, error) {
	if err := checkSourceID(in.SourceID); err != nil {
		return nil, err
	}
	if in.IfMatch == "" {
		return nil, NewProblem(http.StatusPreconditionRequired, "precondition-required", "If-Match with the etag of the configuration is required")
	}
	source, err := s.store.Configure(ctx, PrincipalFrom(ctx).Owner, in.SourceID, func(current monitoring.Source) (monitoring.Configuration, error) {
		if tag := configurationTag(current); !matches(in.IfMatch, tag) {
			return monitoring.Configuration{}, NewProblem(http.StatusPreconditionFailed, "precondition-failed", "the configuration is no longer the one that If-Match names").
				WithHeader("ETag", tag)
		}
		configuration, err := in.Body.edit().Apply(current)
		return configuration, inBody(err)
	})
	if err != nil {
		return nil, sourceProblem(err)
	}
	return &configurationOutput{ETag: configurationTag(source), Body: configurationOf(source)}, nil
}

func (p ConfigurationPatch) edit() monitoring.ConfigurationEdit {
	edit := monitoring.ConfigurationEdit{
		DisplayName: p.DisplayName.edit(), Order: p.MetricOrder.edit(), StaleAfterSeconds: p.StaleAfterSeconds.edit(),
	}
	if definitions := p.MetricDefinitions.edit(); definitions != nil {
		own := definitionsFrom(*definitions)
		edit.Definitions = &own
	}
	return edit
}

// matches tells whether one of the tags of an If-Match header is the tag, by the
// strong comparison of RFC 9110.
func matches(header, tag string) bool {
	for candidate := range strings.SplitSeq(header, ",") {
		if candidate = strings.TrimSpace(candidate); candidate == tag || candidate == "*" {
			return true
		}
	}
	return false
}
