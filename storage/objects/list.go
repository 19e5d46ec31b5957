package objects

import (
	"context"
	"fmt"
	"iter"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3"
)

// Object is a listed object.
type Object struct {
	Key          string
	Size         int64
	LastModified time.Time
}

// List walks the objects below prefix in key order, after startAfter where it
// is not empty, fetching pages of up to 1,000 as they are needed.
func (b Bucket) List(ctx context.Context, prefix, startAfter string) iter.Seq2[Object, error] {
	return func(yield func(Object, error) bool) {
		in := &s3.ListObjectsV2Input{Bucket: &b.Name, Prefix: &prefix}
		if startAfter != "" {
			in.StartAfter = &startAfter
		}
		pages := s3.NewListObjectsV2Paginator(b.Client, in)
		for pages.HasMorePages() {
			page, err := pages.NextPage(ctx)
			if err != nil {
				yield(Object{}, fmt.Errorf("list %s: %w", prefix, err))
				return
			}
			for _, o := range page.Contents {
				object := Object{Key: aws.ToString(o.Key), Size: aws.ToInt64(o.Size), LastModified: aws.ToTime(o.LastModified)}
				if !yield(object, nil) {
					return
				}
			}
		}
	}
}

// Children are the next levels below prefix: common prefixes up to and with the
// delimiter, and the objects that have none.
func (b Bucket) Children(ctx context.Context, prefix, delimiter string) (prefixes []string, objects []Object, err error) {
	pages := s3.NewListObjectsV2Paginator(b.Client, &s3.ListObjectsV2Input{Bucket: &b.Name, Prefix: &prefix, Delimiter: &delimiter})
	for pages.HasMorePages() {
		page, err := pages.NextPage(ctx)
		if err != nil {
			return nil, nil, fmt.Errorf("list %s: %w", prefix, err)
		}
		for _, p := range page.CommonPrefixes {
			prefixes = append(prefixes, aws.ToString(p.Prefix))
		}
		for _, o := range page.Contents {
			objects = append(objects, Object{Key: aws.ToString(o.Key), Size: aws.ToInt64(o.Size), LastModified: aws.ToTime(o.LastModified)})
		}
	}
	return prefixes, objects, nil
}
