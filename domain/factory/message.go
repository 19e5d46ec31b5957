package factory

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"strings"
	"time"
)

// MaxBody is the greatest body in bytes that is read; AWS IoT Core takes no
// larger payload.
const MaxBody = 128 * 1024

// Message is a valid telemetry message: the envelope with its identifiers
// checked and the payload still as it came.
type Message struct {
	SchemaVersion   string
	MessageID       string
	FactoryID       string
	NodeID          string
	EnvironmentType string
	SourceType      SourceType
	SourceTimestamp time.Time
	Payload         map[string]any
}

// ID is the message's place in the order of its factory and source type.
func (m Message) ID() Order { return Order{At: m.SourceTimestamp, MessageID: m.MessageID} }

// requiredKeys are the envelope keys that the cloud side wants present.
var requiredKeys = []string{
	"schema_version", "message_id", "factory_id", "node_id",
	"source_type", "source_timestamp", "published_at", "payload",
}

// ParseMessage reads and checks a message received at now. Unknown fields are
// ignored. Every error is an *InvalidError.
func ParseMessage(body []byte, now time.Time) (Message, error) {
	envelope, err := parseObject(body)
	if err != nil {
		return Message{}, err
	}
	for _, key := range requiredKeys {
		if _, ok := envelope[key]; !ok {
			return Message{}, invalid(key, "is required")
		}
	}
	if err := checkEnvelopeKinds(envelope); err != nil {
		return Message{}, err
	}
	m := Message{
		SchemaVersion:   textOf(envelope["schema_version"]),
		MessageID:       textOf(envelope["message_id"]),
		FactoryID:       textOf(envelope["factory_id"]),
		NodeID:          textOf(envelope["node_id"]),
		EnvironmentType: bounded(textOf(envelope["environment_type"]), MaxLabel),
		SourceType:      SourceType(textOf(envelope["source_type"])),
		Payload:         envelope["payload"].(map[string]any),
	}
	m.SourceTimestamp, err = checkEnvelope(m, textOf(envelope["source_timestamp"]), now)
	return m, err
}

func checkEnvelopeKinds(envelope map[string]any) error {
	for _, key := range requiredKeys {
		value := envelope[key]
		switch key {
		case "payload":
			if _, ok := value.(map[string]any); !ok {
				return invalid(key, "must be an object")
			}
		case "published_at":
			if _, ok := value.(string); !ok && value != nil {
				return invalid(key, "must be a string or null")
			}
		default:
			if _, ok := value.(string); !ok {
				return invalid(key, "must be a string")
			}
		}
	}
	return nil
}

func checkEnvelope(m Message, sourceTimestamp string, now time.Time) (time.Time, error) {
	for _, err := range []error{CheckFactoryID(m.FactoryID), CheckNodeID(m.NodeID), CheckMessageID(m.MessageID)} {
		if err != nil {
			return time.Time{}, err
		}
	}
	if !m.SourceType.Valid() {
		return time.Time{}, invalid("source_type", "must be factory_state, infra_state or image_snapshot")
	}
	return parseSourceTimestamp(sourceTimestamp, now)
}

// CheckTopic refuses a message whose topic aegis/{factory_id}/{source_type}
// contradicts its envelope.
func (m Message) CheckTopic(topic string) error {
	levels := strings.Split(topic, "/")
	switch {
	case len(levels) != 3 || levels[0] != "aegis":
		return invalid("topic", "must be aegis/{factory_id}/{source_type}")
	case levels[1] != m.FactoryID:
		return invalid("factory_id", "must agree with the topic")
	case levels[2] != string(m.SourceType):
		return invalid("source_type", "must agree with the topic")
	}
	return nil
}

// TopicLevels are the factory and source type that a topic claims, whatever
// they are; missing levels are empty.
func TopicLevels(topic string) (factoryID, sourceType string) {
	levels := strings.SplitN(topic, "/", 4)
	if len(levels) > 1 {
		factoryID = levels[1]
	}
	if len(levels) > 2 {
		sourceType = levels[2]
	}
	return factoryID, sourceType
}

// PeekMessageID is the message_id of a body that may be broken in any way, or
// empty: the IoT rule reads it without validating the rest.
func PeekMessageID(body []byte) string {
	envelope, err := parseObject(body)
	if err != nil {
		return ""
	}
	return textOf(envelope["message_id"])
}

func parseObject(body []byte) (map[string]any, error) {
	if len(body) > MaxBody {
		return nil, invalid("body", "must be at most 128 KiB")
	}
	decoder := json.NewDecoder(bytes.NewReader(body))
	decoder.UseNumber()
	var value any
	if err := decoder.Decode(&value); err != nil {
		return nil, invalid("body", "must be JSON")
	}
	if _, err := decoder.Token(); !errors.Is(err, io.EOF) {
		return nil, invalid("body", "must be one JSON value")
	}
	object, ok := value.(map[string]any)
	if !ok {
		return nil, invalid("body", "must be a JSON object")
	}
	return object, nil
}

func textOf(value any) string {
	text, _ := value.(string)
	return text
}
