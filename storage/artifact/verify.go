package artifact

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/aws-sdk-go-v2/service/s3/types"

	"millrace/domain/artifact"
	"millrace/storage/objects"
)

// Verify reads a whole stored file and compares its hash. A file that is gone is
// an *objects.IntegrityError as well: what was approved is not there. So is one
// whose key has other content by now, although the recorded version is still
// there: whoever wrote over it meant something to happen.
func (s Store) Verify(ctx context.Context, f StoredFile) error {
	current := f
	current.S3VersionID = ""
	version, err := s.verify(ctx, current)
	if err != nil || f.S3VersionID == "" || f.S3VersionID == version {
		return err
	}
	// The same content was stored twice: what will be read is the recorded one.
	_, err = s.verify(ctx, f)
	return err
}

// verify reads and compares one object, and tells its version.
func (s Store) verify(ctx context.Context, f StoredFile) (string, error) {
	body, err := s.Open(ctx, f)
	if errors.Is(err, objects.ErrNotFound) {
		return "", s.otherThan(f, "nothing")
	}
	if err != nil {
		return "", err
	}
	defer body.Close() //nolint:errcheck // only read
	_, err = io.Copy(io.Discard, body)
	return body.version, err
}

func (s Store) otherThan(f StoredFile, got string) error {
	return &objects.IntegrityError{Bucket: s.Bucket, Key: f.Key, Want: f.ContentHash, Got: got}
}

// VerifyStored checks a version's files and spec.json against the hashes of its
// item. Archived files are not read, for they lie in a cold class: the checksums
// that S3 keeps of them are compared.
func (s Store) VerifyStored(ctx context.Context, a Artifact) error {
	hash, err := a.Spec.Hash()
	if err != nil {
		return err
	}
	spec := StoredFile{Key: ContentKey(a.ArtifactID, a.Version, artifact.SpecFile), ContentHash: hash}
	for _, f := range append([]StoredFile{spec}, a.Files...) {
		if a.State == artifact.Archived && f.Filename != "" {
			err = s.verifyArchived(ctx, a.ArchivePrefix, f)
		} else {
			err = s.Verify(ctx, f)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// verifyArchived compares the checksum of a file's copy in the archive.
func (s Store) verifyArchived(ctx context.Context, prefix string, f StoredFile) error {
	copied := StoredFile{Key: prefix + f.File().StoredName(), ContentHash: f.ContentHash}
	head, err := s.Client.HeadObject(ctx, &s3.HeadObjectInput{Bucket: &s.Bucket, Key: &copied.Key, ChecksumMode: types.ChecksumModeEnabled})
	if err != nil {
		if err = s.readError(copied.Key, err); errors.Is(err, objects.ErrNotFound) {
			return s.otherThan(copied, "nothing")
		}
		return err
	}
	want, err := checksumOf(f.ContentHash)
	if err != nil {
		return fmt.Errorf("hash of %s: %w", f.Key, err)
	}
	if got := aws.ToString(head.ChecksumSHA256); got != want {
		return s.otherThan(copied, "checksum "+got)
	}
	if size := aws.ToInt64(head.ContentLength); size != f.Size {
		return s.otherThan(copied, fmt.Sprintf("%d bytes", size))
	}
	return nil
}
