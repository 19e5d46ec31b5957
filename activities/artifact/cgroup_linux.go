package artifact

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// fence is a cgroup (v2) that holds all processes of one script: whatever they do,
// they are counted, bounded and killed together.
type fence struct {
	path string
	dir  *os.File
}

// errFence tells that a cgroup can't hold a script.
var errFence = errors.New("no cgroup for the script")

// fencePath is where the cgroup of the script of a keeper lies. Below a parent that
// was configured, or else below the cgroup that this process is in.
func fencePath(parent string, keeper int) (string, error) {
	switch parent {
	case noCgroup:
		return "", errFence
	case "":
		var err error
		if parent, err = ownCgroup(); err != nil {
			return "", err
		}
	}
	return filepath.Join(parent, "millrace-script-"+strconv.Itoa(keeper)), nil
}

// newFence makes the cgroup of a keeper's script. A parent that was configured must
// let processes and memory be bounded; where there is none, killing together is
// all that is asked for.
func newFence(parent string, keeper int, processes, memory int64) (*fence, error) {
	if parent == noCgroup {
		return nil, nil
	}
	path, err := fencePath(parent, keeper)
	if err != nil {
		return nil, err
	}
	if parent != "" { // it may have been done before, or by whoever delegated it
		_ = os.WriteFile(filepath.Join(parent, "cgroup.subtree_control"), []byte("+pids +memory"), 0)
	}
	if err := os.Mkdir(path, 0o755); err != nil && !errors.Is(err, fs.ErrExist) {
		return nil, fmt.Errorf("%w: %w", errFence, err)
	}
	f := &fence{path: path}
	if err := f.bound(parent != "", processes, memory); err != nil {
		return nil, errors.Join(err, f.remove())
	}
	if f.dir, err = os.Open(path); err != nil {
		return nil, errors.Join(fmt.Errorf("%w: %w", errFence, err), f.remove())
	}
	return f, nil
}

func (f *fence) bound(must bool, processes, memory int64) error {
	if _, err := os.Stat(filepath.Join(f.path, "cgroup.kill")); err != nil { // kernels before 5.14, or no cgroup at all
		return fmt.Errorf("%w: %w", errFence, err)
	}
	for _, limit := range []struct{ name, value string }{
		{"pids.max", strconv.FormatInt(processes, 10)}, {"memory.max", strconv.FormatInt(memory, 10)}, {"memory.oom.group", "1"},
	} {
		if err := f.write(limit.name, limit.value); err != nil && must {
			return fmt.Errorf("%w: %w", errFence, err)
		}
	}
	return nil
}

func (f *fence) write(name, value string) error {
	file, err := os.OpenFile(filepath.Join(f.path, name), os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	_, err = file.WriteString(value)
	return errors.Join(err, file.Close())
}

// kill kills all that is inside, also what is just being forked.
func (f *fence) kill() {
	if f != nil {
		_ = f.write("cgroup.kill", "1") // what is not there is dead
	}
}

// remove removes the cgroup. The last process may take a moment to leave it.
func (f *fence) remove() error {
	if f == nil {
		return nil
	}
	if f.dir != nil {
		_ = f.dir.Close() // only opened to be referred to
	}
	var err error
	for range 50 {
		if err = os.Remove(f.path); err == nil || errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		time.Sleep(10 * time.Millisecond)
	}
	return err
}

// razeFence kills what a keeper left behind that was itself killed.
func razeFence(parent string, keeper int) {
	path, err := fencePath(parent, keeper)
	if err != nil {
		return
	}
	f := &fence{path: path}
	f.kill()
	_ = f.remove() // an empty one harms nobody
}

// ownCgroup is the directory of the cgroup (v2) that this process is in.
func ownCgroup() (string, error) {
	mounts, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		return "", fmt.Errorf("%w: %w", errFence, err)
	}
	groups, err := os.ReadFile("/proc/self/cgroup")
	if err != nil {
		return "", fmt.Errorf("%w: %w", errFence, err)
	}
	return cgroupOf(mounts, groups)
}

// cgroupOf reads /proc/self/mountinfo and /proc/self/cgroup (proc(5), cgroups(7)).
func cgroupOf(mounts, groups []byte) (string, error) {
	own, found := "", false
	for line := range bytes.Lines(groups) {
		if path, ok := strings.CutPrefix(strings.TrimSuffix(string(line), "\n"), "0::"); ok {
			own, found = path, true
		}
	}
	if !found || strings.HasPrefix(own, "/..") {
		return "", fmt.Errorf("%w: this process is in none of version 2", errFence)
	}
	for line := range bytes.Lines(mounts) {
		mount, kind, ok := strings.Cut(string(line), " - ")
		fields := strings.Fields(mount)
		if !ok || len(fields) < 5 || !strings.HasPrefix(kind, "cgroup2 ") {
			continue
		}
		if root := fields[3]; root != "/" {
			if own, ok = strings.CutPrefix(own, root); !ok {
				continue
			}
		}
		return filepath.Join(fields[4], own), nil
	}
	return "", fmt.Errorf("%w: no cgroup2 is mounted", errFence)
}
