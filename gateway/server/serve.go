package server

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"time"
)

// Timeouts of connections. An answer may take as long as an operation and the
// sending of its body; for answers that go on the limit is lifted.
const (
	headerTimeout = 5 * time.Second
	readTimeout   = 30 * time.Second
	writeTimeout  = 60 * time.Second
	idleTimeout   = 2 * time.Minute
	maxHeader     = 16 << 10
	// stopTimeout is what requests under way have to finish at a stop.
	stopTimeout = 20 * time.Second
)

// Serve answers requests on a listener until ctx ends; then it lets those under
// way finish, and what they left behind.
func (s *Server) Serve(ctx context.Context, listener net.Listener) error {
	httpServer := &http.Server{
		Handler: s, ReadHeaderTimeout: headerTimeout, ReadTimeout: readTimeout, WriteTimeout: writeTimeout,
		IdleTimeout: idleTimeout, MaxHeaderBytes: maxHeader,
	}
	failed := make(chan error, 1)
	go func() { failed <- httpServer.Serve(listener) }()
	select {
	case err := <-failed:
		return fmt.Errorf("serve HTTP: %w", err)
	case <-ctx.Done():
	}
	s.stop()
	grace, cancel := context.WithTimeout(context.Background(), stopTimeout)
	defer cancel()
	return errors.Join(httpServer.Shutdown(grace), s.Close(grace))
}
