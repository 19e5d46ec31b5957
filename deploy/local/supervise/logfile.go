package supervise

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

const (
	// maxLog is the size at which a log file starts anew; the one before is kept beside it.
	maxLog = 32 << 20
	// tailLines and tailBytes bound how much of a log is shown.
	tailLines = 25
	tailBytes = 16 << 10
)

func openLog(name string) (*os.File, error) {
	if err := os.MkdirAll(filepath.Dir(name), 0o700); err != nil {
		return nil, fmt.Errorf("create log directory: %w", err)
	}
	f, err := os.OpenFile(name, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return nil, fmt.Errorf("open log: %w", err)
	}
	return f, nil
}

// trimLog keeps a log that grew beyond maxLog as name.1 and empties it. The child goes on writing
// to the same file: it appends, so it continues at the new end. What it writes between copy and
// truncation is lost.
func trimLog(name string) error {
	info, err := os.Stat(name)
	if errors.Is(err, fs.ErrNotExist) || err == nil && info.Size() < maxLog {
		return nil
	}
	if err != nil {
		return fmt.Errorf("look at log: %w", err)
	}
	if err := copyFile(name, name+".1"); err != nil {
		return err
	}
	if err := os.Truncate(name, 0); err != nil {
		return fmt.Errorf("empty log: %w", err)
	}
	return nil
}

func copyFile(from, to string) (err error) {
	in, err := os.Open(from)
	if err != nil {
		return fmt.Errorf("keep log: %w", err)
	}
	defer func() { _ = in.Close() }() // read only
	out, err := os.OpenFile(to, os.O_CREATE|os.O_TRUNC|os.O_WRONLY, 0o600)
	if err != nil {
		return fmt.Errorf("keep log: %w", err)
	}
	defer func() { err = errors.Join(err, out.Close()) }()
	if _, err := io.Copy(out, in); err != nil {
		return fmt.Errorf("keep log: %w", err)
	}
	return nil
}

// Tail returns the last lines of a log file, indented, for showing to a person.
func Tail(name string) string {
	f, err := os.Open(name)
	if err != nil {
		return "  (no log: " + err.Error() + ")"
	}
	defer func() { _ = f.Close() }() // read only
	if info, err := f.Stat(); err == nil && info.Size() > tailBytes {
		if _, err := f.Seek(-tailBytes, io.SeekEnd); err != nil {
			return "  (log unreadable: " + err.Error() + ")"
		}
	}
	data, err := io.ReadAll(f)
	if err != nil {
		return "  (log unreadable: " + err.Error() + ")"
	}
	lines := strings.Split(string(bytes.TrimRight(data, "\n")), "\n")
	if len(lines) > tailLines {
		lines = lines[len(lines)-tailLines:]
	}
	return "  | " + strings.Join(lines, "\n  | ")
}
