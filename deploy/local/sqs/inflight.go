package sqs

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/url"
	"strings"
)

const (
	// maxRequest bounds a request that is read to be noted: ten receipt handles, the largest.
	maxRequest = 1 << 20
	// maxAnswer bounds an answer that is read to be noted. Ten messages of 256 KiB fit, escaped
	// as text six bytes for one.
	maxAnswer = 16 << 20
)

// Operations that change what is in flight.
const (
	opReceive     = "ReceiveMessage"
	opDelete      = "DeleteMessage"
	opDeleteBatch = "DeleteMessageBatch"
	opPurge       = "PurgeQueue"
	opDeleteQueue = "DeleteQueue"
)

// call is what the journal needs to know of a request when its answer comes.
type call struct {
	op            string
	gone          []string // messages that are gone when the operation succeeds
	QueueURL      string   `json:"QueueUrl"`
	ReceiptHandle string   `json:"ReceiptHandle"`
	Entries       []struct {
		ID            string `json:"Id"`
		ReceiptHandle string `json:"ReceiptHandle"`
	} `json:"Entries"`
}

type callKey struct{}

// noting has the proxy note what changes the messages in flight.
func (j *journal) noting(proxy http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		op := operation(r)
		switch op {
		case opReceive, opDelete, opDeleteBatch, opPurge, opDeleteQueue:
		default:
			proxy.ServeHTTP(w, r)
			return
		}
		body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxRequest))
		if err != nil {
			http.Error(w, fmt.Sprintf("a request of %s has at most %d bytes", op, maxRequest), http.StatusRequestEntityTooLarge)
			return
		}
		c := &call{op: op}
		if json.Unmarshal(body, c) == nil { // otherwise kumo says what is wrong with it
			if op == opPurge || op == opDeleteQueue {
				c.gone = j.ids(queuePath(c.QueueURL))
			}
			r = r.WithContext(context.WithValue(r.Context(), callKey{}, c))
		}
		r.Body = io.NopCloser(bytes.NewReader(body))
		proxy.ServeHTTP(w, r)
	})
}

// operation returns the SQS operation of a request of the JSON protocol, the only one in which kumo
// serves queues.
func operation(r *http.Request) string {
	service, op, _ := strings.Cut(r.Header.Get("X-Amz-Target"), ".")
	if service != "AmazonSQS" {
		return ""
	}
	return op
}

// queuePath is how the journal names a queue: its URL without the host, which may change.
func queuePath(queueURL string) string {
	if u, err := url.Parse(queueURL); err == nil {
		return u.Path
	}
	return queueURL
}

// note notes what an answer changes. It fails only when messages were handed out that could not be
// noted: the receiver then gets none, and they come back when they are visible again.
func (j *journal) note(r *http.Response) error {
	c, ok := r.Request.Context().Value(callKey{}).(*call)
	if !ok || r.StatusCode != http.StatusOK {
		return nil
	}
	var err error
	switch c.op {
	case opReceive:
		return j.noteReceived(c, r)
	case opDelete:
		err = j.deleted(c.ReceiptHandle)
	case opDeleteBatch:
		err = j.noteDeleted(c, r)
	case opPurge, opDeleteQueue:
		err = j.dropped(c.gone)
	}
	if err != nil { // they are gone in any case, and sent again at the next start
		slog.Warn("note deleted messages", "queue", queuePath(c.QueueURL), "error", err)
	}
	return nil
}

func (j *journal) noteReceived(c *call, r *http.Response) error {
	queue := queuePath(c.QueueURL)
	if strings.HasSuffix(queue, ".fifo") {
		return nil // kumo's answer lacks the group, without which a message can't be sent again
	}
	body, whole, err := peek(r)
	if err != nil {
		return err
	}
	if !whole {
		slog.Warn("an answer is too large to be noted: its messages would not survive a restart", "queue", queue)
		return nil
	}
	var answer struct {
		Messages []struct {
			MessageID         string          `json:"MessageId"`
			ReceiptHandle     string          `json:"ReceiptHandle"`
			Body              json.RawMessage `json:"Body"`
			MessageAttributes json.RawMessage `json:"MessageAttributes"`
		} `json:"Messages"`
	}
	if err := json.Unmarshal(body, &answer); err != nil {
		return fmt.Errorf("read messages of %s: %w", queue, err)
	}
	if len(answer.Messages) == 0 {
		return nil
	}
	lines := make([]line, len(answer.Messages))
	for i, m := range answer.Messages {
		lines[i] = line{ID: m.MessageID, Queue: queue, Handles: []string{m.ReceiptHandle}, Body: m.Body, Attributes: m.MessageAttributes}
	}
	return j.received(lines)
}

func (j *journal) noteDeleted(c *call, r *http.Response) error {
	body, whole, err := peek(r)
	if err != nil {
		return err
	}
	var answer struct {
		Successful []struct {
			ID string `json:"Id"`
		} `json:"Successful"`
	}
	if !whole {
		return fmt.Errorf("the answer has more than %d bytes", maxAnswer)
	}
	if err := json.Unmarshal(body, &answer); err != nil {
		return fmt.Errorf("read deleted messages: %w", err)
	}
	handles := make(map[string]string, len(c.Entries))
	for _, e := range c.Entries {
		handles[e.ID] = e.ReceiptHandle
	}
	deleted := make([]string, len(answer.Successful))
	for i, s := range answer.Successful {
		deleted[i] = handles[s.ID]
	}
	return j.deleted(deleted...)
}

// peek reads an answer and puts it back. It stops at maxAnswer: the rest is then passed on unread.
func peek(r *http.Response) (body []byte, whole bool, err error) {
	var buffer bytes.Buffer
	if r.ContentLength > 0 {
		buffer.Grow(int(min(r.ContentLength, maxAnswer)) + bytes.MinRead)
	}
	if _, err := buffer.ReadFrom(io.LimitReader(r.Body, maxAnswer+1)); err != nil {
		return nil, false, fmt.Errorf("read kumo's answer: %w", err)
	}
	body = buffer.Bytes()
	rest := r.Body
	r.Body = struct {
		io.Reader
		io.Closer
	}{io.MultiReader(bytes.NewReader(body), rest), rest}
	return body, len(body) <= maxAnswer, nil
}
