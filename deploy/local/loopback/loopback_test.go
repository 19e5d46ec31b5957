package loopback

import (
	"context"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestOnlyLoopbackAddressesAreTaken(t *testing.T) {
	for addr, ok := range map[string]bool{
		"127.0.0.1:80": true, "127.9.9.9:1": true, "[::1]:80": true, "localhost:80": true,
		":80": false, "0.0.0.0:80": false, "192.168.1.1:80": false, "example.com:80": false, "127.0.0.1": false, "": false,
	} {
		require.Equal(t, ok, CheckAddr(addr) == nil, "%q", addr)
	}
}

func TestGuardRefusesWebPages(t *testing.T) {
	handler := Guard(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusOK) }))
	tests := map[string]struct {
		host, origin string
		status       int
	}{
		"program":                   {host: "127.0.0.1:7290", status: http.StatusOK},
		"page of another site":      {host: "127.0.0.1:7290", origin: "https://example.com", status: http.StatusForbidden},
		"page by a rebound name":    {host: "evil.example:7290", status: http.StatusForbidden},
		"page of another local app": {host: "localhost:7290", origin: "http://localhost:3000", status: http.StatusForbidden},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			r := httptest.NewRequest(http.MethodPost, "/", nil)
			r.Host = test.host
			if test.origin != "" {
				r.Header.Set("Origin", test.origin)
			}
			w := httptest.NewRecorder()
			handler.ServeHTTP(w, r)
			require.Equal(t, test.status, w.Code)
		})
	}
}

func TestReadIsStrictAndBounded(t *testing.T) {
	type body struct {
		A string `json:"a"`
	}
	read := func(text string) (body, error) {
		var b body
		var err error
		r := httptest.NewRequest(http.MethodPost, "/", strings.NewReader(text))
		r.Host = "127.0.0.1:1"
		Guard(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { err = Read(r, &b) })).ServeHTTP(httptest.NewRecorder(), r)
		return b, err
	}
	got, err := read(`{"a":"x"}`)
	require.NoError(t, err)
	require.Equal(t, "x", got.A)
	_, err = read("")
	require.NoError(t, err)
	_, err = read(`{"b":1}`)
	require.ErrorContains(t, err, "unknown field")
	_, err = read(`{"a":"` + strings.Repeat("x", maxBody) + `"}`)
	require.ErrorContains(t, err, "too large")
}

func TestServeEndsWithItsContext(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() {
		done <- Serve(ctx, listener, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			Answer(w, http.StatusTeapot, map[string]int{"n": 1})
		}))
	}()
	response, err := http.Get("http://" + listener.Addr().String())
	require.NoError(t, err)
	require.NoError(t, response.Body.Close())
	require.Equal(t, http.StatusTeapot, response.StatusCode)
	cancel()
	require.NoError(t, <-done)
}
