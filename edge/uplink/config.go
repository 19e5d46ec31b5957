// Package uplink is a factory's connection to AWS IoT Core: MQTT 3.1.1 over TLS
// with a client certificate, messages at QoS 1.
package uplink

import (
	"errors"
	"time"

	"millrace/platform/mqtt"
)

// Config says where the broker is and who we are.
type Config struct {
	// Endpoint is a host, host:port or URL such as mqtts://host:port; its port
	// wins over Port.
	Endpoint string
	Port     int
	// ClientID must be unique: the broker drops a connection when another client
	// comes with the same id. AWS IoT Core allows 128 bytes.
	ClientID string
	// CAFile, CertFile and KeyFile are PEM files, read again at every connect, so
	// that renewed certificates need no restart.
	CAFile, CertFile, KeyFile string
	// KeepAlive is 30 to 1200 s at AWS IoT Core.
	KeepAlive time.Duration
	// Timeout is how long connecting and writing may take.
	Timeout time.Duration
	// MinDelay is the time between the end of a connection and the next attempt;
	// it doubles up to MaxDelay while no message is confirmed.
	MinDelay, MaxDelay time.Duration
	// PerMessage makes a connection for each message, as the first publishers
	// did. No more than one message may be unconfirmed then.
	PerMessage bool
}

// check reports everything that is wrong with the settings at once.
func (c Config) check() error {
	_, _, err := c.broker().Address()
	_, errTLS := c.broker().TLS()
	return errors.Join(err, mqtt.CheckClientID(c.ClientID), errTLS)
}

func (c Config) broker() mqtt.Broker {
	return mqtt.Broker{Endpoint: c.Endpoint, Port: c.Port, CAFile: c.CAFile, CertFile: c.CertFile, KeyFile: c.KeyFile}
}
