package monitoring

import (
	"crypto/aes"
	"crypto/cipher"
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"regexp"
	"strings"
)

// Envelope is the encrypted copy of a token's plaintext: AES-256-GCM under a
// named key, with the owner and the token's id as associated data.
type Envelope struct {
	Version    int    `json:"version"`
	KeyID      string `json:"key_id"`
	Nonce      []byte `json:"nonce"`
	Ciphertext []byte `json:"ciphertext"`
	Tag        []byte `json:"tag"`
}

const (
	envelopeVersion = 1
	keyBytes        = 32
	// nonceBytes and tagBytes are those of standard GCM. Nonces are random: a key
	// must be rotated before it sealed 2^32 tokens.
	nonceBytes = 12
	tagBytes   = 16
)

// Errors of saved copies.
var (
	// ErrUnknownKey means that the ring has not the key of a copy.
	ErrUnknownKey = errors.New("the key of this saved copy is not in the key ring")
	// ErrSealBroken means that a copy is not what was sealed for this token.
	ErrSealBroken = errors.New("the saved copy does not open")
	// ErrNoCurrentKey means that the ring can't seal.
	ErrNoCurrentKey = errors.New("the key ring has no current key")
)

// KeyRing has the keys of saved copies by id; new copies are made under Current.
// The zero value has no keys: tokens then have no saved copy.
type KeyRing struct {
	Current string
	Keys    map[string][]byte
}

var keyIDPattern = regexp.MustCompile(`^[A-Za-z0-9._-]{1,64}$`)

// CheckKeyID refuses what can't name a key: [A-Za-z0-9._-]{1,64}, not "none".
func CheckKeyID(id string) error {
	if !keyIDPattern.MatchString(id) || id == "none" {
		return invalid("key_id", `must match [A-Za-z0-9._-]{1,64} and not be "none"`)
	}
	return nil
}

type keyRingFile struct {
	Current string            `json:"current"`
	Keys    map[string]string `json:"keys"`
}

// ParseKeyRing reads {"current": "k2", "keys": {"k1": "…", "k2": "…"}}, every key
// 32 bytes in base64. Its errors never repeat a key.
func ParseKeyRing(text []byte) (KeyRing, error) {
	decoder := json.NewDecoder(strings.NewReader(string(text)))
	decoder.DisallowUnknownFields()
	var file keyRingFile
	if err := decoder.Decode(&file); err != nil {
		return KeyRing{}, invalid("key ring", "must be a JSON object with current and keys")
	}
	ring := KeyRing{Current: file.Current, Keys: make(map[string][]byte, len(file.Keys))}
	for id, encoded := range file.Keys {
		if err := CheckKeyID(id); err != nil {
			return KeyRing{}, err
		}
		key, err := base64.StdEncoding.DecodeString(encoded)
		if err != nil || len(key) != keyBytes {
			return KeyRing{}, invalid("keys."+id, "must be 32 bytes in base64")
		}
		ring.Keys[id] = key
	}
	if ring.Keys[ring.Current] == nil {
		return KeyRing{}, invalid("current", "must name one of the keys")
	}
	return ring, nil
}

// MarshalKeyRing writes a ring as ParseKeyRing reads it.
func MarshalKeyRing(ring KeyRing) ([]byte, error) {
	file := keyRingFile{Current: ring.Current, Keys: make(map[string]string, len(ring.Keys))}
	for id, key := range ring.Keys {
		file.Keys[id] = base64.StdEncoding.EncodeToString(key)
	}
	return json.MarshalIndent(file, "", "  ")
}

// With is the ring with one more key, made of random bytes, as the current one.
func (r KeyRing) With(id string, random io.Reader) (KeyRing, error) {
	if err := CheckKeyID(id); err != nil {
		return KeyRing{}, err
	}
	if r.Has(id) {
		return KeyRing{}, invalid("key_id", "is in the key ring already")
	}
	key := make([]byte, keyBytes)
	if _, err := io.ReadFull(random, key); err != nil {
		return KeyRing{}, fmt.Errorf("make key: %w", err)
	}
	next := KeyRing{Current: id, Keys: map[string][]byte{id: key}}
	maps.Copy(next.Keys, r.Keys)
	return next, nil
}

// Has tells whether the ring has a key.
func (r KeyRing) Has(id string) bool { return r.Keys[id] != nil }

// Outdated tells whether a copy under this key, "" for none, should be made anew:
// there is a current key and it is another, known or not, so that even a lost
// ring heals. While programs with an older and a newer ring run side by side,
// each makes the other's copies anew; the last ones to run win.
func (r KeyRing) Outdated(keyID string) bool { return r.Current != "" && keyID != r.Current }

// String names the keys and never shows them.
func (r KeyRing) String() string {
	return fmt.Sprintf("key ring of %d keys, current %q", len(r.Keys), r.Current)
}

// GoString is String.
func (r KeyRing) GoString() string { return r.String() }

// Seal makes the saved copy of a token under the current key.
func (r KeyRing) Seal(secret Secret, owner, tokenID string, random io.Reader) (*Envelope, error) {
	if r.Current == "" {
		return nil, ErrNoCurrentKey
	}
	gcm, err := r.Cipher(r.Current)
	if err != nil {
		return nil, err
	}
	nonce := make([]byte, nonceBytes)
	if _, err := io.ReadFull(random, nonce); err != nil {
		return nil, fmt.Errorf("make nonce: %w", err)
	}
	sealed := gcm.Seal(nil, nonce, []byte(secret.Plaintext()), associatedData(owner, tokenID))
	split := len(sealed) - tagBytes
	return &Envelope{Version: envelopeVersion, KeyID: r.Current, Nonce: nonce, Ciphertext: sealed[:split], Tag: sealed[split:]}, nil
}

// Open reads a saved copy. Its error is ErrUnknownKey or ErrSealBroken.
func (r KeyRing) Open(e Envelope, owner, tokenID string) (Secret, error) {
	gcm, err := r.Cipher(e.KeyID)
	if err != nil {
		return Secret{}, err
	}
	if e.Version != envelopeVersion || len(e.Nonce) != nonceBytes || len(e.Tag) != tagBytes {
		return Secret{}, ErrSealBroken
	}
	sealed := append(append([]byte{}, e.Ciphertext...), e.Tag...)
	plain, err := gcm.Open(nil, e.Nonce, sealed, associatedData(owner, tokenID))
	if err != nil {
		return Secret{}, ErrSealBroken
	}
	secret, err := ParseSecret(string(plain))
	if err != nil {
		return Secret{}, ErrSealBroken
	}
	return secret, nil
}

// Cipher is AES-256-GCM under a key of the ring. Its error is ErrUnknownKey.
func (r KeyRing) Cipher(keyID string) (cipher.AEAD, error) {
	key := r.Keys[keyID]
	if key == nil {
		return nil, ErrUnknownKey
	}
	block, err := aes.NewCipher(key)
	if err != nil {
		return nil, fmt.Errorf("use key of the ring: %w", err)
	}
	return cipher.NewGCM(block)
}

// associatedData binds a copy to its token. Every part is preceded by its length,
// so that no two pairs of owner and id give the same bytes.
func associatedData(owner, tokenID string) []byte {
	var data []byte
	for _, part := range []string{"millrace token recovery v1", owner, tokenID} {
		data = binary.BigEndian.AppendUint32(data, uint32(len(part))) //nolint:gosec // lengths are bounded by CheckOwner and CheckTokenID
		data = append(data, part...)
	}
	return data
}
