// Package tooltest gives tests the tools of the repository's bin directory.
package tooltest

import (
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"millrace/deploy/local/toolchain"
)

// BinDir returns the repository's bin directory.
func BinDir(t testing.TB) string {
	t.Helper()
	dir, err := os.Getwd()
	require.NoError(t, err)
	for ; dir != filepath.Dir(dir); dir = filepath.Dir(dir) {
		if module, err := os.ReadFile(filepath.Join(dir, "go.mod")); err == nil && strings.HasPrefix(string(module), "module millrace\n") {
			return filepath.Join(dir, "bin")
		}
	}
	t.Fatal("these tests run inside the repository only")
	return ""
}

// Tools returns the tools, and fails the test with the way to get them when they are missing.
func Tools(t testing.TB) toolchain.Tools {
	t.Helper()
	tools, err := toolchain.Find(BinDir(t))
	require.NoError(t, err)
	return tools
}

// DynamoDB runs a DynamoDB stand-in in memory for one test and returns its URL.
func DynamoDB(t testing.TB) string {
	t.Helper()
	addr := FreeAddr(t)
	_, port, err := net.SplitHostPort(addr)
	require.NoError(t, err)
	cmd := exec.Command(Tools(t).Dynoxide, "--host", "127.0.0.1", "--port", port)
	require.NoError(t, cmd.Start())
	t.Cleanup(func() {
		require.NoError(t, cmd.Process.Kill())
		_ = cmd.Wait() // reports the kill
	})
	AwaitTCP(t, addr)
	return "http://" + addr
}

// FreeAddr returns a loopback address that is free now.
func FreeAddr(t testing.TB) string {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	require.NoError(t, listener.Close())
	return listener.Addr().String()
}

// AwaitTCP waits until addr accepts connections.
func AwaitTCP(t testing.TB, addr string) {
	t.Helper()
	require.Eventually(t, func() bool {
		conn, err := net.Dial("tcp", addr)
		return err == nil && conn.Close() == nil
	}, 20*time.Second, 5*time.Millisecond, addr)
}
