// Package bedrock stands in for the runtime of Amazon Bedrock: it speaks the wire format of Converse
// (Amazon Bedrock API Reference) and answers by a deterministic model that words the findings of the
// request. Its answers say that it is a stand-in. It can be told, while it runs, to fail in each way
// in which the real service and real models fail.
package bedrock

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"time"

	"millrace/deploy/local/loopback"
)

const (
	// HealthPath answers 200 when the stand-in is up.
	HealthPath = "/health"
	// ModePath tells (GET) and sets (PUT) how requests are answered.
	ModePath = "/mode"
	// RequestsPath tells what was asked (GET) and forgets it (DELETE).
	RequestsPath = "/requests"
	// ModelID is the model that the local stack's programs ask for. Any other is answered too.
	ModelID = "millrace.local-stand-in-v1"

	maxRequest   = 4 << 20
	keptRequests = 100
)

// Config says where the stand-in listens and how it answers at first.
type Config struct {
	// Addr is the loopback host and port to listen on.
	Addr string
	// Mode is a mode, or mode:count for so many requests; empty is ok.
	Mode string
}

// Serve runs the stand-in until ctx ends.
func Serve(ctx context.Context, cfg Config) error {
	server, err := NewServer(cfg.Mode)
	if err != nil {
		return err
	}
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", cfg.Addr)
	if err != nil {
		return fmt.Errorf("serve models: %w", err)
	}
	httpServer := &http.Server{Handler: server, ReadHeaderTimeout: 5 * time.Second}
	done := make(chan error, 1)
	go func() { done <- httpServer.Serve(listener) }()
	slog.Info("models ready", "addr", listener.Addr().String(), "mode", server.current("").Mode)
	select {
	case err := <-done:
		return fmt.Errorf("serve models on %s: %w", cfg.Addr, err)
	case <-ctx.Done():
		// Requests that wait for ever would hold a graceful stop.
		if err := httpServer.Close(); err != nil {
			return fmt.Errorf("close models: %w", err)
		}
		return nil
	}
}

// Server is the stand-in as a handler.
type Server struct {
	mux *http.ServeMux

	mu sync.Mutex
	// behave is by model; that of "" is for all others.
	behave   map[string]Behaviour
	requests []Seen
	count    int
}

// Seen is a request that was answered.
type Seen struct {
	Model string `json:"model"`
	Mode  Mode   `json:"mode"`
	// Corrected tells that the request showed the model what was wrong before.
	Corrected    bool  `json:"corrected,omitempty"`
	InputTokens  int32 `json:"input_tokens"`
	OutputTokens int32 `json:"output_tokens"`
	MaxTokens    int32 `json:"max_tokens"`
}

// NewServer makes a stand-in that answers by a mode at first.
func NewServer(mode string) (*Server, error) {
	behave, err := ParseBehaviour(mode)
	if err != nil {
		return nil, err
	}
	s := &Server{mux: http.NewServeMux(), behave: map[string]Behaviour{"": behave}}
	s.mux.HandleFunc("GET "+HealthPath, func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusOK) })
	s.mux.HandleFunc("GET "+ModePath, func(w http.ResponseWriter, r *http.Request) {
		loopback.Answer(w, http.StatusOK, s.current(r.URL.Query().Get("model")))
	})
	s.mux.HandleFunc("PUT "+ModePath, s.setMode)
	s.mux.HandleFunc("GET "+RequestsPath, func(w http.ResponseWriter, r *http.Request) {
		loopback.Answer(w, http.StatusOK, s.seen(r.URL.Query().Get("model")))
	})
	s.mux.HandleFunc("DELETE "+RequestsPath, func(w http.ResponseWriter, _ *http.Request) {
		s.forget()
		loopback.Answer(w, http.StatusOK, s.seen(""))
	})
	return s, nil
}

// ServeHTTP answers Converse, and the interface that sets the modes.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	// A model's id is one segment of the path, with ':' and '/' escaped.
	rest, isModel := strings.CutPrefix(r.URL.EscapedPath(), "/model/")
	if !isModel {
		loopback.Guard(s.mux).ServeHTTP(w, r)
		return
	}
	segment, operation, _ := strings.Cut(rest, "/")
	model, err := url.PathUnescape(segment)
	if r.Method != http.MethodPost || operation != "converse" || err != nil || model == "" {
		fail(w, http.StatusNotFound, "UnknownOperationException", "the stand-in answers POST /model/{modelId}/converse only")
		return
	}
	s.converse(w, r, model)
}

func (s *Server) converse(w http.ResponseWriter, r *http.Request, model string) {
	var request converseRequest
	// The whole body is read before anything is answered, as by a model that reads it.
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxRequest))
	if err == nil {
		err = json.Unmarshal(body, &request)
	}
	if err != nil {
		fail(w, http.StatusBadRequest, "ValidationException", "the request is not the JSON of Converse")
		return
	}
	if problem := request.problem(); problem != "" {
		fail(w, http.StatusBadRequest, "ValidationException", problem)
		return
	}
	behave := s.next(model)
	seen := Seen{Model: model, Mode: behave.Mode, Corrected: request.corrected(), InputTokens: request.tokens(), MaxTokens: request.InferenceConfig.MaxTokens}
	if behave.Delay() > 0 {
		select {
		case <-time.After(behave.Delay()):
		case <-r.Context().Done():
		}
	}
	if answered := behave.fault(w, r); answered {
		s.note(seen)
		return
	}
	answer := request.answer(behave.Mode, model)
	seen.OutputTokens = answer.Usage.OutputTokens
	s.note(seen) // before the answer, so that whoever has it finds it noted
	loopback.Answer(w, http.StatusOK, answer)
}

func (s *Server) setMode(w http.ResponseWriter, r *http.Request) {
	behave := Behaviour{}
	if err := loopback.Read(r, &behave); err != nil {
		loopback.Fail(w, http.StatusBadRequest, err)
		return
	}
	if err := behave.check(); err != nil {
		loopback.Fail(w, http.StatusBadRequest, err)
		return
	}
	s.mu.Lock()
	s.behave[behave.Model] = behave
	s.mu.Unlock()
	loopback.Answer(w, http.StatusOK, behave)
}

// next is how the next request for a model is answered.
func (s *Server) next(model string) Behaviour {
	s.mu.Lock()
	defer s.mu.Unlock()
	behave := s.of(model)
	if behave.Count > 0 {
		left := behave
		if left.Count--; left.Count == 0 {
			left = Behaviour{Mode: OK, Model: behave.Model}
		}
		s.behave[behave.Model] = left
	}
	return behave
}

// of is the behaviour of a model, or else that of all.
func (s *Server) of(model string) Behaviour {
	if behave, ok := s.behave[model]; ok {
		return behave
	}
	return s.behave[""]
}

func (s *Server) current(model string) Behaviour {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.of(model)
}

// Log is what was asked.
type Log struct {
	// Count counts every request, Requests are the last hundred.
	Count    int    `json:"count"`
	Requests []Seen `json:"requests"`
}

func (s *Server) note(seen Seen) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.count++
	if s.requests = append(s.requests, seen); len(s.requests) > keptRequests {
		s.requests = s.requests[1:]
	}
}

// seen is what was asked of a model, or of all where it is empty. The count of one
// model is that of the requests that are kept.
func (s *Server) seen(model string) Log {
	s.mu.Lock()
	defer s.mu.Unlock()
	log := Log{Count: s.count, Requests: []Seen{}}
	for _, request := range s.requests {
		if model == "" || request.Model == model {
			log.Requests = append(log.Requests, request)
		}
	}
	if model != "" {
		log.Count = len(log.Requests)
	}
	return log
}

func (s *Server) forget() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.count, s.requests = 0, nil
}
