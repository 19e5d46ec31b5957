package main

import (
	"encoding/json"
	"net/http"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	ddbtypes "github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/stretchr/testify/require"

	"millrace/deploy/local/bridge"
)

func TestExecReturnsTheCommandsExitCode(t *testing.T) {
	t.Parallel()
	s := local(t, "exec", "--", "/bin/sh", "-c", "exit 7").start()
	require.Equal(t, 7, s.wait())
	s = local(t, "exec", "--", "/does/not/exist").start()
	require.Equal(t, 1, s.wait())
	require.Contains(t, s.said(), "/does/not/exist")
}

func TestExecLeavesNothingBehind(t *testing.T) {
	t.Parallel()
	s, env := onStack(t)
	dir := env["MILLRACE_LOCAL_DIR"]
	require.DirExists(t, dir)
	children := s.children()
	require.GreaterOrEqual(t, len(children), 7, "six stand-ins and the command")
	require.NoError(t, s.stdin.Close())
	require.Zero(t, s.wait())
	require.NoDirExists(t, dir)
	requireGone(t, children)
}

func TestInterruptedExecStopsTheCommandAndTheStack(t *testing.T) {
	t.Parallel()
	s, env := onStack(t)
	children := s.children()
	require.NoError(t, s.cmd.Process.Signal(syscall.SIGTERM))
	require.NotZero(t, s.wait())
	require.NoDirExists(t, env["MILLRACE_LOCAL_DIR"])
	requireGone(t, children)
}

func TestKilledExecTakesItsStackAlong(t *testing.T) {
	t.Parallel()
	s, env := onStack(t)
	t.Cleanup(func() { require.NoError(t, os.RemoveAll(env["MILLRACE_LOCAL_DIR"])) })
	children := s.children()
	require.NoError(t, s.cmd.Process.Kill())
	require.NoError(t, s.stdin.Close()) // ends what the command itself started
	s.wait()
	requireGone(t, children)
}

func TestPublishedMessageIsStoredAndQueued(t *testing.T) {
	t.Parallel()
	_, env := onStack(t)
	env.makeBucket(t, "millrace-data")
	queue := env.makeQueue(t, "millrace-telemetry")
	require.Equal(t, env["MILLRACE_TELEMETRY_QUEUE_URL"], queue)
	body := "{\n \"message_id\": \"factory-a:factory_state:worker2:2026-03-01T00:00:00Z\", \"x\": 1.0 }"
	require.NoError(t, env.publish(t, "factory-a", env.certificates("factory-a"), body))

	day := time.Now().UTC().Format("yyyy=2006/mm=01/dd=02")
	require.Equal(t, map[string]string{
		"raw/factory-a/factory_state/" + day + "/factory-a:factory_state:worker2:2026-03-01T00:00:00Z.json": body,
	}, env.objects(t, "millrace-data"))
	var envelope bridge.Envelope
	require.NoError(t, json.Unmarshal([]byte(env.receive(t, queue)), &envelope))
	require.Equal(t, body, string(envelope.Body))
	require.Equal(t, "aegis/factory-a/factory_state", envelope.Topic)
	require.WithinDuration(t, time.Now(), time.UnixMilli(envelope.ReceivedAt), time.Minute)
}

func TestTestsGetFactoriesAndDestinationsOfTheirOwn(t *testing.T) {
	t.Parallel()
	_, env := onStack(t)
	env.makeBucket(t, "own-bucket")
	queue := env.makeQueue(t, "own-queue")
	files := env.mustControl(t, "/iot/factories/factory-own", "")
	change, err := json.Marshal(map[string]string{"factory_id": "factory-own", "bucket": "own-bucket", "queue_url": queue})
	require.NoError(t, err)
	env.mustControl(t, "/iot/bridge", string(change))
	own := env.certificates("factory-own")
	require.Equal(t, map[string]string{"cert_file": own.Cert, "key_file": own.Key, "ca_file": own.CA}, files)

	require.NoError(t, env.publish(t, "factory-own", own, `{"message_id":"m1"}`))
	require.Len(t, env.objects(t, "own-bucket"), 1)
	require.Contains(t, env.receive(t, queue), "aegis/factory-own/factory_state")

	env.mustControl(t, "/kill/iot", "")
	require.NoError(t, env.publish(t, "factory-own", own, `{"message_id":"m2"}`))
	require.Len(t, env.objects(t, "own-bucket"), 2, "destinations outlive the broker")
}

func TestControlRefusesWhatItCannotDo(t *testing.T) {
	t.Parallel()
	_, env := onStack(t)
	for path, status := range map[string]int{
		"/kill/dynamodb":         http.StatusConflict, // in memory only
		"/kill/nobody":           http.StatusNotFound,
		"/iot/factories/worker":  http.StatusBadRequest,
		"/iot/factories/Factory": http.StatusBadRequest,
	} {
		got, answer := env.control(t, path, "")
		require.Equal(t, status, got, path)
		require.NotEmpty(t, answer["error"], path)
	}
	got, answer := env.control(t, "/iot/bridge", `{"buket":"x"}`)
	require.Equal(t, http.StatusBadRequest, got)
	require.Contains(t, answer["error"], "buket")
}

func TestStoppedStoresAreWhatTheRulesErrorActionIsFor(t *testing.T) {
	t.Parallel()
	_, env := onStack(t, "--durable")
	env.makeBucket(t, "millrace-data")
	queue := env.makeQueue(t, "millrace-telemetry")
	errors := env.makeQueue(t, "millrace-rule-errors")
	factory := env.certificates("factory-a")

	env.mustControl(t, "/stop/s3", "")
	require.NoError(t, env.publish(t, "factory-a", factory, `{"message_id":"m1"}`))
	require.Contains(t, env.receive(t, queue), "aegis/factory-a/factory_state")
	var record bridge.ErrorRecord
	require.NoError(t, json.Unmarshal([]byte(env.receive(t, errors)), &record))
	require.Equal(t, bridge.RuleRaw, record.RuleName)
	env.mustControl(t, "/start/s3", "")
	require.Empty(t, env.objects(t, "millrace-data"))

	env.mustControl(t, "/stop/sqs", "")
	require.Error(t, env.publish(t, "factory-a", factory, `{"message_id":"m2"}`), "acknowledged without a queue")
	env.mustControl(t, "/start/sqs", "")
	require.NoError(t, env.publish(t, "factory-a", factory, `{"message_id":"m2"}`))
	require.Contains(t, env.receive(t, queue), "aegis/factory-a/factory_state")
	require.Len(t, env.objects(t, "millrace-data"), 1)
}

func TestDurablePartsKeepTheirDataWhenKilled(t *testing.T) {
	t.Parallel()
	_, env := onStack(t, "--durable")
	env.makeTable(t, "kept")
	_, err := env.dynamodb().PutItem(t.Context(), &dynamodb.PutItemInput{
		TableName: aws.String("kept"), Item: map[string]ddbtypes.AttributeValue{"pk": &ddbtypes.AttributeValueMemberS{Value: "x"}},
	})
	require.NoError(t, err)
	env.makeBucket(t, "kept")
	_, err = env.s3().PutObject(t.Context(), &s3.PutObjectInput{Bucket: aws.String("kept"), Key: aws.String("k"), Body: strings.NewReader("v")})
	require.NoError(t, err)
	queue := env.makeQueue(t, "kept")
	_, err = env.sqs().SendMessage(t.Context(), &sqs.SendMessageInput{QueueUrl: &queue, MessageBody: aws.String("m")})
	require.NoError(t, err)
	time.Sleep(2 * time.Second) // more than the queues' pause between two snapshots

	for _, part := range []string{"dynamodb", "s3", "sqs", "temporal"} {
		require.Equal(t, "up", env.mustControl(t, "/kill/"+part, "")[part])
	}
	out, err := env.dynamodb().GetItem(t.Context(), &dynamodb.GetItemInput{
		TableName: aws.String("kept"), Key: map[string]ddbtypes.AttributeValue{"pk": &ddbtypes.AttributeValueMemberS{Value: "x"}},
	})
	require.NoError(t, err)
	require.NotEmpty(t, out.Item)
	require.Equal(t, map[string]string{"k": "v"}, env.objects(t, "kept"))
	require.Equal(t, "m", env.receive(t, queue))
}
