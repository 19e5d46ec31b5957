package supervise

import (
	"net"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestHTTPProbe(t *testing.T) {
	status := http.StatusOK
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(status) }))
	require.NoError(t, HTTPProbe(server.URL)(t.Context()))
	status = http.StatusNotFound
	require.NoError(t, HTTPProbe(server.URL)(t.Context()), "a server that answers is up")
	status = http.StatusServiceUnavailable
	require.Error(t, HTTPProbe(server.URL)(t.Context()))
	server.Close()
	require.Error(t, HTTPProbe(server.URL)(t.Context()))
}

func TestTCPProbe(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	require.NoError(t, TCPProbe(listener.Addr().String())(t.Context()))
	require.NoError(t, listener.Close())
	require.Error(t, TCPProbe(listener.Addr().String())(t.Context()))
}

func TestFileProbe(t *testing.T) {
	require.Error(t, FileProbe(filepath.Join(t.TempDir(), "none"))(t.Context()))
	require.NoError(t, FileProbe(t.TempDir())(t.Context()))
}
