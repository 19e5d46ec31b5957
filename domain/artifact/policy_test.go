package artifact_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"millrace/domain/artifact"
)

const (
	bundle = "sha256:aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"
	other  = "sha256:bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb"
)

var noon = time.Date(2026, 5, 31, 12, 0, 0, 0, time.UTC)

func complete(t *testing.T, p artifact.Policy, members map[string][]string) artifact.Policy {
	t.Helper()
	p, err := p.Complete("user:author", members, true)
	require.NoError(t, err)
	return p
}

func decision(actor string, verb artifact.Verb, hash string) artifact.Decision {
	return artifact.Decision{Command: artifact.Command{Verb: verb, Actor: actor, BundleHash: hash, At: noon}}
}

func TestDefaultsOfAPolicy(t *testing.T) {
	p := complete(t, artifact.Policy{Approvers: []string{"user:a"}}, nil)
	body, err := json.Marshal(p)
	require.NoError(t, err)
	require.JSONEq(t, `{"required":1,"approvers":["user:a"],"separation_of_duties":true,"rejections_to_reject":1,"expires_after":"72h0m0s",
		"draft_expires_after":"720h0m0s","remind_every":"24h0m0s","auto_execute":true,"on_failure":"compensate"}`, string(body))
	kept, err := artifact.Policy{Approvers: []string{"user:a"}}.Complete("user:author", nil, false)
	require.NoError(t, err)
	require.Equal(t, artifact.Keep, kept.OnFailure, "there is nothing to compensate with")
}

func TestPoliciesThatBreakARuleAreRefusedByField(t *testing.T) {
	for field, p := range map[string]artifact.Policy{
		"policy.required":             {Approvers: []string{"user:a"}, Required: 11},
		"policy.approvers":            {Approvers: []string{"someone"}},
		"policy.rejections_to_reject": {Approvers: []string{"user:a"}, RejectionsToReject: -1},
		"policy.expires_after":        {Approvers: []string{"user:a"}, ExpiresAfter: artifact.Duration(time.Second)},
		"policy.draft_expires_after":  {Approvers: []string{"user:a"}, DraftExpiresAfter: artifact.Duration(3000 * time.Hour)},
		"policy.remind_every":         {Approvers: []string{"user:a"}, RemindEvery: artifact.Duration(time.Second)},
		"policy.on_failure":           {Approvers: []string{"user:a"}, OnFailure: "pray"},
		"policy.within":               {Approvers: []string{"user:a"}, Within: []string{"No Group"}},
	} {
		_, err := p.Complete("user:author", nil, false)
		var broken *artifact.InvalidError
		require.ErrorAs(t, err, &broken, field)
		require.Equal(t, field, broken.Field)
	}
}

func TestAPolicyThatNobodyCanSatisfyIsRefused(t *testing.T) {
	for name, p := range map[string]artifact.Policy{
		"no approvers":            {},
		"the author alone":        {Approvers: []string{"user:author"}},
		"fewer than required":     {Approvers: []string{"user:a"}, Required: 2},
		"the same one twice":      {Approvers: []string{"user:a", "user:a"}, Required: 2},
		"through a group as well": {Approvers: []string{"user:a", "group:small"}, Required: 2},
		"an empty group":          {Approvers: []string{"group:none"}},
		"outside of the circle":   {Approvers: []string{"user:b"}, Within: []string{"small"}},
	} {
		_, err := p.Complete("user:author", map[string][]string{"small": {"user:a"}}, false)
		require.Error(t, err, name)
	}
	complete(t, artifact.Policy{Approvers: []string{"user:author"}, SeparationOfDuties: new(false)}, nil)
}

func TestGroupsAreFrozenAndNotTakenFromTheRequest(t *testing.T) {
	p := complete(t, artifact.Policy{
		Approvers: []string{"group:ops"}, Groups: map[string][]string{"ops": {"user:forged"}, "more": {"user:x"}},
	}, map[string][]string{"ops": {"user:b", "user:a", "user:b"}})
	require.Equal(t, map[string][]string{"ops": {"user:a", "user:b"}}, p.Groups)
	require.True(t, p.May("user:a"))
	require.False(t, p.May("user:forged"))
}

func TestAFloorCanBeTightenedAndNotLoosened(t *testing.T) {
	floor := artifact.Floor{Required: 2, SeparationOfDuties: true, Within: []string{"ops", "leads"}, SignedDecisions: true}
	raised, err := artifact.Policy{}.Raise(floor)
	require.NoError(t, err)
	require.Equal(t, 2, raised.Required)
	require.True(t, *raised.SeparationOfDuties)
	require.True(t, raised.SignedDecisions)
	require.Equal(t, []string{"ops", "leads"}, raised.Within)
	raised, err = artifact.Policy{Required: 3, Within: []string{"leads"}}.Raise(floor)
	require.NoError(t, err)
	require.Equal(t, 3, raised.Required)
	require.Equal(t, []string{"leads"}, raised.Within)
	for _, loose := range []artifact.Policy{{Required: 1}, {SeparationOfDuties: new(false)}, {Within: []string{"ops", "friends"}}} {
		_, err := loose.Raise(floor)
		require.Error(t, err)
	}
}

func TestATallyCountsEachActorsLastDecisionOnThisContent(t *testing.T) {
	p := complete(t, artifact.Policy{Approvers: []string{"user:a", "user:b", "user:c", "user:author"}, Required: 2, RejectionsToReject: 2}, nil)
	for name, c := range map[string]struct {
		decisions []artifact.Decision
		want      artifact.State
	}{
		"nobody yet":               {nil, artifact.InReview},
		"one of two":               {[]artifact.Decision{decision("user:a", artifact.Approve, bundle)}, artifact.InReview},
		"two":                      {[]artifact.Decision{decision("user:a", artifact.Approve, bundle), decision("user:b", artifact.Approve, bundle)}, artifact.Approved},
		"one actor twice":          {[]artifact.Decision{decision("user:a", artifact.Approve, bundle), decision("user:a", artifact.Approve, bundle)}, artifact.InReview},
		"the author's own":         {[]artifact.Decision{decision("user:a", artifact.Approve, bundle), decision("user:author", artifact.Approve, bundle)}, artifact.InReview},
		"other content":            {[]artifact.Decision{decision("user:a", artifact.Approve, bundle), decision("user:b", artifact.Approve, other)}, artifact.InReview},
		"a stranger":               {[]artifact.Decision{decision("user:a", artifact.Approve, bundle), decision("user:z", artifact.Approve, bundle)}, artifact.InReview},
		"changed his mind":         {[]artifact.Decision{decision("user:a", artifact.Approve, bundle), decision("user:a", artifact.Reject, bundle), decision("user:b", artifact.Approve, bundle)}, artifact.InReview},
		"one rejection of two":     {[]artifact.Decision{decision("user:a", artifact.Reject, bundle)}, artifact.InReview},
		"two rejections":           {[]artifact.Decision{decision("user:a", artifact.Reject, bundle), decision("user:b", artifact.Reject, bundle)}, artifact.Rejected},
		"rejected before approved": {[]artifact.Decision{decision("user:a", artifact.Reject, bundle), decision("user:author", artifact.Reject, bundle), decision("user:b", artifact.Approve, bundle), decision("user:c", artifact.Approve, bundle)}, artifact.Rejected},
	} {
		require.Equal(t, c.want, p.Tally("user:author", bundle, c.decisions).Outcome, name)
	}
	tally := p.Tally("user:author", bundle, []artifact.Decision{decision("user:b", artifact.Approve, bundle)})
	require.Equal(t, []string{"user:a", "user:c"}, tally.Wanted)
}

func TestAQuorumNeedsThatManyDifferentActors(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		required := rapid.IntRange(1, 4).Draw(t, "required")
		p, err := artifact.Policy{Approvers: []string{"user:a0", "user:a1", "user:a2", "user:a3", "user:author"}, Required: required}.Complete("user:author", nil, false)
		if err != nil {
			t.Fatal(err)
		}
		actor := rapid.Custom(func(t *rapid.T) string { return fmt.Sprintf("user:a%d", rapid.IntRange(0, 5).Draw(t, "n")) })
		decisions := rapid.SliceOf(rapid.Custom(func(t *rapid.T) artifact.Decision {
			return decision(actor.Draw(t, "actor"), rapid.SampledFrom([]artifact.Verb{artifact.Approve, artifact.Reject}).Draw(t, "verb"), rapid.SampledFrom([]string{bundle, other}).Draw(t, "hash"))
		})).Draw(t, "decisions")
		tally := p.Tally("user:author", bundle, decisions)
		last := map[string]artifact.Verb{}
		for _, d := range decisions {
			if d.BundleHash == bundle && slices.Contains(p.Approvers, d.Actor) {
				last[d.Actor] = d.Verb
			}
		}
		approvals, rejections := 0, 0
		for _, verb := range last {
			if verb == artifact.Approve {
				approvals++
			} else {
				rejections++
			}
		}
		want := artifact.InReview
		if approvals >= required {
			want = artifact.Approved
		}
		if rejections >= 1 {
			want = artifact.Rejected
		}
		if tally.Outcome != want {
			t.Fatalf("%d approvals, %d rejections: %s", approvals, rejections, tally.Outcome)
		}
	})
}

func BenchmarkTally(b *testing.B) {
	p, err := artifact.Policy{Approvers: []string{"group:ops"}, Required: 10}.Complete("user:author", map[string][]string{"ops": members(100)}, false)
	require.NoError(b, err)
	var decisions []artifact.Decision
	for _, m := range members(100) {
		decisions = append(decisions, decision(m, artifact.Approve, bundle))
	}
	for b.Loop() {
		p.Tally("user:author", bundle, decisions)
	}
}

func members(n int) []string {
	var all []string
	for i := range n {
		all = append(all, fmt.Sprintf("user:m%d", i))
	}
	return all
}
