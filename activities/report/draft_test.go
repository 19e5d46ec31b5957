package report

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/testsuite"

	"millrace/domain/exact"
	"millrace/domain/report"
	"millrace/domain/report/reporttest"
	"millrace/platform/bedrock"
	"millrace/storage/storagetest"
	workflows "millrace/workflows/report"
)

// newsroom is a day of factory-b that is merged, and what words and publishes it
// with the local stack's stand-in for Amazon Bedrock.
type newsroom struct {
	*plant
	writer    Writer
	publisher Publisher
	// endpoint is the stand-in's; model is a model of this test alone.
	endpoint, model string
}

const testbed = "factory-b"

// drilled is the day with its drills, of which the hours of the outage and of the
// workload that gives orders are enough here.
var drilled = sync.OnceValue(func() report.FactoryDaily {
	day, err := report.ParseDay(newYear, seoul)
	if err != nil {
		panic(err)
	}
	settings := report.DefaultSettings()
	hours := make([]*report.FactoryHour, len(day.Hours()))
	for i, hour := range day.Hours() {
		hours[i] = report.NewFactoryHour(testbed, day, hour, settings)
	}
	all := reporttest.FactoryDay{FactoryID: testbed, Start: day.Window().Start, End: day.Window().Start.Add(13 * time.Hour)}
	instant := regexp.MustCompile(`20\d\d-\d\d-\d\dT\d\d:\d\d:\d\dZ`)
	for object := range all.Objects() {
		at, err := time.Parse(time.RFC3339, instant.FindString(string(object.Body)))
		if n := int(at.Sub(day.Window().Start) / time.Hour); err == nil && (n == 6 || n == 12) {
			hours[n].Add(object.Dataset, object.Body)
		}
	}
	var summaries []report.FactoryHourSummary
	for _, hour := range hours {
		summaries = append(summaries, hour.Summary())
	}
	return report.MergeFactoryDay(testbed, day, settings, summaries)
})

func newNewsroom(t *testing.T) *newsroom {
	t.Helper()
	endpoint := os.Getenv("AWS_ENDPOINT_URL_BEDROCK_RUNTIME")
	require.NotEmpty(t, endpoint, "no local stand-ins: run make test, or bin/local exec -- go test")
	n := &newsroom{plant: newPlant(t), endpoint: endpoint, model: fmt.Sprintf("test.%s-%d", strings.ReplaceAll(t.Name(), "/", "."), time.Now().UnixNano())}
	n.Settings.ModelID = n.model
	client := bedrock.Model{API: bedrock.New(storagetest.Config(t)), Timeout: 20 * time.Second}
	n.writer = Writer{
		Store: n.Store, Settings: n.Settings, Model: client, Now: time.Now, Logger: silent,
		Prices: report.TokenPrices{{Model: "test.*", Input: exact.FromInt(3), Output: exact.FromInt(15)}},
	}
	n.publisher = Publisher{Store: n.Store, Settings: n.Settings, Logger: silent}
	daily := drilled()
	n.put(report.DailyKey(n.Store.Prefix, newYear, testbed), daily)
	n.put(report.ContextKey(n.Store.Prefix, newYear, testbed), daily.Context(n.Settings))
	return n
}

func (n *newsroom) put(key string, document any) {
	n.t.Helper()
	_, err := n.Store.PutJSON(n.t.Context(), key, document)
	require.NoError(n.t, err)
}

// mode has the stand-in's model of this test answer by a mode.
func (n *newsroom) mode(name string, count int) {
	n.t.Helper()
	body, err := json.Marshal(map[string]any{"mode": name, "model": n.model, "count": count})
	require.NoError(n.t, err)
	request, err := http.NewRequestWithContext(n.t.Context(), http.MethodPut, n.endpoint+"/mode", bytes.NewReader(body))
	require.NoError(n.t, err)
	response, err := http.DefaultClient.Do(request)
	require.NoError(n.t, err)
	require.NoError(n.t, response.Body.Close())
	require.Equal(n.t, http.StatusOK, response.StatusCode)
}

// asked is how often the model of this test was asked.
func (n *newsroom) asked() int {
	n.t.Helper()
	response, err := http.Get(n.endpoint + "/requests?model=" + n.model)
	require.NoError(n.t, err)
	defer func() { require.NoError(n.t, response.Body.Close()) }()
	var log struct{ Count int }
	require.NoError(n.t, json.NewDecoder(response.Body).Decode(&log))
	return log.Count
}

func (n *newsroom) request(violations ...string) workflows.DraftRequest {
	return workflows.DraftRequest{Target: testbed, Date: newYear, Timezone: seoul, Attempt: 1 + min(len(violations), 1), Violations: violations}
}

func (n *newsroom) draft(violations ...string) workflows.DraftResult {
	n.t.Helper()
	result, err := run(n.t, n.writer.DraftReport, n.request(violations...))
	require.NoError(n.t, err)
	return result
}

func TestADraftIsAskedForOnceAndPricedExactly(t *testing.T) {
	n := newNewsroom(t)
	first := n.draft()
	require.True(t, first.Valid, "%v", first.Violations)
	require.False(t, first.Cached)
	require.Positive(t, first.InputTokens)
	require.Positive(t, first.OutputTokens)
	cost := exact.FromInt(3 * first.InputTokens).Add(exact.FromInt(15 * first.OutputTokens)).Mul(exact.MustParse("0.000001"))
	require.Equal(t, cost.String(), first.Cost)
	t.Logf("a report: %d tokens in, %d out, $%s", first.InputTokens, first.OutputTokens, first.Cost)

	var record draftRecord
	require.NoError(t, n.Store.ReadJSON(t.Context(), first.DraftKey, &record))
	require.Equal(t, n.model, record.Model)
	require.True(t, record.StandIn)
	require.Equal(t, cost.String(), record.Cost.String())
	require.Contains(t, first.DraftKey, "/factory-b/drafts/"+record.Digest+".json")

	second := n.draft()
	require.True(t, second.Cached)
	require.True(t, second.Valid)
	require.Equal(t, first.DraftKey, second.DraftKey)
	require.Zero(t, second.InputTokens, "this run paid nothing")
	require.Empty(t, second.Cost)
	require.Equal(t, 1, n.asked())
}

func TestARetryAfterALostAcknowledgementPaysNothing(t *testing.T) {
	n := newNewsroom(t)
	request := n.request()
	request.Force = true
	scheduled := time.Now()
	first, err := n.writer.draft(t.Context(), request, scheduled, true, new(bool))
	require.ErrorIs(t, err, nil)
	again, err := n.writer.draft(t.Context(), request, scheduled, true, new(bool))
	require.NoError(t, err)
	require.Equal(t, first, again, "the same activity sees its own draft, and counts it once")
	require.Equal(t, 1, n.asked())

	later, err := n.writer.draft(t.Context(), request, time.Now(), true, new(bool))
	require.NoError(t, err)
	require.False(t, later.Cached, "another forced run asks again")
	require.Equal(t, 2, n.asked())
}

func TestOtherInputsAreAskedForAgain(t *testing.T) {
	n := newNewsroom(t)
	first := n.draft()
	second := n.draft("unknown_number in risk: made up")
	require.NotEqual(t, first.DraftKey, second.DraftKey)
	n.writer.Settings.MaxTokens++
	third := n.draft()
	require.NotEqual(t, first.DraftKey, third.DraftKey)
	n.writer.Settings.Language = report.English
	require.True(t, n.draft().Valid)
	require.Equal(t, 4, n.asked())
}

func TestDraftsThatFailTheirChecksAreResults(t *testing.T) {
	for mode, rule := range map[string]string{
		"lie": "unknown_number in", "foreign": "foreign_factory in", "secret": "secret in", "omit": "missing_section in", "truncate": "truncated: ",
		"nonsense": "shape: draft must be given by calling the tool", "malformed": "shape: draft must be the JSON object", "empty": "shape: draft must be given",
		"inject": "uncited_number in",
	} {
		t.Run(mode, func(t *testing.T) {
			n := newNewsroom(t)
			n.mode(mode, 1)
			refused := n.draft()
			require.False(t, refused.Valid)
			require.True(t, strings.HasPrefix(strings.Join(refused.Violations, "\n"), rule), "%v", refused.Violations)
			require.NotContains(t, strings.Join(refused.Violations, "\n"), "AKIA")
			corrected := n.draft(refused.Violations...)
			require.True(t, corrected.Valid, "%v", corrected.Violations)
			require.Equal(t, 2, n.asked())
			again := n.draft()
			require.True(t, again.Cached && !again.Valid, "a refused draft is not paid for again either")
		})
	}
}

func TestFailuresOfTheModelSayWhetherToTryAgain(t *testing.T) {
	for mode, want := range map[string]struct {
		kind  string
		final bool
		wait  time.Duration
	}{
		"throttle":    {"ThrottlingException", false, 10 * time.Second},
		"timeout":     {"ModelTimeoutException", false, 0},
		"unavailable": {"ServiceUnavailableException", false, 10 * time.Second},
		"not_ready":   {"ModelNotReadyException", false, 30 * time.Second},
		"model_error": {"ModelErrorException", false, 0},
		"quota":       {"ServiceQuotaExceededException", false, time.Minute},
		"unnamed":     {"UnknownError", false, 10 * time.Second},
		"garbage":     {"UnreadableAnswer", false, 0},
		"invalid":     {"ValidationException", true, 0},
		"denied":      {"AccessDeniedException", true, 0},
		"not_found":   {"ResourceNotFoundException", true, 0},
	} {
		t.Run(mode, func(t *testing.T) {
			n := newNewsroom(t)
			n.mode(mode, 1)
			_, err := run(t, n.writer.DraftReport, n.request())
			var failed *temporal.ApplicationError
			require.ErrorAs(t, err, &failed)
			require.Equal(t, want.kind, failed.Type())
			require.Equal(t, want.final, failed.NonRetryable())
			require.Equal(t, want.wait, failed.NextRetryDelay())
			require.Equal(t, 1, n.asked(), "only Temporal tries again")
			require.True(t, n.draft().Valid, "nothing was kept of the failure")
		})
	}
}

func TestAModelThatHangsIsGivenUp(t *testing.T) {
	n := newNewsroom(t)
	n.mode("hang", 1)
	n.writer.Model = bedrock.Model{API: bedrock.New(storagetest.Config(t)), Timeout: 200 * time.Millisecond}
	_, err := run(t, n.writer.DraftReport, n.request())
	var failed *temporal.ApplicationError
	require.ErrorAs(t, err, &failed)
	require.Equal(t, "RequestTimeout", failed.Type())
	require.False(t, failed.NonRetryable())
}

func TestWaitsGrowWithEachAttempt(t *testing.T) {
	throttled := &bedrock.Error{Code: "ThrottlingException", Retryable: true, RetryAfter: 10 * time.Second}
	for attempt, want := range map[int32]time.Duration{0: 10 * time.Second, 1: 10 * time.Second, 2: 20 * time.Second, 4: 80 * time.Second, 5: 2 * time.Minute, 5000: 2 * time.Minute} {
		var failed *temporal.ApplicationError
		require.ErrorAs(t, modelFailure(throttled, attempt, 0), &failed)
		require.Equal(t, want, failed.NextRetryDelay(), attempt)
	}
	var failed *temporal.ApplicationError
	asked := &bedrock.Error{Code: "ThrottlingException", Retryable: true, RetryAfter: 5 * time.Minute}
	require.ErrorAs(t, modelFailure(asked, 1, 0), &failed)
	require.Equal(t, 5*time.Minute, failed.NextRetryDelay(), "what the service asks for is never cut")
	require.NoError(t, modelFailure(nil, 1, 0))
	require.ErrorIs(t, modelFailure(context.Canceled, 1, 0), context.Canceled)
}

func TestTwoAttemptsAtOnceAgreeOnOneDraft(t *testing.T) {
	n := newNewsroom(t)
	const attempts = 4
	results := make([]workflows.DraftResult, attempts)
	var running sync.WaitGroup
	for i := range attempts {
		running.Go(func() {
			result, err := n.writer.draft(t.Context(), n.request(), time.Now().Add(-time.Minute), true, new(bool))
			if err == nil {
				results[i] = result
			}
		})
	}
	running.Wait()
	for _, result := range results {
		require.Equal(t, results[0], result)
		require.True(t, result.Valid)
	}
}

func TestADamagedDraftIsAskedForAgain(t *testing.T) {
	n := newNewsroom(t)
	first := n.draft()
	require.NoError(t, n.Store.Bucket.Put(t.Context(), first.DraftKey, "application/json", []byte("{")))
	second := n.draft()
	require.True(t, second.Valid)
	require.False(t, second.Cached)
	require.Equal(t, 2, n.asked())
}

func TestDraftsOfWhatIsNotThere(t *testing.T) {
	n := newNewsroom(t)
	for name, request := range map[string]workflows.DraftRequest{
		"target":   {Target: "../x", Date: newYear, Timezone: seoul},
		"date":     {Target: testbed, Date: "2026-13-01", Timezone: seoul},
		"timezone": {Target: testbed, Date: newYear, Timezone: "Mars/Olympus"},
	} {
		_, err := run(t, n.writer.DraftReport, request)
		var failed *temporal.ApplicationError
		require.ErrorAs(t, err, &failed, name)
		require.Equal(t, workflows.ErrorInvalidInput, failed.Type(), name)
		require.Contains(t, failed.Message(), name)
		require.True(t, failed.NonRetryable(), name)
	}
	_, err := run(t, n.writer.DraftReport, workflows.DraftRequest{Target: "factory-a", Date: newYear, Timezone: seoul})
	require.ErrorContains(t, err, "no such object")
	require.Zero(t, n.asked())
}

func TestAStoreThatFailsAfterTheAnswerIsTriedAgain(t *testing.T) {
	n := newNewsroom(t)
	n.calls.Fail(func(operation string) error {
		if operation == "PutObject" {
			return errors.New("the bucket is away")
		}
		return nil
	})
	_, err := run(t, n.writer.DraftReport, n.request())
	require.ErrorContains(t, err, "the bucket is away")
	n.calls.Fail(nil)
	require.True(t, n.draft().Valid)
}

// TestRequestsThatBringNothingAreBoundedAndCounted breaks answers off after they
// began, and kills workers while they wait.
func TestRequestsThatBringNothingAreBoundedAndCounted(t *testing.T) {
	n, served := newNewsroom(t), 0
	cut := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		served++
		w.Header().Set("Content-Length", "200")
		_, _ = w.Write([]byte(`{"output":`))
	}))
	t.Cleanup(cut.Close)
	t.Setenv("AWS_ENDPOINT_URL_BEDROCK_RUNTIME", cut.URL)
	n.writer.Model = bedrock.Model{API: bedrock.New(storagetest.Config(t))}
	attempt := func(before, limit int) (workflows.DraftResult, error) {
		var suite testsuite.WorkflowTestSuite
		env := suite.NewTestActivityEnvironment()
		env.RegisterActivity(n.writer.DraftReport)
		env.SetHeartbeatDetails(before)
		request := n.request()
		request.MaxCalls = limit
		var result workflows.DraftResult
		value, err := env.ExecuteActivity(n.writer.DraftReport, request)
		if err == nil {
			err = value.Get(&result)
		}
		return result, err
	}
	_, err := attempt(0, 3)
	var failed *temporal.ApplicationError
	require.ErrorAs(t, err, &failed)
	require.False(t, failed.NonRetryable())
	var calls int
	require.NoError(t, failed.Details(&calls))
	require.Equal(t, 1, calls)

	result, err := attempt(2, 3)
	require.NoError(t, err)
	require.Equal(t, 3, result.Calls)
	require.Contains(t, result.Unusable, "3 requests brought no answer")
	result, err = attempt(0, 1)
	require.NoError(t, err)
	require.Equal(t, 1, result.Calls)
	require.Equal(t, 3, served)

	_, err = attempt(1, 1)
	require.ErrorAs(t, err, &failed)
	require.True(t, failed.NonRetryable(), "the worker of the last request that was allowed died")
	require.NoError(t, failed.Details(&calls))
	require.Equal(t, 1, calls)
	require.Equal(t, 3, served)
}
