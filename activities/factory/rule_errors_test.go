package factory

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"millrace/domain/factory"
	"millrace/platform/queue"
	workflows "millrace/workflows/factory"
)

func ruleErrorOf(topic string, body []byte) string {
	return fmt.Sprintf(`{"ruleName":"millrace_telemetry","topic":%q,"cloudwatchTraceId":"7e146a2c-95b5-6caf-98b9-50e3969734c7","clientId":"edge-1","base64OriginalPayload":%q,"failures":[{"failedAction":"SqsAction","failedResource":"q","errorMessage":"no"}]}`,
		topic, base64.StdEncoding.EncodeToString(body))
}

func newRuleErrors(t *testing.T, a *archive) *ruleErrorHandler {
	return &ruleErrorHandler{ingester: a.ingester(), telemetry: newQueue(t), jobResults: newQueue(t), outcomes: make(map[string]int64)}
}

func handle(t *testing.T, h *ruleErrorHandler, body string) {
	t.Helper()
	finish, err := h.Handle(t.Context(), queue.Message{ID: "m-1", Body: body})
	require.NoError(t, err)
	require.Nil(t, finish)
}

func TestAnOriginalIsStoredAndThenEnqueued(t *testing.T) {
	a := newArchive(t)
	h := newRuleErrors(t, a)
	original := messageOf(factory.SourceFactoryState, at("08:27:57"))
	handle(t, h, ruleErrorOf(original.Topic, original.Body))

	key := "raw/factory-x/factory_state/yyyy=2026/mm=05/dd=20/factory-x:factory_state:n1:2026-05-20T08:27:57Z.json"
	require.Equal(t, map[string]string{key: string(original.Body)}, a.bodies(rawRoot))
	require.Equal(t, []Envelope{{
		Body: original.Body, Topic: original.Topic, ReceivedAt: a.now.UnixMilli(),
		TraceID: "7e146a2c-95b5-6caf-98b9-50e3969734c7", RawKey: key,
	}}, received(t, h.telemetry))
	require.Equal(t, map[string]int64{originalEnqueued: 1}, h.totals())
}

func TestAStoredOriginalIsNotReplaced(t *testing.T) {
	a := newArchive(t)
	h := newRuleErrors(t, a)
	original := a.receive(messageOf(factory.SourceFactoryState, at("08:27:57")), a.now)
	handle(t, h, ruleErrorOf(original.Topic, append(original.Body, ' ')))
	require.Equal(t, map[string]string{original.rawKey(): string(original.Body)}, a.bodies(rawRoot))
	require.Len(t, received(t, h.telemetry), 1)
}

func TestTheDayOfReceiptComesFromThePublishersStamp(t *testing.T) {
	now := at("00:00:30")
	for name, c := range map[string]struct {
		stamp string
		want  time.Time
	}{
		"yesterday":     {`"2026-05-19T23:59:58Z"`, now.Add(-32 * time.Second)},
		"none":          {`null`, now},
		"no time":       {`"soon"`, now},
		"in the future": {`"2026-05-20T00:01:00Z"`, now},
		"impossibly old": {
			`"2026-05-01T00:00:00Z"`, now,
		},
		"a number": {`12`, now},
	} {
		t.Run(name, func(t *testing.T) {
			require.Equal(t, c.want, receiptOf(fmt.Appendf(nil, `{"published_at":%s}`, c.stamp), now))
		})
	}
	require.Equal(t, now, receiptOf([]byte("not JSON"), now))
}

func TestJobResultsGoToTheirQueue(t *testing.T) {
	a := newArchive(t)
	h := newRuleErrors(t, a)
	handle(t, h, ruleErrorOf("aegis/factory-x/jobs/run-1/result", []byte(`{"status":"ok"}`)))
	results := received(t, h.jobResults)
	require.Len(t, results, 1)
	require.Equal(t, "aegis/factory-x/jobs/run-1/result", results[0].Topic)
	require.JSONEq(t, `{"status":"ok"}`, string(results[0].Body))
	require.Empty(t, received(t, h.telemetry))
	require.Empty(t, a.keys(rawRoot))
}

func TestAJobResultWithoutAQueueWaits(t *testing.T) {
	a := newArchive(t)
	h := newRuleErrors(t, a)
	h.jobResults.URL = ""
	_, err := h.Handle(t.Context(), queue.Message{ID: "m-1", Body: ruleErrorOf("aegis/factory-x/jobs/run-1/result", nil)})
	require.ErrorContains(t, err, "MILLRACE_JOB_RESULTS_QUEUE_URL")
	require.NotErrorIs(t, err, queue.ErrOutage)
}

func TestMalformedRuleErrorsAreQuarantinedWithTheReason(t *testing.T) {
	for name, c := range map[string]struct{ body, field string }{
		"no JSON":         {"{", "rule error"},
		"no object":       {"[]", "rule error"},
		"two values":      {`{} {}`, "rule error"},
		"no topic":        {`{"base64OriginalPayload":"e30="}`, "topic"},
		"no payload":      {`{"topic":"aegis/factory-x/factory_state"}`, "base64OriginalPayload"},
		"no base64":       {`{"topic":"aegis/f/t","base64OriginalPayload":"%%"}`, "rule error"},
		"a foreign topic": {ruleErrorOf("other/../../x", []byte("{}")), "topic"},
		"too few levels":  {ruleErrorOf("aegis/factory-x", []byte("{}")), "topic"},
		"a number":        {`{"topic":7,"base64OriginalPayload":"e30="}`, "rule error"},
	} {
		t.Run(name, func(t *testing.T) {
			a := newArchive(t)
			h := newRuleErrors(t, a)
			handle(t, h, c.body)
			handle(t, h, c.body)
			refused := a.bodies("")
			require.Len(t, refused, 1)
			for key, body := range refused {
				require.Regexp(t, `^quarantine/[a-z_-]+/[a-z_.]+/yyyy=2026/mm=05/dd=20/[A-Za-z0-9:._-]+\.json$`, key)
				var refusal factory.Refusal
				require.NoError(t, json.Unmarshal([]byte(body), &refusal))
				require.Equal(t, c.field, refusal.Field)
				require.NotEmpty(t, refusal.Rule)
			}
			require.Empty(t, received(t, h.telemetry))
			require.Equal(t, map[string]int64{string(Quarantined): 2}, h.totals())
		})
	}
}

func TestAKillBetweenStoringAndEnqueueingLosesNothing(t *testing.T) {
	for step := 1; step <= 2; step++ {
		t.Run(fmt.Sprint("step ", step), func(t *testing.T) {
			a := newArchive(t)
			h := newRuleErrors(t, a)
			original := messageOf(factory.SourceFactoryState, at("08:27:57"))
			h.ingester.At = killAt(step)
			_, err := h.Handle(t.Context(), queue.Message{ID: "m-1", Body: ruleErrorOf(original.Topic, original.Body)})
			require.ErrorIs(t, err, errKilled)

			h.ingester.At = nil
			a.now = a.now.Add(time.Minute)
			handle(t, h, ruleErrorOf(original.Topic, original.Body))
			require.Len(t, a.keys(rawRoot), 1)
			enqueued := received(t, h.telemetry)
			require.Len(t, enqueued, step)
			for _, e := range enqueued {
				a.take(e)
			}
			require.Len(t, a.keys("processed/factory-x/factory_state/"), 1)
			require.Len(t, a.history("factory-x"), 1)
		})
	}
}

func TestAnOutageIsNoPoison(t *testing.T) {
	a := newArchive(t)
	h := newRuleErrors(t, a)
	h.telemetry.URL += "-gone"
	original := messageOf(factory.SourceFactoryState, at("08:27:57"))
	_, err := h.Handle(t.Context(), queue.Message{ID: "m-1", Body: ruleErrorOf(original.Topic, original.Body)})
	require.ErrorIs(t, err, queue.ErrOutage)
	require.Empty(t, a.keys("quarantine/"))
}

func TestTheDrainEmptiesTheQueueOfRuleErrors(t *testing.T) {
	a := newArchive(t)
	drains := RuleErrorDrains{
		Drains: Drains{
			Telemetry: newQueue(t), RuleErrors: newQueue(t), Ingester: a.ingester(),
			Settings: queue.Settings{Poll: time.Second}, Stretch: 2 * time.Second, Logger: quiet(),
		},
		JobResults: newQueue(t),
	}
	original := messageOf(factory.SourceFactoryState, at("08:27:57"))
	require.NoError(t, drains.RuleErrors.Send(t.Context(), []string{ruleErrorOf(original.Topic, original.Body), "{"}))

	env := repairEnvironment()
	env.RegisterActivity(drains.DrainRuleErrors)
	value, err := env.ExecuteActivity(drains.DrainRuleErrors, workflows.DrainRequest{})
	require.NoError(t, err)
	var result workflows.DrainResult
	require.NoError(t, value.Get(&result))
	require.Equal(t, workflows.DrainResult{
		Received: 2, Deleted: 2, Outcomes: map[string]int64{originalEnqueued: 1, string(Quarantined): 1},
	}, result)
	require.Len(t, received(t, drains.Telemetry), 1)
	depth, err := drains.RuleErrors.Depth(t.Context())
	require.NoError(t, err)
	require.Zero(t, depth)
}
