// Package objects keeps documents and bodies in an S3 bucket. What it writes
// carries its SHA-256 in the metadata, and what it reads is checked against it.
package objects

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net/http"

	"github.com/aws/aws-sdk-go-v2/aws"
	awshttp "github.com/aws/aws-sdk-go-v2/aws/transport/http"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/aws-sdk-go-v2/service/s3/types"
)

// API is the part of the S3 client that buckets need.
type API interface {
	PutObject(context.Context, *s3.PutObjectInput, ...func(*s3.Options)) (*s3.PutObjectOutput, error)
	GetObject(context.Context, *s3.GetObjectInput, ...func(*s3.Options)) (*s3.GetObjectOutput, error)
	HeadObject(context.Context, *s3.HeadObjectInput, ...func(*s3.Options)) (*s3.HeadObjectOutput, error)
	ListObjectsV2(context.Context, *s3.ListObjectsV2Input, ...func(*s3.Options)) (*s3.ListObjectsV2Output, error)
}

// Bucket is one S3 bucket.
type Bucket struct {
	Client API
	Name   string
}

// JSON is the content type of documents.
const JSON = "application/json"

const hashMetadata = "sha256"

// Errors of reads.
var (
	ErrNotFound = errors.New("no such object")
	ErrTooLarge = errors.New("object is larger than allowed")
)

// IntegrityError tells that an object is not what was written.
type IntegrityError struct {
	Bucket, Key, Want, Got string
}

// Error names the object and both hashes.
func (e *IntegrityError) Error() string {
	return fmt.Sprintf("object %s of bucket %s has SHA-256 %s, not %s", e.Key, e.Bucket, e.Got, e.Want)
}

// PutIfAbsent writes an object unless its key is taken, and tells whether it did.
func (b Bucket) PutIfAbsent(ctx context.Context, key, contentType string, body []byte) (bool, error) {
	in := b.putInput(key, contentType, body)
	in.IfNoneMatch = aws.String("*")
	_, err := b.Client.PutObject(ctx, in)
	switch {
	case err == nil:
		return true, nil
	case statusOf(err) == http.StatusPreconditionFailed:
		return false, nil
	}
	return false, fmt.Errorf("put object %s: %w", key, err)
}

// Put writes an object, replacing what is there.
func (b Bucket) Put(ctx context.Context, key, contentType string, body []byte) error {
	if _, err := b.Client.PutObject(ctx, b.putInput(key, contentType, body)); err != nil {
		return fmt.Errorf("put object %s: %w", key, err)
	}
	return nil
}

func (b Bucket) putInput(key, contentType string, body []byte) *s3.PutObjectInput {
	return &s3.PutObjectInput{
		Bucket: &b.Name, Key: &key, Body: bytes.NewReader(body), ContentType: &contentType,
		Metadata: map[string]string{hashMetadata: hashOf(body)},
	}
}

// Get reads an object of at most limit bytes. Where the object says its
// SHA-256, the body is checked against it; a difference is an *IntegrityError.
func (b Bucket) Get(ctx context.Context, key string, limit int64) ([]byte, error) {
	out, err := b.Client.GetObject(ctx, &s3.GetObjectInput{Bucket: &b.Name, Key: &key})
	if err != nil {
		return nil, b.readError(key, err)
	}
	defer out.Body.Close() //nolint:errcheck // nothing to do about a body already read
	body, err := io.ReadAll(io.LimitReader(out.Body, limit+1))
	switch {
	case err != nil:
		return nil, fmt.Errorf("read object %s: %w", key, err)
	case int64(len(body)) > limit:
		return nil, fmt.Errorf("read object %s: %w", key, ErrTooLarge)
	}
	if want := out.Metadata[hashMetadata]; want != "" && want != hashOf(body) {
		return nil, &IntegrityError{Bucket: b.Name, Key: key, Want: want, Got: hashOf(body)}
	}
	return body, nil
}

// Exists tells whether a key is taken.
func (b Bucket) Exists(ctx context.Context, key string) (bool, error) {
	_, err := b.Client.HeadObject(ctx, &s3.HeadObjectInput{Bucket: &b.Name, Key: &key})
	if err == nil {
		return true, nil
	}
	if err = b.readError(key, err); errors.Is(err, ErrNotFound) {
		return false, nil
	}
	return false, err
}

func (b Bucket) readError(key string, err error) error {
	var noKey *types.NoSuchKey
	if errors.As(err, &noKey) || statusOf(err) == http.StatusNotFound {
		return fmt.Errorf("object %s: %w", key, ErrNotFound)
	}
	return fmt.Errorf("get object %s: %w", key, err)
}

func statusOf(err error) int {
	if response, ok := errors.AsType[*awshttp.ResponseError](err); ok {
		return response.HTTPStatusCode()
	}
	return 0
}

func hashOf(body []byte) string {
	sum := sha256.Sum256(body)
	return hex.EncodeToString(sum[:])
}
