// Package slacktest is a Slack for tests: it speaks the wire protocol of
// incoming webhooks and of the Web API's chat methods, remembers what was
// posted, and fails in the ways that Slack and networks do.
package slacktest

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
)

// Message is one posted message with the edits it went through.
type Message struct {
	// Hook is the path of the webhook, or the channel.
	Hook   string
	Text   string
	TS     string
	Thread string
	Edits  int
}

// Fault makes the server fail.
type Fault struct {
	// Status answers with an HTTP status instead of posting.
	Status int
	// RetryAfter is sent with status 429.
	RetryAfter string
	// Code is the body of a webhook's refusal, or the Web API's error word.
	Code string
	// Swallow keeps the answer back until the client gives up: before posting
	// when Lost, after posting otherwise.
	Swallow bool
	Lost    bool
}

// Server is the fake. Faults are used up one per request, in order; Down refuses
// connections.
type Server struct {
	*httptest.Server
	mu       sync.Mutex
	messages []Message
	faults   []Fault
	always   *Fault
	requests int
	closing  chan struct{}
}

// Token is the bot token that the Web API accepts.
const Token = "xoxb-test-token"

// New starts a fake Slack that ends with the test.
func New(t testing.TB) *Server {
	s := &Server{closing: make(chan struct{})}
	mux := http.NewServeMux()
	mux.HandleFunc("POST /services/{team}/{hook}/{key}", s.webhook)
	mux.HandleFunc("POST /api/{method}", s.api)
	s.Server = httptest.NewServer(mux)
	t.Cleanup(func() {
		close(s.closing)
		s.CloseClientConnections()
		s.Close()
	})
	return s
}

// Hook is the URL of a webhook; its key is a secret that must never show.
func (s *Server) Hook(name string) string { return s.URL + "/services/T0/" + name + "/SECRETKEY" }

// API is the base of the Web API.
func (s *Server) API() string { return s.URL + "/api/" }

// Fail makes the next requests fail, one fault each.
func (s *Server) Fail(faults ...Fault) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.faults = append(s.faults, faults...)
}

// Break makes every request fail until Mend.
func (s *Server) Break(f Fault) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.always = &f
}

// Mend ends Break.
func (s *Server) Mend() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.always = nil
}

// Messages are those posted, oldest first.
func (s *Server) Messages() []Message {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.messages)
}

// Requests is how many requests came, failed ones included.
func (s *Server) Requests() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.requests
}

func (s *Server) fault() *Fault {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.requests++
	if s.always != nil {
		return s.always
	}
	if len(s.faults) == 0 {
		return nil
	}
	f := s.faults[0]
	s.faults = s.faults[1:]
	return &f
}

// payload is what both protocols send.
type payload struct {
	Text    string `json:"text"`
	Channel string `json:"channel"`
	TS      string `json:"ts"`
	Thread  string `json:"thread_ts"`
}

func read(r *http.Request) (payload, bool) {
	var p payload
	body, err := io.ReadAll(io.LimitReader(r.Body, 1<<20))
	return p, err == nil && json.Unmarshal(body, &p) == nil
}

func (s *Server) webhook(w http.ResponseWriter, r *http.Request) {
	f := s.fault()
	p, ok := read(r)
	post := func() { s.add(Message{Hook: r.PathValue("hook"), Text: p.Text}) }
	switch {
	case f != nil && f.Swallow:
		s.swallow(f, r, post)
	case f != nil:
		refuse(w, f)
	case !ok:
		http.Error(w, "invalid_payload", http.StatusBadRequest)
	case p.Text == "":
		http.Error(w, "no_text", http.StatusBadRequest)
	default:
		post()
		_, _ = io.WriteString(w, "ok")
	}
}

// swallow posts or loses the message and never answers.
func (s *Server) swallow(f *Fault, r *http.Request, post func()) {
	if !f.Lost {
		post()
	}
	select {
	case <-r.Context().Done():
	case <-s.closing:
	case <-time.After(30 * time.Second):
	}
}

func refuse(w http.ResponseWriter, f *Fault) {
	if f.RetryAfter != "" {
		w.Header().Set("Retry-After", f.RetryAfter)
	}
	w.WriteHeader(f.Status)
	_, _ = io.WriteString(w, f.Code)
}

func (s *Server) api(w http.ResponseWriter, r *http.Request) {
	f := s.fault()
	p, ok := read(r)
	if f != nil && f.Swallow {
		s.swallow(f, r, func() { s.apply(r.PathValue("method"), p) })
		return
	}
	if f != nil && f.Status != 0 && f.Status != http.StatusOK {
		refuse(w, f)
		return
	}
	answer := map[string]any{"ok": false}
	switch {
	case f != nil:
		answer["error"] = f.Code
	case !strings.HasPrefix(r.Header.Get("Content-Type"), "application/json") || !ok:
		answer["error"] = "invalid_json"
	case r.Header.Get("Authorization") != "Bearer "+Token:
		answer["error"] = "invalid_auth"
	default:
		answer = s.apply(r.PathValue("method"), p)
	}
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(answer)
}

// apply does what a chat method asks for and returns its answer.
func (s *Server) apply(method string, p payload) map[string]any {
	switch {
	case p.Text == "":
		return map[string]any{"ok": false, "error": "no_text"}
	case method == "chat.postMessage":
		return map[string]any{"ok": true, "channel": p.Channel, "ts": s.add(Message{Hook: p.Channel, Text: p.Text, Thread: p.Thread})}
	case method != "chat.update":
		return map[string]any{"ok": false, "error": "unknown_method"}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for i := range s.messages {
		if m := &s.messages[i]; m.Hook == p.Channel && m.TS == p.TS {
			m.Text, m.Edits = p.Text, m.Edits+1
			return map[string]any{"ok": true, "channel": p.Channel, "ts": p.TS}
		}
	}
	return map[string]any{"ok": false, "error": "message_not_found"}
}

func (s *Server) add(m Message) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	m.TS = fmt.Sprintf("1700000000.%06d", len(s.messages)+1)
	s.messages = append(s.messages, m)
	return m.TS
}
