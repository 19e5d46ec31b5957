package sqs

import (
	"context"
	"io"
	"net/http"
	"net/url"
	"os"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/stretchr/testify/require"

	"millrace/deploy/local/internal/tooltest"
)

func serve(t testing.TB) (addr string, client *sqs.Client) {
	t.Helper()
	addr = tooltest.FreeAddr(t)
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- Serve(ctx, Config{Addr: addr}) }()
	t.Cleanup(func() {
		cancel()
		require.NoError(t, <-done)
	})
	tooltest.AwaitTCP(t, addr)
	return addr, sqs.New(sqs.Options{
		BaseEndpoint: aws.String("http://" + addr), Region: "ap-south-2", RetryMaxAttempts: 1,
		Credentials: credentials.NewStaticCredentialsProvider("key", "secret", ""),
	})
}

func TestQueuesAreNamedByTheAddressTheyAreReachedAt(t *testing.T) {
	addr, client := serve(t)
	want := QueueURL(addr, "named")
	created, err := client.CreateQueue(t.Context(), &sqs.CreateQueueInput{QueueName: aws.String("named")})
	require.NoError(t, err)
	require.Equal(t, want, aws.ToString(created.QueueUrl))
	got, err := client.GetQueueUrl(t.Context(), &sqs.GetQueueUrlInput{QueueName: aws.String("named")})
	require.NoError(t, err)
	require.Equal(t, want, aws.ToString(got.QueueUrl))
	listed, err := client.ListQueues(t.Context(), &sqs.ListQueuesInput{QueueNamePrefix: aws.String("named")})
	require.NoError(t, err)
	require.Equal(t, []string{want}, listed.QueueUrls)
}

func TestQueryProtocolNamesQueuesByTheirAddressToo(t *testing.T) {
	addr, client := serve(t)
	_, err := client.CreateQueue(t.Context(), &sqs.CreateQueueInput{QueueName: aws.String("query")})
	require.NoError(t, err)
	form := url.Values{"Action": {"GetQueueUrl"}, "QueueName": {"query"}, "Version": {"2012-11-05"}}
	response, err := http.PostForm("http://"+addr+"/", form)
	require.NoError(t, err)
	body, err := io.ReadAll(response.Body)
	require.NoError(t, err)
	require.NoError(t, response.Body.Close())
	if response.StatusCode == http.StatusOK {
		require.Contains(t, string(body), QueueURL(addr, "query"))
	}
	require.NotContains(t, string(body), kumoBase)
}

func TestMessagesPassUntouched(t *testing.T) {
	addr, client := serve(t)
	_, err := client.CreateQueue(t.Context(), &sqs.CreateQueueInput{QueueName: aws.String("pass")})
	require.NoError(t, err)
	queue := aws.String(QueueURL(addr, "pass"))
	body := "text that looks like a queue: " + kumoBase + Account + "/pass " + strings.Repeat("x", 200<<10)
	_, err = client.SendMessage(t.Context(), &sqs.SendMessageInput{QueueUrl: queue, MessageBody: &body})
	require.NoError(t, err)
	out, err := client.ReceiveMessage(t.Context(), &sqs.ReceiveMessageInput{QueueUrl: queue, WaitTimeSeconds: 1})
	require.NoError(t, err)
	require.Len(t, out.Messages, 1)
	require.Equal(t, body, aws.ToString(out.Messages[0].Body))
}

func TestServeRefusesADirectoryThatKumoDoesNotKnow(t *testing.T) {
	err := Serve(t.Context(), Config{Addr: tooltest.FreeAddr(t), Dir: t.TempDir()})
	require.ErrorContains(t, err, DataDirEnv)
}

func TestEnvOfADirectory(t *testing.T) {
	dir := t.TempDir()
	env, err := Config{Dir: dir}.Env()
	require.NoError(t, err)
	require.Equal(t, []string{DataDirEnv + "=" + dir, "KUMO_PERSIST_FLUSH_INTERVAL_MS=500"}, env)
	env, err = Config{}.Env()
	require.NoError(t, err)
	require.Empty(t, env)

	ok, err := Config{Dir: dir}.CheckEnv()
	require.NoError(t, err)
	require.False(t, ok)
	t.Setenv(DataDirEnv, dir)
	ok, err = Config{Dir: dir}.CheckEnv()
	require.NoError(t, err)
	require.True(t, ok)
	ok, err = Config{}.CheckEnv()
	require.NoError(t, err)
	require.False(t, ok, "queues in memory are not to be kept")
}

func TestProxySaysWhenKumoIsGone(t *testing.T) {
	gone := tooltest.FreeAddr(t)
	proxy, err := newProxy("http://"+gone, "127.0.0.1:1", nil)
	require.NoError(t, err)
	addr := tooltest.FreeAddr(t)
	server := &http.Server{Addr: addr, Handler: proxy}
	go func() { _ = server.ListenAndServe() }() // ends with Close
	t.Cleanup(func() { require.NoError(t, server.Close()) })
	tooltest.AwaitTCP(t, addr)
	response, err := http.Get("http://" + addr + "/")
	require.NoError(t, err)
	require.NoError(t, response.Body.Close())
	require.Equal(t, http.StatusServiceUnavailable, response.StatusCode)
}

func TestMain(m *testing.M) {
	// kumo reads it at the start, so a test cannot take it back.
	if os.Getenv(DataDirEnv) != "" {
		panic(DataDirEnv + " must not be set for these tests")
	}
	os.Exit(m.Run())
}

func BenchmarkSendMessage(b *testing.B) {
	addr, client := serve(b)
	_, err := client.CreateQueue(b.Context(), &sqs.CreateQueueInput{QueueName: aws.String("bench")})
	require.NoError(b, err)
	queue, body := aws.String(QueueURL(addr, "bench")), aws.String(strings.Repeat("x", 1300))
	for b.Loop() {
		if _, err := client.SendMessage(b.Context(), &sqs.SendMessageInput{QueueUrl: queue, MessageBody: body}); err != nil {
			b.Fatal(err)
		}
	}
}
