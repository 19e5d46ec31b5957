package outbox

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"
	"time"
)

// Quarantine moves a file that can never be published to
// quarantine/{name}, or to quarantine/{stem}.{epoch_seconds}.json when that
// exists, and returns its new path. Nothing in quarantine is ever replaced.
func (d *Dir) Quarantine(name string, now time.Time) (string, error) {
	target := d.path(quarantineName, name)
	stem := strings.TrimSuffix(name, suffix)
	for epoch := now.Unix(); ; epoch++ {
		_, err := os.Lstat(target)
		if errors.Is(err, fs.ErrNotExist) {
			break
		}
		if err != nil {
			return "", fmt.Errorf("quarantine %s: %w", name, err)
		}
		target = d.path(quarantineName, quarantineLeaf(stem, epoch))
	}
	if err := os.Rename(d.path(name), target); err != nil {
		return "", fmt.Errorf("quarantine %s: %w", name, err)
	}
	return target, nil
}

// quarantineLeaf shortens a stem that would not fit a file name together with
// the time.
func quarantineLeaf(stem string, epoch int64) string {
	mark := fmt.Sprintf(".%d", epoch)
	if room := maxStem - len(mark); len(stem) > room {
		stem = stem[:room]
	}
	return stem + mark + suffix
}
