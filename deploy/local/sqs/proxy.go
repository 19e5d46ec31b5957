package sqs

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httputil"
	"net/url"
	"strconv"
	"strings"
)

const (
	// kumoBase is how kumo begins every queue URL, whatever its port.
	kumoBase = "http://localhost:4566/"
	// maxNames bounds an answer that is read into memory to be corrected: a page of
	// ListQueues, the largest, is 1,000 URLs.
	maxNames = 1 << 20
	// maxBuffered bounds a request that is read before it is forwarded; larger ones are streamed.
	maxBuffered = 2 << 20
	idleConns   = 256
)

// renamed are the SQS operations whose answer holds queue URLs. Others are passed through
// untouched, since a message body may hold such text as well.
var renamed = map[string]bool{
	"CreateQueue": true, "GetQueueUrl": true, "ListQueues": true, "ListDeadLetterSourceQueues": true,
}

// newProxy returns a handler that forwards to kumo at backend and names queues by addr. A journal
// that is not nil notes what is in flight.
func newProxy(backend, addr string, inflight *journal) (http.Handler, error) {
	target, err := url.Parse(backend)
	if err != nil {
		return nil, fmt.Errorf("parse kumo's address %q: %w", backend, err)
	}
	transport := http.DefaultTransport.(*http.Transport).Clone()
	transport.MaxIdleConns, transport.MaxIdleConnsPerHost = idleConns, idleConns
	transport.DisableCompression = true
	base := []byte("http://" + addr + "/")
	proxy := &httputil.ReverseProxy{
		Transport: transport,
		Rewrite: func(r *httputil.ProxyRequest) {
			r.SetURL(target)
			r.Out.Host = r.In.Host
		},
		ModifyResponse: func(r *http.Response) error { return correctNames(r, base) },
		ErrorHandler:   unavailable,
	}
	if inflight == nil {
		return bufferRequests(proxy), nil
	}
	proxy.ModifyResponse = func(r *http.Response) error {
		return errors.Join(correctNames(r, base), inflight.note(r))
	}
	return inflight.noting(bufferRequests(proxy)), nil
}

// bufferRequests reads a request before it is forwarded. The server closes a body once the answer
// begins; kumo answers so soon that the transport may still be looking for the body's end then, and
// would break off the answer.
func bufferRequests(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.ContentLength > 0 && r.ContentLength <= maxBuffered {
			body := make([]byte, r.ContentLength)
			if _, err := io.ReadFull(r.Body, body); err != nil {
				http.Error(w, "the request ends before its length", http.StatusBadRequest)
				return
			}
			r.Body = io.NopCloser(bytes.NewReader(body))
		}
		next.ServeHTTP(w, r)
	})
}

// correctNames replaces kumo's base in the answer of an operation that returns queue URLs.
func correctNames(r *http.Response, base []byte) error {
	if !namesQueues(r.Request, r.Header.Get("Content-Type")) {
		return nil
	}
	body, err := io.ReadAll(io.LimitReader(r.Body, maxNames+1))
	if err != nil {
		return fmt.Errorf("read queue names: %w", err)
	}
	if err := r.Body.Close(); err != nil {
		return fmt.Errorf("close queue names: %w", err)
	}
	if len(body) > maxNames {
		return fmt.Errorf("more than %d bytes of queue names", maxNames)
	}
	body = bytes.ReplaceAll(body, []byte(kumoBase), base)
	r.Body = io.NopCloser(bytes.NewReader(body))
	r.ContentLength = int64(len(body))
	r.Header.Set("Content-Length", strconv.Itoa(len(body)))
	return nil
}

// namesQueues recognises the JSON protocol by its target header. The older query protocol carries
// the operation in its form, already sent on; there the answer's type and the path tell enough,
// because its ReceiveMessage goes to the queue's own path.
func namesQueues(r *http.Request, contentType string) bool {
	if service, op, ok := strings.Cut(r.Header.Get("X-Amz-Target"), "."); ok {
		return service == "AmazonSQS" && renamed[op]
	}
	form := strings.HasPrefix(r.Header.Get("Content-Type"), "application/x-www-form-urlencoded")
	return form && r.URL.Path == "/" && strings.Contains(contentType, "xml")
}

func unavailable(w http.ResponseWriter, r *http.Request, err error) {
	if r.Context().Err() == nil {
		slog.Warn("forward to kumo", "path", r.URL.Path, "error", err)
	}
	w.WriteHeader(http.StatusServiceUnavailable)
}
