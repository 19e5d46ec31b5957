package monitoring

import (
	"slices"
	"strings"

	"millrace/domain/factory"
)

// Scope is one thing that a token allows. No scope implies another: admin opens
// the doors of alert rules, silences, groups and approver keys, and no others.
type Scope string

// The scopes, besides those made by ImageUpload.
const (
	ScopeRead            Scope = "read"
	ScopeWrite           Scope = "write"
	ScopeTokens          Scope = "tokens"
	ScopeArtifactSubmit  Scope = "artifact:submit"
	ScopeArtifactApprove Scope = "artifact:approve"
	ScopeArtifactExecute Scope = "artifact:execute"
	ScopeSignalsWrite    Scope = "signals:write"
	ScopeAdmin           Scope = "admin"
)

// fixedScopes are the scopes without a parameter.
var fixedScopes = []Scope{
	ScopeRead, ScopeWrite, ScopeTokens, ScopeArtifactSubmit, ScopeArtifactApprove, ScopeArtifactExecute, ScopeSignalsWrite, ScopeAdmin,
}

const imageUploadPrefix = "image:upload/"

// ImageUpload is the scope to upload images of one factory.
func ImageUpload(factoryID string) Scope { return Scope(imageUploadPrefix + factoryID) }

// AllScopes is every scope, with image uploads for the factories given.
func AllScopes(factoryIDs ...string) Scopes {
	all := slices.Clone(fixedScopes)
	for _, id := range factoryIDs {
		all = append(all, ImageUpload(id))
	}
	slices.Sort(all)
	return all
}

// maxScopes bounds the scopes of one token.
const maxScopes = 64

// Scopes is a set of scopes, sorted and without duplicates.
type Scopes []Scope

// ParseScopes reads the scopes of a token to be made: at least one, all known.
func ParseScopes(names []string) (Scopes, error) {
	if len(names) < 1 || len(names) > maxScopes {
		return nil, invalid("scopes", "must be 1 to 64 scopes")
	}
	scopes := make(Scopes, len(names))
	for i, name := range names {
		if err := checkScope(Scope(name)); err != nil {
			return nil, err
		}
		scopes[i] = Scope(name)
	}
	slices.Sort(scopes)
	return slices.Compact(scopes), nil
}

func checkScope(scope Scope) error {
	if slices.Contains(fixedScopes, scope) {
		return nil
	}
	id, found := strings.CutPrefix(string(scope), imageUploadPrefix)
	if !found {
		return invalid("scopes", "must each be read, write, tokens, artifact:submit, artifact:approve, artifact:execute, signals:write, image:upload/{factory_id} or admin")
	}
	if factory.CheckFactoryID(id) != nil {
		return invalid("scopes", "must name a factory after image:upload/")
	}
	return nil
}

// Has tells whether the set has a scope.
func (s Scopes) Has(scope Scope) bool { return slices.Contains(s, scope) }

// Contains tells whether every scope of other is in s, so that a holder of s may
// hand out other.
func (s Scopes) Contains(other Scopes) bool {
	return !slices.ContainsFunc(other, func(scope Scope) bool { return !s.Has(scope) })
}
