package factory

import (
	"bytes"
	"encoding/json"
	"fmt"
	"time"
)

// outgoingKeys are the envelope keys that a message needs before it may leave
// the factory. "Required" is presence of the key (message contract, envelope).
var outgoingKeys = []string{
	"schema_version", "message_id", "factory_id", "node_id", "environment_type", "input_module_type",
	"source_type", "source_timestamp", "published_at", "data_plane_instance_id", "payload",
}

// Outgoing is a message that a factory's programs put into the outbox and that
// may be published: its envelope is complete and its topic is safe.
type Outgoing struct {
	MessageID  string
	FactoryID  string
	SourceType SourceType

	envelope map[string]any
}

// ParseOutgoing reads a message of the outbox. It wants every envelope key, a
// known source_type, a payload object and identifiers that are safe in a topic
// and in an object key; the values of the other keys are the cloud's business.
// Every error is an *InvalidError.
func ParseOutgoing(body []byte) (Outgoing, error) {
	envelope, err := parseObject(body)
	if err != nil {
		return Outgoing{}, err
	}
	for _, key := range outgoingKeys {
		if _, ok := envelope[key]; !ok {
			return Outgoing{}, invalid(key, "is required")
		}
	}
	if _, ok := envelope["payload"].(map[string]any); !ok {
		return Outgoing{}, invalid("payload", "must be an object")
	}
	o := Outgoing{
		MessageID:  textOf(envelope["message_id"]),
		FactoryID:  textOf(envelope["factory_id"]),
		SourceType: SourceType(textOf(envelope["source_type"])),
		envelope:   envelope,
	}
	return o, o.check()
}

func (o Outgoing) check() error {
	if err := CheckFactoryID(o.FactoryID); err != nil {
		return err
	}
	if err := CheckMessageID(o.MessageID); err != nil {
		return err
	}
	if !o.SourceType.Valid() {
		return invalid("source_type", "must be factory_state, infra_state or image_snapshot")
	}
	return nil
}

// Topic is where the message is published: aegis/{factory_id}/{source_type}.
func (o Outgoing) Topic() string { return Topic(o.FactoryID, o.SourceType) }

// Topic is where messages of one factory and source type are published.
func Topic(factoryID string, source SourceType) string {
	return "aegis/" + factoryID + "/" + string(source)
}

// Wire is the body to publish at the given time by the given instance, in the
// canonical wire form. Bodies over MaxBody, which the broker would answer by
// ending the connection, are an *InvalidError.
func (o Outgoing) Wire(publishedAt time.Time, instanceID string) ([]byte, error) {
	o.envelope["published_at"] = FormatSecond(publishedAt)
	o.envelope["data_plane_instance_id"] = instanceID
	body, err := encodeSorted(o.envelope)
	if err != nil {
		return nil, invalid("body", "must be JSON")
	}
	if len(body) > MaxBody {
		return nil, invalid("body", "must be at most 128 KiB")
	}
	return body, nil
}

// EncodeWire writes v in the canonical wire form of messages: one line of
// compact JSON, keys sorted, UTF-8, numbers with the digits they were given.
func EncodeWire(v any) ([]byte, error) {
	loose, err := json.Marshal(v)
	if err != nil {
		return nil, fmt.Errorf("encode message: %w", err)
	}
	decoder := json.NewDecoder(bytes.NewReader(loose))
	decoder.UseNumber()
	var value any
	if err := decoder.Decode(&value); err != nil {
		return nil, fmt.Errorf("encode message: %w", err)
	}
	return encodeSorted(value)
}

// encodeSorted relies on encoding/json sorting the keys of maps.
func encodeSorted(value any) ([]byte, error) {
	var out bytes.Buffer
	encoder := json.NewEncoder(&out)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(value); err != nil {
		return nil, fmt.Errorf("encode message: %w", err)
	}
	return bytes.TrimSuffix(out.Bytes(), []byte("\n")), nil
}

// NewMessageID is the identity of a message, made of the factory, what it
// carries, the node that produced it and its source timestamp as text.
func NewMessageID(factoryID string, source SourceType, nodeID, sourceTimestamp string) string {
	return factoryID + ":" + string(source) + ":" + nodeID + ":" + sourceTimestamp
}

// FormatSecond writes an instant in UTC with second precision, as the message
// contract wants its times.
func FormatSecond(t time.Time) string { return t.UTC().Format("2006-01-02T15:04:05Z") }
