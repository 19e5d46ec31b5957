package server

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"reflect"
	"strings"

	"github.com/danielgtaylor/huma/v2"

	"millrace/domain/artifact"
	"millrace/domain/cloudinfra"
	"millrace/domain/factory"
	storedartifact "millrace/storage/artifact"
	workflows "millrace/workflows/artifact"
)

// serveContract serves the OpenAPI document, made once, when all routes are known.
func (s *Server) serveContract() error {
	describeReadModels(s.api.OpenAPI().Components.Schemas)
	document, err := json.Marshal(s.api.OpenAPI())
	if err != nil {
		return fmt.Errorf("make OpenAPI document: %w", err)
	}
	s.mux.Get("/openapi.json", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/openapi+json")
		_, _ = w.Write(document) // the client is gone when this fails
	})
	return nil
}

// schemaPrefix is where schemas lie in the contract.
const schemaPrefix = "#/components/schemas/"

// cloudInfraPackage is the package of the cloud infrastructure's read model.
var cloudInfraPackage = reflect.TypeFor[cloudinfra.Latest]().PkgPath()

// readModels are the packages of read models.
var readModels = map[string]bool{reflect.TypeFor[factory.Latest]().PkgPath(): true, cloudInfraPackage: true}

// prefixes are the packages whose schemas are named after them: they have types
// of the same names as others.
var prefixes = map[string]string{
	cloudInfraPackage:                               "CloudInfra",
	reflect.TypeFor[artifact.Spec]().PkgPath():      "Artifact",
	reflect.TypeFor[storedartifact.Run]().PkgPath(): "ArtifactStored",
	reflect.TypeFor[workflows.Status]().PkgPath():   "ArtifactLifecycle",
}

// schemaName names the schema of a type.
func schemaName(t reflect.Type, hint string) string {
	name, element := huma.DefaultSchemaNamer(t, hint), t
	for element.Kind() == reflect.Pointer || element.Kind() == reflect.Slice {
		element = element.Elem()
	}
	if prefix := prefixes[element.PkgPath()]; !strings.HasPrefix(name, prefix) {
		return prefix + name
	}
	return name
}

// describeReadModels completes the schemas of the read models, which are only
// ever answered: the framework leaves out embedded fields and the nulls of
// values that are unknown.
func describeReadModels(registry huma.Registry) {
	for name, schema := range registry.Map() {
		t := registry.TypeFromRef(schemaPrefix + name)
		if t == nil || t.Kind() != reflect.Struct || !readModels[t.PkgPath()] {
			continue
		}
		describeFields(registry, schema, t)
		schema.PrecomputeMessages()
	}
}

func describeFields(registry huma.Registry, schema *huma.Schema, t reflect.Type) {
	for field := range t.Fields() {
		name, options, _ := strings.Cut(field.Tag.Get("json"), ",")
		switch {
		case field.Anonymous && name == "" && field.Type.Kind() == reflect.Struct:
			embedded := huma.SchemaFromType(registry, field.Type)
			describeFields(registry, embedded, field.Type)
			maps.Copy(schema.Properties, embedded.Properties)
			schema.Required = append(schema.Required, embedded.Required...)
		case field.Type.Kind() == reflect.Pointer && !strings.Contains(options, "omitempty") && schema.Properties[name] != nil:
			schema.Properties[name] = nullable(schema.Properties[name])
		}
	}
}

// nullable is a schema that also takes null.
func nullable(schema *huma.Schema) *huma.Schema {
	if schema.Ref != "" {
		return &huma.Schema{AnyOf: []*huma.Schema{schema, {Type: "null"}}}
	}
	copied := *schema
	copied.Nullable = true
	return &copied
}
