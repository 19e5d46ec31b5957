package artifact

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	awshttp "github.com/aws/aws-sdk-go-v2/aws/transport/http"
	"github.com/aws/aws-sdk-go-v2/service/s3"

	"millrace/domain/artifact"
	"millrace/storage/objects"
	"millrace/storage/table"
)

// Document is provenance/{artifact_id}.json: the chains of all versions, the
// oldest first.
type Document struct {
	ArtifactID string `json:"artifact_id"`
	// Revision counts how often the document was written.
	Revision int       `json:"revision"`
	Versions []Dossier `json:"versions"`
	// Hash is that of the document without Hash itself.
	Hash string `json:"hash"`
}

func (d Document) sum() (string, error) {
	d.Hash = ""
	body, err := artifact.Canonical(d)
	return artifact.HashOf(body), err
}

// links is how many records the document has.
func (d Document) links() int {
	var n int
	for _, v := range d.Versions {
		n += len(v.Records)
	}
	return n
}

// WriteMetadata writes metadata.json of a version as it stands and its hash into
// the item.
func (s Store) WriteMetadata(ctx context.Context, id string, version int) error {
	item, err := s.Version(ctx, id, version)
	if err != nil {
		return err
	}
	item.MetadataHash, item.MetadataChain = "", ""
	file, err := s.PutJSON(ctx, ContentKey(id, version, artifact.MetadataFile), item)
	if err != nil {
		return err
	}
	same := table.Condition{
		Expression: "#chain = :chain", Names: map[string]string{"#chain": "chain_last"},
		Values: table.Item{":chain": table.String(item.ChainLast)},
	}
	err = s.Table.Update(ctx, table.Change{
		Key: versionKey(id, version), Set: map[string]any{"metadata_hash": file.ContentHash, "metadata_chain": item.ChainLast}, Condition: &same,
	}, nil)
	if _, ok := errors.AsType[*table.ConflictError](err); ok {
		return fmt.Errorf("metadata of version %d of %s: %w", version, id, ErrConflict)
	}
	return err
}

// errOvertaken marks a provenance document that another writer replaced between
// our look at it and our write.
var errOvertaken = errors.New("provenance document was written meanwhile")

const (
	// provenanceTries is how often a document is built anew because another writer
	// was faster; each round one writer gets through.
	provenanceTries = 8
	provenancePause = 50 * time.Millisecond
)

// WriteProvenance writes the provenance document of all versions and its hash
// into HEAD. Writers of several versions do not overwrite each other: a document
// replaces only the one that was there before its items were read, so that each
// has all that the one before had.
func (s Store) WriteProvenance(ctx context.Context, id string) error {
	for try := range provenanceTries {
		err := s.writeProvenance(ctx, id)
		if !errors.Is(err, errOvertaken) {
			return err
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(rand.N(provenancePause << try)): //nolint:gosec // no secret
		}
	}
	return fmt.Errorf("provenance of %s: %w", id, errOvertaken)
}

func (s Store) writeProvenance(ctx context.Context, id string) error {
	before, err := s.currentProvenance(ctx, id)
	if err != nil {
		return err
	}
	document := Document{ArtifactID: id, Revision: before.revision + 1}
	if document.Versions, err = s.Dossiers(ctx, id); err != nil {
		return err
	}
	hash, err := s.replaceProvenance(ctx, document, before.etag)
	if err != nil {
		return err
	}
	return s.pointToProvenance(ctx, document, hash)
}

// written is the provenance document that is there: no etag when there is none.
type written struct {
	etag     string
	revision int
}

const revisionMetadata = "revision"

func (s Store) currentProvenance(ctx context.Context, id string) (written, error) {
	key := ProvenanceKey(id)
	head, err := s.Client.HeadObject(ctx, &s3.HeadObjectInput{Bucket: &s.Bucket, Key: &key})
	if err == nil {
		// A document without the number counts as none before the first.
		revision, _ := strconv.Atoi(head.Metadata[revisionMetadata])
		return written{etag: aws.ToString(head.ETag), revision: revision}, nil
	}
	if err = s.readError(key, err); !errors.Is(err, objects.ErrNotFound) {
		return written{}, err
	}
	// Somebody may have deleted it: numbers go on.
	h, err := s.Head(ctx, id)
	return written{revision: h.ProvenanceRevision}, err
}

// replaceProvenance writes a document in place of the one with the etag.
func (s Store) replaceProvenance(ctx context.Context, d Document, etag string) (string, error) {
	var err error
	if d.Hash, err = d.sum(); err != nil {
		return "", err
	}
	body, err := artifact.Canonical(d)
	if err != nil {
		return "", err
	}
	key, hash := ProvenanceKey(d.ArtifactID), artifact.HashOf(body)
	checksum, err := checksumOf(hash)
	if err != nil {
		return "", err
	}
	in := &s3.PutObjectInput{
		Bucket: &s.Bucket, Key: &key, Body: bytes.NewReader(body), ContentType: aws.String(objects.JSON), ChecksumSHA256: &checksum,
		Metadata: map[string]string{"sha256": hash, revisionMetadata: strconv.Itoa(d.Revision)},
	}
	if in.IfMatch = &etag; etag == "" {
		in.IfMatch, in.IfNoneMatch = nil, aws.String("*")
	}
	if _, err := s.Client.PutObject(ctx, in); err != nil {
		if isOvertaken(err) {
			err = errOvertaken
		}
		return "", fmt.Errorf("put object %s: %w", key, err)
	}
	return hash, nil
}

// isOvertaken tells whether a conditional write was refused: another object is
// there (412), none any more (404), or another write was under way (409).
func isOvertaken(err error) bool {
	response, ok := errors.AsType[*awshttp.ResponseError](err)
	if !ok {
		return false
	}
	switch response.HTTPStatusCode() {
	case http.StatusPreconditionFailed, http.StatusConflict, http.StatusNotFound:
		return true
	}
	return false
}

// pointToProvenance brings the document's hash into HEAD unless that of a later
// one is there.
func (s Store) pointToProvenance(ctx context.Context, d Document, hash string) error {
	older := table.Condition{
		Expression: "attribute_exists(#pk) AND (attribute_not_exists(#revision) OR #revision < :revision)",
		Names:      map[string]string{"#pk": "PK", "#revision": "provenance_revision"},
		Values:     table.Item{":revision": table.Int(int64(d.Revision))},
	}
	err := s.Table.Update(ctx, table.Change{Key: headKey(d.ArtifactID), Condition: &older, Set: map[string]any{
		"provenance_hash": hash, "provenance_revision": d.Revision, "provenance_links": d.links(),
	}}, nil)
	if _, refused := errors.AsType[*table.ConflictError](err); !refused {
		return err
	}
	head, err := s.Head(ctx, d.ArtifactID)
	if err == nil && head.ProvenanceRevision < d.Revision {
		err = fmt.Errorf("artifact %s: %w", d.ArtifactID, ErrNotFound)
	}
	return err
}

// checksumOf is a hash as S3 gives checksums.
func checksumOf(hash string) (string, error) {
	sum, err := hex.DecodeString(strings.TrimPrefix(hash, "sha256:"))
	return base64.StdEncoding.EncodeToString(sum), err
}

// Published tells whether the snapshots of a version tell its last step.
func (s Store) Published(ctx context.Context, a Artifact) (bool, error) {
	if a.MetadataChain != a.ChainLast {
		return false, nil
	}
	head, err := s.Head(ctx, a.ArtifactID)
	if err != nil {
		return false, err
	}
	versions, err := s.Versions(ctx, a.ArtifactID)
	var links int
	for _, v := range versions {
		links += v.ChainLength
	}
	return head.ProvenanceLinks >= links, err
}

// IsIntegrity tells whether an error says that content is not what was stored.
func IsIntegrity(err error) bool {
	_, ok := errors.AsType[*objects.IntegrityError](err)
	return ok
}
