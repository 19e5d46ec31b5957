package main

import (
	"io"
	"net/http"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"millrace/deploy/local/internal/tooltest"
)

func TestQueuesServedAloneKeepThemselvesInTheirDirectory(t *testing.T) {
	t.Parallel()
	addr, dir := tooltest.FreeAddr(t), filepath.Join(t.TempDir(), "queues")
	s := local(t, "sqs", "--addr", addr, "--dir", dir).start()
	tooltest.AwaitTCP(t, addr)
	env := environment{"AWS_ENDPOINT_URL_SQS": "http://" + addr, "AWS_REGION": "ap-south-2", "AWS_ACCESS_KEY_ID": "a", "AWS_SECRET_ACCESS_KEY": "b"}
	env.makeQueue(t, "kept")
	// The last change is kept by an orderly end at once.
	require.NoError(t, s.cmd.Process.Signal(os.Interrupt))
	require.Zero(t, s.wait())

	s = local(t, "sqs", "--addr", addr, "--dir", dir).start()
	tooltest.AwaitTCP(t, addr)
	queues, err := env.sqs().ListQueues(t.Context(), nil)
	require.NoError(t, err)
	require.Len(t, queues.QueueUrls, 1)
	require.False(t, s.ended())
}

func TestBrokerServedAlone(t *testing.T) {
	t.Parallel()
	addr, admin := tooltest.FreeAddr(t), tooltest.FreeAddr(t)
	queue := "http://127.0.0.1:1/q"
	local(t, "iot", "--addr", addr, "--admin-addr", admin, "--certs", t.TempDir(),
		"--telemetry-queue-url", queue, "--rule-errors-queue-url", queue, "--job-results-queue-url", queue).start()
	tooltest.AwaitTCP(t, admin)
	response, err := http.Get("http://" + admin + "/metrics")
	require.NoError(t, err)
	require.NoError(t, response.Body.Close())
	require.Equal(t, http.StatusOK, response.StatusCode)
}

func TestModelsServedAlone(t *testing.T) {
	t.Setenv("MILLRACE_LOCAL_BEDROCK_MODE", "throttle:3")
	addr := tooltest.FreeAddr(t)
	local(t, "bedrock", "--addr", addr).start()
	tooltest.AwaitTCP(t, addr)
	response, err := http.Get("http://" + addr + "/mode")
	require.NoError(t, err)
	body, err := io.ReadAll(response.Body)
	require.NoError(t, err)
	require.NoError(t, response.Body.Close())
	require.JSONEq(t, `{"mode":"throttle","count":3}`, string(body))
}

func TestStandInsRefuseAddressesThatOthersCanReach(t *testing.T) {
	for _, args := range [][]string{
		{"sqs", "--addr", "0.0.0.0:4566"},
		{"s3", "--addr", ":7070", "--dir", t.TempDir()},
		{"bedrock", "--addr", "0.0.0.0:4567"},
		{"iot", "--addr", "0.0.0.0:8883", "--certs", t.TempDir(), "--telemetry-queue-url=x", "--rule-errors-queue-url=x", "--job-results-queue-url=x"},
	} {
		t.Setenv("AWS_ACCESS_KEY_ID", "a")
		t.Setenv("AWS_SECRET_ACCESS_KEY", "b")
		t.Setenv("AWS_REGION", "c")
		s := local(t, args...).start()
		require.NotZero(t, s.wait(), args)
		require.Contains(t, s.said(), "loopback", args)
	}
}

func TestS3NeedsTheKeysItChecks(t *testing.T) {
	t.Setenv("AWS_SECRET_ACCESS_KEY", "")
	s := local(t, "s3", "--addr", tooltest.FreeAddr(t), "--dir", t.TempDir()).start()
	require.NotZero(t, s.wait())
	require.Contains(t, s.said(), "AWS_SECRET_ACCESS_KEY")
}
