package tokens

import (
	"fmt"
	"io"
	"os"
	"time"

	storage "millrace/storage/monitoring"
)

// KeysCommand has what can be done about the key ring.
type KeysCommand struct {
	Init   InitKeysCommand   `cmd:"" help:"Make a key ring file with one random key. One that exists is left as it is."`
	Rotate RotateKeysCommand `cmd:"" help:"Add a random key to a key ring file and make it the current one. Then restart gateway and worker, and run token rekey."`
}

// InitKeysCommand makes a key ring.
type InitKeysCommand struct {
	File  string `arg:"" help:"Key ring file."`
	KeyID string `help:"Name of the key; by default made of the date." placeholder:"NAME"`
}

// Run makes the file, readable by its owner only.
func (c InitKeysCommand) Run() error {
	if err := storage.InitKeyRing(c.File, keyID(c.KeyID, time.Now())); err != nil {
		return err
	}
	return printRing(c.File, os.Stdout)
}

// RotateKeysCommand rotates a key ring.
type RotateKeysCommand struct {
	File  string `arg:"" help:"Key ring file."`
	KeyID string `help:"Name of the new key; by default made of the date." placeholder:"NAME"`
}

// Run replaces the file.
func (c RotateKeysCommand) Run() error {
	if _, err := storage.RotateKeyRing(c.File, keyID(c.KeyID, time.Now())); err != nil {
		return err
	}
	return printRing(c.File, os.Stdout)
}

func keyID(chosen string, now time.Time) string {
	if chosen != "" {
		return chosen
	}
	return now.UTC().Format("k20060102-150405")
}

// printRing names the keys and never shows them.
func printRing(file string, out io.Writer) error {
	ring, err := storage.LoadKeyRing(file)
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(out, "%s: %s\n", file, ring)
	return err
}
