package server_test

import (
	"encoding/json"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestTrendsAndActivityAreComputedFromMinutes(t *testing.T) {
	api := newSourceAPI(t)
	for i, id := range []string{"a", "b"} {
		for minute := range 3 {
			api.send(t, "PUT", "/v1/sources/"+id, agentBody(fmt.Sprintf("2026-11-30T11:58:%02dZ", minute), fmt.Sprintf(`"requests":%d`, 10*i+minute)))
		}
	}
	api.ok(t, 201, "PUT", "/v1/sources/oven", ovenBody("2026-11-30T11:58:00Z", "celsius", "20"))
	for name, want := range map[string]struct{ buckets, at, step int }{"hour": {60, 57, 60}, "day": {96, 94, 900}, "week": {168, 166, 3600}} {
		trend := api.ok(t, 200, "GET", "/v1/accounts/anthropic/team-a/trend?range="+name, "").JSON
		buckets := trend["buckets"].([]any)
		require.Len(t, buckets, want.buckets)
		require.Equal(t, json.Number(fmt.Sprint(want.step)), trend["stepSeconds"])
		full := buckets[want.at].(map[string]any)
		require.Equal(t, json.Number("6"), full["sampleCount"])
		require.Equal(t, json.Number("2"), full["sourceCount"])
		require.JSONEq(t, `[{"key":"requests","unit":"requests","label":"Requests","kind":"counter","validCount":6,"sum":36,"mean":6,"max":12}]`, textOf(t, full["metrics"]))
		require.Equal(t, map[string]any{"start": trend["from"], "sampleCount": json.Number("0"), "sourceCount": json.Number("0"), "metrics": []any{}}, buckets[0])

		activity := api.ok(t, 200, "GET", "/v1/activity?range="+name, "").JSON
		require.Equal(t, map[string]any{"start": full["start"], "sampleCount": json.Number("6"), "activeAgents": json.Number("2")}, activity["buckets"].([]any)[want.at])
	}
	empty := api.ok(t, 200, "GET", "/v1/accounts/anthropic/none/trend", "").JSON
	require.Len(t, empty["buckets"], 60)
	for path, field := range map[string]string{
		"/v1/activity?range=year":               "query.range",
		"/v1/accounts/Anthropic/team-a/trend":   "path.provider",
		"/v1/accounts/anthropic/team%20a/trend": "path.account",
	} {
		got := api.ok(t, 400, "GET", path, "")
		require.Equal(t, field, got.JSON["errors"].([]any)[0].(map[string]any)["field"], got.Text)
	}
}
