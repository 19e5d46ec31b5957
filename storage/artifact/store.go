// Package artifact keeps artifacts: their metadata in the governance table and
// their content in the bucket, exactly as section 9 of the ALP seed lays them
// out. A change of state and all that belongs to it are one transaction.
package artifact

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/s3"

	"millrace/domain/artifact"
	"millrace/storage/objects"
	"millrace/storage/table"
)

// Bucket is the part of the S3 client that the store needs.
type Bucket interface {
	objects.API
	CopyObject(context.Context, *s3.CopyObjectInput, ...func(*s3.Options)) (*s3.CopyObjectOutput, error)
	DeleteObject(context.Context, *s3.DeleteObjectInput, ...func(*s3.Options)) (*s3.DeleteObjectOutput, error)
}

// Store is the governance table and the artifact bucket.
type Store struct {
	Table  table.Table
	Client Bucket
	// Bucket is the bucket's name.
	Bucket string
}

// New is the store over the table and the bucket of these names.
func New(client table.API, tableName string, bucket Bucket, bucketName string) Store {
	return Store{
		Table:  table.Table{Client: client, Name: tableName, PartitionKey: "PK", SortKey: "SK"},
		Client: bucket, Bucket: bucketName,
	}
}

// Errors of the store.
var (
	ErrNotFound = errors.New("no such artifact")
	// ErrTaken marks a version number that somebody else has.
	ErrTaken = errors.New("version is taken")
	// ErrConflict marks a step that does not follow the item's last one: another
	// writer was there.
	ErrConflict = errors.New("version was changed by another writer")
	// ErrSuperseded marks a step that a newer version forbids.
	ErrSuperseded = errors.New("a newer version is ahead")
	// ErrBusy marks a run that has to wait for another version's.
	ErrBusy = errors.New("another version runs")
)

const (
	schemaVersion = 1
	gsi1          = "GSI1"
)

// keys are the keys of an item in the table and its index.
type keys struct {
	PK     string `json:"PK"`
	SK     string `json:"SK"`
	GSI1PK string `json:"GSI1PK,omitempty"`
	GSI1SK string `json:"GSI1SK,omitempty"`
}

func (k keys) key() table.Key { return table.Key{Partition: k.PK, Sort: k.SK} }

// common are the attributes that every item has.
type common struct {
	keys

	Entity        string    `json:"entity"`
	ArtifactID    string    `json:"artifact_id"`
	Version       int       `json:"version"`
	SchemaVersion int       `json:"schema_version"`
	CreatedAt     time.Time `json:"created_at"`
	UpdatedAt     time.Time `json:"updated_at"`
}

func newCommon(entity, id string, version int, at time.Time, k keys) common {
	k.PK = partition(id)
	return common{keys: k, Entity: entity, ArtifactID: id, Version: version, SchemaVersion: schemaVersion, CreatedAt: at, UpdatedAt: at}
}

func partition(id string) string { return "ART#" + id }

func versionKey(id string, version int) table.Key {
	return table.Key{Partition: partition(id), Sort: fmt.Sprintf("V#%d", version)}
}

func headKey(id string) table.Key { return table.Key{Partition: partition(id), Sort: "HEAD"} }

// indexSort is the form of the seed's index sort keys: #{time}#{artifact_id}.
func indexSort(at time.Time, id string) string {
	return "#" + artifact.Timestamp(at) + "#" + id
}
