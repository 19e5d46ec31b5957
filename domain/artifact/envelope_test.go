package artifact_test

import (
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/crypto/ssh"
	"pgregory.net/rapid"

	"millrace/domain/artifact"
)

func sealingKey(t require.TestingT) (ed25519.PublicKey, ed25519.PrivateKey) {
	public, private, err := ed25519.GenerateKey(rand.Reader)
	require.NoError(t, err)
	return public, private
}

// TestTheSignedTextIsThatOfTheProtocol signs the protocol's own example by hand.
func TestTheSignedTextIsThatOfTheProtocol(t *testing.T) {
	public, private := sealingKey(t)
	e, err := artifact.Seal([]byte("hello world"), "http://example.com/HelloWorld", private)
	require.NoError(t, err)
	sig, err := base64.StdEncoding.DecodeString(e.Signatures[0].Sig)
	require.NoError(t, err)
	require.True(t, ed25519.Verify(public, []byte("DSSEv1 29 http://example.com/HelloWorld 11 hello world"), sig))
	body, err := json.Marshal(e)
	require.NoError(t, err)
	require.Contains(t, string(body), `{"payload":"aGVsbG8gd29ybGQ=","payloadType":"http://example.com/HelloWorld","signatures":[{"keyid":"SHA256:`)
}

func TestAnEnvelopeOpensWithItsKeyOnly(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		payload := rapid.SliceOf(rapid.Byte()).Draw(r, "payload")
		public, private := sealingKey(r)
		other, _ := sealingKey(r)
		e, err := artifact.Seal(payload, artifact.StatementPayload, private)
		require.NoError(r, err)
		opened, err := e.Open(artifact.StatementPayload, public)
		require.NoError(r, err)
		require.Equal(r, len(payload), len(opened))
		_, err = e.Open(artifact.StatementPayload, other)
		require.ErrorIs(r, err, artifact.ErrUnsigned)
		_, err = e.Open("text/plain", public)
		require.ErrorContains(r, err, "payloadType")

		changed := e
		changed.Payload = base64.StdEncoding.EncodeToString(append(payload, 'x'))
		_, err = changed.Open(artifact.StatementPayload, public)
		require.ErrorIs(r, err, artifact.ErrUnsigned)
		retyped := e
		retyped.PayloadType = "text/plain"
		_, err = retyped.Open("text/plain", public)
		require.ErrorIs(r, err, artifact.ErrUnsigned, "the type is signed as well")
		url := e
		url.Payload = base64.URLEncoding.EncodeToString(payload)
		_, err = url.Open(artifact.StatementPayload, public)
		require.NoError(r, err, "readers take both alphabets")
		unsigned := e
		unsigned.Signatures = nil
		_, err = unsigned.Open(artifact.StatementPayload, public)
		require.ErrorIs(r, err, artifact.ErrUnsigned)
	})
}

func TestKeysOfEnvelopesAreOpenSSHOrPEM(t *testing.T) {
	public, private := sealingKey(t)
	block, err := ssh.MarshalPrivateKey(private, "")
	require.NoError(t, err)
	pkcs8, err := x509.MarshalPKCS8PrivateKey(private)
	require.NoError(t, err)
	for _, text := range [][]byte{pem.EncodeToMemory(block), pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: pkcs8})} {
		key, err := artifact.ParseSealingKey(text)
		require.NoError(t, err)
		require.Equal(t, private, key)
	}
	line, err := ssh.NewPublicKey(public)
	require.NoError(t, err)
	pkix, err := x509.MarshalPKIXPublicKey(public)
	require.NoError(t, err)
	for _, text := range [][]byte{ssh.MarshalAuthorizedKey(line), pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: pkix})} {
		key, err := artifact.ParseOpeningKey(text)
		require.NoError(t, err)
		require.Equal(t, public, key)
	}

	other, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(t, err)
	pkcs8, err = x509.MarshalPKCS8PrivateKey(other)
	require.NoError(t, err)
	locked, err := ssh.MarshalPrivateKeyWithPassphrase(private, "", []byte("secret"))
	require.NoError(t, err)
	for _, text := range [][]byte{nil, []byte("secret"), pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: pkcs8}), pem.EncodeToMemory(locked)} {
		_, err := artifact.ParseSealingKey(text)
		require.ErrorContains(t, err, "Ed25519")
		require.NotContains(t, err.Error(), "secret")
	}
	pkix, err = x509.MarshalPKIXPublicKey(other.Public())
	require.NoError(t, err)
	for _, text := range [][]byte{nil, []byte("x"), pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: pkix})} {
		_, err := artifact.ParseOpeningKey(text)
		require.ErrorContains(t, err, "Ed25519")
	}
}
