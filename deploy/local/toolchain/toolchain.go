// Package toolchain finds, builds or fetches the programs of others that the local stack runs:
// the Temporal CLI and dynoxide. Versions are fixed here.
package toolchain

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"time"
)

// Versions of the tools.
const (
	TemporalModule  = "github.com/temporalio/cli/cmd/temporal"
	TemporalVersion = "v1.5.1"
	DynoxideVersion = "1.2.1"
)

// Oldest versions that are used when found on PATH instead.
var (
	oldestTemporal = version{1, 4, 0}
	oldestDynoxide = version{1, 2, 0}
)

// ErrMissing is returned when a tool is not there.
var ErrMissing = errors.New("missing: run `make tools`")

// Tools are the absolute paths of the tools.
type Tools struct{ Temporal, Dynoxide string }

// Find returns the tools in binDir, or on PATH when new enough, and names all that are missing.
func Find(binDir string) (Tools, error) {
	temporal, err := find(binDir, "temporal", oldestTemporal)
	dynoxide, err2 := find(binDir, "dynoxide", oldestDynoxide)
	return Tools{Temporal: temporal, Dynoxide: dynoxide}, errors.Join(err, err2)
}

func find(binDir, name string, oldest version) (string, error) {
	own, err := filepath.Abs(filepath.Join(binDir, name))
	if err != nil {
		return "", fmt.Errorf("resolve %s: %w", binDir, err)
	}
	if info, err := os.Stat(own); err == nil && info.Mode().IsRegular() {
		return own, nil
	}
	path, err := exec.LookPath(name)
	if err != nil {
		return "", fmt.Errorf("tool %s (not in %s, not on PATH) %w", name, binDir, ErrMissing)
	}
	found, err := versionOf(path)
	if err != nil {
		return "", fmt.Errorf("tool %s not in %s, and the one on PATH does not tell its version (%w) %w", name, binDir, err, ErrMissing)
	}
	if found.before(oldest) {
		return "", fmt.Errorf("tool %s not in %s, and %s is version %s, older than %s: %w", name, binDir, path, found, oldest, ErrMissing)
	}
	return path, nil
}

type version [3]int

func (v version) String() string { return fmt.Sprintf("%d.%d.%d", v[0], v[1], v[2]) }

func (v version) before(w version) bool {
	for i := range v {
		if v[i] != w[i] {
			return v[i] < w[i]
		}
	}
	return false
}

var versionText = regexp.MustCompile(`(\d+)\.(\d+)\.(\d+)`)

// parseVersion reads the first x.y.z in text.
func parseVersion(text string) (version, error) {
	match := versionText.FindStringSubmatch(text)
	if match == nil {
		return version{}, fmt.Errorf("no version in %q", text)
	}
	var v version
	for i := range v {
		n, err := strconv.Atoi(match[i+1])
		if err != nil {
			return version{}, fmt.Errorf("version %q: %w", match[0], err)
		}
		v[i] = n
	}
	return v, nil
}

func versionOf(path string) (version, error) {
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	out, err := exec.CommandContext(ctx, path, "--version").Output()
	if err != nil {
		return version{}, fmt.Errorf("run %s --version: %w", path, err)
	}
	return parseVersion(string(out))
}
