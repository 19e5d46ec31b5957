package monitoring

import (
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"millrace/domain/monitoring"
)

// KeyRingVariable is the environment variable that may hold the key ring itself,
// as JSON, where no file is given.
const KeyRingVariable = "MILLRACE_TOKEN_KEYS"

// LoadKeyRing reads the key ring from a file or, when file is "", from
// MILLRACE_TOKEN_KEYS. Without either the ring is empty: tokens then have no
// saved copy.
func LoadKeyRing(file string) (monitoring.KeyRing, error) {
	if file == "" {
		text := os.Getenv(KeyRingVariable)
		if text == "" {
			return monitoring.KeyRing{}, nil
		}
		ring, err := monitoring.ParseKeyRing([]byte(text))
		if err != nil {
			return monitoring.KeyRing{}, fmt.Errorf("%s: %w", KeyRingVariable, err)
		}
		return ring, nil
	}
	text, err := os.ReadFile(file)
	if err != nil {
		return monitoring.KeyRing{}, fmt.Errorf("read key ring: %w", err)
	}
	ring, err := monitoring.ParseKeyRing(text)
	if err != nil {
		return monitoring.KeyRing{}, fmt.Errorf("key ring %s: %w", file, err)
	}
	return ring, nil
}

// InitKeyRing makes a key ring file with one random key, readable by its owner
// only. A file that exists is left as it is.
func InitKeyRing(file, keyID string) error {
	ring, err := monitoring.KeyRing{}.With(keyID, rand.Reader)
	if err != nil {
		return err
	}
	text, err := monitoring.MarshalKeyRing(ring)
	if err != nil {
		return fmt.Errorf("write key ring: %w", err)
	}
	f, err := os.OpenFile(file, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if errors.Is(err, fs.ErrExist) {
		_, err = LoadKeyRing(file)
		return err
	}
	if err != nil {
		return fmt.Errorf("write key ring: %w", err)
	}
	if _, err = f.Write(text); err == nil {
		err = f.Sync()
	}
	return errors.Join(err, f.Close())
}

// RotateKeyRing adds a random key to a key ring file and makes it the current
// one. The file is replaced whole: a reader sees the old ring or the new one.
func RotateKeyRing(file, keyID string) (monitoring.KeyRing, error) {
	ring, err := LoadKeyRing(file)
	if err != nil {
		return monitoring.KeyRing{}, err
	}
	next, err := ring.With(keyID, rand.Reader)
	if err != nil {
		return monitoring.KeyRing{}, err
	}
	return next, replaceKeyRing(file, next)
}

func replaceKeyRing(file string, ring monitoring.KeyRing) error {
	text, err := monitoring.MarshalKeyRing(ring)
	if err != nil {
		return fmt.Errorf("write key ring: %w", err)
	}
	f, err := os.CreateTemp(filepath.Dir(file), ".keys-*") // made with mode 0600
	if err != nil {
		return fmt.Errorf("write key ring: %w", err)
	}
	defer os.Remove(f.Name()) //nolint:errcheck // gone already when the rename worked
	if _, err = f.Write(text); err == nil {
		err = f.Sync()
	}
	if err = errors.Join(err, f.Close()); err != nil {
		return fmt.Errorf("write key ring: %w", err)
	}
	return os.Rename(f.Name(), file)
}
