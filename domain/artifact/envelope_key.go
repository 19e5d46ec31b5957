package artifact

import (
	"crypto/ed25519"
	"crypto/x509"
	"encoding/pem"

	"golang.org/x/crypto/ssh"
)

// ParseSealingKey reads the private Ed25519 key that seals envelopes: OpenSSH's
// form or PEM (PKCS #8), without a passphrase. Errors repeat nothing of it.
func ParseSealingKey(text []byte) (ed25519.PrivateKey, error) {
	key, err := ssh.ParseRawPrivateKey(text)
	if err == nil {
		switch k := key.(type) {
		case ed25519.PrivateKey:
			return k, nil
		case *ed25519.PrivateKey:
			return *k, nil
		}
	}
	return nil, invalid("signing_key", "must be an Ed25519 private key, OpenSSH or PEM, without a passphrase")
}

// ParseOpeningKey reads the public Ed25519 key of envelopes: one line as in
// authorized_keys, or PEM (PKIX).
func ParseOpeningKey(text []byte) (ed25519.PublicKey, error) {
	if block, _ := pem.Decode(text); block != nil {
		if key, err := x509.ParsePKIXPublicKey(block.Bytes); err == nil {
			if key, ok := key.(ed25519.PublicKey); ok {
				return key, nil
			}
		}
	} else if key, _, _, _, err := ssh.ParseAuthorizedKey(text); err == nil {
		if crypto, ok := key.(ssh.CryptoPublicKey); ok {
			if key, ok := crypto.CryptoPublicKey().(ed25519.PublicKey); ok {
				return key, nil
			}
		}
	}
	return nil, invalid("public_key", "must be an Ed25519 public key as in authorized_keys, or PEM")
}
