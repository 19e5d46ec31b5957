// Package mqtt connects to AWS IoT Core, or a broker like it, by MQTT 3.1.1 over
// TLS with a client certificate: to publish, and to take what others publish.
package mqtt

import (
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/hex"
	"errors"
	"fmt"
	"net"
	"os"
	"strconv"
	"strings"
)

// Broker says where a broker is, and by which certificate it knows us.
type Broker struct {
	// Endpoint is a host, host:port or URL such as mqtts://host:port; its port
	// wins over Port.
	Endpoint string
	Port     int
	// CAFile, CertFile and KeyFile are PEM files.
	CAFile, CertFile, KeyFile string
}

// MaxClientID is how many bytes AWS IoT Core allows a client id.
const MaxClientID = 128

// CheckClientID refuses client ids that AWS IoT Core does not take.
func CheckClientID(id string) error {
	if id == "" || len(id) > MaxClientID {
		return fmt.Errorf("client id: must have 1 to %d bytes", MaxClientID)
	}
	return nil
}

// UniqueID adds a random suffix. Host name and process id would not do: clones
// of a virtual machine share the one, containers the other, and two clients
// with one id drop each other's connections for ever.
func UniqueID(prefix string) string {
	var suffix [4]byte
	_, _ = rand.Read(suffix[:]) // It never fails.
	return prefix + "-" + hex.EncodeToString(suffix[:])
}

// Address splits the endpoint into host and port.
func (b Broker) Address() (host string, port int, err error) {
	endpoint := strings.TrimSpace(b.Endpoint)
	if _, rest, ok := strings.Cut(endpoint, "://"); ok {
		endpoint = rest
	}
	host, port = strings.Trim(endpoint, "[]/"), b.Port
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

// URL is the address as the client library wants it.
func (b Broker) URL() (string, error) {
	host, port, err := b.Address()
	return "mqtts://" + net.JoinHostPort(host, strconv.Itoa(port)), err
}

// httpsPort is shared by MQTT and HTTPS at AWS IoT Core; the client says which
// it speaks by this ALPN protocol name.
const (
	httpsPort = 443
	mqttALPN  = "x-amzn-mqtt-ca"
)

// TLS reads the certificate files; call it at every connect, so that renewed
// certificates need no restart.
func (b Broker) TLS() (*tls.Config, error) {
	host, port, err := b.Address()
	if err != nil {
		host = ""
	}
	roots := x509.NewCertPool()
	pem, err := os.ReadFile(b.CAFile)
	if err != nil {
		return nil, fmt.Errorf("CA file: %w", err)
	}
	if !roots.AppendCertsFromPEM(pem) {
		return nil, fmt.Errorf("CA file %s: has no PEM certificate", b.CAFile)
	}
	pair, err := tls.LoadX509KeyPair(b.CertFile, b.KeyFile)
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
