package artifact

import (
	"bytes"
	"fmt"

	"github.com/hiddeco/sshsig"
	"golang.org/x/crypto/ssh"
)

// SignatureNamespace is the namespace of SSHSIG signatures over commands:
// ssh-keygen -Y sign -n millrace-artifact.
const SignatureNamespace = "millrace-artifact"

// Sign is the armoured signature of a command, as ssh-keygen -Y sign makes it.
func Sign(signer ssh.Signer, c Command, artifactID string, version int) (string, error) {
	signature, err := sshsig.Sign(bytes.NewReader(c.Text(artifactID, version)), signer, sshsig.HashSHA512, SignatureNamespace)
	if err != nil {
		return "", fmt.Errorf("sign command: %w", err)
	}
	return string(sshsig.Armor(signature)), nil
}

// SignedBy is the fingerprint of the key that a command claims to be signed by.
// It proves nothing yet. It is deterministic, which the checker can't see in
// reflection.
//
//workflowcheck:ignore
func (c Command) SignedBy() (string, error) {
	signature, err := sshsig.Unarmor([]byte(c.Signature))
	if err != nil {
		return "", invalidf("signature", "must be an armoured SSH signature: %v", err)
	}
	return ssh.FingerprintSHA256(signature.PublicKey), nil
}

// VerifySignature checks a command's signature against a public key in the form
// of authorized_keys.
func (c Command) VerifySignature(artifactID string, version int, authorizedKey string) error {
	signature, err := sshsig.Unarmor([]byte(c.Signature))
	if err != nil {
		return invalidf("signature", "must be an armoured SSH signature: %v", err)
	}
	key, err := ParseKey(authorizedKey)
	if err != nil {
		return err
	}
	if err := sshsig.Verify(bytes.NewReader(c.Text(artifactID, version)), signature, key.public, signature.HashAlgorithm, SignatureNamespace); err != nil {
		return refuse(WhyAssurance, "the signature does not fit: %v", err)
	}
	return nil
}

// Key is a public key that signs commands.
type Key struct {
	public ssh.PublicKey
}

// minRSA is the least size of an RSA key in bits.
const minRSA = 3072

// ParseKey reads a public key in the form of authorized_keys: Ed25519, ECDSA,
// their security-key forms, or RSA of at least 3072 bits.
func ParseKey(authorizedKey string) (Key, error) {
	public, _, _, rest, err := ssh.ParseAuthorizedKey([]byte(authorizedKey))
	if err != nil || len(bytes.TrimSpace(rest)) > 0 {
		return Key{}, invalid("public_key", "must be one public key as in authorized_keys")
	}
	switch public.Type() {
	case ssh.KeyAlgoED25519, ssh.KeyAlgoSKED25519, ssh.KeyAlgoECDSA256, ssh.KeyAlgoECDSA384, ssh.KeyAlgoECDSA521, ssh.KeyAlgoSKECDSA256:
	case ssh.KeyAlgoRSA:
		if size := rsaBits(public); size < minRSA {
			return Key{}, invalidf("public_key", "is an RSA key of %d bits; at least %d are needed", size, minRSA)
		}
	default:
		return Key{}, invalidf("public_key", "is of type %s, which is not taken", public.Type())
	}
	return Key{public: public}, nil
}

// Fingerprint is the key's SHA-256 fingerprint, as ssh-keygen -l shows it.
func (k Key) Fingerprint() string { return ssh.FingerprintSHA256(k.public) }

// String is the key in the form of authorized_keys, without a comment.
func (k Key) String() string {
	return string(bytes.TrimSpace(ssh.MarshalAuthorizedKey(k.public)))
}
