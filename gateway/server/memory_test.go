package server_test

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestMemoryIsKeptUnderItsNormalisedProject(t *testing.T) {
	api := newSourceAPI(t)
	first := api.ok(t, 200, "PUT", "/v1/memory/My%20Project/notes%231", `{"value":"one"}`)
	require.Equal(t, map[string]any{
		"project": "my-project", "key": "notes#1", "value": "one",
		"createdAt": "2026-11-30T12:00:30Z", "updatedAt": "2026-11-30T12:00:30Z",
	}, first.JSON, "nothing else is shown")
	api.now = api.now.Add(time.Minute)
	api.ok(t, 200, "PUT", "/v1/memory/MY_PROJECT/notes%231", `{"value":""}`)
	got := api.ok(t, 200, "GET", "/v1/memory/my%2Fproject/notes%231", "")
	require.Empty(t, got.JSON["value"])
	require.Equal(t, "2026-11-30T12:00:30Z", got.JSON["createdAt"])
	require.Equal(t, "2026-11-30T12:01:30Z", got.JSON["updatedAt"])
	api.ok(t, 404, "GET", "/v1/memory/my-project/notes", "")
	api.ok(t, 204, "DELETE", "/v1/memory/my-project/notes%231", "")
	api.ok(t, 204, "DELETE", "/v1/memory/my-project/notes%231", "")
	api.ok(t, 404, "GET", "/v1/memory/my-project/notes%231", "")
}

func TestMemoryIsBounded(t *testing.T) {
	api := newSourceAPI(t)
	put := func(body string) reply { return api.send(t, "PUT", "/v1/memory/p/k", body) }
	value := func(n int) string { return `{"value":"` + strings.Repeat("x", n) + `"}` }
	require.Equal(t, 200, put(value(10_000)).Code)
	over := put(value(10_001))
	require.Equal(t, 400, over.Code)
	require.Equal(t, "body.value", over.JSON["errors"].([]any)[0].(map[string]any)["field"])
	fill := func(size int) string { return `{"value":"x"` + strings.Repeat(" ", size-len(`{"value":"x"}`)) + `}` }
	require.Equal(t, 200, put(fill(16<<10)).Code)
	require.Equal(t, 413, put(fill(16<<10+1)).Code)
	require.Equal(t, 400, put(`{"value":"x","ttl":5}`).Code)
	require.Equal(t, 400, put(`{"value":null}`).Code)
	require.Equal(t, 400, put(`{}`).Code)
	for _, path := range []string{"/v1/memory/%20/k", "/v1/memory/p/a%20b", "/v1/memory/p/%2e%2e", "/v1/memory/p/" + strings.Repeat("k", 257), "/v1/memory/%ff/k"} {
		require.Equal(t, 400, api.send(t, "GET", path, "").Code, path)
	}
}

func TestStatisticsCountTokensAndAgents(t *testing.T) {
	api := newSourceAPI(t)
	api.ok(t, 201, "PUT", "/v1/sources/a", agentBody("2026-11-30T12:00:00Z", ""))
	api.ok(t, 201, "PUT", "/v1/sources/oven", ovenBody("2026-11-30T12:00:00Z", "celsius", "20"))
	api.issueTo("user:kim", "read")
	require.Equal(t, map[string]any{"tokens": json.Number("2"), "agents": json.Number("1")}, api.ok(t, 200, "GET", "/v1/stats", "").JSON)
}
