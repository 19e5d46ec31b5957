package artifact

import (
	"context"
	"errors"
	"fmt"

	"millrace/domain/artifact"
	"millrace/storage/objects"
	"millrace/storage/table"
)

// Dossier is everything that is known of a version, enough to check it without
// the stores.
type Dossier struct {
	Artifact  Artifact          `json:"artifact"`
	Approvals []Approval        `json:"approvals"`
	Records   []artifact.Record `json:"records"`
	Runs      []Execution       `json:"runs"`
	// Keys are the public keys behind the signatures, by fingerprint.
	Keys map[string]string `json:"keys,omitempty"`
}

// Document is provenance/{artifact_id}.json: the chains of all versions, the
// oldest first.
type Document struct {
	ArtifactID string    `json:"artifact_id"`
	Versions   []Dossier `json:"versions"`
}

// Dossier collects what is known of a version.
func (s Store) Dossier(ctx context.Context, id string, version int) (Dossier, error) {
	var d Dossier
	var err error
	if d.Artifact, err = s.Version(ctx, id, version); err != nil {
		return Dossier{}, err
	}
	if d.Approvals, err = s.Approvals(ctx, id, version); err != nil {
		return Dossier{}, err
	}
	if d.Records, err = s.Provenance(ctx, id, version); err != nil {
		return Dossier{}, err
	}
	if d.Runs, err = s.Runs(ctx, id, version); err != nil {
		return Dossier{}, err
	}
	d.Keys = map[string]string{}
	for _, a := range d.Approvals {
		if a.Assurance != artifact.Signed {
			continue
		}
		key, found, err := s.Key(ctx, a.Actor, a.Key)
		if err != nil {
			return Dossier{}, err
		}
		if found {
			d.Keys[a.Key] = key.PublicKey
		}
	}
	return d, nil
}

// WriteMetadata writes metadata.json of a version as it stands and its hash into
// the item.
func (s Store) WriteMetadata(ctx context.Context, id string, version int) error {
	item, err := s.Version(ctx, id, version)
	if err != nil {
		return err
	}
	item.MetadataHash = ""
	file, err := s.PutJSON(ctx, ContentKey(id, version, artifact.MetadataFile), item)
	if err != nil {
		return err
	}
	same := table.Condition{
		Expression: "#chain = :chain", Names: map[string]string{"#chain": "chain_last"},
		Values: table.Item{":chain": table.String(item.ChainLast)},
	}
	err = s.Table.Update(ctx, table.Change{
		Key: versionKey(id, version), Set: map[string]any{"metadata_hash": file.ContentHash}, Condition: &same,
	}, nil)
	if _, ok := errors.AsType[*table.ConflictError](err); ok {
		return fmt.Errorf("metadata of version %d of %s: %w", version, id, ErrConflict)
	}
	return err
}

// WriteProvenance writes the provenance document of all versions and its hash
// into HEAD.
func (s Store) WriteProvenance(ctx context.Context, id string) error {
	versions, err := s.Versions(ctx, id)
	if err != nil {
		return err
	}
	document := Document{ArtifactID: id}
	for i := range versions {
		d, err := s.Dossier(ctx, id, versions[len(versions)-1-i].Version)
		if err != nil {
			return err
		}
		document.Versions = append(document.Versions, d)
	}
	file, err := s.PutJSON(ctx, ProvenanceKey(id), document)
	if err != nil {
		return err
	}
	present := s.Table.Present()
	return s.Table.Update(ctx, table.Change{Key: headKey(id), Set: map[string]any{"provenance_hash": file.ContentHash}, Condition: &present}, nil)
}

// VerifyStored checks a version's content against the hashes of its item.
// Archived content is not read: it lies in a cold class.
func (s Store) VerifyStored(ctx context.Context, a Artifact) error {
	if a.State == artifact.Archived {
		return nil
	}
	for _, f := range a.Files {
		if err := s.Verify(ctx, f); err != nil {
			return err
		}
	}
	return nil
}

// IsIntegrity tells whether an error says that content is not what was stored.
func IsIntegrity(err error) bool {
	_, ok := errors.AsType[*objects.IntegrityError](err)
	return ok
}
