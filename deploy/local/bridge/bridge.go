// Package bridge does locally what the AWS IoT Core rules do: it stores the body of each message
// unmodified, sends it to the queue, sends job results to theirs, and gives what failed to the
// rules' error action. It takes a message over completely or returns an error, so the broker
// acknowledges only what is kept.
package bridge

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/google/uuid"

	"millrace/deploy/local/broker"
)

// Objects stores bodies; *s3.Client does.
type Objects interface {
	PutObject(ctx context.Context, in *s3.PutObjectInput, opts ...func(*s3.Options)) (*s3.PutObjectOutput, error)
}

// Queues sends messages; *sqs.Client does.
type Queues interface {
	SendMessage(ctx context.Context, in *sqs.SendMessageInput, opts ...func(*sqs.Options)) (*sqs.SendMessageOutput, error)
}

// Bridge is the rule engine.
type Bridge struct {
	Objects Objects
	Queues  Queues
	// Routes says where each factory's messages go.
	Routes *Routes
	// Metrics counts what was done.
	Metrics *Metrics
	// Log gets a line for each failed action.
	Log *slog.Logger
	// Now returns the time of receipt.
	Now func() time.Time
	// Retry is how often and how long an action is tried.
	Retry Retry
}

// action is one rule applied to one message.
type action struct {
	rule, kind, resource string
	do                   func(ctx context.Context) error
}

// Handle applies the rules that match the message's topic, all at once. It returns nil when each
// of them, or its error action, succeeded.
func (b *Bridge) Handle(ctx context.Context, m broker.Message) error {
	t, ok := parseTopic(m.Topic)
	if !ok {
		return nil
	}
	start := b.Now()
	b.Metrics.published.Inc()
	traceID := uuid.NewString()
	actions := b.actions(t, m, traceID, start)
	errs := make([]error, len(actions))
	var wg sync.WaitGroup
	for i, a := range actions {
		wg.Go(func() { errs[i] = b.run(ctx, t, a, m, traceID) })
	}
	wg.Wait()
	err := errors.Join(errs...)
	if err == nil {
		b.Metrics.seconds.Observe(b.Now().Sub(start).Seconds())
	}
	return err
}

func (b *Bridge) actions(t topic, m broker.Message, traceID string, receivedAt time.Time) []action {
	to := b.Routes.Of(t.factory)
	envelope := Envelope{Body: m.Payload, Topic: m.Topic, ReceivedAt: receivedAt.UnixMilli(), TraceID: traceID}
	if t.jobResult {
		return []action{b.send(RuleJobResults, to.JobResultsQueueURL, envelope)}
	}
	key := rawKey(t, m.Payload, traceID, receivedAt)
	return []action{
		b.store(to.Bucket, key, m.Payload),
		b.send(RuleTelemetry, to.TelemetryQueueURL, envelope),
	}
}

func (b *Bridge) store(bucket, key string, body []byte) action {
	return action{rule: RuleRaw, kind: actionS3, resource: bucket, do: func(ctx context.Context) error {
		_, err := b.Objects.PutObject(ctx, &s3.PutObjectInput{
			Bucket: &bucket, Key: &key, Body: bytes.NewReader(body), ContentType: aws.String("application/json"),
		})
		if err != nil {
			return fmt.Errorf("put object %s/%s: %w", bucket, key, err)
		}
		return nil
	}}
}

func (b *Bridge) send(rule, queueURL string, message any) action {
	return action{rule: rule, kind: actionSQS, resource: queueURL, do: func(ctx context.Context) error {
		body, err := json.Marshal(message)
		if err != nil {
			return fmt.Errorf("encode message for %s: %w", queueURL, err)
		}
		_, err = b.Queues.SendMessage(ctx, &sqs.SendMessageInput{QueueUrl: &queueURL, MessageBody: aws.String(string(body))})
		if err != nil {
			return fmt.Errorf("send to %s: %w", queueURL, err)
		}
		return nil
	}}
}

// run does one action and, when it failed for good, the rule's error action.
func (b *Bridge) run(ctx context.Context, t topic, a action, m broker.Message, traceID string) error {
	err := b.Retry.do(ctx, a.do)
	if err == nil {
		b.Metrics.done(a.rule)
		return nil
	}
	b.Metrics.failed.WithLabelValues(a.rule).Inc()
	b.Log.Warn("rule action failed", "rule", a.rule, "topic", m.Topic, "trace_id", traceID, "error", err)
	record := ErrorRecord{
		RuleName: a.rule, Topic: m.Topic, CloudWatchTraceID: traceID, ClientID: m.ClientID,
		Base64OriginalPayload: encode(m.Payload),
		Failures:              []Failure{{FailedAction: a.kind, FailedResource: a.resource, ErrorMessage: err.Error()}},
	}
	errorAction := b.send(a.rule, b.Routes.Of(t.factory).RuleErrorsQueueURL, record)
	if actionErr := b.Retry.do(ctx, errorAction.do); actionErr != nil {
		b.Metrics.lost.Inc()
		return fmt.Errorf("rule %s: %w", a.rule, errors.Join(err, fmt.Errorf("its error action: %w", actionErr)))
	}
	b.Metrics.errorRecords.Inc()
	return nil
}
