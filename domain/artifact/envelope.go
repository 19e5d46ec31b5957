package artifact

import (
	"crypto/ed25519"
	"encoding/base64"
	"errors"
	"fmt"

	"golang.org/x/crypto/ssh"
)

// StatementPayload is the payload type of an in-toto statement in an envelope.
const StatementPayload = "application/vnd.in-toto+json"

// Envelope is a signed statement (DSSE, Dead Simple Signing Envelope v1.0). The
// protocol is one line of text around a signature, so it needs no library.
type Envelope struct {
	// Payload is the statement, in base64.
	Payload     string              `json:"payload"`
	PayloadType string              `json:"payloadType"`
	Signatures  []EnvelopeSignature `json:"signatures"`
}

// EnvelopeSignature is one signature of an envelope. KeyID is only a hint.
type EnvelopeSignature struct {
	KeyID string `json:"keyid"`
	Sig   string `json:"sig"`
}

// ErrUnsigned marks an envelope that no trusted key has signed.
var ErrUnsigned = errors.New("no trusted key has signed it")

// Seal signs a payload with an Ed25519 key.
func Seal(payload []byte, payloadType string, key ed25519.PrivateKey) (Envelope, error) {
	public, err := ssh.NewPublicKey(key.Public())
	if err != nil {
		return Envelope{}, fmt.Errorf("seal: %w", err)
	}
	sig := ed25519.Sign(key, preAuthentication(payloadType, payload))
	return Envelope{
		Payload: base64.StdEncoding.EncodeToString(payload), PayloadType: payloadType,
		Signatures: []EnvelopeSignature{{KeyID: ssh.FingerprintSHA256(public), Sig: base64.StdEncoding.EncodeToString(sig)}},
	}, nil
}

// Open gives the payload of an envelope of this type that the key has signed,
// else ErrUnsigned. Key ids are not believed.
func (e Envelope) Open(payloadType string, key ed25519.PublicKey) ([]byte, error) {
	if e.PayloadType != payloadType {
		return nil, invalidf("payloadType", "must be %s", payloadType)
	}
	payload, err := decodeAny(e.Payload)
	if err != nil {
		return nil, invalid("payload", "must be base64")
	}
	for _, s := range e.Signatures {
		sig, err := decodeAny(s.Sig)
		if err == nil && ed25519.Verify(key, preAuthentication(e.PayloadType, payload), sig) {
			return payload, nil
		}
	}
	return nil, ErrUnsigned
}

// preAuthentication is what is signed: PAE of DSSE's protocol.
func preAuthentication(payloadType string, payload []byte) []byte {
	return fmt.Appendf(nil, "DSSEv1 %d %s %d %s", len(payloadType), payloadType, len(payload), payload)
}

// decodeAny decodes both alphabets of base64, as DSSE asks of readers.
func decodeAny(text string) ([]byte, error) {
	body, err := base64.StdEncoding.DecodeString(text)
	if err != nil {
		return base64.URLEncoding.DecodeString(text)
	}
	return body, nil
}
