package signalcmd

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/alecthomas/kong"
	"github.com/stretchr/testify/mock"
	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/mocks"

	"millrace/domain/exact"
	"millrace/domain/observability"
	"millrace/workflows/names"
	workflows "millrace/workflows/observability"
)

func parse(t *testing.T, args ...string) (*Command, error) {
	t.Helper()
	t.Setenv("MILLRACE_TOKEN", "mr_test")
	var c Command
	parser, err := kong.New(&c, kong.Exit(func(int) { t.Error("exits") }))
	require.NoError(t, err)
	_, err = parser.Parse(args)
	return &c, err
}

func TestWhatCantBeMeantIsRefused(t *testing.T) {
	for _, args := range [][]string{
		{"send", "-", "--parallel", "0"},
		{"send", "-", "--url", "nowhere"},
		{"generate", "--count", "0"},
		{"generate", "--apps", "0"},
		{"generate", "--over", "100h"},
		{"send"},
	} {
		_, err := parse(t, args...)
		require.Error(t, err, "%v", args)
	}
}

// gateway answers posts of signals as the real one does: a name "bad" is
// rejected. The first answers are those given.
type gateway struct {
	lock     sync.Mutex
	statuses []int
	batches  []int
	seen     map[string]int
}

func (g *gateway) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	g.lock.Lock()
	defer g.lock.Unlock()
	if r.Header.Get("Authorization") != "Bearer mr_test" {
		w.WriteHeader(http.StatusUnauthorized)
		return
	}
	if len(g.statuses) > 0 {
		status := g.statuses[0]
		g.statuses = g.statuses[1:]
		w.Header().Set("Retry-After", "0")
		w.WriteHeader(status)
		_, _ = io.WriteString(w, `{"detail":"the token does not have the scope signals:write"}`)
		return
	}
	var body struct {
		Signals []struct {
			SignalID string `json:"signal_id"`
			Name     string `json:"name"`
		} `json:"signals"`
	}
	if err := json.NewDecoder(r.Body).Decode(&body); err != nil {
		w.WriteHeader(http.StatusBadRequest)
		return
	}
	g.batches = append(g.batches, len(body.Signals))
	var answer results
	for _, s := range body.Signals {
		result := struct{ Status, Field, Rule string }{Status: "accepted"}
		switch {
		case s.Name == "bad":
			answer.Rejected++
			result.Status, result.Field, result.Rule = "rejected", "name", "must be good"
		case g.seen[s.SignalID] > 0:
			answer.Duplicate++
		default:
			answer.Accepted++
		}
		g.seen[s.SignalID]++
		answer.Results = append(answer.Results, result)
	}
	_ = json.NewEncoder(w).Encode(answer)
}

func newGateway(t *testing.T, statuses ...int) (*gateway, *SendCommand) {
	t.Helper()
	g := &gateway{statuses: statuses, seen: map[string]int{}}
	server := httptest.NewServer(g)
	t.Cleanup(server.Close)
	return g, &SendCommand{Gateway: Gateway{URL: server.URL + "/", Token: "mr_test"}, File: "-", Parallel: 2}
}

func lines(n int, more string) string {
	var text strings.Builder
	for i := range n {
		fmt.Fprintf(&text, `{"signal_id":"s%d"%s}`+"\n", i, more)
	}
	return text.String()
}

func TestSignalsAreSentInBatchesAndTriedAgain(t *testing.T) {
	g, c := newGateway(t, http.StatusServiceUnavailable, http.StatusTooManyRequests)
	var out bytes.Buffer
	require.NoError(t, c.send(t.Context(), strings.NewReader(lines(1201, "")), &out))
	require.Equal(t, "accepted 1201, duplicate 0, rejected 0\n", out.String())
	require.ElementsMatch(t, []int{500, 500, 201}, g.batches)
	out.Reset()
	require.NoError(t, c.send(t.Context(), strings.NewReader(lines(3, "")+"\n\n"), &out))
	require.Equal(t, "accepted 0, duplicate 3, rejected 0\n", out.String())
}

func TestLargeSignalsMakeSmallerBatches(t *testing.T) {
	g, c := newGateway(t)
	require.NoError(t, c.send(t.Context(), strings.NewReader(lines(100, `,"pad":"`+strings.Repeat("x", 20_000)+`"`)), io.Discard))
	require.Greater(t, len(g.batches), 1)
}

func TestRefusalsNameTheirLine(t *testing.T) {
	_, c := newGateway(t)
	var out bytes.Buffer
	err := c.send(t.Context(), strings.NewReader(lines(2, "")+`{"name":"bad"}`), &out)
	require.EqualError(t, err, "1 signals were rejected")
	require.Contains(t, out.String(), "line 3: name must be good\n")
	err = c.send(t.Context(), strings.NewReader(lines(2, "")+"{"), &out)
	require.EqualError(t, err, "line 3: must be JSON")
}

func TestARefusedRequestIsNotTriedAgain(t *testing.T) {
	g, c := newGateway(t, http.StatusForbidden)
	err := c.send(t.Context(), strings.NewReader(lines(1, "")), io.Discard)
	require.ErrorContains(t, err, "lines 1 to 1: gateway answered 403: the token does not have the scope")
	require.Empty(t, g.batches)
}

func TestGeneratedSignalsAreValidAndTheSameAgain(t *testing.T) {
	c, err := parse(t, "generate", "--count", "100", "--apps", "3", "--over", "47h")
	require.NoError(t, err)
	now := time.Now().UTC()
	var first, again bytes.Buffer
	require.NoError(t, c.Generate.generate(t.Context(), now, &first))
	require.NoError(t, c.Generate.generate(t.Context(), now, &again))
	require.Equal(t, first.String(), again.String())
	apps := map[string]bool{}
	all := strings.Split(strings.TrimSpace(first.String()), "\n")
	require.Len(t, all, 100)
	for _, line := range all {
		s, err := observability.ParseSignal([]byte(line))
		require.NoError(t, err)
		s, err = s.Receive(now, observability.Prices{})
		require.NoError(t, err, line)
		apps[s.AppID] = true
	}
	require.Len(t, apps, 3)
}

func TestARangeOfReceiptIsRead(t *testing.T) {
	c := RollupCommand{From: "2026-05-04T10:00:00+09:00", To: "2026-05-04T02:00:00Z"}
	input, err := c.input()
	require.NoError(t, err)
	require.True(t, input.From.Equal(time.Date(2026, 5, 4, 1, 0, 0, 0, time.UTC)))
	for _, bad := range []RollupCommand{{From: "yesterday"}, {To: "2026-05-04"}, {From: c.To, To: c.From}} {
		_, err := bad.input()
		require.Error(t, err)
	}
}

// ended is a workflow run that has ended with a result.
func ended(t *testing.T, id, workflow string, input, result any) client.Client {
	t.Helper()
	run := &mocks.WorkflowRun{}
	run.On("Get", mock.Anything, mock.Anything).Return(func(_ context.Context, into any) error {
		body, err := json.Marshal(result)
		require.NoError(t, err)
		return json.Unmarshal(body, into)
	})
	c := &mocks.Client{}
	c.On("ExecuteWorkflow", mock.Anything, mock.MatchedBy(func(o client.StartWorkflowOptions) bool {
		return o.ID == id && o.TaskQueue == names.QueueScheduled
	}), workflow, input).Return(run, nil)
	return c
}

func TestARollupTellsWhatItCounted(t *testing.T) {
	done := workflows.Carry{To: time.Date(2026, 5, 4, 0, 0, 0, 0, time.UTC), Counts: workflows.Counts{Signals: 7, Transactions: 2, TraceRows: 5}}
	var out bytes.Buffer
	c := RollupCommand{}
	require.NoError(t, c.rollup(t.Context(), ended(t, "signal-rollup/by-hand//", "SignalRollup", workflows.RollupInput{}, done), workflows.RollupInput{}, &out))
	require.Equal(t, "received before 2026-05-04T00:00:00Z: counted 7, counted by others 0, stuck 0, in 2 transactions; 5 trace rows\n", out.String())
}

func TestACheckThatFindsDriftFails(t *testing.T) {
	drift := workflows.AppDrift{AppID: "app-x", Comparison: workflows.HoursAgainstDay, Drift: observability.Drift{
		Counter: "signal_count", Have: exact.FromInt(1), Want: exact.FromInt(2),
	}}
	result := workflows.ReconcileResult{Days: []workflows.DayResult{{Day: "2026-05-04", Apps: 1, Signals: 2, Drifted: 1, Drifts: []workflows.AppDrift{drift}}}}
	var out bytes.Buffer
	c := ReconcileCommand{Day: "2026-05-04"}
	err := c.reconcile(t.Context(), ended(t, "signal-reconcile/2026-05-04", "SignalReconcile", workflows.ReconcileInput{Day: "2026-05-04"}, result), &out)
	require.EqualError(t, err, "1 counters drifted")
	require.Contains(t, out.String(), "app-x, hours against the day: signal_count is 1, should be 2")
}

func TestUsageShowsDaysAndTheMonth(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		require.Equal(t, "/v1/apps/app-x/aggregates", r.URL.Path)
		query := r.URL.Query()
		require.Equal(t, []string{"2026-12", "2027-01"}, []string{query.Get("from"), query.Get("to")})
		row := func(start, cost, next string) {
			fmt.Fprintf(w, `{"aggregates":[{"granularity":"x","start":%q,"counters":{"signal_count":3,"total_tokens":70,"total_cost_usd":%s}}],"nextCursor":%q}`, start, cost, next)
		}
		switch query.Get("granularity") + query.Get("cursor") {
		case "daily":
			row("2026-12-01T00:00:00Z", "0.1000000000000000055", "c")
		case "dailyc":
			row("2026-12-31T00:00:00Z", "0.2", "")
		default:
			row("2026-12-01T00:00:00Z", "0.3000000000000000055", "")
		}
	}))
	t.Cleanup(server.Close)
	c := UsageCommand{Gateway: Gateway{URL: server.URL, Token: "mr_test"}, App: "app-x"}
	var out bytes.Buffer
	require.NoError(t, c.usage(t.Context(), "2026-12", &out))
	for _, want := range []string{"2026-12-01", "0.1000000000000000055", "2026-12-31", "0.3000000000000000055"} {
		require.Contains(t, out.String(), want)
	}
	require.Error(t, c.usage(t.Context(), "May", &out))
}
