package pki

import (
	"crypto/tls"
	"crypto/x509"
	"net"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

var today = time.Now()

func open(t *testing.T, dir string, now time.Time) *Authority {
	t.Helper()
	a, err := Open(dir, func() time.Time { return now })
	require.NoError(t, err)
	return a
}

func read(t *testing.T, name string) string {
	t.Helper()
	data, err := os.ReadFile(name)
	require.NoError(t, err)
	return string(data)
}

func TestKeysAreReadableByTheirOwnerOnly(t *testing.T) {
	dir := t.TempDir()
	files, err := open(t, dir, today).Client("factory-a")
	require.NoError(t, err)
	for _, key := range []string{files.Key, filepath.Join(dir, "ca.key")} {
		info, err := os.Stat(key)
		require.NoError(t, err)
		require.Equal(t, os.FileMode(0o600), info.Mode().Perm(), key)
	}
}

func TestCertificatesSurviveARestart(t *testing.T) {
	dir := t.TempDir()
	files, err := open(t, dir, today).Client("factory-a")
	require.NoError(t, err)
	was, ca := read(t, files.Cert), read(t, files.CA)
	again, err := open(t, dir, today.Add(24*time.Hour)).Client("factory-a")
	require.NoError(t, err)
	require.Equal(t, files, again)
	require.Equal(t, was, read(t, files.Cert))
	require.Equal(t, ca, read(t, files.CA))
}

func TestCertificatesAboutToExpireAreReplaced(t *testing.T) {
	tests := map[string]struct {
		later     time.Duration
		newCA     bool
		newClient bool
	}{
		"fresh":                   {later: leafLifetime - renewBefore - time.Hour},
		"client in its last days": {later: leafLifetime - renewBefore + time.Hour, newClient: true},
		"authority too":           {later: caLifetime - renewBefore + time.Hour, newClient: true, newCA: true},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			files, err := open(t, dir, today).Client("factory-a")
			require.NoError(t, err)
			cert, ca := read(t, files.Cert), read(t, files.CA)
			_, err = open(t, dir, today.Add(test.later)).Client("factory-a")
			require.NoError(t, err)
			require.Equal(t, test.newClient, cert != read(t, files.Cert), "client replaced")
			require.Equal(t, test.newCA, ca != read(t, files.CA), "authority replaced")
		})
	}
}

func TestACertificateOfAnotherAuthorityIsReplaced(t *testing.T) {
	dir := t.TempDir()
	files, err := open(t, dir, today).Client("factory-a")
	require.NoError(t, err)
	was := read(t, files.Cert)
	require.NoError(t, os.Remove(filepath.Join(dir, "ca.crt")))
	_, err = open(t, dir, today).Client("factory-a")
	require.NoError(t, err)
	require.NotEqual(t, was, read(t, files.Cert))
}

func TestABrokenFileIsNamed(t *testing.T) {
	dir := t.TempDir()
	a := open(t, dir, today)
	files, err := a.Client("factory-a")
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(files.Cert, []byte("no certificate"), 0o600))
	_, err = a.Client("factory-a")
	require.ErrorContains(t, err, files.Cert)
	require.ErrorContains(t, err, "delete both")
}

func TestIdentitiesThatAreNoFileNamesAreRefused(t *testing.T) {
	a := open(t, t.TempDir(), today)
	for _, id := range []string{"", "../evil", "a/b", "Factory", "ca", "server", "a b", string(make([]byte, 65))} {
		_, err := a.Client(id)
		require.ErrorIs(t, err, ErrIdentity, "%q", id)
	}
}

func TestServerAcceptsOnlyItsOwnClients(t *testing.T) {
	ours, theirs := open(t, t.TempDir(), today), open(t, t.TempDir(), today)
	serverTLS, err := ours.ServerTLS()
	require.NoError(t, err)
	require.EqualValues(t, tls.VersionTLS12, serverTLS.MinVersion)

	client := func(a *Authority) *tls.Config {
		files, err := a.Client("factory-a")
		require.NoError(t, err)
		cfg, err := ClientTLS(files)
		require.NoError(t, err)
		cfg.RootCAs = x509.NewCertPool()
		cfg.RootCAs.AddCert(ours.cert)
		return cfg
	}
	require.NoError(t, handshake(t, serverTLS, client(ours)))
	require.Error(t, handshake(t, serverTLS, client(theirs)))
	anonymous := client(ours)
	anonymous.Certificates = nil
	require.Error(t, handshake(t, serverTLS, anonymous))
}

func TestAClientCertificateIsNoServerCertificate(t *testing.T) {
	a := open(t, t.TempDir(), today)
	files, err := a.Client("factory-a")
	require.NoError(t, err)
	pair, err := tls.LoadX509KeyPair(files.Cert, files.Key)
	require.NoError(t, err)
	cfg, err := ClientTLS(files)
	require.NoError(t, err)
	require.Error(t, handshake(t, &tls.Config{Certificates: []tls.Certificate{pair}}, cfg))
}

// handshake connects a client and a server over loopback and returns what the server says.
func handshake(t *testing.T, server, client *tls.Config) error {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer listener.Close()
	result := make(chan error, 1)
	go func() {
		conn, err := listener.Accept()
		if err != nil {
			result <- err
			return
		}
		defer conn.Close()
		result <- tls.Server(conn, server).Handshake()
	}()
	conn, err := tls.Dial("tcp", listener.Addr().String(), client)
	if err == nil {
		defer conn.Close()
	}
	if serverErr := <-result; serverErr != nil {
		return serverErr
	}
	return err
}
