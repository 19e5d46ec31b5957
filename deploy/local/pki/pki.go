// Package pki makes the certificates of the local stack: one certificate authority, a
// certificate for the broker, and a client certificate per identity, as AWS IoT Core issues
// one per thing. Everything is ECDSA P-256, kept as PEM files of which the keys are readable
// by their owner only. It is meant for loopback and never for production.
package pki

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"io/fs"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"regexp"
	"time"
)

const (
	caLifetime   = 10 * 365 * 24 * time.Hour
	leafLifetime = 2 * 365 * 24 * time.Hour
	// renewBefore is how long before its end a stored certificate is replaced, so that a
	// stack started today also runs tomorrow.
	renewBefore = 30 * 24 * time.Hour
	// backdate tolerates clocks of virtual machines that run a little behind.
	backdate = time.Hour

	keyMode  = 0o600
	certMode = 0o644
	dirMode  = 0o700
)

// ServerName is the file stem and common name of the broker's own certificate.
const ServerName = "server"

var identity = regexp.MustCompile(`^[a-z0-9][a-z0-9-]{0,63}$`)

// ErrIdentity is returned for an identity that cannot be a file name and a common name.
var ErrIdentity = errors.New("identity must match [a-z0-9][a-z0-9-]{0,63} and be neither ca nor server")

// Files are the absolute paths of one identity's certificate, private key and authority.
type Files struct {
	Cert string `json:"cert_file"`
	Key  string `json:"key_file"`
	CA   string `json:"ca_file"`
}

// Authority is a certificate authority kept in a directory.
type Authority struct {
	dir  string
	now  func() time.Time
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
}

// Open loads the authority kept in dir, or creates it there when there is none or when it is
// about to expire. All certificates of a replaced authority are replaced when next asked for.
func Open(dir string, now func() time.Time) (*Authority, error) {
	abs, err := filepath.Abs(dir)
	if err != nil {
		return nil, fmt.Errorf("resolve certificate directory %q: %w", dir, err)
	}
	if err := os.MkdirAll(abs, dirMode); err != nil {
		return nil, fmt.Errorf("create certificate directory: %w", err)
	}
	a := &Authority{dir: abs, now: now}
	cert, key, err := loadPair(a.path("ca.crt"), a.path("ca.key"))
	switch {
	case err == nil && a.fresh(cert):
		a.cert, a.key = cert, key
		return a, nil
	case err == nil || errors.Is(err, fs.ErrNotExist):
		return a, a.create()
	default:
		return nil, fmt.Errorf("load local certificate authority: %w", err)
	}
}

// Client returns the files of the client certificate whose common name is id, and makes them
// when they are missing, about to expire or of another authority.
func (a *Authority) Client(id string) (Files, error) {
	if !identity.MatchString(id) || id == "ca" || id == ServerName {
		return Files{}, fmt.Errorf("client certificate for %q: %w", id, ErrIdentity)
	}
	return a.leaf(id, &x509.Certificate{
		Subject:     pkix.Name{CommonName: id, Organization: []string{"millrace local"}},
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth},
	})
}

// Server returns the files of the broker's certificate, valid for the loopback names only.
func (a *Authority) Server() (Files, error) {
	return a.leaf(ServerName, &x509.Certificate{
		Subject:     pkix.Name{CommonName: ServerName, Organization: []string{"millrace local"}},
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
		DNSNames:    []string{"localhost"},
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1), net.IPv6loopback},
	})
}

// Files returns the paths that belong to the identity id, made or not.
func (a *Authority) Files(id string) Files {
	return Files{Cert: a.path(id + ".crt"), Key: a.path(id + ".key"), CA: a.path("ca.crt")}
}

func (a *Authority) path(name string) string { return filepath.Join(a.dir, name) }

func (a *Authority) fresh(cert *x509.Certificate) bool {
	return a.now().Add(renewBefore).Before(cert.NotAfter)
}

func (a *Authority) create() error {
	key, err := newKey()
	if err != nil {
		return err
	}
	template := &x509.Certificate{
		Subject:               pkix.Name{CommonName: "millrace local authority"},
		IsCA:                  true,
		BasicConstraintsValid: true,
		MaxPathLenZero:        true,
		KeyUsage:              x509.KeyUsageCertSign | x509.KeyUsageCRLSign,
	}
	if err := a.stamp(template, caLifetime); err != nil {
		return err
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		return fmt.Errorf("sign the local authority: %w", err)
	}
	if a.cert, err = x509.ParseCertificate(der); err != nil {
		return fmt.Errorf("parse the local authority: %w", err)
	}
	a.key = key
	return a.store("ca", der, key)
}

func (a *Authority) leaf(name string, template *x509.Certificate) (Files, error) {
	files := a.Files(name)
	cert, _, err := loadPair(files.Cert, files.Key)
	if err == nil && a.fresh(cert) && cert.CheckSignatureFrom(a.cert) == nil {
		return files, nil
	}
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return Files{}, fmt.Errorf("load certificate of %s: %w", name, err)
	}
	key, err := newKey()
	if err != nil {
		return Files{}, err
	}
	template.KeyUsage = x509.KeyUsageDigitalSignature
	if err := a.stamp(template, leafLifetime); err != nil {
		return Files{}, err
	}
	der, err := x509.CreateCertificate(rand.Reader, template, a.cert, &key.PublicKey, a.key)
	if err != nil {
		return Files{}, fmt.Errorf("sign certificate of %s: %w", name, err)
	}
	return files, a.store(name, der, key)
}

func (a *Authority) stamp(template *x509.Certificate, lifetime time.Duration) error {
	serial, err := rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 127))
	if err != nil {
		return fmt.Errorf("draw a certificate serial: %w", err)
	}
	now := a.now()
	template.SerialNumber = serial
	template.NotBefore = now.Add(-backdate)
	template.NotAfter = now.Add(lifetime)
	return nil
}

func (a *Authority) store(name string, der []byte, key *ecdsa.PrivateKey) error {
	keyDER, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		return fmt.Errorf("encode key of %s: %w", name, err)
	}
	keyPEM := pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: keyDER})
	// The key goes first: a certificate without its key would look complete.
	if err := writeFile(a.path(name+".key"), keyPEM, keyMode); err != nil {
		return err
	}
	certPEM := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
	return writeFile(a.path(name+".crt"), certPEM, certMode)
}

func newKey() (*ecdsa.PrivateKey, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, fmt.Errorf("generate a P-256 key: %w", err)
	}
	return key, nil
}
