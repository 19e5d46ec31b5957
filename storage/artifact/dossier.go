package artifact

import (
	"context"
	"fmt"
	"slices"

	"millrace/domain/artifact"
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

// Dossier collects what is known of a version.
func (s Store) Dossier(ctx context.Context, id string, version int) (Dossier, error) {
	v, err := s.Version(ctx, id, version)
	if err != nil {
		return Dossier{}, err
	}
	dossiers, err := s.collect(ctx, id, []Artifact{v}, fmt.Sprintf("PROV#v%04d-", version))
	if err != nil {
		return Dossier{}, err
	}
	return dossiers[0], nil
}

// Dossiers collects what is known of all versions of an artifact, the oldest
// first, in four queries.
func (s Store) Dossiers(ctx context.Context, id string) ([]Dossier, error) {
	versions, err := s.Versions(ctx, id)
	if err != nil {
		return nil, err
	}
	slices.Reverse(versions)
	return s.collect(ctx, id, versions, "PROV#")
}

// collect reads what belongs to versions that were read before, and leaves out
// what was written since: each dossier is as of its item.
func (s Store) collect(ctx context.Context, id string, versions []Artifact, chains string) ([]Dossier, error) {
	approvals, err := all[Approval](ctx, s.Table, id, "APPROVAL#")
	if err != nil {
		return nil, err
	}
	records, err := all[Provenance](ctx, s.Table, id, chains)
	if err != nil {
		return nil, err
	}
	runs, err := all[Execution](ctx, s.Table, id, "EXEC#")
	if err != nil {
		return nil, err
	}
	dossiers := make([]Dossier, len(versions))
	for i, v := range versions {
		d := Dossier{Artifact: v, Keys: map[string]string{}}
		for _, r := range ofVersion(records, v.Version) {
			d.Records = append(d.Records, r.Record)
		}
		d.Approvals, d.Runs = ofVersion(approvals, v.Version), ofVersion(runs, v.Version)
		d.cut()
		if err := s.addKeys(ctx, d); err != nil {
			return nil, err
		}
		dossiers[i] = d
	}
	return dossiers, nil
}

func ofVersion[T interface{ number() int }](items []T, version int) []T {
	var own []T
	for _, item := range items {
		if item.number() == version {
			own = append(own, item)
		}
	}
	return own
}

func (c common) number() int { return c.Version }

// cut drops what was recorded after the item was read.
func (d *Dossier) cut() {
	n := d.Artifact.ChainLength
	if n == 0 || len(d.Records) < n {
		return // no chain, or a broken one: whoever checks it must see it
	}
	d.Records = d.Records[:n]
	end := d.Records[n-1].At
	d.Approvals = slices.DeleteFunc(d.Approvals, func(a Approval) bool { return a.RecordedAt.After(end) })
	for i, a := range d.Approvals {
		if a.SupersededBy != nil && a.SupersededBy.After(end) {
			d.Approvals[i].SupersededBy = nil
		}
	}
}

// addKeys adds the public keys of the signed decisions.
func (s Store) addKeys(ctx context.Context, d Dossier) error {
	for _, a := range d.Approvals {
		if _, known := d.Keys[a.Key]; known || a.Assurance != artifact.Signed {
			continue
		}
		key, found, err := s.Key(ctx, a.Actor, a.Key)
		if err != nil {
			return err
		}
		if found {
			d.Keys[a.Key] = key.PublicKey
		}
	}
	return nil
}
