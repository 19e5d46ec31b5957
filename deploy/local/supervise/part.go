// Package supervise runs child processes as one unit: each has a log file and a health check, is
// restarted with growing pauses when it dies, ends the unit when it dies too often, and is
// stopped with all others in reverse order. On Linux the children die with the supervisor, even
// when that is killed.
package supervise

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"os"
	"time"
)

// Probe reports whether a part does its work; it must return when ctx ends.
type Probe func(ctx context.Context) error

// Part is one child process.
type Part struct {
	// Name identifies the part and names its log file.
	Name string
	// Command is the program and its arguments.
	Command []string
	// Env is the whole environment.
	Env []string
	// Dir is the working directory; empty is the supervisor's own.
	Dir string
	// Ready tells when the part is up, and is asked from time to time afterwards. A part without
	// one is up as soon as it runs.
	Ready Probe
	// ReadyWithin is how long the part may take to be up; 0 means 30 seconds.
	ReadyWithin time.Duration
	// Grace is how long the part may take to stop before it is killed; 0 means 5 seconds.
	Grace time.Duration
	// Stage groups parts that are stopped at the same time; higher stages are stopped first.
	Stage int
}

func (p Part) readyWithin() time.Duration { return orDefault(p.ReadyWithin, 30*time.Second) }

func (p Part) grace() time.Duration { return orDefault(p.Grace, 5*time.Second) }

func orDefault(d, otherwise time.Duration) time.Duration {
	if d == 0 {
		return otherwise
	}
	return d
}

// HTTPProbe is ready when a GET of url answers with a status below 500.
func HTTPProbe(url string) Probe {
	return func(ctx context.Context) error {
		request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
		if err != nil {
			return fmt.Errorf("probe %s: %w", url, err)
		}
		response, err := http.DefaultClient.Do(request)
		if err != nil {
			return fmt.Errorf("probe: %w", err)
		}
		if err := response.Body.Close(); err != nil {
			return fmt.Errorf("probe %s: %w", url, err)
		}
		if response.StatusCode >= http.StatusInternalServerError {
			return fmt.Errorf("probe %s: %s", url, response.Status)
		}
		return nil
	}
}

// TCPProbe is ready when addr accepts a connection.
func TCPProbe(addr string) Probe {
	return func(ctx context.Context) error {
		conn, err := (&net.Dialer{}).DialContext(ctx, "tcp", addr)
		if err != nil {
			return fmt.Errorf("probe: %w", err)
		}
		return conn.Close()
	}
}

// FileProbe is ready when the file name exists.
func FileProbe(name string) Probe {
	return func(context.Context) error {
		_, err := os.Stat(name)
		return err
	}
}
