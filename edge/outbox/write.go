package outbox

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"
)

const (
	tempPrefix = "message-"
	tempSuffix = ".tmp"
)

// Steps of a write, in order; a crash after any of them leaves either no
// message or a whole one.
const (
	stepCreated = "created"
	stepWritten = "written"
	stepSynced  = "synced"
	stepReadied = "readied"
	stepRenamed = "renamed"
)

// Write puts a message into the outbox, in its canonical wire form. It returns
// the path of the file, and false when the message is there already: then
// nothing is written. When Write returns without error the message survives a
// power failure.
func (d *Dir) Write(messageID string, wire []byte) (path string, written bool, err error) {
	name, err := fileName(messageID)
	if err != nil {
		return "", false, fmt.Errorf("write to outbox: %w", err)
	}
	target := d.path(name)
	if _, err := os.Lstat(target); err == nil {
		return target, false, nil
	} else if !errors.Is(err, fs.ErrNotExist) {
		return "", false, fmt.Errorf("write to outbox: %w", err)
	}
	if err := d.put(target, wire); err != nil {
		return "", false, fmt.Errorf("write %s to outbox: %w", messageID, err)
	}
	return target, true, nil
}

func (d *Dir) put(target string, wire []byte) (err error) {
	temp, err := os.CreateTemp(d.path(tmpName), tempPrefix+"*"+tempSuffix)
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			// The error that stopped the write is the one to report.
			_ = temp.Close()
			_ = os.Remove(temp.Name())
		}
	}()
	if err := d.step(stepCreated); err != nil {
		return err
	}
	if err := d.fill(temp, wire); err != nil {
		return err
	}
	if err := os.Rename(temp.Name(), target); err != nil {
		return err
	}
	if err := d.step(stepRenamed); err != nil {
		return err
	}
	return d.syncDir(d.root)
}

// fill writes the content and makes it durable before the file gets its name.
func (d *Dir) fill(temp *os.File, wire []byte) error {
	content := make([]byte, 0, len(wire)+1)
	if _, err := temp.Write(append(append(content, wire...), '\n')); err != nil {
		return err
	}
	if err := d.step(stepWritten); err != nil {
		return err
	}
	if !d.relaxed {
		if err := temp.Sync(); err != nil {
			return err
		}
	}
	if err := d.step(stepSynced); err != nil {
		return err
	}
	if err := temp.Chmod(fileMode); err != nil {
		return err
	}
	if err := temp.Close(); err != nil {
		return err
	}
	return d.step(stepReadied)
}

// Sweep removes what killed writers left in tmp/ before the given time, and
// tells how many files that were.
func (d *Dir) Sweep(before time.Time) (int, error) {
	entries, err := os.ReadDir(d.path(tmpName))
	if err != nil {
		return 0, fmt.Errorf("sweep outbox: %w", err)
	}
	removed := 0
	for _, entry := range entries {
		if !isTemp(entry) {
			continue
		}
		info, err := entry.Info()
		if err != nil || !info.ModTime().Before(before) {
			continue
		}
		if err := os.Remove(d.path(tmpName, entry.Name())); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return removed, fmt.Errorf("sweep outbox: %w", err)
		}
		removed++
	}
	return removed, nil
}

func isTemp(entry fs.DirEntry) bool {
	name := filepath.Base(entry.Name())
	return entry.Type().IsRegular() && strings.HasPrefix(name, tempPrefix) && strings.HasSuffix(name, tempSuffix)
}
