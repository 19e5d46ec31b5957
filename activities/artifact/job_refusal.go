package artifact

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"time"

	"millrace/domain/artifact"
	"millrace/domain/factory"
	"millrace/platform/queue"
	"millrace/storage/objects"
)

// jobEnvelope is a queue message of the rule millrace_job_results: the body that
// the rule engine received, unmodified, and what it knew of it.
type jobEnvelope struct {
	Body       []byte `json:"body"`
	Topic      string `json:"topic"`
	ReceivedAt int64  `json:"received_at"`
	TraceID    string `json:"trace_id"`
}

// decodeJobEnvelope reads a queue message; one that is no envelope, whatever else it
// is, is the body of an envelope without a topic.
func decodeJobEnvelope(m queue.Message, now time.Time) jobEnvelope {
	var e jobEnvelope
	if json.Unmarshal([]byte(m.Body), &e) != nil || len(e.Body) == 0 || e.Topic == "" {
		e = jobEnvelope{Body: []byte(m.Body)} // at a key of its own hash
	}
	if e.ReceivedAt <= 0 || e.ReceivedAt > now.UnixMilli() {
		e.ReceivedAt = now.UnixMilli()
	}
	return e
}

func (e jobEnvelope) receivedAt() time.Time { return time.UnixMilli(e.ReceivedAt).UTC() }

// quarantineKey is where a reply that can't be used lies:
// quarantine/{factory}/job_result/yyyy=/mm=/dd=/{trace id}.json, or the body's
// hash for want of a trace id.
func (e jobEnvelope) quarantineKey() string {
	factoryID, _ := factory.TopicLevels(e.Topic)
	leaf := e.TraceID
	if factory.CheckMessageID(leaf) != nil {
		sum := sha256.Sum256(e.Body)
		leaf = hex.EncodeToString(sum[:])
	}
	return factory.QuarantineKey(factory.RawKey(factoryID, "job_result", e.receivedAt(), leaf))
}

// refuse keeps a reply that can't be used, with the reason.
func (j JobResults) refuse(ctx context.Context, e jobEnvelope, why *artifact.InvalidError) error {
	document, err := factory.EncodeJSON(factory.Refusal{
		Field: why.Field, Rule: why.Rule, Topic: e.Topic, ReceivedAt: e.receivedAt(), Body: e.Body,
	})
	if err != nil {
		return err
	}
	key := e.quarantineKey()
	if _, err := j.Quarantine.PutIfAbsent(ctx, key, objects.JSON, document); err != nil {
		return err
	}
	j.Logger.WarnContext(ctx, "reply of a device quarantined", "key", key, "reason", why.Error())
	return j.at(JobStepQuarantine)
}
