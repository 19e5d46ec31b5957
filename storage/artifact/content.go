package artifact

import (
	"context"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"fmt"
	"hash"
	"io"
	"net/http"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	awshttp "github.com/aws/aws-sdk-go-v2/aws/transport/http"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/aws-sdk-go-v2/service/s3/types"

	"millrace/domain/artifact"
	"millrace/storage/objects"
)

// ContentKey is the key of a file of a version; name is its stored name.
func ContentKey(id string, version int, name string) string {
	return fmt.Sprintf("artifacts/%s/v%d/%s", id, version, name)
}

// Names of what a run leaves behind.
const (
	OutputFile = "output.json"
	StdoutFile = "stdout.log"
	StderrFile = "stderr.log"
)

// RunKey is the key of a file that a run left.
func RunKey(runID, name string) string { return "executions/" + runID + "/" + name }

// ProvenanceKey is the key of an artifact's provenance document.
func ProvenanceKey(id string) string { return "provenance/" + id + ".json" }

// Put stores a file, hashing it as it is read; at most artifact.MaxContent
// bytes. It gives the file with its key, hash, size and object version.
func (s Store) Put(ctx context.Context, key, contentType string, body io.ReadSeeker) (StoredFile, error) {
	sum, size, err := digest(body)
	if err != nil {
		return StoredFile{}, fmt.Errorf("hash content of %s: %w", key, err)
	}
	out, err := s.Client.PutObject(ctx, &s3.PutObjectInput{
		Bucket: &s.Bucket, Key: &key, Body: body, ContentLength: &size, ContentType: &contentType,
		ChecksumSHA256: aws.String(base64.StdEncoding.EncodeToString(sum)),
		Metadata:       map[string]string{"sha256": artifact.HashString(sum)},
	})
	if err != nil {
		return StoredFile{}, fmt.Errorf("put object %s: %w", key, err)
	}
	return StoredFile{Key: key, ContentHash: artifact.HashString(sum), Size: size, S3VersionID: aws.ToString(out.VersionId)}, nil
}

func digest(body io.ReadSeeker) ([]byte, int64, error) {
	h := sha256.New()
	size, err := io.Copy(h, io.LimitReader(body, artifact.MaxContent+1))
	if err != nil {
		return nil, 0, err
	}
	if size > artifact.MaxContent {
		return nil, 0, objects.ErrTooLarge
	}
	_, err = body.Seek(0, io.SeekStart)
	return h.Sum(nil), size, err
}

// Open streams a stored file. Its hash is checked as it is read: a difference is
// an *objects.IntegrityError in place of the end of the file, so nothing may be
// made of the content before the end.
func (s Store) Open(ctx context.Context, f StoredFile) (*Body, error) {
	in := &s3.GetObjectInput{Bucket: &s.Bucket, Key: &f.Key}
	if f.S3VersionID != "" {
		in.VersionId = &f.S3VersionID
	}
	out, err := s.Client.GetObject(ctx, in)
	if err != nil {
		return nil, s.readError(f.Key, err)
	}
	return &Body{body: out.Body, hash: sha256.New(), bucket: s.Bucket, file: f, version: aws.ToString(out.VersionId)}, nil
}

func (s Store) readError(key string, err error) error {
	if _, ok := errors.AsType[*types.NoSuchKey](err); ok {
		return fmt.Errorf("object %s: %w", key, objects.ErrNotFound)
	}
	if response, ok := errors.AsType[*awshttp.ResponseError](err); ok && response.HTTPStatusCode() == http.StatusNotFound {
		return fmt.Errorf("object %s: %w", key, objects.ErrNotFound)
	}
	return fmt.Errorf("get object %s: %w", key, err)
}

// Body is the content of a stored file, which is checked against its hash as it
// is read.
type Body struct {
	body    io.ReadCloser
	hash    hash.Hash
	size    int64
	bucket  string
	file    StoredFile
	version string
}

// Read reads on; at the end it compares.
func (v *Body) Read(p []byte) (int, error) {
	n, err := v.body.Read(p)
	v.hash.Write(p[:n])
	v.size += int64(n)
	if v.size > artifact.MaxContent {
		return n, fmt.Errorf("read object %s: %w", v.file.Key, objects.ErrTooLarge)
	}
	if errors.Is(err, io.EOF) {
		if got := artifact.HashString(v.hash.Sum(nil)); got != v.file.ContentHash {
			return n, &objects.IntegrityError{Bucket: v.bucket, Key: v.file.Key, Want: v.file.ContentHash, Got: got}
		}
	}
	return n, err
}

// Close ends reading.
func (v *Body) Close() error { return v.body.Close() }

// Stat finds what lies at a key now and hashes it, for content that was uploaded
// before its version.
func (s Store) Stat(ctx context.Context, key, versionID string) (StoredFile, error) {
	in := &s3.GetObjectInput{Bucket: &s.Bucket, Key: &key}
	if versionID != "" {
		in.VersionId = &versionID
	}
	out, err := s.Client.GetObject(ctx, in)
	if err != nil {
		return StoredFile{}, s.readError(key, err)
	}
	defer out.Body.Close() //nolint:errcheck // only read
	h := sha256.New()
	size, err := io.Copy(h, io.LimitReader(out.Body, artifact.MaxContent+1))
	switch {
	case err != nil:
		return StoredFile{}, fmt.Errorf("read object %s: %w", key, err)
	case size > artifact.MaxContent:
		return StoredFile{}, fmt.Errorf("object %s: %w", key, objects.ErrTooLarge)
	}
	return StoredFile{Key: key, ContentHash: artifact.HashString(h.Sum(nil)), Size: size, S3VersionID: aws.ToString(out.VersionId)}, nil
}

// ReadAll reads a small stored file, checked.
func (s Store) ReadAll(ctx context.Context, f StoredFile, limit int64) ([]byte, error) {
	body, err := s.Open(ctx, f)
	if err != nil {
		return nil, err
	}
	defer body.Close() //nolint:errcheck // only read
	content, err := io.ReadAll(io.LimitReader(body, limit+1))
	switch {
	case err != nil:
		return nil, err
	case int64(len(content)) > limit:
		return nil, fmt.Errorf("read object %s: %w", f.Key, objects.ErrTooLarge)
	}
	return content, nil
}

// PutJSON stores a document of our own.
func (s Store) PutJSON(ctx context.Context, key string, document any) (StoredFile, error) {
	body, err := artifact.Canonical(document)
	if err != nil {
		return StoredFile{}, err
	}
	return s.Put(ctx, key, objects.JSON, strings.NewReader(string(body)))
}
