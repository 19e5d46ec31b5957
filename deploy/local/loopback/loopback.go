// Package loopback guards the small HTTP interfaces of the local stack, which have no
// authentication: they listen on a loopback address only, and answer no web page.
package loopback

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"time"
)

// maxBody bounds a request; the largest is a handful of URLs.
const maxBody = 64 << 10

// ErrNotLoopback is returned for an address that other machines could reach.
var ErrNotLoopback = errors.New("the local stack listens on loopback addresses only")

// CheckAddr refuses a host:port whose host is not a loopback address.
func CheckAddr(addr string) error {
	host, _, err := net.SplitHostPort(addr)
	if err != nil {
		return fmt.Errorf("address %q: %w", addr, err)
	}
	if ip := net.ParseIP(host); host == "localhost" || ip != nil && ip.IsLoopback() {
		return nil
	}
	return fmt.Errorf("address %q: %w", addr, ErrNotLoopback)
}

// Guard lets only requests pass that come from a program on this machine: a web page's requests
// carry an Origin or a foreign Host, and must not control the stack.
func Guard(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Origin") != "" || CheckAddr(r.Host) != nil {
			Fail(w, http.StatusForbidden, errors.New("only programs on this machine may use this interface"))
			return
		}
		r.Body = http.MaxBytesReader(w, r.Body, maxBody)
		next.ServeHTTP(w, r)
	})
}

// Serve serves handler, guarded, on listener until ctx ends.
func Serve(ctx context.Context, listener net.Listener, handler http.Handler) error {
	server := &http.Server{Handler: Guard(handler), ReadHeaderTimeout: 5 * time.Second}
	done := make(chan error, 1)
	go func() { done <- server.Serve(listener) }()
	select {
	case err := <-done:
		return fmt.Errorf("serve on %s: %w", listener.Addr(), err)
	case <-ctx.Done():
		if err := server.Close(); err != nil {
			return fmt.Errorf("close %s: %w", listener.Addr(), err)
		}
		return nil
	}
}

// Read decodes a JSON request strictly into v. An empty body leaves v alone.
func Read(r *http.Request, v any) error {
	decoder := json.NewDecoder(r.Body)
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(v); err != nil && !errors.Is(err, io.EOF) {
		return fmt.Errorf("request body: %w", err)
	}
	return nil
}

// Answer writes v as JSON.
func Answer(w http.ResponseWriter, status int, v any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	// The client hung up when this fails: there is nobody to tell.
	_ = json.NewEncoder(w).Encode(v)
}

// Fail writes err as JSON.
func Fail(w http.ResponseWriter, status int, err error) {
	Answer(w, status, map[string]string{"error": err.Error()})
}
