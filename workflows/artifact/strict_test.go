package artifact

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"

	"millrace/domain/artifact"
	"millrace/workflows/names"
)

// asked is what somebody types into the Temporal CLI.
func asked(t *testing.T, change func(input, request, spec, policy map[string]any)) map[string]any {
	t.Helper()
	body, err := json.Marshal(Input{Request: request()})
	require.NoError(t, err)
	var input map[string]any
	require.NoError(t, json.Unmarshal(body, &input))
	r := input["request"].(map[string]any)
	spec := r["spec"].(map[string]any)
	change(input, r, spec, spec["policy"].(map[string]any))
	return input
}

func TestAStartWithUnknownFieldsIsRefusedByName(t *testing.T) {
	for field, change := range map[string]func(input, request, spec, policy map[string]any){
		"bogus":              func(input, _, _, _ map[string]any) { input["bogus"] = 1 },
		"draught":            func(_, request, _, _ map[string]any) { request["draught"] = true },
		"limit":              func(_, _, spec, _ map[string]any) { spec["limit"] = map[string]any{} },
		"reqired":            func(_, _, _, policy map[string]any) { policy["reqired"] = 3 },
		"separation_of_duty": func(_, _, _, policy map[string]any) { policy["separation_of_duty"] = true },
		"time_out":           func(_, _, spec, _ map[string]any) { spec["limits"] = map[string]any{"time_out": "1s"} },
	} {
		s := newStory(t)
		s.env.ExecuteWorkflow(names.ArtifactLifecycle, asked(t, change))
		require.ErrorContains(t, s.env.GetWorkflowError(), `input has no field "`+field+`"`)
		require.Equal(t, ErrInvalid, typeOf(s.env.GetWorkflowError()))
		require.Empty(t, s.path())
	}
}

// TestALifecycleOfBeforeGoesOnWithWhatItDidNotKnow replays what an older worker
// took: its marker is missing.
func TestALifecycleOfBeforeGoesOnWithWhatItDidNotKnow(t *testing.T) {
	s := newStory(t)
	s.env.OnGetVersion(strictInput, workflow.DefaultVersion, workflow.Version(today)).Return(workflow.DefaultVersion)
	s.at(time.Minute, func() {
		s.env.SignalWorkflow(DoorDecide, map[string]any{"actor": "user:a", "decision": artifact.Approve, "bundle_hash": s.bundle(), "comment": "\x1b[31m"})
	})
	s.env.ExecuteWorkflow(names.ArtifactLifecycle, asked(t, func(input, r, _, _ map[string]any) { input["bogus"], r["reason"] = 1, "stuck\u202e" }))
	require.NoError(t, s.env.GetWorkflowError())
	require.Contains(t, s.path(), artifact.Executed)
}

func TestControlCharactersAreRefusedAtEveryDoor(t *testing.T) {
	s := newStory(t)
	require.ErrorContains(t, s.tell(request(func(r *artifact.Request) { r.Reason = "stuck\x1b[31m" })), "reason must not contain the control character U+001B")
	require.Empty(t, s.path())

	s = newStory(t)
	var byUpdate *answer
	var bySignal Status
	s.at(time.Minute, func() {
		said := map[string]any{"actor": "user:a", "decision": artifact.Reject, "bundle_hash": s.bundle(), "comment": "no\u202eon"}
		byUpdate = s.update(DoorDecide, said)
		s.env.SignalWorkflow(DoorDecide, said)
	})
	s.at(2*time.Minute, func() {
		bySignal = s.status()
		s.decide("user:a", artifact.Reject)
	})
	require.NoError(t, s.tell(request()))
	require.ErrorContains(t, byUpdate.rejected, "comment must not contain the control character U+202E")
	require.Equal(t, artifact.InReview, bySignal.State)
	require.Len(t, bySignal.Refusals, 1)
	require.Contains(t, bySignal.Refusals[0].Reason, "comment must not contain the control character U+202E")
}

func TestTheStatusTellsWhenAReviewEnds(t *testing.T) {
	s := newStory(t)
	var draft, review Status
	s.at(time.Minute, func() {
		draft = s.status()
		s.env.SignalWorkflow(DoorSubmit, map[string]any{"actor": "user:author"})
	})
	s.at(2*time.Minute, func() { review = s.status() })
	require.NoError(t, s.tell(request(func(r *artifact.Request) { r.Draft = true })))
	require.Equal(t, start.Add(720*time.Hour), draft.ExpiresAt)
	require.Equal(t, start.Add(time.Minute+24*time.Hour), review.Until.Truncate(time.Second), "the reminder")
	require.Equal(t, start.Add(time.Minute+72*time.Hour), review.ExpiresAt.Truncate(time.Second))
}

func TestAVersionAsksForItsTurnEverLessOften(t *testing.T) {
	tries := func(known bool) (at []time.Time) {
		s := newStory(t)
		if !known {
			s.env.OnGetVersion(patientTurns, workflow.DefaultVersion, workflow.Version(today)).Return(workflow.DefaultVersion)
		}
		s.commit = func(step Step) error {
			if step.Head != headRun {
				return nil
			}
			if at = append(at, s.env.Now()); len(at) < 9 {
				return temporal.NewNonRetryableApplicationError("another version runs", ErrBusy, nil)
			}
			return nil
		}
		s.at(time.Minute, func() { s.decide("user:a", artifact.Approve) })
		require.NoError(t, s.tell(request()))
		require.Contains(t, s.path(), artifact.Executed)
		return at
	}
	waits := func(at []time.Time) (waits []time.Duration) {
		for i := range at[1:] {
			waits = append(waits, at[i+1].Sub(at[i]).Round(time.Second))
		}
		return waits
	}
	const s = time.Second
	require.Equal(t, []time.Duration{10 * s, 20 * s, 40 * s, 80 * s, 160 * s, 300 * s, 300 * s, 300 * s}, waits(tries(true)))
	require.Equal(t, []time.Duration{10 * s, 10 * s, 10 * s, 10 * s, 10 * s, 10 * s, 10 * s, 10 * s}, waits(tries(false)), "of histories from before")
}
