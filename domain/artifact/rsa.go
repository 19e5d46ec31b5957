package artifact

import (
	"crypto/rsa"

	"golang.org/x/crypto/ssh"
)

// rsaBits is the size of an RSA key, 0 for what is none.
func rsaBits(key ssh.PublicKey) int {
	holder, ok := key.(ssh.CryptoPublicKey)
	if !ok {
		return 0
	}
	public, ok := holder.CryptoPublicKey().(*rsa.PublicKey)
	if !ok {
		return 0
	}
	return public.Size() * 8
}
