// Package uplink is a factory's connection to AWS IoT Core: MQTT 3.1.1 over TLS
// with a client certificate, messages at QoS 1.
package uplink

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"os"
	"strconv"
	"strings"
	"time"
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

const maxClientID = 128

// check reports everything that is wrong with the settings at once.
func (c Config) check() error {
	var problems []error
	if _, _, err := c.address(); err != nil {
		problems = append(problems, err)
	}
	if c.ClientID == "" || len(c.ClientID) > maxClientID {
		problems = append(problems, fmt.Errorf("client id: must have 1 to %d bytes", maxClientID))
	}
	if _, err := c.tls(); err != nil {
		problems = append(problems, err)
	}
	return errors.Join(problems...)
}

// address splits the endpoint into host and port.
func (c Config) address() (host string, port int, err error) {
	endpoint := strings.TrimSpace(c.Endpoint)
	if _, rest, ok := strings.Cut(endpoint, "://"); ok {
		endpoint = rest
	}
	host, port = strings.Trim(endpoint, "[]/"), c.Port
	if h, p, err := net.SplitHostPort(strings.TrimSuffix(endpoint, "/")); err == nil {
		host = h
		port, err = strconv.Atoi(p)
		if err != nil {
			return "", 0, fmt.Errorf("endpoint: port %q is no number", p)
		}
	}
	if host == "" || strings.ContainsAny(host, " /@\t\r\n") {
		return "", 0, errors.New("endpoint: must be a host or host:port")
	}
	if port < 1 || port > 65535 {
		return "", 0, fmt.Errorf("endpoint: port %d is out of range", port)
	}
	return host, port, nil
}

func (c Config) url() (string, error) {
	host, port, err := c.address()
	return "mqtts://" + net.JoinHostPort(host, strconv.Itoa(port)), err
}

// httpsPort is shared by MQTT and HTTPS at AWS IoT Core; the client says which
// it speaks by this ALPN protocol name.
const (
	httpsPort = 443
	mqttALPN  = "x-amzn-mqtt-ca"
)

func (c Config) tls() (*tls.Config, error) {
	host, port, err := c.address()
	if err != nil {
		host = ""
	}
	roots := x509.NewCertPool()
	pem, err := os.ReadFile(c.CAFile)
	if err != nil {
		return nil, fmt.Errorf("CA file: %w", err)
	}
	if !roots.AppendCertsFromPEM(pem) {
		return nil, fmt.Errorf("CA file %s: has no PEM certificate", c.CAFile)
	}
	pair, err := tls.LoadX509KeyPair(c.CertFile, c.KeyFile)
	if err != nil {
		return nil, fmt.Errorf("certificate and key file: %w", err)
	}
	config := &tls.Config{
		MinVersion:   tls.VersionTLS12,
		ServerName:   host,
		RootCAs:      roots,
		Certificates: []tls.Certificate{pair},
	}
	if port == httpsPort {
		config.NextProtos = []string{mqttALPN}
	}
	return config, nil
}
