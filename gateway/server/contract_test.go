package server_test

import (
	"encoding/json"
	"net/http"
	"regexp"
	"strconv"
	"strings"

	"github.com/danielgtaylor/huma/v2"
	"github.com/stretchr/testify/require"
)

var pathParameter = regexp.MustCompile(`\\\{[a-z_]+\\\}`)

// operation is the operation of the contract that a request is for, nil when it
// is for none.
func (f *fixture) operation(request *http.Request) *huma.Operation {
	for path, item := range f.server.OpenAPI().Paths {
		pattern := pathParameter.ReplaceAllString(regexp.QuoteMeta(path), `[^/]+`)
		if !regexp.MustCompile("^" + pattern + "$").MatchString(request.URL.EscapedPath()) {
			continue
		}
		return map[string]*huma.Operation{
			http.MethodGet: item.Get, http.MethodPut: item.Put, http.MethodPost: item.Post, http.MethodPatch: item.Patch, http.MethodDelete: item.Delete,
		}[request.Method]
	}
	return nil
}

// requireContract fails when an answer is not what the contract says of its
// operation: status, content type and, for JSON, the shape.
func (f *fixture) requireContract(request *http.Request, response *http.Response, body []byte) {
	f.t.Helper()
	op := f.operation(request)
	if op == nil {
		return
	}
	status := strconv.Itoa(response.StatusCode)
	described := op.Responses[status]
	require.NotNil(f.t, described, "%s may not answer %s: %s", op.OperationID, status, body)
	if len(body) == 0 {
		require.Empty(f.t, described.Content, "%s answered %s without a body", op.OperationID, status)
		return
	}
	contentType, _, _ := strings.Cut(response.Header.Get("Content-Type"), ";")
	media := described.Content[contentType]
	require.NotNil(f.t, media, "%s may not answer %s with %s", op.OperationID, status, contentType)
	if !strings.HasSuffix(contentType, "json") {
		return
	}
	var value any
	require.NoError(f.t, json.Unmarshal(body, &value), string(body))
	var result huma.ValidateResult
	huma.Validate(f.server.OpenAPI().Components.Schemas, media.Schema, huma.NewPathBuffer(nil, 0), huma.ModeReadFromServer, value, &result)
	require.Empty(f.t, result.Errors, "%s answered %s", op.OperationID, body)
}
