package sqs

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"
	"github.com/sivchari/kumo"
	"github.com/stretchr/testify/require"
)

// journaled is a proxy that notes in j, before kumo or before a server that stands in for it.
func journaled(t testing.TB, j *journal, backend http.Handler) (addr string, client *sqs.Client) {
	t.Helper()
	var to string
	if backend == nil {
		server := kumo.NewServer()
		t.Cleanup(server.Close)
		to = server.URL
	} else {
		server := httptest.NewServer(backend)
		t.Cleanup(server.Close)
		to = server.URL
	}
	front := httptest.NewUnstartedServer(nil)
	addr = front.Listener.Addr().String()
	proxy, err := newProxy(to, addr, j)
	require.NoError(t, err)
	front.Config.Handler = proxy
	front.Start()
	t.Cleanup(front.Close)
	return addr, sqs.New(sqs.Options{
		BaseEndpoint: aws.String(front.URL), Region: "ap-south-2", RetryMaxAttempts: 1,
		Credentials: credentials.NewStaticCredentialsProvider("key", "secret", ""),
	})
}

func makeQueue(t testing.TB, client *sqs.Client, name string) *string {
	t.Helper()
	out, err := client.CreateQueue(t.Context(), &sqs.CreateQueueInput{QueueName: &name})
	require.NoError(t, err)
	return out.QueueUrl
}

func TestMessagesAreNotedBeforeTheyAreHandedOut(t *testing.T) {
	j := newJournal(t)
	_, client := journaled(t, j, nil)
	queue := makeQueue(t, client, "noted")
	body := strings.Repeat("<&>", 85<<10)
	_, err := client.SendMessage(t.Context(), &sqs.SendMessageInput{QueueUrl: queue, MessageBody: &body})
	require.NoError(t, err)
	require.Empty(t, j.ids(""))
	out, err := client.ReceiveMessage(t.Context(), &sqs.ReceiveMessageInput{QueueUrl: queue})
	require.NoError(t, err)
	require.Equal(t, body, aws.ToString(out.Messages[0].Body))
	require.Equal(t, []string{aws.ToString(out.Messages[0].MessageId)}, j.ids("/"+Account+"/noted"))
	_, err = client.DeleteMessage(t.Context(), &sqs.DeleteMessageInput{QueueUrl: queue, ReceiptHandle: aws.String("of no message")})
	require.Error(t, err)
	require.Len(t, j.ids(""), 1)
	_, err = client.DeleteMessage(t.Context(), &sqs.DeleteMessageInput{QueueUrl: queue, ReceiptHandle: out.Messages[0].ReceiptHandle})
	require.NoError(t, err)
	require.Empty(t, j.ids(""))
}

func TestMessagesThatCannotBeNotedAreNotHandedOut(t *testing.T) {
	j := newJournal(t)
	_, client := journaled(t, j, nil)
	queue := makeQueue(t, client, "unnoted")
	_, err := client.SendMessage(t.Context(), &sqs.SendMessageInput{QueueUrl: queue, MessageBody: aws.String("x")})
	require.NoError(t, err)
	require.NoError(t, j.close())
	_, err = client.ReceiveMessage(t.Context(), &sqs.ReceiveMessageInput{QueueUrl: queue})
	require.ErrorContains(t, err, "503")
}

func TestFIFOQueuesAreNotNoted(t *testing.T) {
	j := newJournal(t)
	_, client := journaled(t, j, nil)
	queue := makeQueue(t, client, "order.fifo")
	_, err := client.SendMessage(t.Context(), &sqs.SendMessageInput{
		QueueUrl: queue, MessageBody: aws.String("x"), MessageGroupId: aws.String("g"), MessageDeduplicationId: aws.String("d"),
	})
	require.NoError(t, err)
	out, err := client.ReceiveMessage(t.Context(), &sqs.ReceiveMessageInput{QueueUrl: queue})
	require.NoError(t, err)
	require.Len(t, out.Messages, 1)
	require.Empty(t, j.ids(""))
}

// post sends a request as it is.
func post(t *testing.T, addr, op, body string) (int, string) {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "http://"+addr, strings.NewReader(body))
	require.NoError(t, err)
	request.Header.Set("X-Amz-Target", "AmazonSQS."+op)
	response, err := http.DefaultClient.Do(request)
	require.NoError(t, err)
	defer response.Body.Close()
	answer, err := io.ReadAll(response.Body)
	require.NoError(t, err)
	return response.StatusCode, string(answer)
}

func TestRequestsThatCannotBeReadAreLeftToKumoAndLargeOnesRefused(t *testing.T) {
	addr, _ := journaled(t, newJournal(t), nil)
	status, answer := post(t, addr, opReceive, "{")
	require.Equal(t, http.StatusBadRequest, status)
	require.Contains(t, answer, "InvalidParameterValue")
	status, answer = post(t, addr, opDeleteBatch, strings.Repeat(" ", maxRequest+1))
	require.Equal(t, http.StatusRequestEntityTooLarge, status)
	require.Contains(t, answer, opDeleteBatch)
}

func TestAnswerTooLargeToBeNotedIsPassedOnWhole(t *testing.T) {
	large := `{"Messages":[{"MessageId":"1","Body":"` + strings.Repeat("x", maxAnswer) + `"}]}`
	j := newJournal(t)
	addr, _ := journaled(t, j, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, large) }))
	status, answer := post(t, addr, opReceive, `{"QueueUrl":"http://x/1/q"}`)
	require.Equal(t, http.StatusOK, status)
	require.True(t, large == answer, "%d bytes of %d", len(answer), len(large))
	require.Empty(t, j.ids(""))
}

func TestMessagesThatKumoHasAreNotSentAgainAndOthersAreKeptUntilTheyCanBe(t *testing.T) {
	server := kumo.NewServer()
	t.Cleanup(server.Close)
	j := newJournal(t)
	_, client := journaled(t, j, nil)
	queue := makeQueue(t, client, "again")
	lost, safe, nowhere := message("lost", "h1", "lost"), message("safe", "h2", "safe"), message("nowhere", "h3", "nowhere")
	lost.Queue, safe.Queue, nowhere.Queue = "/"+Account+"/again", "/"+Account+"/again", "/"+Account+"/missing"
	require.NoError(t, j.received([]line{lost, safe, nowhere}))

	require.NoError(t, j.restore(t.Context(), server.URL, map[string]bool{"safe": true}))
	out, err := client.ReceiveMessage(t.Context(), &sqs.ReceiveMessageInput{QueueUrl: queue, MaxNumberOfMessages: 10, MessageAttributeNames: []string{"All"}})
	require.NoError(t, err)
	require.Len(t, out.Messages, 1)
	require.Equal(t, "lost", aws.ToString(out.Messages[0].Body))
	require.Equal(t, "<b>", aws.ToString(out.Messages[0].MessageAttributes["a"].StringValue))
	require.ElementsMatch(t, []string{"nowhere", aws.ToString(out.Messages[0].MessageId)}, reopen(t, j.path).ids(""))
	require.Error(t, j.restore(t.Context(), "http://127.0.0.1:1", nil))
}

func TestWaitingMessagesOfASnapshot(t *testing.T) {
	dir := t.TempDir()
	ids, err := waiting(dir)
	require.NoError(t, err)
	require.Empty(t, ids)
	file := filepath.Join(dir, kumoFile)
	require.NoError(t, os.WriteFile(file, []byte(`{"queues":{"u":{"queue":{},"messages":[{"MessageID":"1"},{"MessageID":"2"}]},"v":{"messages":null}}}`), 0o600))
	ids, err = waiting(dir)
	require.NoError(t, err)
	require.Equal(t, map[string]bool{"1": true, "2": true}, ids)
	require.NoError(t, os.WriteFile(file, []byte(`{`), 0o600))
	_, err = waiting(dir)
	require.Error(t, err)
}

// BenchmarkReceiveAndDelete takes ten messages of a usual size and deletes them, as the worker does;
// the sends before it aren't counted.
func BenchmarkReceiveAndDelete(b *testing.B) {
	for _, noted := range []bool{false, true} {
		b.Run(fmt.Sprintf("journal=%t", noted), func(b *testing.B) {
			var j *journal
			if noted {
				j = newJournal(b)
			}
			addr, client := journaled(b, j, nil)
			name := fmt.Sprintf("bench-%t-%d", noted, b.N)
			makeQueue(b, client, name)
			url, body := QueueURL(addr, name), strings.Repeat("x", 1300)
			for b.Loop() {
				b.StopTimer()
				require.NoError(b, sendTen(b, client, url, body))
				b.StartTimer()
				require.NoError(b, takeTen(b, client, url))
			}
			b.ReportMetric(10*float64(b.N)/b.Elapsed().Seconds(), "msg/s")
		})
	}
}

func sendTen(b *testing.B, client *sqs.Client, url, body string) error {
	in := &sqs.SendMessageBatchInput{QueueUrl: &url}
	for i := range 10 {
		in.Entries = append(in.Entries, types.SendMessageBatchRequestEntry{Id: aws.String(fmt.Sprint(i)), MessageBody: &body})
	}
	_, err := client.SendMessageBatch(b.Context(), in)
	return err
}

func takeTen(b *testing.B, client *sqs.Client, url string) error {
	out, err := client.ReceiveMessage(b.Context(), &sqs.ReceiveMessageInput{QueueUrl: &url, MaxNumberOfMessages: 10})
	if err != nil {
		return err
	}
	in := &sqs.DeleteMessageBatchInput{QueueUrl: &url}
	for i, m := range out.Messages {
		in.Entries = append(in.Entries, types.DeleteMessageBatchRequestEntry{Id: aws.String(fmt.Sprint(i)), ReceiptHandle: m.ReceiptHandle})
	}
	deleted, err := client.DeleteMessageBatch(b.Context(), in)
	if err == nil && len(deleted.Successful) != 10 {
		err = fmt.Errorf("%d of 10 deleted", len(deleted.Successful))
	}
	return err
}
