package toolchain

import (
	"archive/tar"
	"compress/gzip"
	"context"
	"crypto/sha512"
	"crypto/subtle"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
)

// dynoxideIntegrity pins the package's contents by platform, in npm's notation. Platforms without
// a pin rely on npm, which checks what it downloads against its registry.
var dynoxideIntegrity = map[string]string{
	"linux-x64": "sha512-sBHqlxJ9ANkLluFkYRfd5r8Y0ApFew4FhOrlhgRAgD4XzEoFOukEo1nuBTQ1+jTtofqwn4NWQ2k0Tn5mNTjgUg==",
}

const (
	dynoxideEntry = "package/dynoxide"
	// maxBinary bounds what is unpacked; version 1.2.1 is 7.6 MB.
	maxBinary = 128 << 20
)

// platform names this machine as npm packages do: linux-x64, darwin-arm64.
func platform(goos, goarch string) string {
	cpu := goarch
	if goarch == "amd64" {
		cpu = "x64"
	}
	return goos + "-" + cpu
}

func (i Installer) fetchDynoxide(ctx context.Context, tmp string) (string, error) {
	if _, err := exec.LookPath("npm"); err != nil {
		return "", fmt.Errorf("npm is needed to fetch it: install Node.js, or put dynoxide %s on PATH: %w", DynoxideVersion, err)
	}
	here := platform(runtime.GOOS, runtime.GOARCH)
	name := "@dynoxide/" + here + "@" + DynoxideVersion
	i.Say("dynoxide: fetching %s with npm", name)
	cmd := exec.CommandContext(ctx, "npm", "pack", name, "--pack-destination", tmp, "--silent", "--ignore-scripts")
	cmd.Dir = tmp
	if err := run(cmd); err != nil {
		return "", err
	}
	tarballs, err := filepath.Glob(filepath.Join(tmp, "*.tgz"))
	if err != nil || len(tarballs) != 1 {
		return "", errors.Join(err, fmt.Errorf("npm pack left %d packages, not one", len(tarballs)))
	}
	if err := verify(tarballs[0], dynoxideIntegrity[here]); err != nil {
		return "", err
	}
	out := filepath.Join(tmp, "dynoxide")
	return out, extract(tarballs[0], dynoxideEntry, out)
}

// verify compares a file's SHA-512 with an integrity value. An empty one asks for nothing.
func verify(name, integrity string) error {
	if integrity == "" {
		return nil
	}
	f, err := os.Open(name)
	if err != nil {
		return fmt.Errorf("verify package: %w", err)
	}
	defer func() { _ = f.Close() }() // read only
	hash := sha512.New()
	if _, err := io.Copy(hash, f); err != nil {
		return fmt.Errorf("verify package: %w", err)
	}
	got := "sha512-" + base64.StdEncoding.EncodeToString(hash.Sum(nil))
	if subtle.ConstantTimeCompare([]byte(got), []byte(integrity)) != 1 {
		return fmt.Errorf("package %s has integrity %s, not the pinned %s", filepath.Base(name), got, integrity)
	}
	return nil
}

// extract unpacks one entry of a gzipped tar archive to the file out.
func extract(archive, entry, out string) (err error) {
	f, err := os.Open(archive)
	if err != nil {
		return fmt.Errorf("open package: %w", err)
	}
	defer func() { _ = f.Close() }() // read only
	zipped, err := gzip.NewReader(f)
	if err != nil {
		return fmt.Errorf("unpack: %w", err)
	}
	reader := tar.NewReader(zipped)
	for {
		header, err := reader.Next()
		if errors.Is(err, io.EOF) {
			return fmt.Errorf("package has no %s", entry)
		}
		if err != nil {
			return fmt.Errorf("unpack: %w", err)
		}
		if header.Name == entry && header.Typeflag == tar.TypeReg {
			return writeBinary(out, reader, header.Size)
		}
	}
}

func writeBinary(out string, from io.Reader, size int64) (err error) {
	if size > maxBinary {
		return fmt.Errorf("unpack: program of %d bytes, more than %d", size, maxBinary)
	}
	f, err := os.OpenFile(out, os.O_CREATE|os.O_TRUNC|os.O_WRONLY, 0o755)
	if err != nil {
		return fmt.Errorf("unpack: %w", err)
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	if _, err := io.CopyN(f, from, size); err != nil {
		return fmt.Errorf("unpack: %w", err)
	}
	return nil
}
