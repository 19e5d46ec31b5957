package sqs

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"strings"
)

// kumoFile is kumo's snapshot of the queues.
const kumoFile = "sqs.json"

// waiting returns the ids of the messages that kumo has read from its snapshot in dir. It must be
// asked before kumo's state changes.
func waiting(dir string) (map[string]bool, error) {
	text, err := os.ReadFile(filepath.Join(dir, kumoFile))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read kumo's snapshot: %w", err)
	}
	var snapshot struct {
		Queues map[string]struct {
			Messages []struct{ MessageID string } `json:"messages"`
		} `json:"queues"`
	}
	if err := json.Unmarshal(text, &snapshot); err != nil {
		return nil, fmt.Errorf("read kumo's snapshot: %w", err)
	}
	ids := make(map[string]bool)
	for _, queue := range snapshot.Queues {
		for _, m := range queue.Messages {
			ids[m.MessageID] = true
		}
	}
	return ids, nil
}

// restore sends what is in flight to its queue again, at kumo's address, and compacts the journal. A
// message that kumo still has is left alone: it became visible again, or is a dead letter by now. One
// sent again stays in the journal under its new id, for a kill before kumo's next snapshot.
func (j *journal) restore(ctx context.Context, backend string, waiting map[string]bool) error {
	var safe []string
	sent := 0
	for _, id := range j.ids("") {
		if waiting[id] {
			safe = append(safe, id)
			continue
		}
		message, ok, err := j.message(id)
		if err != nil || !ok {
			return err
		}
		newID, err := resend(ctx, backend, message)
		if err != nil {
			return err
		}
		if newID == "" {
			continue
		}
		if err := j.resent(id, newID); err != nil {
			return err
		}
		sent++
	}
	if sent > 0 {
		slog.Info("messages in flight are in their queues again", "messages", sent)
	}
	if err := j.dropped(safe); err != nil {
		return err
	}
	return j.compactNow()
}

// resend sends a message to its queue and returns its new id, which is empty when kumo refuses it:
// its queue does not exist, or not yet.
func resend(ctx context.Context, backend string, m line) (string, error) {
	body, err := json.Marshal(map[string]any{
		"QueueUrl": strings.TrimSuffix(kumoBase, "/") + m.Queue, "MessageBody": m.Body, "MessageAttributes": attributes(m),
	})
	if err != nil {
		return "", fmt.Errorf("encode message %s: %w", m.ID, err)
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, backend, bytes.NewReader(body))
	if err != nil {
		return "", fmt.Errorf("send message %s again: %w", m.ID, err)
	}
	request.Header.Set("Content-Type", "application/x-amz-json-1.0")
	request.Header.Set("X-Amz-Target", "AmazonSQS.SendMessage")
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return "", fmt.Errorf("send message %s again: %w", m.ID, err)
	}
	defer func() { _ = response.Body.Close() }() // it is read to its end
	answer, err := io.ReadAll(io.LimitReader(response.Body, maxRequest))
	if err != nil {
		return "", fmt.Errorf("send message %s again: %w", m.ID, err)
	}
	if response.StatusCode != http.StatusOK {
		slog.Warn("a message in flight can't be sent again yet", "queue", m.Queue, "id", m.ID, "status", response.StatusCode)
		return "", nil
	}
	var accepted struct{ MessageID string }
	if err := json.Unmarshal(answer, &accepted); err != nil {
		return "", fmt.Errorf("send message %s again: %w", m.ID, err)
	}
	if accepted.MessageID == "" {
		return "", fmt.Errorf("send message %s again: no id in the answer", m.ID)
	}
	return accepted.MessageID, nil
}

func attributes(m line) json.RawMessage {
	if m.Attributes == nil {
		return json.RawMessage("{}")
	}
	return m.Attributes
}
