// Package report keeps the objects of the daily reports: what a report is made
// from, the report itself, and who was told of it. It is all in the bucket, so
// that reports stay readable where nothing makes them any more.
package report

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	awshttp "github.com/aws/aws-sdk-go-v2/aws/transport/http"
	"github.com/aws/aws-sdk-go-v2/service/s3"

	"millrace/domain/report"
	"millrace/storage/objects"
)

// Store has the reports below a prefix of a bucket, such as reports/daily.
type Store struct {
	Bucket objects.Bucket
	Prefix string
}

// maxDocument bounds what is read back of a report's documents, in bytes.
const maxDocument = 8 << 20

// ErrNotFound tells that there is no such report.
var ErrNotFound = objects.ErrNotFound

// ErrDamaged tells that a document is not what was written.
var ErrDamaged = errors.New("document is damaged")

// ErrNotModified tells that a report is still what the caller has.
var ErrNotModified = errors.New("report is not modified")

// PutJSON writes a document; equal documents are equal bytes.
func (s Store) PutJSON(ctx context.Context, key string, document any) ([]byte, error) {
	body, err := json.Marshal(document)
	if err != nil {
		return nil, fmt.Errorf("encode %s: %w", key, err)
	}
	body = append(body, '\n')
	return body, s.Bucket.Put(ctx, key, objects.JSON, body)
}

// ReadJSON reads a document.
func (s Store) ReadJSON(ctx context.Context, key string, document any) error {
	body, err := s.Bucket.Get(ctx, key, maxDocument)
	if err != nil {
		return err
	}
	if err := json.Unmarshal(body, document); err != nil {
		return fmt.Errorf("read object %s: %w: %w", key, ErrDamaged, err)
	}
	return nil
}

// Format is a form of a report.
type Format string

// The forms of a report.
const (
	Markdown Format = "markdown"
	HTML     Format = "html"
	Metadata Format = "metadata"
)

// key is where a form of a report lies.
func (s Store) key(date, target string, format Format) string {
	switch format {
	case HTML:
		return report.HTMLKey(s.Prefix, date, target)
	case Metadata:
		return report.MetadataKey(s.Prefix, date, target)
	case Markdown:
	}
	return report.MarkdownKey(s.Prefix, date, target)
}

// File is one form of a report.
type File struct {
	Body         []byte
	ETag         string
	LastModified time.Time
}

// Read reads a report of a local day. With ifNoneMatch, the entity tag that a
// caller has, an unchanged report is ErrNotModified and its body is not fetched.
func (s Store) Read(ctx context.Context, date, target string, format Format, ifNoneMatch string) (File, error) {
	key := s.key(date, target, format)
	in := &s3.GetObjectInput{Bucket: &s.Bucket.Name, Key: &key}
	if ifNoneMatch != "" {
		in.IfNoneMatch = &ifNoneMatch
	}
	out, err := s.Bucket.Client.GetObject(ctx, in)
	if err != nil {
		return File{}, readError(key, err)
	}
	defer out.Body.Close() //nolint:errcheck // only read
	body, err := io.ReadAll(io.LimitReader(out.Body, maxDocument+1))
	switch {
	case err != nil:
		return File{}, fmt.Errorf("read object %s: %w", key, err)
	case len(body) > maxDocument:
		return File{}, fmt.Errorf("read object %s: %w", key, objects.ErrTooLarge)
	}
	return File{Body: body, ETag: aws.ToString(out.ETag), LastModified: aws.ToTime(out.LastModified).UTC()}, nil
}

func readError(key string, err error) error {
	response, ok := errors.AsType[*awshttp.ResponseError](err)
	switch {
	case ok && response.HTTPStatusCode() == http.StatusNotFound:
		return fmt.Errorf("object %s: %w", key, ErrNotFound)
	case ok && response.HTTPStatusCode() == http.StatusNotModified:
		return fmt.Errorf("object %s: %w", key, ErrNotModified)
	}
	return fmt.Errorf("get object %s: %w", key, err)
}

// Label notes what a listing shall tell of a report: who worded it and its
// verdict. The label is an empty object whose key says it all, with the entity tag
// of the report.md that it is about, so that lists need to read no object.
func (s Store) Label(ctx context.Context, date, target, generator string, verdict report.Verdict) error {
	key := report.MarkdownKey(s.Prefix, date, target)
	head, err := s.Bucket.Client.HeadObject(ctx, &s3.HeadObjectInput{Bucket: &s.Bucket.Name, Key: &key})
	if err != nil {
		return readError(key, err)
	}
	label := labelPrefix(s.Prefix, date, target) + plain(aws.ToString(head.ETag)) + "/" + generator + "." + string(verdict)
	_, err = s.Bucket.PutIfAbsent(ctx, label, "text/plain", nil)
	return err
}

func labelPrefix(prefix, date, target string) string {
	return report.ReportPrefix(prefix, date, target) + "/labels/"
}

// plain is an entity tag without its quotes.
func plain(etag string) string { return strings.Trim(etag, `"`) }
