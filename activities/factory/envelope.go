// Package factory has the activities of the factory capability: they take
// telemetry from the queue into the read models, refresh and aggregate these,
// and repair what a crash left out.
package factory

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"millrace/domain/factory"
)

// Envelope is a queue message: the body that the IoT rule received, unmodified,
// and what the rule engine knew of it. RawKey, where set, says where the body
// lies; messages enqueued again by RawReconcile carry it.
type Envelope struct {
	Body       []byte `json:"body"`
	Topic      string `json:"topic"`
	ReceivedAt int64  `json:"received_at"`
	TraceID    string `json:"trace_id"`
	RawKey     string `json:"raw_key,omitempty"`
}

// decodeEnvelope reads a queue message.
func decodeEnvelope(text string) (Envelope, error) {
	var e Envelope
	if err := json.Unmarshal([]byte(text), &e); err != nil {
		return Envelope{}, fmt.Errorf("decode queue message: %w", err)
	}
	return e, nil
}

func (e Envelope) receivedAt() time.Time { return time.UnixMilli(e.ReceivedAt).UTC() }

// leaf is the leaf of the raw object, by the rule of the rule engine. A message
// that no rule engine made may lack a usable trace id; its hash serves then.
func (e Envelope) leaf() string {
	leaf := factory.RawLeaf(factory.PeekMessageID(e.Body), e.TraceID)
	if factory.CheckMessageID(leaf) != nil {
		sum := sha256.Sum256(e.Body)
		return hex.EncodeToString(sum[:])
	}
	return leaf
}

// rawKey is where the body was stored.
func (e Envelope) rawKey() string {
	if strings.HasPrefix(e.RawKey, "raw/") && !strings.Contains(e.RawKey, "..") {
		return e.RawKey
	}
	factoryID, sourceType := factory.TopicLevels(e.Topic)
	return factory.RawKey(factoryID, sourceType, e.receivedAt(), e.leaf())
}
