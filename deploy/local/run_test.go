package main

import (
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"millrace/deploy/local/internal/tooltest"
)

var freePorts = []string{
	"--temporal-port=0", "--temporal-ui-port=0", "--dynamodb-port=0", "--s3-port=0", "--sqs-port=0", "--bedrock-port=0",
	"--iot-port=0", "--iot-admin-port=0", "--gateway-port=0", "--worker-port=0", "--control-port=0",
}

func running(t *testing.T, dir string, flags ...string) *session {
	t.Helper()
	return local(t, append(append([]string{"run", "--dir", dir}, freePorts...), flags...)...)
}

func TestRunKeepsItsDataOverARestart(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "with 'quote' and space")
	s := running(t, dir, "--stand-ins-only").start()
	s.awaitSaid("the local stack is up")
	env := readEnv(t, filepath.Join(dir, "env"))
	// The quote is escaped for the shell, which this test is not.
	env["MILLRACE_LOCAL_DIR"] = dir
	env.makeTable(t, "kept")
	env.makeBucket(t, "kept")
	env.makeQueue(t, "kept")
	ca, err := os.ReadFile(env.certificates("factory-a").CA)
	require.NoError(t, err)
	children := s.children()

	began := time.Now()
	require.NoError(t, s.cmd.Process.Signal(os.Interrupt))
	require.Zero(t, s.wait(), "an interrupt is the normal end")
	require.Less(t, time.Since(began), 15*time.Second)
	requireGone(t, children)

	s = running(t, dir, "--stand-ins-only").start()
	s.awaitSaid("the local stack is up")
	env = readEnv(t, filepath.Join(dir, "env"))
	tables, err := env.dynamodb().ListTables(t.Context(), nil)
	require.NoError(t, err)
	require.Equal(t, []string{"kept"}, tables.TableNames)
	buckets, err := env.s3().ListBuckets(t.Context(), nil)
	require.NoError(t, err)
	require.Len(t, buckets.Buckets, 1)
	queues, err := env.sqs().ListQueues(t.Context(), nil)
	require.NoError(t, err)
	require.Len(t, queues.QueueUrls, 1)
	require.True(t, strings.HasPrefix(queues.QueueUrls[0], env["AWS_ENDPOINT_URL_SQS"]), "named by the new port")
	again, err := os.ReadFile(filepath.Join(dir, "certs", "ca.crt"))
	require.NoError(t, err)
	require.Equal(t, ca, again)
}

func TestOneStackADirectory(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	s := running(t, dir, "--stand-ins-only").start()
	s.awaitSaid("the local stack is up")
	second := running(t, dir, "--stand-ins-only").start()
	require.Equal(t, 1, second.wait())
	require.Contains(t, second.said(), "process "+strconv.Itoa(s.cmd.Process.Pid))
	require.Contains(t, second.said(), "--dir")
}

func TestPortInUseIsNamedBeforeAnythingStarts(t *testing.T) {
	t.Parallel()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer listener.Close()
	port := strconv.Itoa(listener.Addr().(*net.TCPAddr).Port)
	dir := t.TempDir()
	s := running(t, dir, "--stand-ins-only", "--s3-port="+port).start()
	require.Equal(t, 1, s.wait())
	require.Contains(t, s.said(), "port "+port+" (S3) is in use")
	require.Contains(t, s.said(), "--s3-port")
	require.Contains(t, s.said(), "MILLRACE_LOCAL_S3_PORT")
	require.NoDirExists(t, filepath.Join(dir, "logs"))
}

// withFakes is a bin directory with the tools and the fake programs.
func withFakes(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	self, err := os.Executable()
	require.NoError(t, err)
	for name := range fakes {
		require.NoError(t, os.Symlink(self, filepath.Join(dir, name)))
	}
	tools := tooltest.Tools(t)
	require.NoError(t, os.Symlink(tools.Temporal, filepath.Join(dir, "temporal")))
	require.NoError(t, os.Symlink(tools.Dynoxide, filepath.Join(dir, "dynoxide")))
	return dir
}

func started(t *testing.T, bin string) []string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(bin, traceFile))
	require.NoError(t, err)
	return strings.Split(strings.TrimSpace(string(text)), "\n")
}

func TestRunStartsTheProgramsInOrderAndSaysWhenDataIsLive(t *testing.T) {
	t.Parallel()
	bin := withFakes(t)
	dir := t.TempDir()
	s := running(t, dir, "--bin-dir", bin).start()
	s.awaitSaid("all factories live")
	lines := started(t, bin)
	require.Len(t, lines, 11)
	require.Equal(t, "starter provision --create --no-streams cert=worker.crt", lines[0])
	require.Equal(t, "starter schedules apply cert=worker.crt", lines[1])
	require.Contains(t, lines[2], "starter token keys init")
	require.Contains(t, lines[3], "starter token create")
	require.Equal(t, "a-ready-token", readEnv(t, filepath.Join(dir, "env"))["MILLRACE_TOKEN"])
	require.Contains(t, s.said(), "a-ready-token")
	lines = lines[2:]
	require.ElementsMatch(t, []string{"worker cert=worker.crt", "worker --queues scripts cert=worker.crt", "gateway cert=worker.crt"}, lines[2:5])
	require.Equal(t, "starter up cert=worker.crt", lines[5])
	require.ElementsMatch(t, []string{
		"edge simulate --factory factory-a --publish cert=factory-a.crt",
		"edge simulate --factory factory-b --publish cert=factory-b.crt",
		"edge simulate --factory factory-c --publish cert=factory-c.crt",
	}, lines[6:])
	for _, text := range []string{"Temporal web UI", "/v1/factories", "try, in another terminal", "live data from factory-b"} {
		require.Contains(t, s.said(), text)
	}
	require.NoError(t, s.cmd.Process.Signal(syscall.SIGTERM))
	require.Zero(t, s.wait())
}

func TestFailedProvisioningEndsTheRunWithItsLog(t *testing.T) {
	t.Parallel()
	bin := withFakes(t)
	require.NoError(t, os.WriteFile(filepath.Join(bin, failFile), []byte("provision"), 0o600))
	s := running(t, t.TempDir(), "--bin-dir", bin).start()
	s.awaitSaid("temporal")
	children := s.children()
	require.Equal(t, 1, s.wait())
	require.Contains(t, s.said(), "provision: exit status 1")
	require.Contains(t, s.said(), "the bucket belongs to somebody else")
	requireGone(t, children)
	require.Len(t, started(t, bin), 1)
}

func TestMissingProgramsAndToolsAreNamed(t *testing.T) {
	t.Setenv("PATH", "/nowhere")
	s := local(t, "run", "--dir", t.TempDir(), "--bin-dir", t.TempDir())
	require.Equal(t, 1, s.start().wait())
	for _, text := range []string{"tool temporal", "tool dynoxide", "make tools"} {
		require.Contains(t, s.said(), text)
	}
	bin := withFakes(t)
	require.NoError(t, os.Remove(filepath.Join(bin, "gateway")))
	s = local(t, "run", "--dir", t.TempDir(), "--bin-dir", bin)
	require.Equal(t, 1, s.start().wait())
	require.Contains(t, s.said(), "program gateway is not in "+bin+": run `make build`")
}
