// Package s3 serves the local stack's object store: versitygw over a plain directory, with real
// signatures, checksums, conditional writes, multipart uploads and versions. It knows neither
// lifecycle rules nor storage classes. One instance a process: versitygw keeps global state and
// changes the working directory, so the command that calls Serve does nothing else.
package s3

import (
	"context"
	"fmt"
	"os"
	"path/filepath"

	"github.com/versity/versitygw/backend/meta"
	"github.com/versity/versitygw/backend/posix"
	"github.com/versity/versitygw/embedgw"
)

const (
	// HealthPath answers 200 without a signature; it masks a bucket of that name.
	HealthPath = "/.healthz"

	// copyLimit is S3's own limit for CopyObject. Left at zero every copy is refused.
	copyLimit = 5 << 30
	// maxParts is S3's own limit of parts in a multipart upload.
	maxParts       = 10_000
	maxConnections = 4096
	maxRequests    = 1024
	// posixConcurrency bounds the threads that block in file system calls.
	posixConcurrency = 256
)

// Config says where the object store listens, whom it trusts and where it keeps the objects.
type Config struct {
	// Addr is the loopback host and port to listen on.
	Addr string
	// Dir is the directory that holds the objects and their versions; made when missing.
	Dir string
	// AccessKey, SecretKey and Region are what requests must be signed with.
	AccessKey, SecretKey, Region string
}

// Serve runs the object store until ctx ends.
func Serve(ctx context.Context, cfg Config) error {
	dir, err := filepath.Abs(cfg.Dir)
	if err != nil {
		return fmt.Errorf("resolve object directory %q: %w", cfg.Dir, err)
	}
	data, versions := filepath.Join(dir, "data"), filepath.Join(dir, "versions")
	for _, d := range []string{data, versions} {
		if err := os.MkdirAll(d, 0o700); err != nil {
			return fmt.Errorf("create object directory: %w", err)
		}
	}
	if err := (meta.XattrMeta{}).Test(data); err != nil {
		return fmt.Errorf("directory %s keeps no extended attributes, which the object store needs (choose another with --dir): %w", data, err)
	}
	opts := posix.PosixOpts{
		VersioningDir:       versions,
		Concurrency:         posixConcurrency,
		CopyObjectThreshold: copyLimit,
	}
	opts.SetNewDirPerm(0o700)
	opts.SetNewFilePerm(0o600)
	backend, err := posix.New(data, meta.XattrMeta{}, opts)
	if err != nil {
		return fmt.Errorf("open object directory %s: %w", data, err)
	}
	defer backend.Shutdown()
	err = embedgw.RunVersityGW(ctx, backend, &embedgw.Config{
		RootUserAccess: cfg.AccessKey, RootUserSecret: cfg.SecretKey, Region: cfg.Region,
		Ports:             []string{cfg.Addr},
		MaxConnections:    maxConnections,
		MaxRequests:       maxRequests,
		MultipartMaxParts: maxParts,
		HealthPath:        HealthPath,
		KeepAlive:         true,
		Quiet:             true,
	})
	if err != nil && ctx.Err() == nil {
		return fmt.Errorf("serve objects on %s: %w", cfg.Addr, err)
	}
	return nil
}
