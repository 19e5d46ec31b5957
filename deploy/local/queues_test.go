package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"
	"github.com/stretchr/testify/require"

	"millrace/deploy/local/internal/tooltest"
	queues "millrace/deploy/local/sqs"
)

// queueProcess is `local sqs` with a directory.
type queueProcess struct {
	*session
	addr, dir string
	env       environment
}

func startQueues(t *testing.T) *queueProcess {
	t.Helper()
	addr := tooltest.FreeAddr(t)
	p := &queueProcess{addr: addr, dir: filepath.Join(t.TempDir(), "queues"), env: environment{
		"AWS_ENDPOINT_URL_SQS": "http://" + addr, "AWS_REGION": "ap-south-2", "AWS_ACCESS_KEY_ID": "a", "AWS_SECRET_ACCESS_KEY": "b",
	}}
	p.startAgain(t)
	return p
}

func (p *queueProcess) startAgain(t *testing.T) {
	t.Helper()
	p.session = local(t, "sqs", "--addr", p.addr, "--dir", p.dir).start()
	tooltest.AwaitTCP(t, p.addr)
}

func (p *queueProcess) kill(t *testing.T) {
	t.Helper()
	require.NoError(t, p.cmd.Process.Kill())
	p.wait()
}

func (p *queueProcess) interrupt(t *testing.T) {
	t.Helper()
	require.NoError(t, p.cmd.Process.Signal(os.Interrupt))
	require.Zero(t, p.wait())
}

// flushed waits for kumo's snapshot.
func flushed() { time.Sleep(2 * queues.FlushEvery) }

func (e environment) send(t *testing.T, url string, from, to int) {
	t.Helper()
	for n := from; n < to; n++ {
		_, err := e.sqs().SendMessage(t.Context(), &sqs.SendMessageInput{
			QueueUrl: &url, MessageBody: aws.String(fmt.Sprintf("<message> %d", n)),
			MessageAttributes: map[string]types.MessageAttributeValue{
				"text": {DataType: aws.String("String"), StringValue: aws.String(fmt.Sprint("n&", n))},
				"raw":  {DataType: aws.String("Binary"), BinaryValue: []byte{0, 255, byte(n)}},
			},
		})
		require.NoError(t, err)
	}
}

func (e environment) take(t *testing.T, url string, most int32) []types.Message {
	t.Helper()
	out, err := e.sqs().ReceiveMessage(t.Context(), &sqs.ReceiveMessageInput{
		QueueUrl: &url, MaxNumberOfMessages: most, VisibilityTimeout: 600,
		MessageAttributeNames: []string{"All"}, MessageSystemAttributeNames: []types.MessageSystemAttributeName{"All"},
	})
	require.NoError(t, err)
	return out.Messages
}

// takeAll takes all messages and checks that each is as it was sent.
func (e environment) takeAll(t *testing.T, url string) (bodies []string) {
	t.Helper()
	for {
		got := e.take(t, url, 10)
		if len(got) == 0 {
			return bodies
		}
		for _, m := range got {
			n := strings.TrimPrefix(aws.ToString(m.Body), "<message> ")
			require.Equal(t, "n&"+n, aws.ToString(m.MessageAttributes["text"].StringValue))
			require.Equal(t, "Binary", aws.ToString(m.MessageAttributes["raw"].DataType))
			require.Equal(t, n, fmt.Sprint(m.MessageAttributes["raw"].BinaryValue[2]))
			bodies = append(bodies, aws.ToString(m.Body))
		}
	}
}

func (e environment) deleteThree(t *testing.T, url string, taken []types.Message) {
	t.Helper()
	_, err := e.sqs().DeleteMessage(t.Context(), &sqs.DeleteMessageInput{QueueUrl: &url, ReceiptHandle: taken[0].ReceiptHandle})
	require.NoError(t, err)
	out, err := e.sqs().DeleteMessageBatch(t.Context(), &sqs.DeleteMessageBatchInput{QueueUrl: &url, Entries: []types.DeleteMessageBatchRequestEntry{
		{Id: aws.String("a"), ReceiptHandle: taken[1].ReceiptHandle},
		{Id: aws.String("b"), ReceiptHandle: aws.String("of no message")},
		{Id: aws.String("c"), ReceiptHandle: taken[2].ReceiptHandle},
	}})
	require.NoError(t, err)
	require.Len(t, out.Successful, 2)
	require.Len(t, out.Failed, 1)
}

func TestMessagesInFlightSurviveTheEndOfTheQueues(t *testing.T) {
	t.Parallel()
	ends := map[string]func(*queueProcess, *testing.T){"killed": (*queueProcess).kill, "stopped": (*queueProcess).interrupt}
	for name, end := range ends {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := startQueues(t)
			url := p.env.makeQueue(t, "work")
			p.env.send(t, url, 0, 20)
			taken := p.env.take(t, url, 10)
			require.Len(t, taken, 10)
			p.env.deleteThree(t, url, taken)
			deleted := []string{aws.ToString(taken[0].Body), aws.ToString(taken[1].Body), aws.ToString(taken[2].Body)}
			flushed()
			end(p, t)

			// A kill right after the start, before a snapshot, must cost nothing either.
			p.startAgain(t)
			p.kill(t)
			p.startAgain(t)
			bodies := p.env.takeAll(t, url)
			var want []string
			for n := range 20 {
				want = append(want, fmt.Sprintf("<message> %d", n))
			}
			require.ElementsMatch(t, want, append(bodies, deleted...), "17 others, each once")
		})
	}
}

func TestMessageThatIsVisibleAgainIsNotDoubledByRestarts(t *testing.T) {
	t.Parallel()
	p := startQueues(t)
	url := p.env.makeQueue(t, "work")
	p.env.send(t, url, 0, 2)
	for _, m := range p.env.take(t, url, 10) {
		_, err := p.env.sqs().ChangeMessageVisibility(t.Context(), &sqs.ChangeMessageVisibilityInput{QueueUrl: &url, ReceiptHandle: m.ReceiptHandle})
		require.NoError(t, err)
	}
	require.Len(t, p.env.take(t, url, 1), 1) // which puts the other back into its queue
	for range 3 {
		flushed()
		p.interrupt(t)
		p.startAgain(t)
	}
	require.ElementsMatch(t, []string{"<message> 0", "<message> 1"}, p.env.takeAll(t, url))
}

func TestPurgedMessagesDoNotComeBack(t *testing.T) {
	t.Parallel()
	p := startQueues(t)
	purged, deleted, other := p.env.makeQueue(t, "purged"), p.env.makeQueue(t, "deleted"), p.env.makeQueue(t, "other")
	for _, url := range []string{purged, deleted, other} {
		p.env.send(t, url, 0, 3)
		require.Len(t, p.env.take(t, url, 2), 2)
	}
	_, err := p.env.sqs().PurgeQueue(t.Context(), &sqs.PurgeQueueInput{QueueUrl: &purged})
	require.NoError(t, err)
	_, err = p.env.sqs().DeleteQueue(t.Context(), &sqs.DeleteQueueInput{QueueUrl: &deleted})
	require.NoError(t, err)
	flushed()
	p.kill(t)
	p.startAgain(t)
	p.env.makeQueue(t, "deleted")
	require.Empty(t, p.env.takeAll(t, purged))
	require.Empty(t, p.env.takeAll(t, deleted))
	require.Len(t, p.env.takeAll(t, other), 3)
}

func TestDeadLetterIsMovedAndStaysThere(t *testing.T) {
	t.Parallel()
	p := startQueues(t)
	dead := p.env.makeQueue(t, "dead")
	got, err := p.env.sqs().GetQueueAttributes(t.Context(), &sqs.GetQueueAttributesInput{
		QueueUrl: &dead, AttributeNames: []types.QueueAttributeName{types.QueueAttributeNameQueueArn},
	})
	require.NoError(t, err)
	created, err := p.env.sqs().CreateQueue(t.Context(), &sqs.CreateQueueInput{QueueName: aws.String("work"), Attributes: map[string]string{
		"RedrivePolicy": fmt.Sprintf(`{"deadLetterTargetArn":%q,"maxReceiveCount":3}`, got.Attributes["QueueArn"]),
	}})
	require.NoError(t, err)
	work := aws.ToString(created.QueueUrl)
	p.env.send(t, work, 7, 8)
	for i := range 3 { // given back at once, or by the end of its visibility
		out, err := p.env.sqs().ReceiveMessage(t.Context(), &sqs.ReceiveMessageInput{QueueUrl: &work, VisibilityTimeout: 1})
		require.NoError(t, err)
		require.Len(t, out.Messages, 1, i)
		if i == 1 {
			time.Sleep(1100 * time.Millisecond)
			continue
		}
		_, err = p.env.sqs().ChangeMessageVisibility(t.Context(), &sqs.ChangeMessageVisibilityInput{QueueUrl: &work, ReceiptHandle: out.Messages[0].ReceiptHandle})
		require.NoError(t, err)
	}
	require.Empty(t, p.env.take(t, work, 1), "a fourth receipt is one too many")
	flushed()
	p.kill(t)
	p.startAgain(t)
	require.Empty(t, p.env.takeAll(t, work))
	require.Equal(t, []string{"<message> 7"}, p.env.takeAll(t, dead))
}
