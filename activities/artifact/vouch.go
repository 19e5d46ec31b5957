package artifact

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"go.temporal.io/api/serviceerror"

	"millrace/domain/artifact"
	storage "millrace/storage/artifact"
	workflows "millrace/workflows/artifact"
)

// errForbidden marks what no longer is what was approved.
var errForbidden = errors.New("not what was approved")

// Vouchers tells who vouches for commands.
type Vouchers struct {
	Store storage.Store
	// GatewayKeys are the public keys of the gateways, as in authorized_keys.
	GatewayKeys []string
	// AllowUnverified takes the word of a payload; for development only.
	AllowUnverified bool
}

// author tells who vouches for the author of a request: a create command over
// the request's hash.
func (v Vouchers) author(ctx context.Context, r artifact.Request) (artifact.Assurance, error) {
	if r.Claim.Signature == "" {
		return artifact.Unverified, artifact.Policy{}.Accepts(artifact.Create, artifact.Unverified, v.AllowUnverified)
	}
	hash, err := r.Hash()
	if err != nil {
		return "", err
	}
	claim := r.Claim
	claim.Verb = artifact.Create
	if claim.Actor != r.Author || claim.BundleHash != hash {
		return "", &artifact.RefusedError{Why: artifact.WhyAssurance, Detail: "the claim is about another author or another request"}
	}
	if err := claim.Check(); err != nil {
		return "", err
	}
	result, err := v.check(ctx, claim, r.ArtifactID, r.Version, time.Time{})
	return result.Assurance, err
}

// check tells who vouches for a command that was recorded at a time by our own
// clock, the zero time for one that is new. The time that a command itself tells
// is the word of whoever holds the key, who may be a thief: a revoked key counts
// only for what was recorded before. A signature that does not fit is worse than none: it is refused even
// where none is needed.
func (v Vouchers) check(ctx context.Context, c artifact.Command, id string, version int, recorded time.Time) (workflows.CheckResult, error) {
	if c.Signature == "" {
		return workflows.CheckResult{Assurance: artifact.Unverified}, nil
	}
	fingerprint, err := c.SignedBy()
	if err != nil {
		return workflows.CheckResult{}, err
	}
	if gateway, ok := v.gatewayKey(fingerprint); ok {
		return workflows.CheckResult{Assurance: artifact.Gateway, Key: fingerprint}, c.VerifySignature(id, version, gateway)
	}
	key, found, err := v.Store.Key(ctx, c.Actor, fingerprint)
	switch {
	case err != nil:
		return workflows.CheckResult{}, err
	case !found:
		return workflows.CheckResult{}, &artifact.RefusedError{Why: artifact.WhyAssurance, Detail: fmt.Sprintf("%s has no key %s", c.Actor, fingerprint)}
	case key.RevokedAt != nil && (recorded.IsZero() || !recorded.Before(*key.RevokedAt)):
		return workflows.CheckResult{}, &artifact.RefusedError{Why: artifact.WhyAssurance, Detail: fmt.Sprintf("key %s was revoked", fingerprint)}
	}
	return workflows.CheckResult{Assurance: artifact.Signed, Key: fingerprint}, c.VerifySignature(id, version, key.PublicKey)
}

func (v Vouchers) gatewayKey(fingerprint string) (string, bool) {
	i := slices.IndexFunc(v.GatewayKeys, func(text string) bool {
		key, err := artifact.ParseKey(text)
		return err == nil && key.Fingerprint() == fingerprint
	})
	if i < 0 {
		return "", false
	}
	return v.GatewayKeys[i], true
}

func isNotFound(err error) bool {
	_, ok := errors.AsType[*serviceerror.NotFound](err)
	return ok
}
