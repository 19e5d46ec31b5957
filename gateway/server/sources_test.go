package server_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/danielgtaylor/huma/v2"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/require"

	"millrace/domain/monitoring"
	"millrace/gateway/server"
	monitoringstore "millrace/storage/monitoring"
	"millrace/storage/storagetest"
)

// sourceAPI is a gateway with the routes of sources, memory, activity and
// statistics over a table of its own, and a client of user:kim.
type sourceAPI struct {
	*fixture
	calls *storagetest.Calls
	now   time.Time
	token string
}

func newSourceAPI(t testing.TB) *sourceAPI {
	t.Helper()
	api := &sourceAPI{calls: new(storagetest.Calls), now: time.Date(2026, 11, 30, 12, 0, 30, 0, time.UTC)}
	store := monitoringstore.Store{Table: storagetest.Table(t, storagetest.Monitoring)}
	store.Table.Client = dynamodb.NewFromConfig(api.calls.Watch(storagetest.Config(t)))
	clock := func() time.Time { return api.now }
	registry := prometheus.NewRegistry()
	limits := monitoring.Limits{Read: 1e9, Write: 1e9, TokenCreate: 1}
	api.fixture = start(t, store, nil, newRing(t, "k1"), server.Config{Registry: registry, Now: clock, Limits: limits},
		server.Sources(store, registry, clock), server.Memories(store, clock),
		server.Activities(store, clock), server.Statistics(store))
	api.token = api.issueTo("user:kim", "read", "write")
	return api
}

func (a *sourceAPI) issueTo(owner string, scopes ...monitoring.Scope) string {
	a.t.Helper()
	_, plaintext := a.issue(owner, scopes...)
	return plaintext
}

// reply is a response, with its body in both forms.
type reply struct {
	Code   int
	Header http.Header
	Text   string
	JSON   map[string]any
}

func (a *sourceAPI) send(t testing.TB, method, path, body string, headers ...string) reply {
	t.Helper()
	answered := a.call(method, path, a.token, body, headers...)
	got := reply{Code: answered.Status, Header: answered.Header, Text: string(answered.Body)}
	if got.Text != "" {
		decoder := json.NewDecoder(strings.NewReader(got.Text))
		decoder.UseNumber()
		require.NoError(t, decoder.Decode(&got.JSON), got.Text)
	}
	return got
}

func (a *sourceAPI) ok(t testing.TB, code int, method, path, body string, headers ...string) reply {
	t.Helper()
	got := a.send(t, method, path, body, headers...)
	require.Equal(t, code, got.Code, got.Text)
	return got
}

func agentBody(at string, metrics string) string {
	return fmt.Sprintf(`{"kind":"agent","provider":"anthropic","account":"team-a","observedAt":%q,"metrics":{%s}}`, at, metrics)
}

func ovenBody(at, unit, temperature string) string {
	return fmt.Sprintf(`{"kind":"resource","resourceType":"oven","preset":"modbus","statusMessage":"baking","observedAt":%q,
		"metricDefinitions":[{"key":"temperature","unit":%q,"label":"Heat","kind":"gauge"},{"key":"cycles","unit":"cycles","kind":"counter"}],
		"metricOrder":["cycles"],"metrics":{"temperature":%s,"cycles":7}}`, at, unit, temperature)
}

func keysIn(list any) []string {
	keys := []string{}
	for _, element := range list.([]any) {
		keys = append(keys, element.(map[string]any)["key"].(string))
	}
	return keys
}

func TestAnObservationIsShownAsItIsStored(t *testing.T) {
	api := newSourceAPI(t)
	created := api.ok(t, 201, "PUT", "/v1/sources/builder", agentBody("2026-11-30T21:00:10.5+09:00", `"cost":9007199254.123456789,"contextUtilization":42.50,"errors":null`))
	require.Equal(t, "accepted", created.JSON["outcome"])
	require.Equal(t, true, created.JSON["sampled"])
	got := api.ok(t, 200, "GET", "/v1/sources/builder", "")
	require.Equal(t, created.JSON["source"], got.JSON)
	require.Equal(t, "2026-11-30T12:00:10.5Z", got.JSON["observedAt"])
	require.Equal(t, "2026-11-30T12:00:30Z", got.JSON["receivedAt"])
	require.Equal(t, false, got.JSON["stale"])
	require.Equal(t, []string{"contextUtilization", "errors", "cost"}, keysIn(got.JSON["metrics"]))
	require.Contains(t, got.Text, `"value":9007199254.123456789`, "no digit is lost")
	require.Contains(t, got.Text, `"value":42.5`)
	require.Contains(t, got.Text, `"value":null`)
	require.Equal(t, "no-store", got.Header.Get("Cache-Control"))
	for _, internal := range []string{"life", "rev\"", "OWNER#", "user:kim"} {
		require.NotContains(t, got.Text, internal)
	}
	api.now = api.now.Add(301 * time.Second)
	require.Equal(t, true, api.ok(t, 200, "GET", "/v1/sources/builder", "").JSON["stale"])
}

func TestOutcomesOfObservations(t *testing.T) {
	api := newSourceAPI(t)
	api.ok(t, 201, "PUT", "/v1/sources/a", agentBody("2026-11-30T12:00:10Z", `"requests":1`))
	for _, c := range []struct{ body, outcome string }{
		{agentBody("2026-11-30T12:00:10Z", `"requests":2`), "duplicate"},
		{agentBody("2026-11-30T12:00:09Z", `"requests":2`), "reversed"},
		{agentBody("2026-11-30T12:00:11Z", `"requests":3`), "accepted"},
		{`{"kind":"agent","provider":"anthropic","account":"team-a","observedAt":"2026-11-30T12:00:00Z","heartbeat":true}`, "heartbeat"},
	} {
		got := api.ok(t, 200, "PUT", "/v1/sources/a", c.body)
		require.Equal(t, c.outcome, got.JSON["outcome"])
		require.Equal(t, c.outcome == "accepted", got.JSON["sampled"])
	}
	minutes := api.ok(t, 200, "GET", "/v1/sources/a/minutes", "").JSON["minutes"].([]any)
	require.Len(t, minutes, 1)
	require.Equal(t, json.Number("2"), minutes[0].(map[string]any)["sampleCount"])
}

func TestBadObservationsNameTheFieldAndTheRule(t *testing.T) {
	api := newSourceAPI(t)
	for _, c := range []struct{ name, body, field string }{
		{"unknown field", `{"kind":"agent","provider":"a","account":"b","observedAt":"2026-11-30T12:00:00Z","colour":"red"}`, "body.colour"},
		{"unknown field inside", `{"kind":"resource","resourceType":"x","observedAt":"2026-11-30T12:00:00Z","metricDefinitions":[{"key":"a","unit":"b","kind":"gauge","scale":2}]}`, "body.metricDefinitions[0].scale"},
		{"missing field", `{"kind":"agent","provider":"a","account":"b"}`, "body"},
		{"kind", `{"kind":"robot","observedAt":"2026-11-30T12:00:00Z"}`, "body.kind"},
		{"string for a number", agentBody("2026-11-30T12:00:00Z", `"requests":"1"`), "body.metrics.requests"},
		{"no time", agentBody("yesterday", ``), "body.observedAt"},
		{"future", agentBody("2026-11-30T12:05:31Z", ``), "body.observedAt"},
		{"unknown metric", agentBody("2026-11-30T12:00:00Z", `"speed":1`), "body.metrics.speed"},
		{"too many places", agentBody("2026-11-30T12:00:00Z", `"cost":0.0000000001`), "body.metrics.cost"},
		{"resource without type", `{"kind":"resource","observedAt":"2026-11-30T12:00:00Z"}`, "body.resourceType"},
	} {
		got := api.ok(t, 400, "PUT", "/v1/sources/a", c.body)
		require.Equal(t, "urn:millrace:problem:invalid-input", got.JSON["type"], c.name)
		require.Equal(t, "application/problem+json", got.Header.Get("Content-Type"))
		require.Equal(t, c.field, got.JSON["errors"].([]any)[0].(map[string]any)["field"], "%s: %s", c.name, got.Text)
	}
	for _, body := range []string{`{`, `[]`, `null`, `{"kind":"agent","metrics":{"requests":1e999}}`} {
		api.ok(t, 400, "PUT", "/v1/sources/a", body)
	}
	api.ok(t, 413, "PUT", "/v1/sources/a", agentBody("2026-11-30T12:00:00Z", strings.Repeat(" ", 64<<10)))
	api.ok(t, 404, "GET", "/v1/sources/a", "")
}

func TestBadSourceIDsAreRefused(t *testing.T) {
	api := newSourceAPI(t)
	for _, id := range []string{"%2e%2e", "a%20b", "%00", "%ff", strings.Repeat("x", 129)} {
		require.Equal(t, 400, api.send(t, "PUT", "/v1/sources/"+id, agentBody("2026-11-30T12:00:00Z", "")).Code, id)
		require.Equal(t, 400, api.send(t, "GET", "/v1/sources/"+id+"/minutes", "").Code, id)
	}
	id := "a%23b%25c%2Fd"
	api.ok(t, 201, "PUT", "/v1/sources/"+id, agentBody("2026-11-30T12:00:00Z", ""))
	require.Equal(t, "a#b%c/d", api.ok(t, 200, "GET", "/v1/sources/"+id, "").JSON["sourceId"])
}

func TestIdentityIsFixedAndThePresetIsNot(t *testing.T) {
	api := newSourceAPI(t)
	api.ok(t, 201, "PUT", "/v1/sources/agent", agentBody("2026-11-30T12:00:00Z", ""))
	api.ok(t, 201, "PUT", "/v1/sources/oven", ovenBody("2026-11-30T12:00:00Z", "celsius", "20"))
	for field, c := range map[string]struct{ path, body string }{
		"body.account":  {"/v1/sources/agent", strings.Replace(agentBody("2026-11-30T12:00:01Z", ""), "team-a", "team-b", 1)},
		"body.provider": {"/v1/sources/agent", strings.Replace(agentBody("2026-11-30T12:00:01Z", ""), "anthropic", "openai", 1)},
		"body.kind":     {"/v1/sources/oven", agentBody("2026-11-30T12:00:01Z", "")},
	} {
		got := api.ok(t, 409, "PUT", c.path, c.body)
		require.Equal(t, "urn:millrace:problem:identity-changed", got.JSON["type"])
		require.Equal(t, field, got.JSON["errors"].([]any)[0].(map[string]any)["field"])
	}
	got := api.ok(t, 200, "PUT", "/v1/sources/oven", strings.Replace(ovenBody("2026-11-30T12:00:01Z", "celsius", "21"), "modbus", "claude-code", 1))
	require.Equal(t, "resource", got.JSON["source"].(map[string]any)["kind"])
	require.Equal(t, "claude-code", got.JSON["source"].(map[string]any)["preset"])
}

func TestHeartbeatsNeedASource(t *testing.T) {
	api := newSourceAPI(t)
	got := api.ok(t, 404, "PUT", "/v1/sources/a", `{"kind":"agent","provider":"x","account":"y","observedAt":"2026-11-30T12:00:00Z","heartbeat":true}`)
	require.Equal(t, "urn:millrace:problem:not-found", got.JSON["type"])
}

func TestConfigurationIsEditedUnderItsTag(t *testing.T) {
	api := newSourceAPI(t)
	path := "/v1/sources/oven/configuration"
	api.ok(t, 404, "PATCH", path, `{}`, "If-Match", "*")
	api.ok(t, 201, "PUT", "/v1/sources/oven", ovenBody("2026-11-30T12:00:00Z", "celsius", "20"))
	first := api.ok(t, 200, "GET", path, "")
	tag := first.Header.Get("ETag")
	require.Equal(t, tag, first.JSON["etag"])
	require.Equal(t, json.Number("300"), first.JSON["staleAfterSeconds"])

	require.Equal(t, "urn:millrace:problem:precondition-required", api.ok(t, 428, "PATCH", path, `{"displayName":"Oven"}`).JSON["type"])
	api.now = api.now.Add(time.Minute)
	edited := api.ok(t, 200, "PATCH", path, `{"displayName":"Oven","metricOrder":["temperature"],"staleAfterSeconds":30}`, "If-Match", tag)
	require.Equal(t, json.Number("1"), edited.JSON["revision"])
	require.NotEqual(t, tag, edited.Header.Get("ETag"))

	source := api.ok(t, 200, "GET", "/v1/sources/oven", "").JSON
	require.Equal(t, []string{"temperature", "cycles"}, keysIn(source["metrics"]))
	require.Equal(t, "2026-11-30T12:00:30Z", source["receivedAt"], "an edit is no receipt")
	require.Equal(t, true, source["stale"])
	require.Equal(t, edited.JSON, source["configuration"])

	for _, stale := range []string{tag, "W/" + edited.Header.Get("ETag"), `"x"`, "x"} {
		got := api.ok(t, 412, "PATCH", path, `{"displayName":"Late"}`, "If-Match", stale)
		require.Equal(t, edited.Header.Get("ETag"), got.Header.Get("ETag"))
	}
	removed := api.ok(t, 200, "PATCH", path, `{"displayName":null,"staleAfterSeconds":null}`, "If-Match", `"x", `+edited.Header.Get("ETag"), "Content-Type", "application/merge-patch+json")
	require.NotContains(t, removed.JSON, "displayName")
	require.Equal(t, json.Number("300"), removed.JSON["staleAfterSeconds"])
	require.Equal(t, []any{"temperature"}, removed.JSON["metricOrder"], "what is left out stays")
	api.ok(t, 200, "PATCH", path, `{}`, "If-Match", "*")

	for body, field := range map[string]string{
		`{"staleAfterSeconds":1}`:      "body.staleAfterSeconds",
		`{"metricOrder":["none"]}`:     "body.metricOrder[0]",
		`{"provider":"x"}`:             "body.provider",
		`{"displayName":7}`:            "body.displayName",
		`{"metricDefinitions":[{}]}`:   "body.metricDefinitions[0]",
		`{"metricOrder":["cycles",1]}`: "body.metricOrder[1]",
	} {
		got := api.ok(t, 400, "PATCH", path, body, "If-Match", "*")
		require.Equal(t, field, got.JSON["errors"].([]any)[0].(map[string]any)["field"], got.Text)
	}
}

func TestATagOfADeletedSourceDoesNotFitItsSuccessor(t *testing.T) {
	api := newSourceAPI(t)
	api.ok(t, 201, "PUT", "/v1/sources/a", agentBody("2026-11-30T12:00:00Z", ""))
	tag := api.ok(t, 200, "GET", "/v1/sources/a/configuration", "").Header.Get("ETag")
	api.ok(t, 204, "DELETE", "/v1/sources/a", "")
	api.ok(t, 204, "DELETE", "/v1/sources/a", "")
	api.ok(t, 201, "PUT", "/v1/sources/a", agentBody("2026-11-30T12:00:00Z", ""))
	api.ok(t, 412, "PATCH", "/v1/sources/a/configuration", `{}`, "If-Match", tag)
}

func TestProjectionHidesWhatTheOwnerRedefined(t *testing.T) {
	api := newSourceAPI(t)
	api.ok(t, 201, "PUT", "/v1/sources/oven", ovenBody("2026-11-30T12:00:00Z", "celsius", "20"))
	api.ok(t, 200, "PATCH", "/v1/sources/oven/configuration", `{"metricDefinitions":[{"key":"temperature","unit":"kelvin","kind":"gauge"},{"key":"cycles","unit":"cycles","label":"Rounds","kind":"counter"}]}`, "If-Match", "*")
	shown := func() (latest, minute []string) {
		source := api.ok(t, 200, "GET", "/v1/sources/oven", "")
		minutes := api.ok(t, 200, "GET", "/v1/sources/oven/minutes", "").JSON["minutes"].([]any)
		return keysIn(source.JSON["metrics"]), keysIn(minutes[0].(map[string]any)["metrics"])
	}
	latest, minute := shown()
	require.Equal(t, []string{"cycles"}, latest)
	require.Equal(t, []string{"cycles"}, minute)
	api.ok(t, 200, "PUT", "/v1/sources/oven", ovenBody("2026-11-30T12:00:01Z", "kelvin", "293"))
	latest, minute = shown()
	require.Equal(t, []string{"cycles", "temperature"}, latest)
	require.Equal(t, []string{"cycles", "temperature"}, minute)
}

func TestAReusedIDDoesNotReinterpretItsMinutes(t *testing.T) {
	api := newSourceAPI(t)
	api.ok(t, 201, "PUT", "/v1/sources/x", ovenBody("2026-11-30T12:00:00Z", "celsius", "20"))
	api.ok(t, 204, "DELETE", "/v1/sources/x", "")
	recorded := api.ok(t, 200, "GET", "/v1/sources/x/minutes", "").JSON["minutes"].([]any)
	require.Len(t, recorded, 1, "what is retained is shown as it was recorded")
	require.Equal(t, "oven", recorded[0].(map[string]any)["resourceType"])

	freezer := strings.Replace(ovenBody("2026-11-30T12:01:00Z", "celsius", "-20"), "oven", "freezer", 1)
	api.ok(t, 201, "PUT", "/v1/sources/x", freezer)
	minutes := api.ok(t, 200, "GET", "/v1/sources/x/minutes?to=2026-11-30T13:00:00Z", "").JSON["minutes"].([]any)
	require.Len(t, minutes, 1)
	require.Equal(t, "freezer", minutes[0].(map[string]any)["resourceType"])
	require.Equal(t, "2026-11-30T12:01:00Z", minutes[0].(map[string]any)["minute"])
}

func TestMinutesArePagedThroughARange(t *testing.T) {
	api := newSourceAPI(t)
	for i := range 5 {
		api.send(t, "PUT", "/v1/sources/a", agentBody(fmt.Sprintf("2026-11-30T11:%02d:07Z", i), fmt.Sprintf(`"requests":%d,"errors":null`, i)))
	}
	query := "/v1/sources/a/minutes?from=2026-11-30T11:01:00Z&to=2026-11-30T20:04:00%2B09:00&limit=2"
	first := api.ok(t, 200, "GET", query, "")
	require.Len(t, first.JSON["minutes"], 2)
	second := api.ok(t, 200, "GET", query+"&cursor="+first.JSON["nextCursor"].(string), "")
	require.Len(t, second.JSON["minutes"], 1)
	require.NotContains(t, second.JSON, "nextCursor")
	require.Equal(t, "2026-11-30T11:04:00Z", second.JSON["to"])
	require.JSONEq(t, `[
		{"key":"requests","unit":"requests","label":"Requests","kind":"counter","validCount":1,"sum":1,"mean":1,"max":1},
		{"key":"errors","unit":"errors","label":"Errors","kind":"counter","validCount":0,"sum":0,"mean":null,"max":null}
	]`, textOf(t, first.JSON["minutes"].([]any)[0].(map[string]any)["metrics"]))
	for field, query := range map[string]string{
		"query.from":   "from=2026-11-30T12:00:00Z&to=2026-11-30T12:00:00Z",
		"query.to":     "to=noon",
		"query.limit":  "limit=1441",
		"query.cursor": "cursor=abc",
		"query.until":  "until=2026-11-30T12:00:00Z",
	} {
		got := api.ok(t, 400, "GET", "/v1/sources/a/minutes?"+query, "")
		require.Equal(t, field, got.JSON["errors"].([]any)[0].(map[string]any)["field"], got.Text)
	}
}

func textOf(t testing.TB, value any) string {
	t.Helper()
	text, err := json.Marshal(value)
	require.NoError(t, err)
	return string(text)
}

func idsIn(list any) []string {
	ids := []string{}
	for _, element := range list.([]any) {
		ids = append(ids, element.(map[string]any)["sourceId"].(string))
	}
	return ids
}

func TestSourcesAreListedByIDAndAccount(t *testing.T) {
	api := newSourceAPI(t)
	for _, id := range []string{"c", "a", "b"} {
		api.ok(t, 201, "PUT", "/v1/sources/"+id, agentBody("2026-11-30T12:00:00Z", ""))
	}
	api.ok(t, 201, "PUT", "/v1/sources/d", ovenBody("2026-11-30T12:00:00Z", "celsius", "20"))
	first := api.ok(t, 200, "GET", "/v1/sources?limit=3", "")
	require.Equal(t, []string{"a", "b", "c"}, idsIn(first.JSON["sources"]))
	second := api.ok(t, 200, "GET", "/v1/sources?limit=3&cursor="+first.JSON["nextCursor"].(string), "")
	require.Equal(t, []string{"d"}, idsIn(second.JSON["sources"]))
	require.NotContains(t, second.JSON, "nextCursor")
	for query, want := range map[string][]string{
		"ids=d&ids=a&ids=none":                          {"a", "d"},
		"provider=anthropic&account=team-a":             {"a", "b", "c"},
		"provider=anthropic&account=none":               {},
		"ids=d&ids=a&provider=anthropic&account=team-a": {"a"},
	} {
		require.Equal(t, want, idsIn(api.ok(t, 200, "GET", "/v1/sources?"+query, "").JSON["sources"]), query)
	}
	for query, field := range map[string]string{
		"ids=a&cursor=x":     "query.cursor",
		"ids=a%20b":          "query.ids[0]",
		"provider=anthropic": "query.account",
		"account=team-a":     "query.provider",
		"limit=0":            "query.limit",
		"cursor=x":           "query.cursor",
	} {
		got := api.ok(t, 400, "GET", "/v1/sources?"+query, "")
		require.Equal(t, field, got.JSON["errors"].([]any)[0].(map[string]any)["field"], got.Text)
	}
}

func TestOwnersSeeNothingOfEachOther(t *testing.T) {
	api := newSourceAPI(t)
	api.ok(t, 201, "PUT", "/v1/sources/a", agentBody("2026-11-30T12:00:00Z", ""))
	api.ok(t, 200, "PUT", "/v1/memory/p/k", `{"value":"mine"}`)
	api.token = api.issueTo("user:lee", "read", "write")
	api.ok(t, 404, "GET", "/v1/sources/a", "")
	api.ok(t, 404, "GET", "/v1/sources/a/configuration", "")
	api.ok(t, 404, "GET", "/v1/memory/p/k", "")
	require.Empty(t, api.ok(t, 200, "GET", "/v1/sources", "").JSON["sources"])
	require.Empty(t, api.ok(t, 200, "GET", "/v1/sources/a/minutes", "").JSON["minutes"])
	require.Equal(t, map[string]any{"tokens": json.Number("1"), "agents": json.Number("0")}, api.ok(t, 200, "GET", "/v1/stats", "").JSON)
	api.ok(t, 204, "DELETE", "/v1/sources/a", "")
	require.NotContains(t, api.ok(t, 200, "GET", "/v1/activity", "").Text, `"sampleCount":1`)
}

func TestScopesGuardSources(t *testing.T) {
	api := newSourceAPI(t)
	reader, writer := api.issueTo("user:kim", "read"), api.issueTo("user:kim", "write")
	for _, c := range []struct{ method, path, body string }{
		{"PUT", "/v1/sources/a", agentBody("2026-11-30T12:00:00Z", "")},
		{"PATCH", "/v1/sources/a/configuration", `{}`},
		{"DELETE", "/v1/sources/a", ""},
		{"PUT", "/v1/memory/p/k", `{"value":"x"}`},
		{"DELETE", "/v1/memory/p/k", ""},
	} {
		api.token = reader
		api.ok(t, 403, c.method, c.path, c.body)
	}
	for _, path := range []string{"/v1/sources", "/v1/sources/a", "/v1/sources/a/minutes", "/v1/sources/a/configuration", "/v1/memory/p/k", "/v1/stats", "/v1/activity", "/v1/accounts/p/a/trend"} {
		api.token = writer
		api.ok(t, 403, "GET", path, "")
		api.token = "mr_nothing"
		api.ok(t, 401, "GET", path, "")
	}
}

func TestWhatRequestsOfSourcesCost(t *testing.T) {
	api := newSourceAPI(t)
	api.ok(t, 201, "PUT", "/v1/sources/a", agentBody("2026-11-30T12:00:00Z", ""))
	settle := func() { // the note of the token's use is off the request's path
		require.Eventually(t, func() bool { return api.calls.Take()["UpdateItem"] == 0 }, time.Second, 20*time.Millisecond)
	}
	settle()
	api.ok(t, 200, "PUT", "/v1/sources/a", agentBody("2026-11-30T12:00:01Z", `"requests":1`))
	require.Equal(t, map[string]int{"GetItem": 2, "UpdateItem": 1, "TransactWriteItems": 1}, api.calls.Take(), "lookup, budget, one read, one transaction")
	api.ok(t, 200, "GET", "/v1/sources/a", "")
	require.Equal(t, map[string]int{"GetItem": 2, "UpdateItem": 1}, api.calls.Take(), "lookup, budget, one read")
}

func TestTheContractTellsWhatMayBeNull(t *testing.T) {
	api := newSourceAPI(t)
	schemas := api.server.OpenAPI().Components.Schemas.Map()
	for schema, fields := range map[string][]string{
		"Measurement": {"value"}, "Summary": {"mean", "max"},
		"ConfigurationPatch": {"displayName", "metricDefinitions", "metricOrder", "staleAfterSeconds"},
	} {
		for _, field := range fields {
			require.True(t, schemas[schema].Properties[field].Nullable, "%s.%s", schema, field)
		}
	}
	require.False(t, schemas["Summary"].Properties["sum"].Nullable)
	require.True(t, schemas["Observation"].Properties["metrics"].AdditionalProperties.(*huma.Schema).Nullable)
	require.Equal(t, false, schemas["Observation"].AdditionalProperties)
}
