package main

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"millrace/storage/storagetest"
)

// lines is a log that can be read while it is written.
type lines struct {
	lock sync.Mutex
	text bytes.Buffer
}

func (l *lines) Write(p []byte) (int, error) {
	l.lock.Lock()
	defer l.lock.Unlock()
	return l.text.Write(p)
}

func (l *lines) String() string {
	l.lock.Lock()
	defer l.lock.Unlock()
	return l.text.String()
}

func freeAddress(t *testing.T) string {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer listener.Close() //nolint:errcheck // only its address is wanted
	return listener.Addr().String()
}

func TestTheProgramServesAndStops(t *testing.T) {
	t.Setenv("MILLRACE_TOKEN_KEYS", "")
	cfg, err := parse(t)
	require.NoError(t, err)
	cfg.MonitoringTable = storagetest.Table(t, storagetest.Monitoring).Name
	cfg.FactoryStatusTable = storagetest.Table(t, storagetest.Factory).Name
	cfg.Address, cfg.MetricsAddress = freeAddress(t), freeAddress(t)
	var log lines
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- run(ctx, cfg, slog.New(slog.NewTextHandler(&log, nil))) }()

	var ready struct{ Status string }
	require.Eventually(t, func() bool {
		body, err := fetch(t, "http://"+cfg.Address+"/readyz")
		return err == nil && json.Unmarshal(body, &ready) == nil && ready.Status == "ok"
	}, 10*time.Second, 20*time.Millisecond)
	metrics, err := fetch(t, "http://"+cfg.MetricsAddress+"/metrics")
	require.NoError(t, err)
	require.Contains(t, string(metrics), `millrace_aws_calls_total{operation="GetItem",service="DynamoDB"}`)
	stop()
	require.NoError(t, <-ended)
	require.Contains(t, log.String(), "no key ring")
}

func fetch(t *testing.T, url string) ([]byte, error) {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, http.NoBody)
	require.NoError(t, err)
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return nil, err
	}
	defer response.Body.Close() //nolint:errcheck // nothing to do about it
	return io.ReadAll(response.Body)
}

func TestTheProgramSaysWhyItCanNotStart(t *testing.T) {
	file := filepath.Join(t.TempDir(), "keys.json")
	require.NoError(t, os.WriteFile(file, []byte(`{"current":"k1","keys":{"k1":"dG9vIHNob3J0"}}`), 0o600))
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer listener.Close() //nolint:errcheck // the test is over
	for name, c := range map[string]struct{ flag, want string }{
		"no such key file":  {"--token-keys-file=" + file + ".absent", "read key ring"},
		"bad key":           {"--token-keys-file=" + file, "keys.k1 must be 32 bytes"},
		"no artifact key":   {"--signing-key=env:MILLRACE_ABSENT_KEY", "MILLRACE_ABSENT_KEY"},
		"no provenance key": {"--provenance-signing-key=env:MILLRACE_ABSENT_KEY", "MILLRACE_ABSENT_KEY"},
		"port in use":       {"--address=" + listener.Addr().String(), "address already in use"},
	} {
		t.Run(name, func(t *testing.T) {
			cfg, err := parse(t, c.flag)
			require.NoError(t, err)
			err = run(t.Context(), cfg, slog.New(slog.DiscardHandler))
			require.ErrorContains(t, err, c.want)
			require.False(t, strings.Contains(err.Error(), "dG9vIHNob3J0"), "the error shows the key")
		})
	}
}
