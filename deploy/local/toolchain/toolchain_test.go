package toolchain

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"context"
	"crypto/sha512"
	"encoding/base64"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// program puts a shell script that prints a version under a name into a directory.
func program(t *testing.T, dir, name, prints string) string {
	t.Helper()
	path := filepath.Join(dir, name)
	require.NoError(t, os.WriteFile(path, []byte("#!/bin/sh\necho '"+prints+"'\n"), 0o755))
	return path
}

func TestWhereToolsAreFound(t *testing.T) {
	tests := map[string]struct {
		inBin  bool
		onPath string
		want   string // "bin", "path" or part of the error
	}{
		"in bin":                         {inBin: true, want: "bin"},
		"in bin, whatever is on PATH":    {inBin: true, onPath: "temporal version 9.0.0", want: "bin"},
		"on PATH":                        {onPath: "temporal version 1.4.0 (Server 1.29.0)", want: "path"},
		"too old on PATH":                {onPath: "temporal version 1.3.9", want: "version 1.3.9, older than 1.4.0"},
		"without a version on PATH":      {onPath: "who knows", want: "does not tell its version"},
		"nowhere":                        {want: "not on PATH"},
		"newer major version, on PATH":   {onPath: "temporal version 2.0.0", want: "path"},
		"patch of the oldest, on PATH":   {onPath: "temporal version 1.4.1", want: "path"},
		"two digits are numbers, PATH":   {onPath: "temporal version 1.10.0", want: "path"},
		"version among other text":       {onPath: "CLI build, temporal 1.5.1!", want: "path"},
		"only two numbers is no version": {onPath: "temporal version 1.5", want: "does not tell its version"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			bin, path := t.TempDir(), t.TempDir()
			t.Setenv("PATH", path)
			if test.inBin {
				program(t, bin, "temporal", "temporal version 0.0.0-DEV")
			}
			if test.onPath != "" {
				program(t, path, "temporal", test.onPath)
			}
			found, err := find(bin, "temporal", oldestTemporal)
			switch test.want {
			case "bin":
				require.NoError(t, err)
				require.Equal(t, filepath.Join(bin, "temporal"), found)
			case "path":
				require.NoError(t, err)
				require.Equal(t, filepath.Join(path, "temporal"), found)
			default:
				require.ErrorIs(t, err, ErrMissing)
				require.ErrorContains(t, err, test.want)
				require.ErrorContains(t, err, "make tools")
			}
		})
	}
}

func TestAllMissingToolsAreNamed(t *testing.T) {
	t.Setenv("PATH", t.TempDir())
	_, err := Find(t.TempDir())
	require.ErrorContains(t, err, "tool temporal")
	require.ErrorContains(t, err, "tool dynoxide")
}

func TestOnlyMissingToolsAreInstalled(t *testing.T) {
	dir := t.TempDir()
	t.Setenv("PATH", dir)
	program(t, dir, "temporal", "temporal version 1.5.1")
	program(t, dir, "dynoxide", "dynoxide 1.2.1")
	var said []string
	err := Installer{BinDir: dir, Say: func(format string, args ...any) { said = append(said, fmt.Sprintf(format, args...)) }}.Install(t.Context())
	require.NoError(t, err)
	require.Equal(t, []string{"temporal: using " + filepath.Join(dir, "temporal"), "dynoxide: using " + filepath.Join(dir, "dynoxide")}, said)
}

func TestFailedStepLeavesNothing(t *testing.T) {
	dir := t.TempDir()
	i := Installer{BinDir: dir, Say: func(string, ...any) {}}
	err := i.step(t.Context(), "tool", func(_ context.Context, tmp string) (string, error) {
		half := filepath.Join(tmp, "tool")
		require.NoError(t, os.WriteFile(half, []byte("half"), 0o644))
		return half, errors.New("no network")
	})
	require.ErrorContains(t, err, "no network")
	left, err := os.ReadDir(dir)
	require.NoError(t, err)
	require.Empty(t, left)
}

func TestFinishedStepIsExecutableAndInPlace(t *testing.T) {
	dir := t.TempDir()
	i := Installer{BinDir: dir, Say: func(string, ...any) {}}
	require.NoError(t, i.step(t.Context(), "tool", func(_ context.Context, tmp string) (string, error) {
		return program(t, tmp, "made", "1.2.3"), nil
	}))
	v, err := versionOf(filepath.Join(dir, "tool"))
	require.NoError(t, err)
	require.Equal(t, version{1, 2, 3}, v)
	left, err := os.ReadDir(dir)
	require.NoError(t, err)
	require.Len(t, left, 1)
}

func TestMissingNPMIsNamed(t *testing.T) {
	t.Setenv("PATH", t.TempDir())
	_, err := Installer{Say: func(string, ...any) {}}.fetchDynoxide(t.Context(), t.TempDir())
	require.ErrorContains(t, err, "npm is needed")
}

func TestPlatformNames(t *testing.T) {
	for want, have := range map[string][2]string{
		"linux-x64": {"linux", "amd64"}, "linux-arm64": {"linux", "arm64"}, "darwin-arm64": {"darwin", "arm64"},
	} {
		require.Equal(t, want, platform(have[0], have[1]))
	}
}

func tarball(t *testing.T, entry, content string) string {
	t.Helper()
	var b bytes.Buffer
	zipped := gzip.NewWriter(&b)
	archive := tar.NewWriter(zipped)
	for name, text := range map[string]string{"package/package.json": "{}", entry: content} {
		require.NoError(t, archive.WriteHeader(&tar.Header{Name: name, Mode: 0o755, Size: int64(len(text)), Typeflag: tar.TypeReg}))
		_, err := archive.Write([]byte(text))
		require.NoError(t, err)
	}
	require.NoError(t, archive.Close())
	require.NoError(t, zipped.Close())
	name := filepath.Join(t.TempDir(), "p.tgz")
	require.NoError(t, os.WriteFile(name, b.Bytes(), 0o600))
	return name
}

func TestProgramIsTakenFromThePackage(t *testing.T) {
	out := filepath.Join(t.TempDir(), "dynoxide")
	require.NoError(t, extract(tarball(t, dynoxideEntry, "ELF"), dynoxideEntry, out))
	data, err := os.ReadFile(out)
	require.NoError(t, err)
	require.Equal(t, "ELF", string(data))
	require.ErrorContains(t, extract(tarball(t, "package/other", "x"), dynoxideEntry, out), "has no package/dynoxide")
	require.ErrorContains(t, writeBinary(out, strings.NewReader(""), maxBinary+1), "more than")
}

func TestPackageWithOtherContentsIsRefused(t *testing.T) {
	name := tarball(t, dynoxideEntry, "ELF")
	data, err := os.ReadFile(name)
	require.NoError(t, err)
	sum := sha512.Sum512(data)
	require.NoError(t, verify(name, "sha512-"+base64.StdEncoding.EncodeToString(sum[:])))
	require.NoError(t, verify(name, ""), "a platform without a pin")
	require.ErrorContains(t, verify(name, dynoxideIntegrity["linux-x64"]), "not the pinned")
}
