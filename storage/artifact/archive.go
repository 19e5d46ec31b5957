package artifact

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/aws-sdk-go-v2/service/s3/types"
	"github.com/aws/smithy-go"

	"millrace/storage/objects"
)

// ArchivePrefix is where the content of a version goes: by the UTC month in
// which its outcome became known.
func ArchivePrefix(id string, version int, settled time.Time) string {
	settled = settled.UTC()
	return fmt.Sprintf("archive/%04d/%02d/%s/v%d/", settled.Year(), settled.Month(), id, version)
}

// CopyToArchive copies a version's files to the archive prefix in class GLACIER
// and compares the checksum that the copy was given. Copies that are there
// already are copied over with the same content.
func (s Store) CopyToArchive(ctx context.Context, a Artifact, prefix string) error {
	for _, f := range a.Files {
		if err := s.copyObject(ctx, f, prefix+f.File().StoredName()); err != nil {
			return err
		}
	}
	return nil
}

func (s Store) copyObject(ctx context.Context, f StoredFile, to string) error {
	source := s.Bucket + "/" + (&url.URL{Path: f.Key}).EscapedPath()
	if f.S3VersionID != "" {
		source += "?versionId=" + url.QueryEscape(f.S3VersionID)
	}
	out, err := s.Client.CopyObject(ctx, &s3.CopyObjectInput{
		Bucket: &s.Bucket, Key: &to, CopySource: &source,
		StorageClass: types.StorageClassGlacier, ChecksumAlgorithm: types.ChecksumAlgorithmSha256,
	})
	if isGone(err) {
		return &objects.IntegrityError{Bucket: s.Bucket, Key: f.Key, Want: f.ContentHash, Got: "nothing"}
	}
	if err != nil {
		return fmt.Errorf("copy %s to %s: %w", f.Key, to, err)
	}
	var got string
	if out.CopyObjectResult != nil {
		got = aws.ToString(out.CopyObjectResult.ChecksumSHA256)
	}
	want, err := checksumOf(f.ContentHash)
	if err != nil {
		return fmt.Errorf("hash of %s: %w", f.Key, err)
	}
	if got != want {
		return &objects.IntegrityError{Bucket: s.Bucket, Key: to, Want: want, Got: got}
	}
	return nil
}

// isGone tells whether an object, or the version of it that is meant, is not there
// any more: trying again would not bring it back. A missing bucket is another
// matter.
func isGone(err error) bool {
	failed, ok := errors.AsType[smithy.APIError](err)
	return ok && (failed.ErrorCode() == "NoSuchKey" || failed.ErrorCode() == "NoSuchVersion")
}

// RemoveOriginals deletes the content that was copied to the archive. Deleting
// again is harmless; the bucket's versions keep the bytes for their retention.
func (s Store) RemoveOriginals(ctx context.Context, a Artifact) error {
	for _, f := range a.Files {
		if _, err := s.Client.DeleteObject(ctx, &s3.DeleteObjectInput{Bucket: &s.Bucket, Key: &f.Key}); err != nil {
			return fmt.Errorf("delete %s: %w", f.Key, err)
		}
	}
	return nil
}

// OriginalsLeft tells whether content of an archived version still lies where it
// was first.
func (s Store) OriginalsLeft(ctx context.Context, a Artifact) (bool, error) {
	for _, f := range a.Files {
		_, err := s.Client.HeadObject(ctx, &s3.HeadObjectInput{Bucket: &s.Bucket, Key: &f.Key})
		if err == nil {
			return true, nil
		}
		if err = s.readError(f.Key, err); !errors.Is(err, objects.ErrNotFound) {
			return false, err
		}
	}
	return false, nil
}

// Cool moves the files of a run to STANDARD_IA by copying each onto itself; one
// that is there already, or gone, is left alone.
func (s Store) Cool(ctx context.Context, run Run) error {
	for name := range run.ContentHashes {
		key := RunKey(run.RunID, name)
		head, err := s.Client.HeadObject(ctx, &s3.HeadObjectInput{Bucket: &s.Bucket, Key: &key})
		if err != nil {
			if err = s.readError(key, err); errors.Is(err, objects.ErrNotFound) {
				continue
			}
			return err
		}
		if head.StorageClass == types.StorageClassStandardIa {
			continue
		}
		source := s.Bucket + "/" + (&url.URL{Path: key}).EscapedPath()
		_, err = s.Client.CopyObject(ctx, &s3.CopyObjectInput{
			Bucket: &s.Bucket, Key: &key, CopySource: &source, StorageClass: types.StorageClassStandardIa,
			MetadataDirective: types.MetadataDirectiveReplace, Metadata: head.Metadata, ContentType: head.ContentType,
			ChecksumAlgorithm: types.ChecksumAlgorithmSha256,
		})
		if err != nil {
			return fmt.Errorf("move %s to STANDARD_IA: %w", key, err)
		}
	}
	return nil
}
