package artifact

import (
	"context"
	"fmt"
	"slices"

	"millrace/domain/artifact"
	storage "millrace/storage/artifact"
	workflows "millrace/workflows/artifact"
)

// Verify reads the version, its decisions and its content again and recomputes
// what was approved. Any difference is ContentIntegrity or Forbidden.
func (a Activities) Verify(ctx context.Context, r workflows.VerifyRequest) error {
	defer beat(ctx)()
	v, err := a.Store.Version(ctx, r.ArtifactID, r.Version)
	if err != nil {
		return failure(err)
	}
	if err := sameBundle(v, r.BundleHash); err != nil {
		return failure(err)
	}
	if err := a.Store.VerifyStored(ctx, v); err != nil {
		return failure(err)
	}
	if !r.Decisions {
		return nil
	}
	return failure(a.verifyDecisions(ctx, v))
}

// sameBundle recomputes the hash of what was approved from the item.
func sameBundle(v storage.Artifact, want string) error {
	var files []artifact.File
	for _, f := range v.Files {
		files = append(files, f.File())
	}
	got, err := artifact.BundleHash(files, v.Spec)
	if err != nil {
		return err
	}
	if got != want || v.BundleHash != want {
		return fmt.Errorf("version %d of %s is %s, approved was %s: %w", v.Version, v.ArtifactID, got, want, errForbidden)
	}
	return nil
}

// verifyDecisions counts the stored decisions again, each with its signature.
func (a Activities) verifyDecisions(ctx context.Context, v storage.Artifact) error {
	approvals, err := a.Store.Approvals(ctx, v.ArtifactID, v.Version)
	if err != nil {
		return err
	}
	var decisions []artifact.Decision
	for _, approval := range approvals {
		d := approval.Decision
		by, err := a.Vouchers.check(ctx, d.Command, v.ArtifactID, v.Version, d.RecordedAt)
		if err != nil {
			return fmt.Errorf("decision of %s: %w: %w", d.Actor, err, errForbidden)
		}
		if by.Assurance != d.Assurance || v.Spec.Policy.Accepts(d.Verb, by.Assurance, a.Vouchers.AllowUnverified) != nil {
			return fmt.Errorf("decision of %s is %s, recorded was %s: %w", d.Actor, by.Assurance, d.Assurance, errForbidden)
		}
		decisions = append(decisions, d)
	}
	slices.SortStableFunc(decisions, func(a, b artifact.Decision) int { return a.RecordedAt.Compare(b.RecordedAt) })
	if tally := v.Spec.Policy.Tally(v.Author, v.BundleHash, decisions); tally.Outcome != artifact.Approved {
		return fmt.Errorf("version %d of %s has %d of %d approvals: %w", v.Version, v.ArtifactID, len(tally.Approvals), tally.Required, errForbidden)
	}
	return nil
}
