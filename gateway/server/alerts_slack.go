package server

import (
	"bufio"
	"encoding/json"
	"fmt"
	"html"
	"html/template"
	"io"
	"net"
	"net/http"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	"millrace/domain/alert"
)

// SlackSink stands for Slack on a developer's machine: it takes what alerts post
// to a webhook and shows it. It serves this machine only and is never mounted
// elsewhere.
type SlackSink struct {
	now  func() time.Time
	lock sync.Mutex
	file *os.File
	kept []slackMessage
}

// slackMessage is one message that was posted.
type slackMessage struct {
	Scope string    `json:"scope"`
	At    time.Time `json:"at"`
	Text  string    `json:"text"`
}

// Bounds of the sink.
const (
	maxSlackMessages = 200
	maxSlackBody     = 512 << 10
)

// NewSlackSink is a sink that keeps messages in a file, one JSON object a line,
// so that they survive a restart; an empty name keeps them in memory only.
func NewSlackSink(file string, now func() time.Time) (*SlackSink, error) {
	s := &SlackSink{now: now}
	if file == "" {
		return s, nil
	}
	opened, err := os.OpenFile(file, os.O_CREATE|os.O_RDWR|os.O_APPEND, 0o600) //nolint:gosec // the operator names the file
	if err != nil {
		return nil, fmt.Errorf("open slack messages: %w", err)
	}
	s.file = opened
	lines := bufio.NewScanner(opened)
	lines.Buffer(nil, 2*maxSlackBody)
	for lines.Scan() {
		var m slackMessage
		if json.Unmarshal(lines.Bytes(), &m) == nil {
			s.keep(m)
		}
	}
	if err := lines.Err(); err != nil {
		return nil, fmt.Errorf("read slack messages: %w", err)
	}
	return s, nil
}

// Close closes the file.
func (s *SlackSink) Close() error {
	if s.file == nil {
		return nil
	}
	return s.file.Close()
}

// Routes adds POST /dev/slack/{scope}, which takes messages as Slack's webhooks
// do, and GET /dev/slack, which shows them as a page, or as JSON to who accepts
// that only.
func (s *SlackSink) Routes(r *Router) {
	r.Mount("/dev/slack", localOnly(http.HandlerFunc(s.show)))
	r.Mount("/dev/slack/{scope}", localOnly(http.HandlerFunc(s.take)))
}

// localOnly refuses what does not come from this machine, and pages of other
// sites that a browser on it shows.
func localOnly(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		remote, _, err := net.SplitHostPort(r.RemoteAddr)
		host := r.Host
		if h, _, splitErr := net.SplitHostPort(host); splitErr == nil {
			host = h
		}
		if err != nil || !isLoopback(remote) || !isLoopback(strings.Trim(host, "[]")) || r.Header.Get("X-Forwarded-For") != "" || r.Header.Get("Origin") != "" {
			writeProblem(w, r, NewProblem(http.StatusForbidden, "forbidden", "this serves its own machine only"))
			return
		}
		next.ServeHTTP(w, r)
	})
}

func isLoopback(host string) bool {
	ip := net.ParseIP(host)
	return host == "localhost" || (ip != nil && ip.IsLoopback())
}

// take answers as a webhook of Slack does.
func (s *SlackSink) take(w http.ResponseWriter, r *http.Request) {
	scope := strings.TrimPrefix(r.URL.Path, "/dev/slack/")
	if r.Method != http.MethodPost {
		w.Header().Set("Allow", http.MethodPost)
		http.Error(w, "method_not_allowed", http.StatusMethodNotAllowed)
		return
	}
	if alert.CheckScope(scope) != nil {
		http.Error(w, "no_service", http.StatusNotFound)
		return
	}
	var posted struct {
		Text string `json:"text"`
	}
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxSlackBody))
	if err != nil || json.Unmarshal(body, &posted) != nil {
		http.Error(w, "invalid_payload", http.StatusBadRequest)
		return
	}
	if posted.Text == "" {
		http.Error(w, "no_text", http.StatusBadRequest)
		return
	}
	if err := s.add(slackMessage{Scope: scope, At: s.now().UTC(), Text: posted.Text}); err != nil {
		http.Error(w, "internal_error", http.StatusInternalServerError)
		return
	}
	_, _ = io.WriteString(w, "ok") // the client is gone when this fails
}

func (s *SlackSink) add(m slackMessage) error {
	s.lock.Lock()
	defer s.lock.Unlock()
	if s.file != nil {
		line, err := json.Marshal(m)
		if err != nil {
			return fmt.Errorf("encode slack message: %w", err)
		}
		if _, err := s.file.Write(append(line, '\n')); err != nil {
			return fmt.Errorf("keep slack message: %w", err)
		}
	}
	s.keep(m)
	return nil
}

func (s *SlackSink) keep(m slackMessage) {
	s.kept = append(s.kept, m)
	if len(s.kept) > maxSlackMessages {
		s.kept = slices.Clone(s.kept[len(s.kept)-maxSlackMessages:])
	}
}

// newest are the messages kept, newest first.
func (s *SlackSink) newest() []slackMessage {
	s.lock.Lock()
	defer s.lock.Unlock()
	messages := append([]slackMessage{}, s.kept...)
	slices.Reverse(messages)
	return messages
}

func (s *SlackSink) show(w http.ResponseWriter, r *http.Request) {
	messages := s.newest()
	w.Header().Set("Cache-Control", "no-store")
	if accept := r.Header.Get("Accept"); strings.HasPrefix(accept, "application/json") {
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(map[string]any{"messages": messages}) // the client is gone when this fails
		return
	}
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	w.Header().Set("Content-Security-Policy", "default-src 'none'; style-src 'unsafe-inline'")
	_ = slackPage.Execute(w, messages) // the client is gone when this fails
}

// slackPage shows text as Slack would: its three escapes are undone, and the
// template escapes everything again for HTML.
var slackPage = template.Must(template.New("slack").Funcs(template.FuncMap{"plain": html.UnescapeString}).Parse(`<!doctype html>
<html lang="en"><head><meta charset="utf-8"><meta http-equiv="refresh" content="5"><title>Slack, on this machine</title>
<style>body{font:15px/1.5 system-ui,sans-serif;max-width:52rem;margin:2rem auto;padding:0 1rem;color:#1d1c1d;background:#f8f8f8}
article{background:#fff;border:1px solid #ddd;border-radius:8px;margin:1rem 0;padding:.75rem 1rem}
header{color:#555;font-size:.85rem}pre{white-space:pre-wrap;font:inherit;margin:.5rem 0 0}</style></head>
<body><h1>Slack, on this machine</h1><p>Messages that alerts posted, newest first. Nothing here leaves this machine.</p>
{{range .}}<article><header><strong>{{.Scope}}</strong> · <time>{{.At.Format "2006-01-02T15:04:05Z07:00"}}</time></header><pre>{{plain .Text}}</pre></article>
{{else}}<p>No message yet.</p>{{end}}</body></html>
`))
