// Package queue takes messages from SQS queues, at least once each, and puts
// messages into them.
package queue

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"
)

// API is the part of the SQS client that queues need.
type API interface {
	ReceiveMessage(context.Context, *sqs.ReceiveMessageInput, ...func(*sqs.Options)) (*sqs.ReceiveMessageOutput, error)
	DeleteMessageBatch(context.Context, *sqs.DeleteMessageBatchInput, ...func(*sqs.Options)) (*sqs.DeleteMessageBatchOutput, error)
	ChangeMessageVisibilityBatch(context.Context, *sqs.ChangeMessageVisibilityBatchInput, ...func(*sqs.Options)) (*sqs.ChangeMessageVisibilityBatchOutput, error)
	SendMessageBatch(context.Context, *sqs.SendMessageBatchInput, ...func(*sqs.Options)) (*sqs.SendMessageBatchOutput, error)
	GetQueueAttributes(context.Context, *sqs.GetQueueAttributesInput, ...func(*sqs.Options)) (*sqs.GetQueueAttributesOutput, error)
}

// Queue is one SQS queue.
type Queue struct {
	Client API
	URL    string
}

// Message is a received message; it comes back when it is not deleted before
// its visibility ends.
type Message struct {
	ID            string
	Body          string
	ReceiptHandle string
}

// MaxBatch is SQS's limit for one request.
const MaxBatch = 10

// Receive waits up to wait for at most n messages (1 to 10) and hides them for
// the visibility time.
func (q Queue) Receive(ctx context.Context, n int, wait, visibility time.Duration) ([]Message, error) {
	out, err := q.Client.ReceiveMessage(ctx, &sqs.ReceiveMessageInput{
		QueueUrl: &q.URL, MaxNumberOfMessages: int32(n),
		WaitTimeSeconds: int32(wait / time.Second), VisibilityTimeout: int32(visibility / time.Second),
	})
	if err != nil {
		return nil, fmt.Errorf("receive messages: %w", err)
	}
	messages := make([]Message, len(out.Messages))
	for i, m := range out.Messages {
		messages[i] = Message{ID: *m.MessageId, Body: *m.Body, ReceiptHandle: *m.ReceiptHandle}
	}
	return messages, nil
}

// Delete removes messages for good. One that could not be removed comes back,
// which is harmless to consumers that take a message twice.
func (q Queue) Delete(ctx context.Context, messages []Message) error {
	return inBatches(messages, func(batch []Message) error {
		in := &sqs.DeleteMessageBatchInput{QueueUrl: &q.URL}
		for i, m := range batch {
			id := strconv.Itoa(i)
			in.Entries = append(in.Entries, types.DeleteMessageBatchRequestEntry{Id: &id, ReceiptHandle: &m.ReceiptHandle})
		}
		out, err := q.Client.DeleteMessageBatch(ctx, in)
		if err != nil {
			return fmt.Errorf("delete messages: %w", err)
		}
		return failures("delete messages", out.Failed)
	})
}

// Extend hides messages for another visibility time; 0 shows them at once.
func (q Queue) Extend(ctx context.Context, messages []Message, visibility time.Duration) error {
	return inBatches(messages, func(batch []Message) error {
		in := &sqs.ChangeMessageVisibilityBatchInput{QueueUrl: &q.URL}
		for i, m := range batch {
			id := strconv.Itoa(i)
			in.Entries = append(in.Entries, types.ChangeMessageVisibilityBatchRequestEntry{
				Id: &id, ReceiptHandle: &m.ReceiptHandle, VisibilityTimeout: int32(visibility / time.Second),
			})
		}
		out, err := q.Client.ChangeMessageVisibilityBatch(ctx, in)
		if err != nil {
			return fmt.Errorf("extend visibility: %w", err)
		}
		return failures("extend visibility", out.Failed)
	})
}

// Limits of one send request, in bytes.
const maxSendBytes = 256 * 1024

// Send puts bodies into the queue, in as few requests as SQS's limits allow.
func (q Queue) Send(ctx context.Context, bodies []string) error {
	for len(bodies) > 0 {
		n, size := 0, 0
		for n < len(bodies) && n < MaxBatch && (n == 0 || size+len(bodies[n]) <= maxSendBytes) {
			size += len(bodies[n])
			n++
		}
		if err := q.sendBatch(ctx, bodies[:n]); err != nil {
			return err
		}
		bodies = bodies[n:]
	}
	return nil
}

func (q Queue) sendBatch(ctx context.Context, bodies []string) error {
	in := &sqs.SendMessageBatchInput{QueueUrl: &q.URL}
	for i := range bodies {
		id := strconv.Itoa(i)
		in.Entries = append(in.Entries, types.SendMessageBatchRequestEntry{Id: &id, MessageBody: &bodies[i]})
	}
	out, err := q.Client.SendMessageBatch(ctx, in)
	if err != nil {
		return fmt.Errorf("send messages: %w", err)
	}
	return failures("send messages", out.Failed)
}

// Depth is how many messages a queue holds, as SQS estimates it.
type Depth struct {
	Visible  int64 `json:"messages_visible"`
	InFlight int64 `json:"messages_in_flight"`
}

// Depth reads the queue's estimated depth.
func (q Queue) Depth(ctx context.Context) (Depth, error) {
	out, err := q.Client.GetQueueAttributes(ctx, &sqs.GetQueueAttributesInput{
		QueueUrl: &q.URL,
		AttributeNames: []types.QueueAttributeName{
			types.QueueAttributeNameApproximateNumberOfMessages, types.QueueAttributeNameApproximateNumberOfMessagesNotVisible,
		},
	})
	if err != nil {
		return Depth{}, fmt.Errorf("read queue depth: %w", err)
	}
	visible, errVisible := strconv.ParseInt(out.Attributes[string(types.QueueAttributeNameApproximateNumberOfMessages)], 10, 64)
	inFlight, errInFlight := strconv.ParseInt(out.Attributes[string(types.QueueAttributeNameApproximateNumberOfMessagesNotVisible)], 10, 64)
	if err := errors.Join(errVisible, errInFlight); err != nil {
		return Depth{}, fmt.Errorf("read queue depth: %w", err)
	}
	return Depth{Visible: visible, InFlight: inFlight}, nil
}

// inBatches does all batches whatever becomes of one; the first error stands for
// all.
func inBatches(messages []Message, do func([]Message) error) error {
	var first error
	for len(messages) > 0 {
		n := min(len(messages), MaxBatch)
		first = cmp.Or(first, do(messages[:n]))
		messages = messages[n:]
	}
	return first
}

func failures(operation string, failed []types.BatchResultErrorEntry) error {
	if len(failed) == 0 {
		return nil
	}
	code := ""
	if failed[0].Code != nil {
		code = *failed[0].Code
	}
	return fmt.Errorf("%s: %d refused, first: %s", operation, len(failed), code)
}
