// Package slack posts messages to Slack: by incoming webhook, or with a bot
// token so that a message can be edited and answered in its thread. It makes
// one attempt and says of each failure what a retry may do; it never repeats a
// webhook URL or a token in an error. Formats: Slack's "Sending messages using
// incoming webhooks", "chat.postMessage", "chat.update" and "Rate limits".
package slack

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptrace"
	"net/url"
	"strconv"
	"strings"
	"sync/atomic"
	"time"
)

// DefaultTimeout bounds one attempt, connecting included.
const DefaultTimeout = 4 * time.Second

// Failure is what a failed attempt means for the next one.
type Failure string

// The failures of an attempt.
const (
	// Unreachable means that no request was sent: trying again doubles nothing.
	Unreachable Failure = "unreachable"
	// Limited means that Slack asked to wait.
	Limited Failure = "rate_limited"
	// Unavailable means that Slack answered with an error of its own.
	Unavailable Failure = "unavailable"
	// Rejected means that Slack refused the request; the same request never
	// succeeds.
	Rejected Failure = "rejected"
	// Unknown means that a request was sent and its answer never came: Slack may
	// or may not have posted the message.
	Unknown Failure = "unknown"
)

// Error is a failed attempt. It holds no URL and no token.
type Error struct {
	Failure Failure
	// Status is the HTTP status, 0 without an answer.
	Status int
	// Code is Slack's own word for the error, such as invalid_payload.
	Code string
	// RetryAfter is how long Slack asked to wait.
	RetryAfter time.Duration
	// Cause is the network error, without the address it happened at.
	Cause string
}

// Error says what happened.
func (e *Error) Error() string {
	parts := []string{"slack " + string(e.Failure)}
	if e.Status != 0 {
		parts = append(parts, fmt.Sprintf("status %d", e.Status))
	}
	for _, part := range []string{e.Code, e.Cause} {
		if part != "" {
			parts = append(parts, part)
		}
	}
	return strings.Join(parts, ": ")
}

// Client makes attempts. The zero value is ready for use.
type Client struct {
	// HTTP may replace the transport; redirects are never followed.
	HTTP http.RoundTripper
	// Timeout bounds one attempt; 0 is DefaultTimeout.
	Timeout time.Duration
	// API is the base of the Web API; empty is Slack's.
	API string
}

// Webhook posts a text to an incoming webhook.
func (c Client) Webhook(ctx context.Context, webhook, text string) error {
	if err := checkURL(webhook); err != nil {
		return err
	}
	status, header, body, err := c.post(ctx, webhook, "", map[string]any{"text": text})
	if err != nil {
		return err
	}
	if status == http.StatusOK {
		return nil
	}
	return failure(status, header, strings.TrimSpace(string(body)))
}

// checkURL accepts https anywhere and http on this machine only.
func checkURL(text string) error {
	u, err := url.Parse(text)
	switch {
	case err != nil || u.Host == "":
		return &Error{Failure: Rejected, Cause: "the webhook is no URL"}
	case u.Scheme == "https", u.Scheme == "http" && loopback(u.Hostname()):
		return nil
	}
	return &Error{Failure: Rejected, Cause: "the webhook must be https"}
}

func loopback(host string) bool {
	ip := net.ParseIP(host)
	return host == "localhost" || (ip != nil && ip.IsLoopback())
}

// maxAnswer bounds what is read of an answer.
const maxAnswer = 64 * 1024

func (c Client) post(ctx context.Context, target, token string, payload any) (int, http.Header, []byte, error) {
	body, err := json.Marshal(payload)
	if err != nil {
		return 0, nil, nil, fmt.Errorf("encode slack message: %w", err)
	}
	timeout := c.Timeout
	if timeout == 0 {
		timeout = DefaultTimeout
	}
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	var sent atomic.Bool
	ctx = httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{WroteHeaders: func() { sent.Store(true) }})
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, target, bytes.NewReader(body))
	if err != nil {
		return 0, nil, nil, &Error{Failure: Rejected, Cause: "the address is no URL"}
	}
	// The transport must not repeat a request by itself, and an idle connection
	// that Slack closed must not look like a lost answer: messages are rare, each
	// gets a connection of its own.
	req.GetBody, req.Close = nil, true
	req.Header.Set("Content-Type", "application/json; charset=utf-8")
	if token != "" {
		req.Header.Set("Authorization", "Bearer "+token)
	}
	resp, err := c.roundTripper().RoundTrip(req)
	if err != nil {
		return 0, nil, nil, networkError(err, sent.Load())
	}
	defer resp.Body.Close() //nolint:errcheck // only read
	answer, err := io.ReadAll(io.LimitReader(resp.Body, maxAnswer))
	if err != nil && resp.StatusCode == http.StatusOK {
		return 0, nil, nil, networkError(err, true)
	}
	return resp.StatusCode, resp.Header, answer, nil
}

func (c Client) roundTripper() http.RoundTripper {
	if c.HTTP == nil {
		return http.DefaultTransport
	}
	return c.HTTP
}

// networkError tells a request that may have arrived from one that can't have.
func networkError(err error, sent bool) error {
	e := &Error{Failure: Unreachable, Cause: causeOf(err)}
	if sent {
		e.Failure = Unknown
	}
	return e
}

// causeOf names a network error without the address and path in its text.
func causeOf(err error) string {
	var op *net.OpError
	var dns *net.DNSError
	var timeout net.Error
	switch {
	case errors.Is(err, context.DeadlineExceeded), errors.As(err, &timeout) && timeout.Timeout():
		return "timeout"
	case errors.Is(err, context.Canceled):
		return "cancelled"
	case errors.As(err, &dns):
		return "host not found"
	case errors.As(err, &op):
		return op.Op + " failed"
	}
	return "connection failed"
}

// failure is what an answer that is no success means.
func failure(status int, header http.Header, code string) *Error {
	e := &Error{Status: status, Code: word(code)}
	switch {
	case status == http.StatusTooManyRequests:
		e.Failure, e.RetryAfter = Limited, retryAfter(header)
	case status >= http.StatusInternalServerError:
		e.Failure = Unavailable
	default:
		e.Failure = Rejected
	}
	return e
}

const (
	defaultRetryAfter = 30 * time.Second
	maxRetryAfter     = 10 * time.Minute
)

// retryAfter reads the seconds that Slack asks to wait.
func retryAfter(header http.Header) time.Duration {
	seconds, err := strconv.Atoi(header.Get("Retry-After"))
	if err != nil || seconds < 0 {
		return defaultRetryAfter
	}
	return min(time.Duration(seconds)*time.Second, maxRetryAfter)
}

const maxWord = 64

// word keeps of an answer only what is one of Slack's error words.
func word(text string) string {
	ok := len(text) <= maxWord && strings.IndexFunc(text, func(r rune) bool {
		return (r < 'a' || r > 'z') && (r < '0' || r > '9') && r != '_'
	}) < 0
	if !ok {
		return ""
	}
	return text
}
