package monitoring

import (
	"bytes"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

var issuedAt = time.Date(2026, 11, 30, 12, 0, 30, 123456789, time.UTC)

func testRing(t testing.TB, ids ...string) KeyRing {
	t.Helper()
	var ring KeyRing
	for _, id := range ids {
		next, err := ring.With(id, rand.Reader)
		require.NoError(t, err)
		ring = next
	}
	return ring
}

func issue(t testing.TB, ring KeyRing) (Token, Secret) {
	t.Helper()
	token, secret, err := Issue(Request{Owner: "user:kim", Name: "laptop", Scopes: []string{"read"}}, ring, rand.Reader, issuedAt)
	require.NoError(t, err)
	return token, secret
}

func TestIssueKeepsOnlyTheHashAndAnEncryptedCopy(t *testing.T) {
	ring := testRing(t, "k1")
	token, secret := issue(t, ring)

	require.Regexp(t, `^mr_[A-Za-z0-9_-]{43}$`, secret.Plaintext())
	sum := sha256.Sum256([]byte(secret.Plaintext()))
	require.Equal(t, hex.EncodeToString(sum[:]), token.Hash)
	require.NoError(t, CheckTokenID(token.ID))
	require.Equal(t, issuedAt.Truncate(time.Millisecond), token.CreatedAt)
	require.True(t, token.CanReveal())

	stored, err := json.Marshal(token)
	require.NoError(t, err)
	require.NotContains(t, string(stored), secret.Plaintext())

	opened, err := ring.Open(*token.Recovery, token.Owner, token.ID)
	require.NoError(t, err)
	require.Equal(t, secret, opened)
}

func TestIssueWithoutKeysSavesNoCopy(t *testing.T) {
	token, _ := issue(t, KeyRing{})
	require.Nil(t, token.Recovery)
	require.False(t, token.CanReveal())
	require.Equal(t, "RECOVERY#none", RecoveryPK(token.RecoveryKeyID()))
}

func TestIssueRefusesBadRequests(t *testing.T) {
	good := Request{Owner: "user:kim", Name: "laptop", Scopes: []string{"read"}}
	for name, c := range map[string]struct {
		field  string
		change func(*Request)
	}{
		"owner without kind":   {"owner", func(r *Request) { r.Owner = "kim" }},
		"app with a slash":     {"owner", func(r *Request) { r.Owner = "app:a/b" }},
		"owner with a newline": {"owner", func(r *Request) { r.Owner = "user:a\nb" }},
		"owner too long":       {"owner", func(r *Request) { r.Owner = "user:" + strings.Repeat("x", 129) }},
		"owner not UTF-8":      {"owner", func(r *Request) { r.Owner = "user:\xff" }},
		"no name":              {"name", func(r *Request) { r.Name = "" }},
		"spaces for a name":    {"name", func(r *Request) { r.Name = "  " }},
		"name too long":        {"name", func(r *Request) { r.Name = strings.Repeat("공", 101) }},
		"control in name":      {"name", func(r *Request) { r.Name = "a\x00b" }},
		"no scopes":            {"scopes", func(r *Request) { r.Scopes = nil }},
	} {
		t.Run(name, func(t *testing.T) {
			request := good
			c.change(&request)
			_, _, err := Issue(request, KeyRing{}, rand.Reader, issuedAt)
			var invalid *InvalidError
			require.ErrorAs(t, err, &invalid)
			require.Equal(t, c.field, invalid.Field)
		})
	}
}

func TestIssueFailsWithoutRandomness(t *testing.T) {
	for _, n := range []int{0, 9, 41} {
		_, _, err := Issue(Request{Owner: "user:kim", Name: "x", Scopes: []string{"read"}}, KeyRing{}, bytes.NewReader(make([]byte, n)), issuedAt)
		require.Error(t, err, "%d random bytes", n)
	}
}

func TestViewShowsNeitherHashNorOwnerNorEncryption(t *testing.T) {
	token, secret := issue(t, testRing(t, "key-name"))
	body, err := json.Marshal(token.View())
	require.NoError(t, err)
	for _, hidden := range []string{token.Hash, "user:kim", "key-name", secret.Plaintext(), "recovery", "nonce"} {
		require.NotContains(t, string(body), hidden)
	}
	require.Contains(t, string(body), `"canReveal":true`)
}

func TestRevokedTokensCanNotBeRevealed(t *testing.T) {
	token, _ := issue(t, testRing(t, "k1"))
	token.RevokedAt = &issuedAt
	require.False(t, token.CanReveal())
	require.False(t, token.Grant().Active(token.Hash))
}

func TestGrantIsActiveForItsOwnHashOnly(t *testing.T) {
	token, secret := issue(t, KeyRing{})
	require.True(t, token.Grant().Active(secret.Hash()))
	require.False(t, token.Grant().Active(strings.Repeat("0", 64)))
	require.False(t, token.Grant().Active(""))
}

func TestSecretsNeverPrint(t *testing.T) {
	_, secret := issue(t, KeyRing{})
	var log bytes.Buffer
	slog.New(slog.NewJSONHandler(&log, nil)).Info("token", "secret", secret, "pair", []any{secret})
	body, err := json.Marshal(map[string]any{"s": secret})
	require.NoError(t, err)
	all := log.String() + string(body) + fmt.Sprintf("%v %+v %s %#v %q", secret, secret, secret, secret, secret)
	require.NotContains(t, all, secret.Plaintext()[3:])
}

func TestKeyRingsNeverPrint(t *testing.T) {
	ring := testRing(t, "k1")
	text := fmt.Sprintf("%v %+v %#v", ring, ring, ring)
	require.NotContains(t, text, fmt.Sprintf("%d", ring.Keys["k1"][0:2]))
	require.Equal(t, `key ring of 1 keys, current "k1"`, ring.String())
}

func TestCopyOpensOnlyForItsOwnToken(t *testing.T) {
	ring := testRing(t, "k1")
	token, _ := issue(t, ring)
	other := testRing(t, "k1")
	for name, open := range map[string]func() (Secret, error){
		"another owner":    func() (Secret, error) { return ring.Open(*token.Recovery, "user:lee", token.ID) },
		"another token":    func() (Secret, error) { return ring.Open(*token.Recovery, token.Owner, "tok_x") },
		"shifted boundary": func() (Secret, error) { return ring.Open(*token.Recovery, token.Owner+"t", token.ID[1:]) },
		"another key":      func() (Secret, error) { return other.Open(*token.Recovery, token.Owner, token.ID) },
		"changed ciphertext": func() (Secret, error) {
			e := *token.Recovery
			e.Ciphertext = append([]byte{e.Ciphertext[0] ^ 1}, e.Ciphertext[1:]...)
			return ring.Open(e, token.Owner, token.ID)
		},
		"short nonce": func() (Secret, error) {
			e := *token.Recovery
			e.Nonce = e.Nonce[:3]
			return ring.Open(e, token.Owner, token.ID)
		},
		"other version": func() (Secret, error) {
			e := *token.Recovery
			e.Version = 2
			return ring.Open(e, token.Owner, token.ID)
		},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := open()
			require.ErrorIs(t, err, ErrSealBroken)
		})
	}
	_, err := testRing(t, "k2").Open(*token.Recovery, token.Owner, token.ID)
	require.ErrorIs(t, err, ErrUnknownKey)
}

func TestAssociatedDataIsUnambiguous(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		a, b := rapid.String().Draw(t, "owner"), rapid.String().Draw(t, "id")
		c, d := rapid.String().Draw(t, "other owner"), rapid.String().Draw(t, "other id")
		same := a == c && b == d
		if bytes.Equal(associatedData(a, b), associatedData(c, d)) != same {
			t.Fatalf("(%q, %q) and (%q, %q)", a, b, c, d)
		}
	})
	require.NotEqual(t, associatedData("ab", "c"), associatedData("a", "bc"))
}

func TestCopyIsOutdatedUnderAnotherKeyOrNone(t *testing.T) {
	ring := testRing(t, "k1", "k2")
	require.True(t, ring.Outdated("k1"))
	require.True(t, ring.Outdated(""))
	require.False(t, ring.Outdated("k2"))
	require.True(t, ring.Outdated("lost"))
	require.False(t, KeyRing{}.Outdated(""))
}

func TestKeyRingRoundTrip(t *testing.T) {
	ring := testRing(t, "k1", "k2")
	text, err := MarshalKeyRing(ring)
	require.NoError(t, err)
	parsed, err := ParseKeyRing(text)
	require.NoError(t, err)
	require.Equal(t, ring, parsed)
	require.Equal(t, "k2", parsed.Current)
}

func TestParseKeyRingNamesTheFieldButNotTheKey(t *testing.T) {
	for text, field := range map[string]string{
		``:                                      "key ring",
		`[]`:                                    "key ring",
		`{"current":"k1","keys":{},"x":1}`:      "key ring",
		`{"current":"k1","keys":{}}`:            "current",
		`{"current":"k1","keys":{"k1":"c2hv"}}`: "keys.k1",
		`{"current":"k1","keys":{"k1":"%%%%"}}`: "keys.k1",
		`{"current":"a#","keys":{"a#":"c2hv"}}`: "key_id",
		`{"current":"none","keys":{"none":""}}`: "key_id",
	} {
		_, err := ParseKeyRing([]byte(text))
		var invalid *InvalidError
		require.ErrorAs(t, err, &invalid, text)
		require.Equal(t, field, invalid.Field, text)
		require.NotContains(t, err.Error(), "c2hv")
	}
	ring := testRing(t, "k1")
	_, err := ring.With("k1", rand.Reader)
	require.ErrorContains(t, err, "in the key ring already")
}

func TestKeysEscapeTheirSegments(t *testing.T) {
	require.Equal(t, "OWNER#user:a%23SOURCE%23x%2523", OwnerPK("user:a#SOURCE#x%23"))
	require.Equal(t, "BUDGET#user:a%23b", BudgetPK("user:a#b"))
	rapid.Check(t, func(t *rapid.T) {
		a, b := rapid.String().Draw(t, "a"), rapid.String().Draw(t, "b")
		if strings.Contains(Segmented(a), "#") || (a != b && Segmented(a) == Segmented(b)) {
			t.Fatalf("segments %q and %q", Segmented(a), Segmented(b))
		}
	})
}

func FuzzParseSecret(f *testing.F) {
	f.Add("mr_" + strings.Repeat("A", 43))
	f.Add("mr_")
	f.Add("Bearer mr_x\n")
	f.Fuzz(func(t *testing.T, text string) {
		secret, err := ParseSecret(text)
		if err == nil && (secret.Plaintext() != text || len(text) != 46) {
			t.Fatalf("took %q", text)
		}
		if err != nil && len(text) > 12 && strings.Contains(err.Error(), text) {
			t.Fatal("the error repeats the text")
		}
	})
}

func FuzzParseKeyRing(f *testing.F) {
	f.Add([]byte(`{"current":"k1","keys":{"k1":"MDEyMzQ1Njc4OTAxMjM0NTY3ODkwMTIzNDU2Nzg5MDE="}}`))
	f.Add([]byte(`{"current":"","keys":{"":""}}`))
	f.Fuzz(func(t *testing.T, text []byte) {
		ring, err := ParseKeyRing(text)
		if err != nil {
			return
		}
		secret, err := NewSecret(rand.Reader)
		require.NoError(t, err)
		envelope, err := ring.Seal(secret, "user:x", "tok", rand.Reader)
		require.NoError(t, err)
		opened, err := ring.Open(*envelope, "user:x", "tok")
		require.NoError(t, err)
		require.Equal(t, secret, opened)
	})
}

func BenchmarkHash(b *testing.B) {
	secret, err := NewSecret(rand.Reader)
	require.NoError(b, err)
	for b.Loop() {
		secret.Hash()
	}
}
