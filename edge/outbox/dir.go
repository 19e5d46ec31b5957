// Package outbox is the directory in which a factory's programs leave messages
// for the publisher: one JSON file a message, written whole or not at all, and
// deleted only once the cloud has the message.
//
// Writers work in tmp/ and rename into the root; the publisher moves what can
// never be published to quarantine/. Writers and publisher may be different
// users of one group, so files and directories are readable by the group.
package outbox

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"millrace/domain/factory"
)

const (
	tmpName        = "tmp"
	quarantineName = "quarantine"
	suffix         = ".json"

	dirMode  = 0o770
	fileMode = 0o640

	// maxStem keeps {message_id}.json within the 255 bytes of a file name.
	maxStem = 255 - len(suffix)
)

// Dir is an outbox. Any number of processes may write to one; one may publish
// from it (see Lock).
type Dir struct {
	root string
	// relaxed leaves out the fsyncs, for load tests whose data is worth nothing.
	relaxed bool
	// step is called after each step of a write; tests stop there.
	step func(step string) error
}

// Option changes how an outbox works.
type Option func(*Dir)

// WithoutSync leaves out fsync: faster, but a power failure may lose messages.
func WithoutSync() Option { return func(d *Dir) { d.relaxed = true } }

// Open makes the outbox at root, with its sub-directories, where it is missing.
func Open(root string, options ...Option) (*Dir, error) {
	d := &Dir{root: root, step: func(string) error { return nil }}
	for _, option := range options {
		option(d)
	}
	if err := os.MkdirAll(filepath.Dir(filepath.Clean(root)), 0o755); err != nil {
		return nil, fmt.Errorf("open outbox: %w", err)
	}
	for _, path := range []string{root, d.path(tmpName), d.path(quarantineName)} {
		if err := makeDir(path); err != nil {
			return nil, fmt.Errorf("open outbox: %w", err)
		}
	}
	return d, nil
}

// makeDir sets the mode of a directory it creates, whatever the umask: the
// publisher's user must be able to rename and delete in it.
func makeDir(path string) error {
	err := os.Mkdir(path, dirMode)
	switch {
	case errors.Is(err, fs.ErrExist):
		info, err := os.Stat(path)
		if err == nil && !info.IsDir() {
			err = fmt.Errorf("%s is not a directory", path)
		}
		return err
	case err != nil:
		return err
	}
	return os.Chmod(path, dirMode)
}

// Root is the path of the outbox.
func (d *Dir) Root() string { return d.root }

func (d *Dir) path(elements ...string) string {
	return filepath.Join(append([]string{d.root}, elements...)...)
}

// fileName is the name of a message's file. It refuses, with a
// *factory.InvalidError, ids that would leave the directory, hide the file from
// the publisher or not fit a file name.
func fileName(messageID string) (string, error) {
	if err := factory.CheckMessageID(messageID); err != nil {
		return "", err
	}
	if strings.HasPrefix(messageID, ".") {
		return "", &factory.InvalidError{Field: "message_id", Rule: "must not start with a dot"}
	}
	if len(messageID) > maxStem {
		return "", &factory.InvalidError{Field: "message_id", Rule: fmt.Sprintf("must be at most %d characters to be a file name", maxStem)}
	}
	return messageID + suffix, nil
}

// syncDir makes the names in a directory durable.
func (d *Dir) syncDir(path string) error {
	if d.relaxed {
		return nil
	}
	dir, err := os.Open(path)
	if err != nil {
		return err
	}
	return errors.Join(dir.Sync(), dir.Close())
}
