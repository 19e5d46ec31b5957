package artifact

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/require"

	"millrace/domain/artifact"
	storage "millrace/storage/artifact"
	workflows "millrace/workflows/artifact"
)

func TestAResponseIsKeptUpToTheLimitOfOutput(t *testing.T) {
	const size = 3 << 20
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		_, _ = w.Write([]byte(strings.Repeat("x", size))) // a client that has enough hangs up
	}))
	defer server.Close()
	host, err := url.Parse(server.URL)
	require.NoError(t, err)
	for limit, want := range map[int64]int64{size + 1: size, size: size, size - 1: size - 1, 1000: 1000} {
		t.Run(fmt.Sprint(limit), func(t *testing.T) {
			d := newDesk(t)
			r := requestOf(server.URL, "")
			r.Spec.Limits.OutputBytes = limit
			v := d.submit(r)
			result, err := d.executor(Requests{Hosts: []string{host.Hostname()}, AllowPrivate: true}).Execute(t.Context(), runRequest(v, 1, artifact.Primary))
			require.NoError(t, err)
			require.Equal(t, workflows.RunSucceeded, result.Status)
			run, err := d.Store.Run(t.Context(), "fix", runID(1))
			require.NoError(t, err)
			require.Equal(t, want < size, run.Truncated)
			stored, err := d.Store.Stat(t.Context(), storage.RunKey(runID(1), storage.StdoutFile), "")
			require.NoError(t, err)
			require.Equal(t, want, stored.Size)
		})
	}
}

// TestAServersStatusIsCut has a server with a status line of its own.
func TestAServersStatusIsCut(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer listener.Close() //nolint:errcheck // it is over
	go func() {
		for {
			c, err := listener.Accept()
			if err != nil {
				return
			}
			if request, err := http.ReadRequest(bufio.NewReader(c)); err == nil {
				_, _ = io.Copy(io.Discard, request.Body)
				fmt.Fprintf(c, "HTTP/1.1 200 f\x1b[31mine %s\r\nContent-Length: 0\r\n\r\n", strings.Repeat("ü", 250_000))
			}
			_ = c.Close() // the client has all
		}
	}()
	d := newDesk(t)
	v := d.submit(requestOf("http://"+listener.Addr().String(), ""))
	result, err := d.executor(Requests{Hosts: []string{"127.0.0.1"}, AllowPrivate: true}).Execute(t.Context(), runRequest(v, 1, artifact.Primary))
	require.NoError(t, err)
	require.Equal(t, workflows.RunSucceeded, result.Status, result.Detail)
	require.LessOrEqual(t, len(result.Detail), maxDetail)
	require.True(t, utf8.ValidString(result.Detail))
	require.True(t, strings.HasPrefix(result.Detail, "200 f [31mine üüü"), result.Detail)
}
