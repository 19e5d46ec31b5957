package pki

import (
	"crypto/ecdsa"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"io/fs"
	"os"
)

// ServerTLS returns the broker's TLS configuration: TLS 1.2 or newer, and a client certificate
// of this authority is required, as AWS IoT Core does on port 8883.
func (a *Authority) ServerTLS() (*tls.Config, error) {
	files, err := a.Server()
	if err != nil {
		return nil, err
	}
	pair, err := tls.LoadX509KeyPair(files.Cert, files.Key)
	if err != nil {
		return nil, fmt.Errorf("load the broker's certificate: %w", err)
	}
	pool := x509.NewCertPool()
	pool.AddCert(a.cert)
	return &tls.Config{
		MinVersion:   tls.VersionTLS12,
		Certificates: []tls.Certificate{pair},
		ClientAuth:   tls.RequireAndVerifyClientCert,
		ClientCAs:    pool,
	}, nil
}

// ClientTLS returns the TLS configuration of a client that holds the given files.
func ClientTLS(files Files) (*tls.Config, error) {
	pair, err := tls.LoadX509KeyPair(files.Cert, files.Key)
	if err != nil {
		return nil, fmt.Errorf("load client certificate: %w", err)
	}
	ca, err := os.ReadFile(files.CA)
	if err != nil {
		return nil, fmt.Errorf("read authority: %w", err)
	}
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(ca) {
		return nil, fmt.Errorf("authority %s holds no certificate", files.CA)
	}
	return &tls.Config{MinVersion: tls.VersionTLS12, Certificates: []tls.Certificate{pair}, RootCAs: pool}, nil
}

func loadPair(certFile, keyFile string) (*x509.Certificate, *ecdsa.PrivateKey, error) {
	for _, name := range []string{certFile, keyFile} {
		if _, err := os.Stat(name); err != nil {
			return nil, nil, fmt.Errorf("look for %s: %w", name, err)
		}
	}
	pair, err := tls.LoadX509KeyPair(certFile, keyFile)
	if err != nil {
		return nil, nil, fmt.Errorf("read %s and its key (delete both to have them made again): %w", certFile, err)
	}
	key, ok := pair.PrivateKey.(*ecdsa.PrivateKey)
	if !ok {
		return nil, nil, fmt.Errorf("key %s is not an ECDSA key", keyFile)
	}
	return pair.Leaf, key, nil
}

// writeFile replaces name atomically, so that a process that reads it meanwhile sees the old
// or the new content and never half of it.
func writeFile(name string, data []byte, mode fs.FileMode) error {
	tmp := name + ".new"
	if err := os.WriteFile(tmp, data, mode); err != nil {
		return fmt.Errorf("write %s: %w", name, err)
	}
	// WriteFile keeps the mode of a file left over by a crash.
	if err := os.Chmod(tmp, mode); err != nil {
		return fmt.Errorf("set the mode of %s: %w", name, err)
	}
	if err := os.Rename(tmp, name); err != nil {
		return fmt.Errorf("replace %s: %w", name, err)
	}
	return nil
}
