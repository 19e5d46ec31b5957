package provision

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"
)

// QueueAPI is the part of the SQS client that provisioning needs.
type QueueAPI interface {
	GetQueueUrl(context.Context, *sqs.GetQueueUrlInput, ...func(*sqs.Options)) (*sqs.GetQueueUrlOutput, error)
	CreateQueue(context.Context, *sqs.CreateQueueInput, ...func(*sqs.Options)) (*sqs.CreateQueueOutput, error)
	GetQueueAttributes(context.Context, *sqs.GetQueueAttributesInput, ...func(*sqs.Options)) (*sqs.GetQueueAttributesOutput, error)
}

// Queues names the product's queues.
type Queues struct {
	Telemetry, TelemetryDLQ, RuleErrors, JobResults string
}

// DefaultQueues are the names that the local stack and the IoT rules use.
var DefaultQueues = Queues{
	Telemetry: "millrace-telemetry", TelemetryDLQ: "millrace-telemetry-dlq",
	RuleErrors: "millrace-rule-errors", JobResults: "millrace-job-results",
}

const (
	// maxReceives is after how many receipts a message becomes a dead letter. It
	// is only a backstop: what can never be processed is quarantined at once, and
	// an outage must not turn messages into dead letters.
	maxReceives = 100
	// retention is SQS's longest: a weekend's outage loses nothing.
	retention = 14 * 24 * time.Hour
	// visibility hides a received message; consumers renew it.
	visibility = time.Minute
)

type queueParts struct {
	client QueueAPI
	name   string
	// deadLetters names the queue of dead letters; empty for none.
	deadLetters string
}

// QueuesOf settles the queues; that of dead letters comes first, because the
// telemetry queue names it.
func QueuesOf(ctx context.Context, client QueueAPI, create bool, queues Queues) ([]Finding, error) {
	all := []queueParts{
		{client: client, name: queues.TelemetryDLQ},
		{client: client, name: queues.Telemetry, deadLetters: queues.TelemetryDLQ},
		{client: client, name: queues.RuleErrors},
		{client: client, name: queues.JobResults},
	}
	parts := make([]part, len(all))
	for i, q := range all {
		parts[i] = part{"queue " + q.name, q.read, q.create}
	}
	return settleAll(ctx, create, parts...)
}

func (q queueParts) read(ctx context.Context) (string, bool, error) {
	url, err := q.url(ctx, q.name)
	if err != nil || url == "" {
		return "", false, err
	}
	got, err := q.attributes(ctx, url)
	if err != nil {
		return "", false, err
	}
	var found []string
	for _, name := range []types.QueueAttributeName{types.QueueAttributeNameMessageRetentionPeriod, types.QueueAttributeNameVisibilityTimeout} {
		if want := q.fixed()[string(name)]; got[string(name)] != want {
			found = append(found, fmt.Sprintf("%s is %s, not %s", name, got[string(name)], want))
		}
	}
	redrive, err := q.redriveDifference(ctx, got[string(types.QueueAttributeNameRedrivePolicy)])
	if redrive != "" {
		found = append(found, redrive)
	}
	slices.Sort(found)
	return strings.Join(found, "; "), true, err
}

func (q queueParts) create(ctx context.Context) error {
	attributes := q.fixed()
	if q.deadLetters != "" {
		policy, err := q.redrivePolicy(ctx)
		if err != nil {
			return err
		}
		attributes[string(types.QueueAttributeNameRedrivePolicy)] = policy
	}
	_, err := q.client.CreateQueue(ctx, &sqs.CreateQueueInput{QueueName: &q.name, Attributes: attributes})
	return err
}

func (q queueParts) fixed() map[string]string {
	seconds := func(d time.Duration) string { return strconv.FormatInt(int64(d/time.Second), 10) }
	return map[string]string{
		string(types.QueueAttributeNameMessageRetentionPeriod): seconds(retention),
		string(types.QueueAttributeNameVisibilityTimeout):      seconds(visibility),
		string(types.QueueAttributeNameSqsManagedSseEnabled):   "true",
	}
}

// redrive is SQS's RedrivePolicy.
type redrive struct {
	DeadLetterTargetARN string      `json:"deadLetterTargetArn"`
	MaxReceiveCount     json.Number `json:"maxReceiveCount"`
}

func (q queueParts) redrivePolicy(ctx context.Context) (string, error) {
	arn, err := q.deadLetterARN(ctx)
	if err != nil {
		return "", err
	}
	if arn == "" {
		return "", fmt.Errorf("queue %s does not exist", q.deadLetters)
	}
	policy, err := json.Marshal(redrive{DeadLetterTargetARN: arn, MaxReceiveCount: json.Number(strconv.Itoa(maxReceives))})
	return string(policy), err
}

func (q queueParts) redriveDifference(ctx context.Context, got string) (string, error) {
	if q.deadLetters == "" {
		return "", nil
	}
	want, err := q.deadLetterARN(ctx)
	switch {
	case err != nil:
		return "", err
	case want == "":
		return fmt.Sprintf("queue %s of its dead letters is missing", q.deadLetters), nil
	}
	var policy redrive
	// SQS answers the count as a number or as a string, as it was given.
	if got != "" {
		if err := json.Unmarshal([]byte(got), &policy); err != nil {
			return "redrive policy is unreadable", nil //nolint:nilerr // it is a finding
		}
	}
	if policy.DeadLetterTargetARN != want || policy.MaxReceiveCount.String() != strconv.Itoa(maxReceives) {
		return fmt.Sprintf("dead letters go to %q after %s receives, not to %q after %d", policy.DeadLetterTargetARN, policy.MaxReceiveCount, want, maxReceives), nil
	}
	return "", nil
}

// deadLetterARN is empty when there is no such queue yet.
func (q queueParts) deadLetterARN(ctx context.Context) (string, error) {
	url, err := q.url(ctx, q.deadLetters)
	if err != nil || url == "" {
		return "", err
	}
	attributes, err := q.attributes(ctx, url)
	return attributes[string(types.QueueAttributeNameQueueArn)], err
}

func (q queueParts) url(ctx context.Context, name string) (string, error) {
	out, err := q.client.GetQueueUrl(ctx, &sqs.GetQueueUrlInput{QueueName: &name})
	var missing *types.QueueDoesNotExist
	switch {
	case errors.As(err, &missing), codeOf(err) == "AWS.SimpleQueueService.NonExistentQueue":
		return "", nil
	case err != nil:
		return "", err
	}
	return aws.ToString(out.QueueUrl), nil
}

func (q queueParts) attributes(ctx context.Context, url string) (map[string]string, error) {
	out, err := q.client.GetQueueAttributes(ctx, &sqs.GetQueueAttributesInput{
		QueueUrl: &url, AttributeNames: []types.QueueAttributeName{types.QueueAttributeNameAll},
	})
	if err != nil {
		return nil, err
	}
	return out.Attributes, nil
}
