package broker

import (
	"errors"
	"fmt"
	"strings"

	"github.com/mochi-mqtt/server/v2/packets"
)

// Limits of AWS IoT Core's message broker that the local broker enforces, so that what works here
// works there (AWS IoT Core endpoints and quotas).
const (
	MaxPayload          = 128 << 10
	MaxTopicBytes       = 256
	MaxTopicSlashes     = 7
	MaxFiltersPerPacket = 8
	MaxSubscriptions    = 50
	MaxClientIDBytes    = 128
	MaxQoS              = 1

	// maxPacket leaves room for the header, topic and packet id around the largest payload.
	maxPacket = MaxPayload + MaxTopicBytes + 64
	// sessionExpirySeconds is how long the state of a disconnected persistent client is kept.
	sessionExpirySeconds = 3600
)

// errDenied marks a packet that the policy of the client's certificate does not allow.
var errDenied = errors.New("not allowed by the certificate's policy")

// checkPublish returns why AWS IoT Core would not take this publish, or nil.
func checkPublish(p policy, pk packets.Packet) error {
	if pk.FixedHeader.Qos > MaxQoS {
		return fmt.Errorf("publish with QoS %d: at most %d is supported", pk.FixedHeader.Qos, MaxQoS)
	}
	if len(pk.Payload) > MaxPayload {
		return fmt.Errorf("payload of %d bytes: at most %d are allowed", len(pk.Payload), MaxPayload)
	}
	if err := checkTopic(pk.TopicName); err != nil {
		return err
	}
	if !p.mayPublish(pk.TopicName) {
		return fmt.Errorf("publish to %q: %w", pk.TopicName, errDenied)
	}
	return nil
}

// checkSubscribe returns why AWS IoT Core would not take this subscription, or nil. held is the
// number of subscriptions that the client has already.
func checkSubscribe(p policy, pk packets.Packet, held int) error {
	if len(pk.Filters) > MaxFiltersPerPacket {
		return fmt.Errorf("%d topic filters in one request: at most %d are allowed", len(pk.Filters), MaxFiltersPerPacket)
	}
	if held+len(pk.Filters) > MaxSubscriptions {
		return fmt.Errorf("more than %d subscriptions on one connection", MaxSubscriptions)
	}
	for _, sub := range pk.Filters {
		if sub.Qos > MaxQoS {
			return fmt.Errorf("subscription with QoS %d: at most %d is supported", sub.Qos, MaxQoS)
		}
		if err := checkTopic(sub.Filter); err != nil {
			return err
		}
		if !p.maySubscribe(sub.Filter) {
			return fmt.Errorf("subscribe to %q: %w", sub.Filter, errDenied)
		}
	}
	return nil
}

func checkTopic(topic string) error {
	if len(topic) > MaxTopicBytes {
		return fmt.Errorf("topic of %d bytes: at most %d are allowed", len(topic), MaxTopicBytes)
	}
	if n := strings.Count(topic, "/"); n > MaxTopicSlashes {
		return fmt.Errorf("topic with %d slashes: at most %d are allowed", n, MaxTopicSlashes)
	}
	return nil
}

// checkConnect returns why this connection is refused, or nil.
func checkConnect(pk packets.Packet) error {
	switch id := pk.Connect.ClientIdentifier; {
	case id == "":
		return errors.New("empty client id")
	case len(id) > MaxClientIDBytes:
		return fmt.Errorf("client id of %d bytes: at most %d are allowed", len(id), MaxClientIDBytes)
	case pk.Connect.WillFlag:
		return errors.New("last will: not supported by the local broker")
	}
	return nil
}
