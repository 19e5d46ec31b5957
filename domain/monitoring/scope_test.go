package monitoring

import (
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

func TestParseScopesSortsAndDropsDuplicates(t *testing.T) {
	scopes, err := ParseScopes([]string{"write", "read", "write", "image:upload/factory-a"})
	require.NoError(t, err)
	require.Equal(t, Scopes{ImageUpload("factory-a"), ScopeRead, ScopeWrite}, scopes)
}

func TestParseScopesRefuses(t *testing.T) {
	many := make([]string, 65)
	for i := range many {
		many[i] = "read"
	}
	for name, names := range map[string][]string{
		"none": nil, "too many": many, "unknown": {"root"}, "empty": {""}, "other case": {"Read"}, "wildcard": {"image:upload/*"},
		"no factory": {"image:upload/"}, "escape": {"image:upload/../x"}, "reserved": {"image:upload/cloud-infra"}, "template": {"image:upload/{factory_id}"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := ParseScopes(names)
			var invalid *InvalidError
			require.ErrorAs(t, err, &invalid)
			require.Equal(t, "scopes", invalid.Field)
		})
	}
}

func TestScopesContainOnlyWhatTheyHave(t *testing.T) {
	holder := Scopes{ScopeAdmin, ImageUpload("factory-a"), ScopeTokens}
	require.True(t, holder.Contains(Scopes{ScopeTokens}))
	require.True(t, holder.Contains(holder))
	require.False(t, holder.Contains(Scopes{ScopeTokens, ScopeRead}), "admin implies no other scope")
	require.False(t, holder.Contains(Scopes{ImageUpload("factory-b")}), "uploads are per factory")
}

func TestContainmentIsTransitive(t *testing.T) {
	all := AllScopes("factory-a", "factory-b")
	set := rapid.Custom(func(t *rapid.T) Scopes {
		return rapid.SliceOfDistinct(rapid.SampledFrom(all), rapid.ID[Scope]).Draw(t, "scopes")
	})
	rapid.Check(t, func(t *rapid.T) {
		a, b, c := set.Draw(t, "a"), set.Draw(t, "b"), set.Draw(t, "c")
		if a.Contains(b) && b.Contains(c) && !a.Contains(c) {
			t.Fatalf("%v contains %v contains %v, but not transitively", a, b, c)
		}
		if !all.Contains(a) {
			t.Fatalf("the set of all scopes lacks some of %v", a)
		}
	})
}
