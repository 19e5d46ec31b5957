package artifact

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"millrace/domain/artifact"
	"millrace/storage/objects"
	"millrace/storage/table"
)

// Finding is what an audit says of a version; a nil Err is in order. Version 0
// stands for what belongs to the artifact as a whole.
type Finding struct {
	ArtifactID string
	Version    int
	State      artifact.State
	Err        error
}

const (
	// auditTries is how often an audit looks again: whoever writes meanwhile makes
	// items that were read one after the other differ.
	auditTries = 3
	auditPause = 300 * time.Millisecond
	// maxDocument bounds a provenance document.
	maxDocument = 64 << 20
)

// Audit checks every item and every object of an artifact against the chains of
// its versions. What stands for an undo has no chain: it is checked with the
// artifact that it undoes, which is audited in its place.
func (s Store) Audit(ctx context.Context, id string, gatewayKeys []string) ([]Finding, error) {
	id, err := s.original(ctx, id)
	if err != nil {
		return nil, err
	}
	for try := 1; ; try++ {
		findings, err := s.audit(ctx, id, gatewayKeys)
		broken := slices.ContainsFunc(findings, func(f Finding) bool { return f.Err != nil })
		if err != nil || !broken || try == auditTries {
			return findings, err
		}
		select {
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-time.After(auditPause):
		}
	}
}

// original is the artifact that one undoes, or itself.
func (s Store) original(ctx context.Context, id string) (string, error) {
	v, err := s.Version(ctx, id, 1)
	if errors.Is(err, ErrNotFound) {
		return id, nil
	}
	if key, _, found := strings.Cut(v.Compensates, "/"); found {
		id = strings.TrimPrefix(key, partition(""))
	}
	return id, err
}

func (s Store) audit(ctx context.Context, id string, gatewayKeys []string) ([]Finding, error) {
	dossiers, err := s.Dossiers(ctx, id)
	if err == nil && len(dossiers) == 0 {
		err = fmt.Errorf("artifact %s: %w", id, ErrNotFound)
	}
	if err != nil {
		return nil, err
	}
	var findings []Finding
	for _, d := range dossiers {
		problem := d.Check(gatewayKeys)
		for _, check := range []func(context.Context, Dossier) error{s.auditRecords, s.auditUndo, s.auditKeys, s.auditObjects} {
			if problem == nil {
				problem = check(ctx, d)
			}
		}
		findings = append(findings, Finding{ArtifactID: id, Version: d.Artifact.Version, State: d.Artifact.State, Err: problem})
	}
	if err := errors.Join(s.auditHead(ctx, id, dossiers), s.auditDocument(ctx, id, dossiers, gatewayKeys)); err != nil {
		findings = append(findings, Finding{ArtifactID: id, Err: err})
	}
	return findings, ctx.Err()
}

// auditRecords compares the items of the chain, of which a dossier has the
// records alone.
func (s Store) auditRecords(ctx context.Context, d Dossier) error {
	v := d.Artifact
	got, err := all[Provenance](ctx, s.Table, v.ArtifactID, fmt.Sprintf("PROV#v%04d-", v.Version))
	if err != nil {
		return err
	}
	var want []Provenance
	for _, r := range d.Records {
		want = append(want, provenanceItem(Step{ArtifactID: v.ArtifactID, Version: v.Version, Record: r}))
	}
	return sameItems("record", want, got)
}

// auditUndo compares the compensation, and the artifact that stands for it.
func (s Store) auditUndo(ctx context.Context, d Dossier) error {
	told, err := d.tell()
	if err != nil {
		return err
	}
	v := d.Artifact
	id := artifact.CompensationID(v.ArtifactID, v.Version)
	var compensation Compensation
	var stand Artifact
	found, err := s.Table.Get(ctx, table.Key{Partition: partition(v.ArtifactID), Sort: "COMP#" + id}, &compensation)
	if err != nil {
		return err
	}
	standing, err := s.Table.Get(ctx, versionKey(id, 1), &stand)
	switch {
	case err != nil:
		return err
	case told.undo == nil && !found && !standing:
		return nil
	case told.undo == nil || !found || !standing:
		return errors.New("the compensation is not what the chain says")
	}
	wantCompensation, wantStand := undoItems(v, *told.undo)
	return errors.Join(same("the compensation", wantCompensation, compensation), same("artifact "+id, wantStand, stand))
}

// auditKeys looks whether keys were revoked before what they signed was recorded.
func (s Store) auditKeys(ctx context.Context, d Dossier) error {
	for _, by := range d.signed() {
		key, found, err := s.Key(ctx, by.actor, by.key)
		if err != nil {
			return err
		}
		if !found || !recordedBefore(by.recorded, key.RevokedAt) {
			return fmt.Errorf("key %s of %s was revoked before %s", by.key, by.actor, artifact.Timestamp(by.recorded))
		}
	}
	return nil
}

// auditObjects reads what lies in the bucket: content, spec.json, metadata.json
// and what runs left.
func (s Store) auditObjects(ctx context.Context, d Dossier) error {
	v := d.Artifact
	if err := s.VerifyStored(ctx, v); err != nil {
		return err
	}
	if v.MetadataHash != "" {
		if err := s.auditMetadata(ctx, v); err != nil {
			return err
		}
	}
	for _, run := range d.Runs {
		for _, name := range slices.Sorted(maps.Keys(run.ContentHashes)) {
			if err := s.Verify(ctx, StoredFile{Key: RunKey(run.RunID, name), ContentHash: run.ContentHashes[name]}); err != nil {
				return err
			}
		}
	}
	return nil
}

func (s Store) auditMetadata(ctx context.Context, v Artifact) error {
	file := StoredFile{Key: ContentKey(v.ArtifactID, v.Version, artifact.MetadataFile), ContentHash: v.MetadataHash}
	if err := s.Verify(ctx, file); err != nil {
		return err
	}
	body, err := s.ReadAll(ctx, file, maxDocument)
	if err != nil {
		return err
	}
	var snapshot Artifact
	if err := json.Unmarshal(body, &snapshot); err != nil {
		return fmt.Errorf("read %s: %w", file.Key, err)
	}
	if snapshot.ChainLast != v.MetadataChain {
		return fmt.Errorf("%s tells another step than metadata_chain", file.Key)
	}
	return nil
}

// headItem is HEAD with all its attributes.
type headItem struct {
	common
	Head
}

// auditHead compares HEAD with what the chains of all versions say.
func (s Store) auditHead(ctx context.Context, id string, dossiers []Dossier) error {
	var got headItem
	if _, err := s.Table.Get(ctx, headKey(id), &got); err != nil {
		return err
	}
	want := headItem{common: newCommon("head", id, 0, dossiers[0].Artifact.CreatedAt, keys{SK: headKey(id).Sort})}
	want.ProvenanceHash, want.ProvenanceRevision, want.ProvenanceLinks = got.ProvenanceHash, got.ProvenanceRevision, got.ProvenanceLinks
	for _, d := range dossiers {
		told, err := d.tell()
		if err != nil {
			return nil //nolint:nilerr // the version's own finding says so
		}
		want.LatestVersion = max(want.LatestVersion, d.Artifact.Version)
		if told.approved {
			want.ApprovedVersion = max(want.ApprovedVersion, d.Artifact.Version)
		}
		if told.ran {
			want.RanVersion = max(want.RanVersion, d.Artifact.Version)
		}
		if told.holder != "" {
			want.ExecutingRun = told.holder
		}
	}
	return same("HEAD", want, got)
}

// auditDocument compares the provenance document with its hash in HEAD, and what
// it tells with the chains.
func (s Store) auditDocument(ctx context.Context, id string, dossiers []Dossier, gatewayKeys []string) error {
	head, err := s.Head(ctx, id)
	if err != nil {
		return err
	}
	file := StoredFile{Key: ProvenanceKey(id), ContentHash: head.ProvenanceHash}
	body, err := s.ReadAll(ctx, file, maxDocument)
	if errors.Is(err, objects.ErrNotFound) {
		if head.ProvenanceHash == "" && head.ProvenanceRevision == 0 && head.ProvenanceLinks == 0 {
			return nil
		}
		return s.otherThan(file, "nothing")
	}
	if err != nil {
		return err
	}
	var document Document
	if err := json.Unmarshal(body, &document); err != nil {
		return fmt.Errorf("read %s: %w", file.Key, err)
	}
	if document.ArtifactID != id || document.Revision != head.ProvenanceRevision || document.links() != head.ProvenanceLinks {
		return errors.New("HEAD names another provenance document than the one that is there")
	}
	if err := document.Check(gatewayKeys); err != nil {
		return fmt.Errorf("%s: %w", file.Key, err)
	}
	return document.begins(dossiers)
}

// begins tells whether the chains of the document are the beginnings of those of
// today.
func (d Document) begins(dossiers []Dossier) error {
	today := map[int]Dossier{}
	for _, v := range dossiers {
		today[v.Artifact.Version] = v
	}
	for _, v := range d.Versions {
		n, records := len(v.Records), today[v.Artifact.Version].Records
		if n > len(records) || records[n-1].Hash != v.Records[n-1].Hash {
			return fmt.Errorf("the provenance document tells another story of version %d", v.Artifact.Version)
		}
	}
	return nil
}
