package artifact

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/workflow"

	"millrace/domain/artifact"
)

// huge is text with runes of three bytes, so that a cut may fall into one.
func huge(size int) string { return "x" + strings.Repeat("\u20ac", size/3) }

// TestHugeCommandsDoNotGrowALifecycle has the largest signals that a server takes,
// and many of a size that it never minds, refused through both doors.
func TestHugeCommandsDoNotGrowALifecycle(t *testing.T) {
	s := newStory(t)
	hostile := []map[string]any{
		{"actor": huge(1_500_000), "decision": "approve"},
		{"actor": "user:a", "decision": huge(1_500_000)},
		{"actor": "user:a", "decision": "approve", "at": huge(1_500_000)},
		{"actor": "user:a", "decision": "approve", "bundle_hash": huge(1_500_000)},
		{"actor": "user:a", "decision": "approve", "comment": huge(1_500_000)},
		{"actor": "user:a", "decision": "approve", "signature": huge(1_500_000), "at": start},
	}
	var answers []*answer
	s.at(time.Minute, func() {
		for _, command := range hostile {
			s.env.SignalWorkflow(DoorDecide, command)
			answers = append(answers, s.update(DoorDecide, command))
		}
		s.env.SignalWorkflow(DoorReplace, map[string]any{"actor": "user:author", "files": []map[string]any{{"role": "primary", "filename": "a", "s3_version_id": huge(1_000_000)}}})
		s.env.SignalWorkflow(JobResultSignal, map[string]any{"run_id": "x", "finished_at": huge(1_000_000)})
		for n := range 50 {
			s.env.SignalWorkflow(DoorDecide, map[string]any{"actor": fmt.Sprintf("user:%d %s", n, huge(100_000)), "decision": "approve"})
		}
	})
	s.at(2*time.Minute, func() {
		status := s.status()
		require.Equal(t, 58, status.Refused)
		require.Len(t, status.Refusals, maxRefusals)
		for _, r := range status.Refusals {
			require.LessOrEqual(t, len(r.Actor), 100)
			require.LessOrEqual(t, len(r.Verb), 20)
			require.LessOrEqual(t, len(r.Reason), 500)
			require.True(t, utf8.ValidString(r.Actor+string(r.Verb)+r.Reason))
			require.NotEmpty(t, r.Reason)
		}
		s.env.SetContinueAsNewSuggested(true)
		s.decide("user:author", artifact.Approve)
	})
	err := s.tell(request())
	var next *workflow.ContinueAsNewError
	require.ErrorAs(t, err, &next)
	var in Input
	require.NoError(t, decode(next, &in))
	body, err := json.Marshal(in)
	require.NoError(t, err)
	require.Less(t, len(body), 100_000, "what is handed on stays small")
	for i, a := range answers {
		require.Error(t, a.rejected, i)
		require.Less(t, len(a.rejected.Error()), 1000, i)
	}
}

// TestDecisionsDoNotGrowALifecycle has approvers change their minds again and
// again, with all the words that they may use.
func TestDecisionsDoNotGrowALifecycle(t *testing.T) {
	s := newStory(t)
	const times = 300
	for n := range times {
		s.at(time.Minute+time.Duration(n)*time.Second, func() {
			s.env.SignalWorkflow(DoorDecide, map[string]any{"actor": "user:a", "decision": "approve", "bundle_hash": s.bundle(), "comment": strings.Repeat("\u20ac", 2000)})
		})
	}
	s.at(time.Hour, func() {
		require.Zero(t, s.status().Refused)
		require.Equal(t, []string{"user:a"}, s.status().Tally.Approvals)
		s.env.SetContinueAsNewSuggested(true)
		s.env.SignalWorkflow(DoorDecide, map[string]any{})
	})
	err := s.tell(request(func(r *artifact.Request) { r.Spec.Policy.Required = 2 }))
	var next *workflow.ContinueAsNewError
	require.ErrorAs(t, err, &next)
	var in Input
	require.NoError(t, decode(next, &in))
	body, err := json.Marshal(in)
	require.NoError(t, err)
	require.Less(t, len(body), 100_000)
	require.Len(t, in.Carry.Decisions, 1)
	for _, step := range s.steps[1:] {
		require.NotNil(t, step.Earlier)
		require.Len(t, step.Decision.Comment, 6000, "the store has all of it")
	}
	require.Len(t, s.steps, times)
}

func TestAnUpdateWithoutAPayloadIsRefused(t *testing.T) {
	s := newStory(t)
	var nothing, wrong *answer
	s.at(time.Minute, func() {
		nothing, wrong = s.update(DoorDecide, nil), s.update(DoorWithdraw, map[string]any{"actor": 5})
		s.env.SignalWorkflow(DoorDecide, nil)
	})
	require.NoError(t, s.tell(request()))
	require.Error(t, nothing.rejected)
	require.ErrorContains(t, wrong.rejected, "payload can't be read")
	require.NoError(t, errors.Join(nothing.failed, wrong.failed))
}

func TestTheStatusTellsWhyAVersionFailed(t *testing.T) {
	s := newStory(t)
	s.verify = func(VerifyRequest) error { return integrity() }
	s.at(time.Minute, func() { s.decide("user:a", artifact.Approve) })
	s.at(time.Hour, func() { require.Equal(t, "failed: ContentIntegrity: content was changed", s.status().Reason) })
	require.NoError(t, s.tell(request()))
}

// TestHugeSignalsDoNotWedgeALifecycle has a real server hand them over, whose
// answers may have 4 MB.
func TestHugeSignalsDoNotWedgeALifecycle(t *testing.T) {
	c, d := server(t), newDesk()
	host(t, c, d)
	id, bundle := begin(t, c, request(func(r *artifact.Request) { r.ArtifactID = "huge" }))
	for range 3 {
		require.NoError(t, c.SignalWorkflow(t.Context(), id, "", DoorDecide, map[string]any{"actor": strings.Repeat("x", 1_500_000), "decision": "approve"}))
	}
	for range 50 {
		require.NoError(t, c.SignalWorkflow(t.Context(), id, "", DoorDecide, map[string]any{"actor": "user:a", "decision": "approve", "at": strings.Repeat("x", 100_000)}))
	}
	// The size of its history has it continue as new, and a command may come at the
	// moment when a signal delays that: it is sent again.
	var refused, failed error
	require.Eventually(t, func() bool {
		refused = say(t.Context(), c, id, DoorDecide, artifact.Command{Verb: artifact.Approve, Actor: "user:a", BundleHash: bundle, Comment: strings.Repeat("x", 1_500_000)})
		return typeOf(refused) == ErrInvalid
	}, 30*time.Second, 100*time.Millisecond, "%v", refused)
	require.Eventually(t, func() bool {
		failed = say(t.Context(), c, id, DoorDecide, artifact.Command{Verb: artifact.Approve, Actor: "user:a", BundleHash: bundle})
		return failed == nil
	}, 30*time.Second, 100*time.Millisecond, "%v", failed)
	require.Equal(t, 53, until(t, c, id, artifact.Executed).Refused)
}
