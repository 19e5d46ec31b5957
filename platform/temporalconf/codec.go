package temporalconf

import (
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"os"

	commonpb "go.temporal.io/api/common/v1"
	"go.temporal.io/sdk/converter"
	"google.golang.org/protobuf/proto"

	"millrace/domain/monitoring"
)

// Variables of the key ring that payloads are encrypted under: the ring itself,
// or a file with it, as `starter token keys` makes them.
const (
	PayloadKeysVariable     = "MILLRACE_PAYLOAD_KEYS"
	PayloadKeysFileVariable = "MILLRACE_PAYLOAD_KEYS_FILE"
)

// Codec encrypts what Temporal stores of workflows: inputs, results, signals,
// queries and heartbeats, each by AES-256-GCM under the ring's current key. What
// was never encrypted is read as it stands, so that a codec can be switched on
// while workflows run and the temporal CLI works without one; what any key of the
// ring encrypted is read, so that keys can be rotated.
// See https://docs.temporal.io/payload-codec.
type Codec struct {
	Ring monitoring.KeyRing
}

var _ converter.PayloadCodec = Codec{}

const (
	metadataKeyID     = "encryption-key-id"
	encodingEncrypted = "binary/encrypted"
	payloadContext    = "millrace payload v1"
)

var errPayloadBroken = errors.New("the payload does not open under its key")

// LoadCodec reads the key ring from the environment; without one it is empty.
func LoadCodec() (Codec, error) {
	name, text := PayloadKeysVariable, os.Getenv(PayloadKeysVariable)
	if file := os.Getenv(PayloadKeysFileVariable); file != "" {
		body, err := os.ReadFile(file) //nolint:gosec // the operator names the file
		if err != nil {
			return Codec{}, fmt.Errorf("%s: %w", PayloadKeysFileVariable, err)
		}
		name, text = PayloadKeysFileVariable, string(body)
	}
	if text == "" {
		return Codec{}, nil
	}
	ring, err := monitoring.ParseKeyRing([]byte(text))
	if err != nil {
		return Codec{}, fmt.Errorf("%s: %w", name, err)
	}
	return Codec{Ring: ring}, nil
}

// Enabled tells whether there is a key to encrypt under.
func (c Codec) Enabled() bool { return c.Ring.Current != "" }

// Encode encrypts payloads, each with a nonce of its own. Without a key they stay
// as they are.
func (c Codec) Encode(payloads []*commonpb.Payload) ([]*commonpb.Payload, error) {
	if !c.Enabled() {
		return payloads, nil
	}
	gcm, err := c.Ring.Cipher(c.Ring.Current)
	if err != nil {
		return nil, err
	}
	encoded := make([]*commonpb.Payload, len(payloads))
	for i, p := range payloads {
		plain, err := proto.Marshal(p)
		if err != nil {
			return nil, fmt.Errorf("encode payload: %w", err)
		}
		nonce := make([]byte, gcm.NonceSize())
		if _, err := io.ReadFull(rand.Reader, nonce); err != nil {
			return nil, fmt.Errorf("make nonce: %w", err)
		}
		encoded[i] = &commonpb.Payload{
			Metadata: map[string][]byte{
				converter.MetadataEncoding: []byte(encodingEncrypted), metadataKeyID: []byte(c.Ring.Current),
			},
			Data: gcm.Seal(nonce, nonce, plain, []byte(payloadContext)),
		}
	}
	return encoded, nil
}

// Decode decrypts payloads; those that are not encrypted are left as they are.
// Its error is ErrUnknownKey of domain/monitoring or that a payload does not open.
func (c Codec) Decode(payloads []*commonpb.Payload) ([]*commonpb.Payload, error) {
	decoded := make([]*commonpb.Payload, len(payloads))
	for i, p := range payloads {
		decoded[i] = p
		if string(p.GetMetadata()[converter.MetadataEncoding]) != encodingEncrypted {
			continue
		}
		plain, err := c.open(p)
		if err != nil {
			return nil, err
		}
		decoded[i] = plain
	}
	return decoded, nil
}

func (c Codec) open(p *commonpb.Payload) (*commonpb.Payload, error) {
	gcm, err := c.Ring.Cipher(string(p.GetMetadata()[metadataKeyID]))
	if err != nil {
		return nil, err
	}
	if len(p.GetData()) < gcm.NonceSize() {
		return nil, errPayloadBroken
	}
	nonce, sealed := p.GetData()[:gcm.NonceSize()], p.GetData()[gcm.NonceSize():]
	plain, err := gcm.Open(nil, nonce, sealed, []byte(payloadContext))
	if err != nil {
		return nil, errPayloadBroken
	}
	var payload commonpb.Payload
	if err := proto.Unmarshal(plain, &payload); err != nil {
		return nil, errPayloadBroken
	}
	return &payload, nil
}
