package artifact

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/google/uuid"

	"millrace/domain/artifact"
)

// Dossier is everything that is known of a version, enough to check it without
// the stores.
type Dossier struct {
	Artifact    Artifact          `json:"artifact"`
	Transitions []Transition      `json:"transitions"`
	Approvals   []Approval        `json:"approvals"`
	Records     []artifact.Record `json:"records"`
	Runs        []Execution       `json:"runs"`
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
// first, in five queries.
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
	transitions, err := all[Transition](ctx, s.Table, id, "TRANS#")
	if err != nil {
		return nil, err
	}
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
		d.Transitions = ofVersion(transitions, v.Version)
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
	d.Transitions = slices.DeleteFunc(d.Transitions, func(t Transition) bool { return t.CreatedAt.After(end) })
	d.Runs = slices.DeleteFunc(d.Runs, func(r Execution) bool { return begunAfter(r, end) })
	d.Approvals = slices.DeleteFunc(d.Approvals, func(a Approval) bool { return a.RecordedAt.After(end) })
	for i, a := range d.Approvals {
		if a.SupersededBy != nil && a.SupersededBy.After(end) {
			d.Approvals[i].SupersededBy = nil
		}
	}
}

// begunAfter tells whether a run was begun after a time of the lifecycle, whose
// clock is the one in the run's id (UUIDv7).
func begunAfter(r Execution, end time.Time) bool {
	id, err := uuid.Parse(strings.TrimPrefix(r.SK, "EXEC#"))
	if err != nil || id.Version() != 7 {
		return false
	}
	seconds, nanoseconds := id.Time().UnixTime()
	return time.Unix(seconds, nanoseconds).After(end)
}

// addKeys adds the public keys of the signed decisions and of the author.
func (s Store) addKeys(ctx context.Context, d Dossier) error {
	for _, c := range d.signed() {
		if _, known := d.Keys[c.key]; known {
			continue
		}
		key, found, err := s.Key(ctx, c.actor, c.key)
		if err != nil {
			return err
		}
		if found {
			d.Keys[c.key] = key.PublicKey
		}
	}
	return nil
}

// signature is that of an actor's own key, and when it was recorded.
type signature struct {
	actor, key string
	recorded   time.Time
}

// signed are the signatures of own keys.
func (d Dossier) signed() []signature {
	var all []signature
	if v := d.Artifact; v.Submission == artifact.Signed {
		if fingerprint, err := v.Claim.SignedBy(); err == nil {
			all = append(all, signature{v.Author, fingerprint, v.CreatedAt})
		}
	}
	for _, a := range d.Approvals {
		if a.Assurance == artifact.Signed {
			all = append(all, signature{a.Actor, a.Key, a.RecordedAt})
		}
	}
	return all
}
