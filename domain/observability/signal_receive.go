package observability

import (
	"bytes"
	"encoding/json"
	"fmt"
	"time"

	"github.com/google/uuid"
)

// namespace is that of all ids derived from what signals say: UUIDv5 of
// "urn:millrace:signals" in the URL namespace.
var namespace = uuid.NewSHA1(uuid.NameSpaceURL, []byte("urn:millrace:signals"))

func derivedID(parts ...string) string {
	var name bytes.Buffer
	for _, part := range parts {
		fmt.Fprintf(&name, "%d:%s", len(part), part)
	}
	return uuid.NewSHA1(namespace, name.Bytes()).String()
}

// Receive makes a signal ready to be kept: it checks it, completes its totals,
// its id and its cost, and stamps its receipt. The same signal received again has
// the same id, whatever the price table says by then.
func (s Signal) Receive(now time.Time, prices Prices) (Signal, error) {
	if s.Status == "" {
		s.Status = StatusOK
		if s.Type == Failure {
			s.Status = StatusError
		}
	}
	if err := s.Check(now); err != nil {
		return s, err
	}
	s.Timestamp = s.Timestamp.UTC()
	if s.SignalID == "" {
		s.SignalID = s.canonicalID()
	}
	if s.TotalTokens == 0 && !s.TotalTold {
		s.TotalTokens = s.Sum()
	}
	s.TokenMismatch = s.TotalTokens != s.Sum()
	s.ReceivedAt = now.UTC()
	return prices.fill(s), nil
}

// canonicalID is the UUIDv5 of the signal's canonical form: its JSON with fields
// in order, sorted attributes, normalised numbers and the fixed-width timestamp.
func (s Signal) canonicalID() string {
	body, err := json.Marshal(struct {
		Signal
		Timestamp  string    `json:"timestamp"`
		ReceivedAt *struct{} `json:"received_at,omitempty"`
	}{Signal: s, Timestamp: Stamp(s.Timestamp)})
	if err != nil {
		panic(fmt.Sprintf("canonical form of a signal: %v", err)) // plain fields only
	}
	return derivedID("signal", string(body))
}
