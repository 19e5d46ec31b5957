// Package signalcmd has the operator's commands for signals: send, generate,
// count and look at what an application used.
package signalcmd

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"time"
)

// Command has what can be done about signals.
type Command struct {
	Send      SendCommand      `cmd:"" help:"Send signals from a file, or from standard input (-): one JSON object a line."`
	Generate  GenerateCommand  `cmd:"" help:"Print signals of a made-up application, for load tests: pipe them into signals send -."`
	Rollup    RollupCommand    `cmd:"" help:"Count pending signals now, or those received in a range."`
	Reconcile ReconcileCommand `cmd:"" help:"Check that the aggregates of a day are what its signals add up to."`
	Usage     UsageCommand     `cmd:"" help:"Show what an application used in a month, by day."`
}

// Gateway is where signals are sent and read.
type Gateway struct {
	URL   string `name:"url" help:"Address of the gateway." default:"http://127.0.0.1:8080" env:"MILLRACE_URL"`
	Token string `help:"Access token; better given by the variable, which other users of the machine can't see." env:"MILLRACE_TOKEN" required:""`
}

// Validate refuses an address that is none.
func (g Gateway) Validate() error {
	if u, err := url.Parse(g.URL); err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
		return errors.New("--url (MILLRACE_URL): must be an address such as http://127.0.0.1:8080")
	}
	return nil
}

const (
	requestTimeout = 30 * time.Second
	maxAnswer      = 16 << 20
	// attempts bound how often a request is tried: signals may be sent again.
	attempts  = 6
	firstWait = 500 * time.Millisecond
)

var web = &http.Client{Timeout: requestTimeout}

// refusedError is an answer that trying again can't mend.
type refusedError struct {
	status int
	detail string
}

// Error says what the gateway answered.
func (e *refusedError) Error() string {
	return fmt.Sprintf("gateway answered %d: %s", e.status, e.detail)
}

// call makes a request until it is answered and reads the answer. Over budget, or
// where the gateway does not answer, it waits and tries again.
func (g Gateway) call(ctx context.Context, method, path string, body []byte, into any) error {
	wait := firstWait
	for attempt := 1; ; attempt++ {
		after, err := g.try(ctx, method, path, body, into)
		var refused *refusedError
		if err == nil || errors.As(err, &refused) || attempt == attempts {
			return err
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(max(wait, after)):
		}
		wait *= 2
	}
}

func (g Gateway) try(ctx context.Context, method, path string, body []byte, into any) (after time.Duration, err error) {
	request, err := http.NewRequestWithContext(ctx, method, strings.TrimSuffix(g.URL, "/")+path, strings.NewReader(string(body)))
	if err != nil {
		return 0, fmt.Errorf("make request: %w", err)
	}
	request.Header.Set("Authorization", "Bearer "+g.Token)
	request.Header.Set("Content-Type", "application/json")
	response, err := web.Do(request)
	if err != nil {
		return 0, fmt.Errorf("ask gateway: %w", err)
	}
	defer response.Body.Close() //nolint:errcheck // it was read
	answer, err := io.ReadAll(io.LimitReader(response.Body, maxAnswer))
	switch {
	case err != nil:
		return 0, fmt.Errorf("read answer: %w", err)
	case response.StatusCode == http.StatusTooManyRequests || response.StatusCode >= http.StatusInternalServerError:
		after, _ := time.ParseDuration(response.Header.Get("Retry-After") + "s")
		return after, fmt.Errorf("gateway answered %d", response.StatusCode)
	case response.StatusCode >= http.StatusBadRequest:
		var problem struct {
			Detail string `json:"detail"`
		}
		_ = json.Unmarshal(answer, &problem) // an answer that is no problem has no detail
		return 0, &refusedError{response.StatusCode, problem.Detail}
	}
	if err := json.Unmarshal(answer, into); err != nil {
		return 0, fmt.Errorf("read answer: %w", err)
	}
	return 0, nil
}
