package uplink_test

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"log/slog"
	"math/big"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"millrace/edge/uplink"
)

// selfSigned makes a certificate, its key and (the certificate again) its authority.
func selfSigned(t testing.TB) (cert, key, ca string) {
	t.Helper()
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(t, err)
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "factory-b"}, IsCA: true, BasicConstraintsValid: true,
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &private.PublicKey, private)
	require.NoError(t, err)
	keyDER, err := x509.MarshalPKCS8PrivateKey(private)
	require.NoError(t, err)
	dir := t.TempDir()
	cert, key = filepath.Join(dir, "certificate.pem.crt"), filepath.Join(dir, "private.pem.key")
	require.NoError(t, os.WriteFile(cert, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), 0o600))
	require.NoError(t, os.WriteFile(key, pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: keyDER}), 0o600))
	return cert, key, cert
}

func valid(t *testing.T) uplink.Config {
	t.Helper()
	cert, key, ca := selfSigned(t)
	return uplink.Config{
		Endpoint: "broker.example.com", Port: 8883, ClientID: "edge-1", CAFile: ca, CertFile: cert, KeyFile: key,
		KeepAlive: time.Minute, Timeout: time.Second, MinDelay: time.Second, MaxDelay: time.Minute,
	}
}

func TestEndpointsThatAreTaken(t *testing.T) {
	for _, endpoint := range []string{
		"broker.example.com", "broker.example.com:443", "127.0.0.1:18883", "[::1]:8883", "::1",
		"mqtts://broker.example.com", "ssl://broker.example.com:8883/", " broker.example.com\n",
	} {
		config := valid(t)
		config.Endpoint = endpoint
		_, err := uplink.New(config, slog.New(slog.DiscardHandler))
		require.NoError(t, err, endpoint)
	}
}

func TestSettingsAreRefusedTogether(t *testing.T) {
	config := valid(t)
	config.Endpoint = "broker example"
	config.ClientID = strings.Repeat("x", 129)
	config.CAFile = filepath.Join(t.TempDir(), "missing")
	_, err := uplink.New(config, slog.New(slog.DiscardHandler))
	for _, part := range []string{"endpoint: must be a host", "client id: must have 1 to 128 bytes", "CA file"} {
		require.ErrorContains(t, err, part)
	}
}

func TestSettingsThatCannotWork(t *testing.T) {
	cases := map[string]struct {
		edit func(*uplink.Config)
		want string
	}{
		"no endpoint":       {func(c *uplink.Config) { c.Endpoint = " " }, "endpoint"},
		"port no number":    {func(c *uplink.Config) { c.Endpoint = "host:mqtt" }, "no number"},
		"port out of range": {func(c *uplink.Config) { c.Port = 70000 }, "out of range"},
		"no client id":      {func(c *uplink.Config) { c.ClientID = "" }, "client id"},
		"CA without PEM":    {func(c *uplink.Config) { c.CAFile = c.KeyFile }, "has no PEM certificate"},
		"key missing":       {func(c *uplink.Config) { c.KeyFile = "/nonexistent" }, "certificate and key file"},
		"foreign key":       {func(c *uplink.Config) { _, c.KeyFile, _ = selfSigned(t) }, "certificate and key file"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			config := valid(t)
			c.edit(&config)
			_, err := uplink.New(config, slog.New(slog.DiscardHandler))
			require.ErrorContains(t, err, c.want)
		})
	}
}

func TestConnectWaitsLongerAfterEachFailure(t *testing.T) {
	config := valid(t)
	config.Endpoint = "127.0.0.1:1" // Nothing listens there.
	config.MinDelay, config.MaxDelay = 40*time.Millisecond, 100*time.Millisecond
	link, err := uplink.New(config, slog.New(slog.DiscardHandler))
	require.NoError(t, err)
	for _, least := range []time.Duration{0, 40 * time.Millisecond, 80 * time.Millisecond, 100 * time.Millisecond} {
		start := time.Now()
		require.Error(t, link.Connect(t.Context()))
		require.GreaterOrEqual(t, time.Since(start), least)
	}
	receipt := link.Send("aegis/factory-b/factory_state", []byte("{}"))
	<-receipt.Done()
	require.ErrorContains(t, receipt.Error(), "not connected")
}
