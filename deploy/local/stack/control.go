package stack

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"time"

	"millrace/deploy/local/broker"
	"millrace/deploy/local/loopback"
	"millrace/deploy/local/supervise"
)

// controlTimeout bounds how long a request waits for a part to be up again.
const controlTimeout = 90 * time.Second

// errVolatile is why a part without files is not killed: its data would be gone, which is no fault
// that the real service has.
var errVolatile = errors.New("keeps its data in memory only here: use exec --durable")

// serveControl serves the interface that tests use to cause faults. The returned function ends it.
func (s *Stack) serveControl(ctx context.Context) (stop func(), err error) {
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", addr(s.Ports.Control))
	if err != nil {
		return nil, fmt.Errorf("serve control: %w", err)
	}
	ctx, cancel := context.WithCancel(ctx)
	done := make(chan struct{})
	go func() {
		defer close(done)
		if err := loopback.Serve(ctx, listener, s.controlHandler()); err != nil {
			slog.Warn("control ended", "error", err)
		}
	}()
	return func() { cancel(); <-done }, nil
}

func (s *Stack) controlHandler() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /parts", func(w http.ResponseWriter, _ *http.Request) {
		loopback.Answer(w, http.StatusOK, s.supervisor.Status())
	})
	mux.HandleFunc("POST /kill/{part}", s.onPart(s.kill))
	mux.HandleFunc("POST /stop/{part}", s.onPart(s.halt))
	mux.HandleFunc("POST /start/{part}", s.onPart(s.supervisor.Resume))
	mux.HandleFunc("POST /iot/factories/{id}", s.makeFactory)
	mux.HandleFunc("POST /iot/bridge", s.changeBridge)
	return mux
}

func (s *Stack) onPart(do func(ctx context.Context, part string) error) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		ctx, cancel := context.WithTimeout(r.Context(), controlTimeout)
		defer cancel()
		err := do(ctx, r.PathValue("part"))
		switch {
		case err == nil:
			loopback.Answer(w, http.StatusOK, s.supervisor.Status())
		case errors.Is(err, supervise.ErrUnknownPart):
			loopback.Fail(w, http.StatusNotFound, err)
		default:
			loopback.Fail(w, http.StatusConflict, err)
		}
	}
}

func (s *Stack) kill(ctx context.Context, part string) error {
	if err := s.checkKept(part); err != nil {
		return err
	}
	return s.supervisor.Kill(ctx, part)
}

func (s *Stack) halt(ctx context.Context, part string) error {
	if err := s.checkKept(part); err != nil {
		return err
	}
	return s.supervisor.Stop(ctx, part)
}

func (s *Stack) checkKept(part string) error {
	switch part {
	case partTemporal, partDynamoDB, partSQS:
		if !s.Durable {
			return fmt.Errorf("part %s %w", part, errVolatile)
		}
	}
	return nil
}

// makeFactory answers with the certificate files of a factory, made when there are none.
func (s *Stack) makeFactory(w http.ResponseWriter, r *http.Request) {
	id := r.PathValue("id")
	if id == broker.WorkerIdentity || id == broker.BridgeIdentity {
		loopback.Fail(w, http.StatusBadRequest, fmt.Errorf("identity %q is no factory", id))
		return
	}
	s.certMu.Lock()
	files, err := s.authority.Client(id)
	s.certMu.Unlock()
	if err != nil {
		loopback.Fail(w, http.StatusBadRequest, err)
		return
	}
	loopback.Answer(w, http.StatusOK, files)
}

// changeBridge passes the change of destinations on to the broker's own interface.
func (s *Stack) changeBridge(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		loopback.Fail(w, http.StatusBadRequest, fmt.Errorf("read request: %w", err))
		return
	}
	url := "http://" + addr(s.Ports.IoTAdmin) + "/bridge"
	request, err := http.NewRequestWithContext(r.Context(), http.MethodPost, url, bytes.NewReader(body))
	if err != nil {
		loopback.Fail(w, http.StatusInternalServerError, err)
		return
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		loopback.Fail(w, http.StatusBadGateway, err)
		return
	}
	defer func() { _ = response.Body.Close() }() // read only
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(response.StatusCode)
	// The client hung up when this fails: there is nobody to tell.
	_, _ = io.Copy(w, response.Body)
}
