package main

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"millrace/edge/edgetest"
	"millrace/edge/outbox"
)

// These tests run the whole program against the local stack: run make test.

const asProgram = "EDGE_TEST_AS_PROGRAM"

// TestMain turns the test binary into the program itself, so that tests can
// start, stop and kill it.
func TestMain(m *testing.M) {
	if os.Getenv(asProgram) != "" {
		main()
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// start runs the program for a factory.
func start(t *testing.T, f *edgetest.Factory, root string, args ...string) *exec.Cmd {
	t.Helper()
	command := exec.Command(os.Args[0], args...)
	command.Stderr = os.Stderr
	command.Env = append(os.Environ(), asProgram+"=1",
		"MILLRACE_LOG_LEVEL=error", "MILLRACE_OUTBOX_DIR="+root, "MILLRACE_IOT_ENDPOINT="+f.Endpoint+"\n",
		"MILLRACE_IOT_CA_FILE="+f.CAFile, "MILLRACE_IOT_CERT_FILE="+f.CertFile, "MILLRACE_IOT_KEY_FILE="+f.KeyFile,
		"MILLRACE_PUBLISHER_BACKOFF_SECONDS=0.1", "MILLRACE_PUBLISHER_MAX_RATE=0",
	)
	require.NoError(t, command.Start())
	t.Cleanup(func() { command.Process.Kill() })
	return command
}

func TestLiveAKilledPublisherLosesNothing(t *testing.T) {
	f := edgetest.New(t)
	root := filepath.Join(t.TempDir(), "outbox")
	dir, err := outbox.Open(root, outbox.WithoutSync())
	require.NoError(t, err)
	ids := edgetest.Put(t, dir, f.ID, "m", 300)
	for _, left := range []int{250, 150, 50} {
		killed := start(t, f, root, "publish")
		require.Eventually(t, func() bool { return edgetest.Waiting(t, dir) <= left }, time.Minute, time.Millisecond)
		require.NoError(t, killed.Process.Kill())
		killed.Wait()
	}
	require.NoError(t, start(t, f, root, "publish", "--once").Wait())
	require.Zero(t, edgetest.Waiting(t, dir))
	require.ElementsMatch(t, ids, f.Stored(t), "each at least once, under one key")
}

func TestLiveASimulatedFactoryIsSeenByTheCloudAndStopsWhenAsked(t *testing.T) {
	f := edgetest.New(t)
	root := filepath.Join(t.TempDir(), "outbox")
	program := start(t, f, root, "simulate", "--factory", f.ID, "--profile", "factory-c", "--publish", "--seed", "3", "--speed", "30")
	require.Eventually(t, func() bool { return len(f.Stored(t)) > 20 }, time.Minute, 50*time.Millisecond)
	require.NoError(t, program.Process.Signal(syscall.SIGTERM))
	require.NoError(t, program.Wait(), "it ends well")

	sources := map[string]int{}
	for _, id := range f.Stored(t) {
		sources[strings.Split(id, ":")[1]]++
	}
	require.Positive(t, sources["factory_state"])
	require.Positive(t, sources["infra_state"])
}

func TestLiveOnceFailsWhenTheBrokerRefuses(t *testing.T) {
	f := edgetest.New(t)
	root := filepath.Join(t.TempDir(), "outbox")
	dir, err := outbox.Open(root)
	require.NoError(t, err)
	edgetest.Put(t, dir, f.ID, "m", 1)
	f.Endpoint = "127.0.0.1:1"
	err = start(t, f, root, "publish", "--once").Wait()
	var exit *exec.ExitError
	require.ErrorAs(t, err, &exit)
	require.Equal(t, 1, exit.ExitCode())
	require.Equal(t, 1, edgetest.Waiting(t, dir))
}

func TestLiveTheStoredBodyIsWhatWasSent(t *testing.T) {
	f := edgetest.New(t)
	root := filepath.Join(t.TempDir(), "outbox")
	dir, err := outbox.Open(root)
	require.NoError(t, err)
	ids := edgetest.Put(t, dir, f.ID, "m", 1)
	before := time.Now().UTC().Truncate(time.Second)
	require.NoError(t, start(t, f, root, "publish", "--once", "--instance-id", "publisher-9").Wait())
	body := f.Body(t, ids[0])
	var got struct {
		PublishedAt time.Time `json:"published_at"`
		Instance    string    `json:"data_plane_instance_id"`
	}
	require.NoError(t, json.Unmarshal(body, &got))
	require.Equal(t, "publisher-9", got.Instance)
	require.False(t, got.PublishedAt.Before(before))
	require.NotContains(t, string(body), "\n")
}
