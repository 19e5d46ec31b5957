package monitoring

import (
	"crypto/subtle"
	"encoding/hex"
	"fmt"
	"io"
	"regexp"
	"strings"
	"time"
)

// Token is what is known of a token: never its plaintext, only the SHA-256 of it
// and, while it is active, an encrypted copy.
type Token struct {
	ID         string
	Owner      string
	Name       string
	Scopes     Scopes
	Hash       string
	CreatedAt  time.Time
	RevokedAt  *time.Time
	LastUsedAt *time.Time
	Recovery   *Envelope
}

// CanReveal tells whether the token is active and has a saved copy.
func (t Token) CanReveal() bool { return t.RevokedAt == nil && t.Recovery != nil }

// RecoveryKeyID is the key of the saved copy, "" without one.
func (t Token) RecoveryKeyID() string {
	if t.Recovery == nil {
		return ""
	}
	return t.Recovery.KeyID
}

// Grant is what authentication reads of a token, by its hash.
type Grant struct {
	Hash          string
	Owner         string
	TokenID       string
	Scopes        Scopes
	RevokedAt     *time.Time
	RecoveryKeyID string
}

// Active tells whether the grant is the one of this hash and was not revoked. The
// comparison takes the same time whatever differs.
func (g Grant) Active(hash string) bool {
	same := subtle.ConstantTimeCompare([]byte(g.Hash), []byte(hash)) == 1
	return same && g.RevokedAt == nil
}

// Grant is the token as authentication sees it.
func (t Token) Grant() Grant {
	return Grant{Hash: t.Hash, Owner: t.Owner, TokenID: t.ID, Scopes: t.Scopes, RevokedAt: t.RevokedAt, RecoveryKeyID: t.RecoveryKeyID()}
}

// View is the public metadata of a token: no hash, no owner, nothing of the
// encryption.
type View struct {
	ID         string     `json:"id" doc:"Id of the token; not a secret." example:"tok_0193790c5f8a4f0c9d3e2b1a7c6d5e4f"`
	Name       string     `json:"name" doc:"What the owner calls it."`
	Scopes     Scopes     `json:"scopes" nullable:"false" doc:"What the token allows."`
	CreatedAt  time.Time  `json:"createdAt"`
	RevokedAt  *time.Time `json:"revokedAt,omitempty"`
	LastUsedAt *time.Time `json:"lastUsedAt,omitempty" doc:"Last use, to the minute."`
	CanReveal  bool       `json:"canReveal" doc:"Whether the token is active and has a saved copy."`
}

// View is the token as its owner sees it.
func (t Token) View() View {
	return View{
		ID: t.ID, Name: t.Name, Scopes: t.Scopes, CreatedAt: t.CreatedAt,
		RevokedAt: t.RevokedAt, LastUsedAt: t.LastUsedAt, CanReveal: t.CanReveal(),
	}
}

// Request asks for a token.
type Request struct {
	Owner  string
	Name   string
	Scopes []string
}

const maxTokenName = 100

// Issue makes a token and its plaintext, which is nowhere else. Without a current
// key in the ring the token has no saved copy.
func Issue(r Request, ring KeyRing, random io.Reader, now time.Time) (Token, Secret, error) {
	if err := CheckOwner(r.Owner); err != nil {
		return Token{}, Secret{}, err
	}
	if err := checkTokenName(r.Name); err != nil {
		return Token{}, Secret{}, err
	}
	scopes, err := ParseScopes(r.Scopes)
	if err != nil {
		return Token{}, Secret{}, err
	}
	id, err := newTokenID(random, now)
	if err != nil {
		return Token{}, Secret{}, err
	}
	secret, err := NewSecret(random)
	if err != nil {
		return Token{}, Secret{}, err
	}
	token := Token{ID: id, Owner: r.Owner, Name: r.Name, Scopes: scopes, Hash: secret.Hash(), CreatedAt: now.UTC().Truncate(time.Millisecond)}
	if ring.Current != "" {
		token.Recovery, err = ring.Seal(secret, token.Owner, token.ID, random)
	}
	return token, secret, err
}

func checkTokenName(name string) error {
	if strings.TrimSpace(name) == "" || !shortText(name, maxTokenName) {
		return invalid("name", "must be 1 to 100 visible characters")
	}
	return nil
}

var tokenIDPattern = regexp.MustCompile(`^tok_[0-9a-f]{32}$`)

// CheckTokenID refuses what is no token id.
func CheckTokenID(id string) error {
	if !tokenIDPattern.MatchString(id) {
		return invalid("token_id", "must match tok_[0-9a-f]{32}")
	}
	return nil
}

// newTokenID begins with the time in milliseconds, so that lists are in the order
// of creation.
func newTokenID(random io.Reader, now time.Time) (string, error) {
	var tail [10]byte
	if _, err := io.ReadFull(random, tail[:]); err != nil {
		return "", fmt.Errorf("make token id: %w", err)
	}
	return fmt.Sprintf("tok_%012x%s", now.UnixMilli(), hex.EncodeToString(tail[:])), nil
}

// Keys of tokens in the monitoring table.
const (
	TokenPrefix  = "TOKEN#"
	TokenGrantSK = "TOKEN"
)

// TokenSK is the sort key of a token's metadata, below OwnerPK.
func TokenSK(id string) string { return TokenPrefix + id }

// TokenGrantPK is the partition of the row that authenticates by this hash.
func TokenGrantPK(hash string) string { return "KEY#" + hash }

// RecoveryPK is the index partition of the tokens whose saved copy is under a
// key; "" stands for those without a copy.
func RecoveryPK(keyID string) string {
	if keyID == "" {
		keyID = "none"
	}
	return "RECOVERY#" + keyID
}

// RecoverySK orders the tokens of one recovery key.
func RecoverySK(owner, id string) string { return OwnerPK(owner) + "#" + TokenSK(id) }
