package sqs

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
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
func post(t testing.TB, addr, op, body string) (int, string) {
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

// BenchmarkReceiveAndDelete sends ten messages of a usual size, takes them and deletes them, as the
// worker does, with and without a journal.
func BenchmarkReceiveAndDelete(b *testing.B) {
	for _, noted := range []bool{false, true} {
		b.Run(fmt.Sprintf("journal=%t", noted), func(b *testing.B) {
			var j *journal
			if noted {
				j = newJournal(b)
			}
			addr, client := journaled(b, j, nil)
			url := *makeQueue(b, client, fmt.Sprintf("bench-%t", noted))
			send := batch(b, url, func(i int) string {
				return fmt.Sprintf(`{"Id":"%d","MessageBody":"%s"}`, i, strings.Repeat("x", 1300))
			})
			var spent time.Duration
			for b.Loop() {
				post(b, addr, "SendMessageBatch", send)
				begin := time.Now()
				takeTen(b, addr, url)
				spent += time.Since(begin)
			}
			b.ReportMetric(float64(spent.Microseconds())/float64(b.N), "µs/ten")
		})
	}
}

func takeTen(b *testing.B, addr, url string) {
	_, answer := post(b, addr, opReceive, fmt.Sprintf(`{"QueueUrl":%q,"MaxNumberOfMessages":10}`, url))
	var got struct {
		Messages []struct{ ReceiptHandle string }
	}
	require.NoError(b, json.Unmarshal([]byte(answer), &got))
	require.Len(b, got.Messages, 10)
	_, answer = post(b, addr, opDeleteBatch, batch(b, url, func(i int) string {
		return fmt.Sprintf(`{"Id":"%d","ReceiptHandle":"%s"}`, i, got.Messages[i].ReceiptHandle)
	}))
	require.NotContains(b, answer, "Failed")
}

func batch(b *testing.B, url string, entry func(int) string) string {
	b.Helper()
	entries := make([]string, 10)
	for i := range entries {
		entries[i] = entry(i)
	}
	return fmt.Sprintf(`{"QueueUrl":%q,"Entries":[%s]}`, url, strings.Join(entries, ","))
}
