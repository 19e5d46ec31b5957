package server

import (
	"net/http"
	"reflect"

	"github.com/danielgtaylor/huma/v2"

	"millrace/domain/monitoring"
)

// addUploads adds the routes whose bodies carry files.
func (a artifactRoutes) addUploads(r *Router) {
	const forms = "The body is multipart/form-data with the part request first and then the files, at most 100 MiB together; or JSON with the content in base64, at most 16 MiB."
	problems := []int{http.StatusNotFound, http.StatusConflict, http.StatusServiceUnavailable}
	Handle(r, Operation{
		ID: "submit-artifact", Method: http.MethodPost, Path: artifactsPath, Tag: "artifacts", Scope: monitoring.ScopeArtifactSubmit,
		Summary: "Submit a new version", Status: http.StatusAccepted, Timeout: uploadTime + storeTime, Problems: problems,
		Description: forms + " The author is the token's owner. The same version with the same request and content again is answered the same; with others it is 409.",
		Body:        uploadBody(r, reflect.TypeFor[ArtifactSubmission]()),
	}, a.submit)
	Handle(r, Operation{
		ID: "replace-artifact-content", Method: http.MethodPut, Path: artifactVersion + "/content", Tag: "artifacts", Scope: monitoring.ScopeArtifactSubmit,
		Summary: "Replace the files of a draft", Timeout: uploadTime + storeTime, Problems: problems, Description: forms,
		Body: uploadBody(r, reflect.TypeFor[ArtifactReplacement]()),
	}, a.replace)
}

// uploadBody describes both forms of a body with files.
func uploadBody(r *Router, document reflect.Type) *huma.RequestBody {
	schema := r.api.OpenAPI().Components.Schemas.Schema(document, true, "")
	file := func(description string) *huma.Schema {
		return &huma.Schema{Type: huma.TypeString, Format: "binary", Description: description + " Its name is the filename of the part."}
	}
	return &huma.RequestBody{Required: true, Content: map[string]*huma.MediaType{
		"application/json": {Schema: schema},
		"multipart/form-data": {
			Schema: &huma.Schema{
				Type: huma.TypeObject, Required: []string{"request", "primary"},
				Properties: map[string]*huma.Schema{
					"request": schema, "primary": file("The file that runs."), "rollback": file("The file that undoes the primary one."),
				},
			},
			Encoding: map[string]*huma.Encoding{
				"request": {ContentType: "application/json"}, "primary": {ContentType: binaryType}, "rollback": {ContentType: binaryType},
			},
		},
	}}
}
