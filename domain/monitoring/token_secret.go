package monitoring

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"regexp"
)

// Secret is the plaintext of a token. It prints, logs and marshals as a
// placeholder; only Plaintext hands it out.
type Secret struct {
	text string
}

const (
	secretPrefix = "mr_"
	secretBytes  = 32
	redacted     = "mr_[redacted]"
)

var secretPattern = regexp.MustCompile(`^mr_[A-Za-z0-9_-]{43}$`)

// ErrNotAToken marks text that has not the form of a token.
var ErrNotAToken = errors.New("not a token")

// NewSecret makes a secret of 32 random bytes.
func NewSecret(random io.Reader) (Secret, error) {
	var bytes [secretBytes]byte
	if _, err := io.ReadFull(random, bytes[:]); err != nil {
		return Secret{}, fmt.Errorf("make token: %w", err)
	}
	return Secret{text: secretPrefix + base64.RawURLEncoding.EncodeToString(bytes[:])}, nil
}

// ParseSecret reads a token as a client sends it; its error is ErrNotAToken and
// never repeats the text.
func ParseSecret(text string) (Secret, error) {
	if !secretPattern.MatchString(text) {
		return Secret{}, ErrNotAToken
	}
	return Secret{text: text}, nil
}

// Plaintext is the token itself.
func (s Secret) Plaintext() string { return s.text }

// Hash is the SHA-256 of the plaintext in hexadecimal.
func (s Secret) Hash() string {
	sum := sha256.Sum256([]byte(s.text))
	return hex.EncodeToString(sum[:])
}

// String is a placeholder.
func (s Secret) String() string { return redacted }

// GoString is a placeholder.
func (s Secret) GoString() string { return redacted }

// LogValue is a placeholder.
func (s Secret) LogValue() slog.Value { return slog.StringValue(redacted) }

// MarshalText is a placeholder, so that no document carries a token by accident.
func (s Secret) MarshalText() ([]byte, error) { return []byte(redacted), nil }
