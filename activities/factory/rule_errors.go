package factory

import (
	"context"
	"encoding/json"
	"errors"
	"maps"
	"strings"
	"sync"
	"time"

	"millrace/domain/factory"
	"millrace/platform/queue"
	"millrace/storage/objects"
	workflows "millrace/workflows/factory"
)

// RuleErrorDrains take the messages whose IoT rule failed back into the flow.
type RuleErrorDrains struct {
	Drains
	JobResults queue.Queue
}

// DrainRuleErrors stores the originals of failed rules and enqueues them, for
// one stretch.
func (d RuleErrorDrains) DrainRuleErrors(ctx context.Context, req workflows.DrainRequest) (workflows.DrainResult, error) {
	logger := d.Logger.With("consumer", req.Consumer)
	handler := &ruleErrorHandler{ingester: d.Ingester, telemetry: d.Telemetry, jobResults: d.JobResults, outcomes: make(map[string]int64)}
	result := d.drain(ctx, d.RuleErrors, handler, logger)
	result.Outcomes = handler.totals()
	return result, nil
}

// ruleError is what an error action of the AWS IoT rule engine sends
// (AWS IoT developer guide, "Error handling (error action)").
type ruleError struct {
	RuleName string `json:"ruleName"`
	Topic    string `json:"topic"`
	TraceID  string `json:"cloudwatchTraceId"`
	ClientID string `json:"clientId"`
	Payload  []byte `json:"base64OriginalPayload"`
}

// Outcomes of a failed rule.
const (
	originalEnqueued  = "enqueued"
	originalForwarded = "job_result"
)

// Steps of taking a failed rule's message back.
const (
	StepOriginal Step = "original stored"
	StepEnqueued Step = "original enqueued"
)

// ruleErrorHandler stores each original before it enqueues it, so that what is
// in the queue is always in raw/ too. Both may happen again and change nothing.
type ruleErrorHandler struct {
	ingester   Ingester
	telemetry  queue.Queue
	jobResults queue.Queue

	mu       sync.Mutex
	outcomes map[string]int64
}

// Lane is the factory that the topic names.
func (h *ruleErrorHandler) Lane(m queue.Message) string {
	failed, err := decodeRuleError(m.Body)
	if err != nil {
		return ""
	}
	factoryID, _ := factory.TopicLevels(failed.Topic)
	return factoryID
}

// Idle has nothing to do: nothing hangs on the last message of a lane.
func (h *ruleErrorHandler) Idle(context.Context, string) {}

// Handle takes one message back.
func (h *ruleErrorHandler) Handle(ctx context.Context, m queue.Message) (func(context.Context) error, error) {
	outcome, err := h.takeBack(ctx, m)
	if err != nil {
		if errors.Is(err, errNoJobResults) {
			return nil, err
		}
		return nil, classify(err)
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.outcomes[outcome]++
	return nil, nil
}

func (h *ruleErrorHandler) takeBack(ctx context.Context, m queue.Message) (string, error) {
	now := h.ingester.Now()
	failed, err := decodeRuleError(m.Body)
	if err != nil {
		return h.quarantine(ctx, Envelope{Body: []byte(m.Body), TraceID: m.ID, ReceivedAt: now.UnixMilli()}, err)
	}
	original := Envelope{
		Body: failed.Payload, Topic: failed.Topic, TraceID: failed.TraceID, ReceivedAt: receiptOf(failed.Payload, now).UnixMilli(),
	}
	switch topicKindOf(failed.Topic) {
	case topicJobResult:
		if h.jobResults.URL == "" {
			return "", errNoJobResults
		}
		return originalForwarded, h.enqueue(ctx, h.jobResults, original)
	case topicTelemetry:
		return originalEnqueued, h.storeAndEnqueue(ctx, original)
	default:
		return h.quarantine(ctx, original, invalidRuleError("topic", "must be aegis/{factory_id}/{source_type} or a job result"))
	}
}

// errNoJobResults leaves a job result in the queue until somebody says where it
// goes; nothing is out of order.
var errNoJobResults = errors.New("MILLRACE_JOB_RESULTS_QUEUE_URL is not set")

func (h *ruleErrorHandler) storeAndEnqueue(ctx context.Context, original Envelope) error {
	original.RawKey = original.rawKey()
	if _, err := h.ingester.Store.Bucket.PutIfAbsent(ctx, original.RawKey, objects.JSON, original.Body); err != nil {
		return err
	}
	if err := h.ingester.at(StepOriginal); err != nil {
		return err
	}
	return h.enqueue(ctx, h.telemetry, original)
}

func (h *ruleErrorHandler) enqueue(ctx context.Context, to queue.Queue, original Envelope) error {
	message, err := factory.EncodeJSON(original)
	if err != nil {
		return err
	}
	if err := to.Send(ctx, []string{string(message)}); err != nil {
		return err
	}
	return h.ingester.at(StepEnqueued)
}

func (h *ruleErrorHandler) quarantine(ctx context.Context, e Envelope, reason error) (string, error) {
	result, err := h.ingester.refuse(ctx, e, reason)
	return string(result.Outcome), err
}

func (h *ruleErrorHandler) totals() map[string]int64 {
	h.mu.Lock()
	defer h.mu.Unlock()
	return maps.Clone(h.outcomes)
}

func decodeRuleError(text string) (ruleError, error) {
	var failed ruleError
	if err := json.Unmarshal([]byte(text), &failed); err != nil {
		return ruleError{}, invalidRuleError("rule error", "must be the JSON of an IoT error action")
	}
	switch {
	case failed.Topic == "":
		return ruleError{}, invalidRuleError("topic", "is required")
	case failed.Payload == nil:
		return ruleError{}, invalidRuleError("base64OriginalPayload", "is required")
	}
	return failed, nil
}

func invalidRuleError(field, rule string) error {
	return &factory.InvalidError{Field: field, Rule: rule}
}

// topicKind tells which rules a topic's messages belong to.
type topicKind int

const (
	topicOther topicKind = iota
	topicTelemetry
	topicJobResult
)

// topicKindOf reads a topic as the filters aegis/+/+ and aegis/+/jobs/+/result
// of the rules do.
func topicKindOf(topic string) topicKind {
	levels := strings.Split(topic, "/")
	switch {
	case levels[0] != "aegis":
		return topicOther
	case len(levels) == 3:
		return topicTelemetry
	case len(levels) == 5 && levels[2] == "jobs" && levels[4] == "result":
		return topicJobResult
	}
	return topicOther
}

// maxRuleErrorAge is how old a message in the queue can be: SQS's retention.
const maxRuleErrorAge = 14 * 24 * time.Hour

// receiptOf is when a message was received, as near as it says: an error action
// tells no time. The publisher stamps published_at right before it sends, and
// the stamp stays the same however often the message comes back; one that can't
// be true makes way for now.
func receiptOf(body []byte, now time.Time) time.Time {
	var stamped struct {
		PublishedAt string `json:"published_at"`
	}
	if json.Unmarshal(body, &stamped) != nil {
		return now
	}
	at, err := factory.ParseInstant(stamped.PublishedAt)
	if err != nil || at.After(now) || at.Before(now.Add(-maxRuleErrorAge)) {
		return now
	}
	return at
}
