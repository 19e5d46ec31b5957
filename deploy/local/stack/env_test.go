package stack

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"millrace/deploy/local/bedrock"
	"millrace/deploy/local/pki"
)

func newStack(t *testing.T) *Stack {
	t.Helper()
	s := &Stack{Dir: filepath.Join(t.TempDir(), "it's here")}
	require.NoError(t, s.Ports.Resolve())
	var err error
	s.authority, err = pki.Open(s.certs(), time.Now)
	require.NoError(t, err)
	return s
}

func lookup(env []string, name string) (value string, found bool) {
	for _, v := range env { // the last one wins, as for a process
		if n, text, _ := strings.Cut(v, "="); n == name {
			value, found = text, true
		}
	}
	return value, found
}

func TestForeignVariablesDoNotReachThePrograms(t *testing.T) {
	for _, name := range []string{"AWS_PROFILE", "AWS_SESSION_TOKEN", "AWS_CONFIG_FILE", "TEMPORAL_API_KEY", "TEMPORAL_TLS", "KUMO_DATA_DIR"} {
		t.Setenv(name, "theirs")
	}
	t.Setenv("AWS_ACCESS_KEY_ID", "theirs")
	t.Setenv("MILLRACE_LOG_LEVEL", "debug")
	env := newStack(t).environ("MILLRACE_METRICS_ADDRESS=x")
	for _, v := range env {
		require.NotContains(t, v, "theirs")
	}
	for name, want := range map[string]string{"AWS_ACCESS_KEY_ID": accessKey, "MILLRACE_LOG_LEVEL": "debug", "MILLRACE_METRICS_ADDRESS": "x"} {
		got, found := lookup(env, name)
		require.True(t, found, name)
		require.Equal(t, want, got)
	}
}

func TestTheStandInsModelIsNamedUnlessThePersonChoseOne(t *testing.T) {
	t.Setenv(modelVariable, "")
	got, _ := lookup(newStack(t).environ(), modelVariable)
	require.Equal(t, bedrock.ModelID, got)
	t.Setenv(modelVariable, "anthropic.claude-x")
	got, _ = lookup(newStack(t).environ(), modelVariable)
	require.Equal(t, "anthropic.claude-x", got)
}

func TestAllEndpointsAreOnLoopback(t *testing.T) {
	for _, v := range newStack(t).variables() {
		if strings.Contains(v.Name, "ENDPOINT") || strings.Contains(v.Name, "ADDRESS") || strings.HasSuffix(v.Name, "_URL") {
			require.Contains(t, v.Value, "127.0.0.1:", v.Name)
		}
	}
}

func TestEnvFileIsGoodForAShell(t *testing.T) {
	s := newStack(t)
	file := s.path("env")
	require.NoError(t, s.writeEnv(file))
	info, err := os.Stat(file)
	require.NoError(t, err)
	require.Equal(t, os.FileMode(0o600), info.Mode().Perm())
	cmd := exec.Command("/bin/sh", "-c", `. "$0" && env`, file)
	cmd.Env = []string{"AWS_PROFILE=theirs", "AWS_SESSION_TOKEN=theirs", "PATH=" + os.Getenv("PATH")}
	out, err := cmd.Output()
	require.NoError(t, err)
	require.NotContains(t, string(out), "theirs")
	env := strings.Split(string(out), "\n")
	for _, v := range s.variables() {
		got, found := lookup(env, v.Name)
		require.True(t, found, v.Name)
		require.Equal(t, v.Value, got, v.Name)
	}
}

func TestEachFactoryGetsItsOwnCertificateAndOutbox(t *testing.T) {
	s := newStack(t)
	seen := make(map[string]bool)
	for i, part := range s.edges() {
		cert, _ := lookup(part.Env, "MILLRACE_IOT_CERT_FILE")
		require.Equal(t, s.authority.Files(Factories[i]).Cert, cert)
		outbox, _ := lookup(part.Env, "MILLRACE_OUTBOX_DIR")
		require.True(t, strings.HasPrefix(outbox, s.Dir))
		require.False(t, seen[outbox])
		seen[outbox] = true
	}
	require.Len(t, seen, 3)
}
