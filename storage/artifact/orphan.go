package artifact

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/s3"

	"millrace/domain/artifact"
	"millrace/storage/objects"
	"millrace/storage/table"
)

// contentPrefix is where the content of versions lies.
const contentPrefix = "artifacts/"

// Orphan is an object among the content of versions that no item names: an
// upload whose lifecycle never began, or a file that a draft had before.
type Orphan struct {
	Key        string
	ArtifactID string
	Version    int
	Name       string
}

// orphanPage is how many objects are compared with their items at once; it is
// DynamoDB's limit of one read.
const orphanPage = 100

// Orphans walks the objects under artifacts/ that were written before a time and
// that no item names. What a draft may still refer to is none, nor is an object
// whose key is not of the protocol's form.
func (s Store) Orphans(ctx context.Context, before time.Time) iter.Seq2[Orphan, error] {
	return func(yield func(Orphan, error) bool) {
		var page []Orphan
		flush := func() bool {
			orphans, err := s.unnamed(ctx, page)
			page = page[:0]
			if err != nil {
				yield(Orphan{}, err)
				return false
			}
			for _, o := range orphans {
				if !yield(o, nil) {
					return false
				}
			}
			return true
		}
		for object, err := range (objects.Bucket{Client: s.Client, Name: s.Bucket}).List(ctx, contentPrefix, "") {
			if err != nil {
				yield(Orphan{}, err)
				return
			}
			o, ok := parseContentKey(object.Key)
			if !ok || !object.LastModified.Before(before) {
				continue
			}
			if page = append(page, o); len(page) == orphanPage && !flush() {
				return
			}
		}
		flush()
	}
}

// parseContentKey reads a key of the form artifacts/{id}/v{version}/{name}.
func parseContentKey(key string) (Orphan, bool) {
	parts := strings.Split(strings.TrimPrefix(key, contentPrefix), "/")
	if len(parts) != 3 || !strings.HasPrefix(parts[1], "v") {
		return Orphan{}, false
	}
	version, err := strconv.Atoi(parts[1][1:])
	o := Orphan{Key: key, ArtifactID: parts[0], Version: version, Name: parts[2]}
	known := err == nil && artifact.CheckID(o.ArtifactID) == nil && artifact.CheckVersion(version) == nil
	return o, known && ContentKey(o.ArtifactID, version, o.Name) == key
}

// unnamed are those that no item names.
func (s Store) unnamed(ctx context.Context, page []Orphan) ([]Orphan, error) {
	if len(page) == 0 {
		return nil, nil
	}
	keys := make([]table.Key, 0, len(page))
	for _, o := range page {
		keys = append(keys, versionKey(o.ArtifactID, o.Version))
	}
	items, err := s.Table.BatchGet(ctx, slices.Compact(keys))
	if err != nil {
		return nil, fmt.Errorf("read the versions of stored content: %w", err)
	}
	known := map[table.Key]Artifact{}
	for _, item := range items {
		var a Artifact
		if err := table.Decode(item, &a); err != nil {
			return nil, err
		}
		known[a.key()] = a
	}
	return slices.DeleteFunc(slices.Clone(page), func(o Orphan) bool {
		a, found := known[versionKey(o.ArtifactID, o.Version)]
		return found && a.names(o)
	}), nil
}

// names tells whether a version needs an object, or may need it yet.
func (a Artifact) names(o Orphan) bool {
	return a.State == artifact.Draft || o.Name == artifact.MetadataFile || o.Name == artifact.SpecFile ||
		slices.ContainsFunc(a.Files, func(f StoredFile) bool { return f.Key == o.Key })
}

// RemoveOrphan deletes an orphan unless an item names it by now, and tells
// whether it did. The bucket's versions keep the bytes for their retention.
func (s Store) RemoveOrphan(ctx context.Context, o Orphan) (bool, error) {
	a, err := s.Version(ctx, o.ArtifactID, o.Version)
	switch {
	case err == nil && a.names(o):
		return false, nil
	case err != nil && !errors.Is(err, ErrNotFound):
		return false, err
	}
	if _, err := s.Client.DeleteObject(ctx, &s3.DeleteObjectInput{Bucket: &s.Bucket, Key: &o.Key}); err != nil {
		return false, fmt.Errorf("delete %s: %w", o.Key, err)
	}
	return true, nil
}
