package artifact

import (
	"errors"
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.temporal.io/api/enums/v1"
	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"

	"millrace/domain/artifact"
)

func TestAnApprovedVersionRunsAndIsArchivedInTime(t *testing.T) {
	s := newStory(t)
	s.at(time.Minute, func() { s.decide("user:a", artifact.Approve) })
	s.at(time.Hour, func() {
		status := s.status()
		require.Equal(t, artifact.Executed, status.State)
		require.Equal(t, "the time to archive", status.WaitingFor)
		require.Equal(t, []string{"user:a"}, status.Tally.Approvals)
		require.Len(t, status.Runs, 1)
	})
	require.NoError(t, s.tell(request()))
	require.Equal(t, []artifact.State{artifact.InReview, artifact.Approved, artifact.Executing, artifact.Executed, artifact.Archived}, s.path())
	s.whole()
	last := s.steps[len(s.steps)-1]
	require.Equal(t, 30*24*time.Hour, last.Record.At.Sub(s.steps[len(s.steps)-2].Record.At).Round(time.Minute))
	require.Equal(t, "archive/2026/05/", last.ArchivePrefix)
	require.Equal(t, 1, s.cleared)
	require.Equal(t, 1, s.told, "older versions are told")
	require.NoError(t, artifact.CheckRunID(s.runs[0].RunID))
	require.Equal(t, headApprove, s.steps[1].Head)
	require.Equal(t, headRun, s.steps[2].Head)
	require.Equal(t, headRelease, s.steps[3].Head)
}

func TestADraftIsReplacedSubmittedAndThenFrozen(t *testing.T) {
	s := newStory(t)
	replacement := map[string]any{"actor": "user:author", "files": []map[string]any{{"role": "primary", "filename": "other.sh", "content_hash": hash, "s3_version_id": "3"}}}
	var refused, frozen, submitted *answer
	s.at(time.Minute, func() { refused = s.update(DoorSubmit, map[string]any{"actor": "user:b"}) })
	s.at(2*time.Minute, func() { s.update(DoorReplace, replacement) })
	s.at(3*time.Minute, func() { submitted = s.update(DoorSubmit, map[string]any{"actor": "user:author"}) })
	s.at(4*time.Minute, func() { frozen = s.update(DoorReplace, replacement) })
	s.at(5*time.Minute, func() { s.update(DoorWithdraw, map[string]any{"actor": "user:author"}) })
	require.NoError(t, s.tell(request(func(r *artifact.Request) { r.Draft = true })))
	require.Equal(t, []artifact.State{artifact.Draft, artifact.InReview, artifact.Withdrawn, artifact.Archived}, s.path())
	require.ErrorContains(t, refused.rejected, "not_the_author")
	require.ErrorContains(t, frozen.rejected, "wrong_state")
	require.NoError(t, submitted.failed)
	require.Equal(t, artifact.InReview, submitted.status.State)
	require.NotEqual(t, s.created[0].BundleHash, submitted.status.BundleHash)
	require.Equal(t, "other.sh", s.steps[0].Files[0].Filename)
	s.whole()
}

// TestADraftIsCompletedFromItsFinalFiles has the rollback come or go after the
// draft was made.
func TestADraftIsCompletedFromItsFinalFiles(t *testing.T) {
	both := request().Files
	for name, c := range map[string]struct {
		first, last []artifact.File
		said, want  string
	}{
		"a rollback comes":     {both[:1], both, "", artifact.Compensate},
		"a rollback goes":      {both, both[:1], "", artifact.Keep},
		"the author wants one": {both[:1], both, artifact.Keep, artifact.Keep},
	} {
		s := newStory(t)
		s.run = func(r RunRequest) (RunResult, error) {
			if r.Role == artifact.Primary {
				return RunResult{Status: RunFailed, ExitCode: 1}, nil
			}
			return RunResult{Status: RunSucceeded}, nil
		}
		var draft string
		s.at(time.Minute, func() {
			require.Equal(t, c.said, s.created[0].Request.Spec.Policy.OnFailure, name)
			require.NoError(t, s.update(DoorReplace, map[string]any{"actor": "user:author", "files": c.last}).rejected)
		})
		s.at(2*time.Minute, func() {
			draft = s.bundle()
			s.update(DoorSubmit, map[string]any{"actor": "user:author", "bundle_hash": draft})
		})
		s.at(3*time.Minute, func() {
			require.Equal(t, artifact.InReview, s.status().State, name)
			require.Equal(t, c.said != "", draft == s.bundle(), "what is approved names what happens: %s", name)
			s.decide("user:a", artifact.Approve)
		})
		require.NoError(t, s.tell(request(func(r *artifact.Request) {
			r.Draft, r.Files, r.Spec.Policy.OnFailure = true, c.first, c.said
		})), name)
		step := s.steps[1]
		require.Equal(t, artifact.InReview, step.To)
		if c.said == "" {
			require.Equal(t, c.want, step.Spec.Policy.OnFailure, name)
			bundle, err := artifact.BundleHash(c.last, *step.Spec)
			require.NoError(t, err)
			require.Equal(t, bundle, step.BundleHash, name)
		} else {
			require.Nil(t, step.Spec, name)
		}
		require.Equal(t, c.want == artifact.Compensate, slices.Contains(s.path(), artifact.Compensated), name)
		s.whole()
	}
}

func TestANewerRunIsNotUndoneFrom(t *testing.T) {
	s := newStory(t)
	s.commit = func(step Step) error {
		if step.To == artifact.Compensating {
			return temporal.NewNonRetryableApplicationError("newer_ran: version 2 ran after version 1: undo it first", ErrRefused, nil)
		}
		return nil
	}
	var undo *answer
	s.at(time.Minute, func() { s.decide("user:a", artifact.Approve) })
	s.at(time.Hour, func() { undo = s.update(DoorCompensate, map[string]any{"actor": "user:b"}) })
	s.at(2*time.Hour, func() {
		require.Equal(t, artifact.Executed, s.status().State)
		require.Contains(t, s.status().Refusals[0].Reason, "newer_ran")
	})
	require.NoError(t, s.tell(request()))
	require.NoError(t, undo.rejected)
	var refused *temporal.ApplicationError
	require.ErrorAs(t, undo.failed, &refused)
	require.Equal(t, ErrRefused, refused.Type())
	require.Equal(t, []artifact.State{artifact.InReview, artifact.Approved, artifact.Executing, artifact.Executed, artifact.Archived}, s.path())
}

func TestAReplacementForOtherFilesIsRefusedThroughBothDoors(t *testing.T) {
	s := newStory(t)
	files := []artifact.File{{Role: artifact.Primary, Filename: "other.sh", ContentHash: hash, S3VersionID: "3"}}
	var forged, unbound, good *answer
	s.at(time.Minute, func() {
		bundle, err := artifact.BundleHash(files, s.created[0].Request.Spec)
		require.NoError(t, err)
		signed := map[string]any{"actor": "user:author", "at": start.Add(30 * time.Second), "signature": "x", "bundle_hash": bundle, "files": files}
		with := func(name string, value any) map[string]any {
			other := maps.Clone(signed)
			other[name] = value
			return other
		}
		evil := []artifact.File{{Role: artifact.Primary, Filename: "other.sh", ContentBase64: "ZXZpbA=="}}
		forged, unbound = s.update(DoorReplace, with("files", evil)), s.update(DoorReplace, with("bundle_hash", ""))
		s.env.SignalWorkflow(DoorReplace, with("files", evil))
		good = s.update(DoorReplace, signed)
	})
	s.at(2*time.Minute, func() { require.Contains(t, s.status().Refusals[0].Reason, "other_bundle_hash") })
	s.at(5*time.Minute, func() { s.update(DoorWithdraw, map[string]any{"actor": "user:author"}) })
	require.NoError(t, s.tell(request(func(r *artifact.Request) { r.Draft = true })))
	require.ErrorContains(t, forged.rejected, "other_bundle_hash")
	require.ErrorContains(t, unbound.rejected, "bundle_hash")
	require.NoError(t, errors.Join(good.rejected, good.failed))
	require.Equal(t, files, s.steps[0].Files)
	require.Empty(t, s.steps[1].Files)
}

func TestADraftAndAReviewExpire(t *testing.T) {
	draft := newStory(t)
	require.NoError(t, draft.tell(request(func(r *artifact.Request) { r.Draft = true })))
	require.Equal(t, []artifact.State{artifact.Draft, artifact.Expired, artifact.Archived}, draft.path())
	require.Equal(t, 30*24*time.Hour, draft.steps[0].Record.At.Sub(draft.created[0].Record.At))

	review := newStory(t)
	var late *answer
	review.at(72*time.Hour, func() {
		late = review.update(DoorDecide, map[string]any{"actor": "user:a", "decision": "approve", "bundle_hash": review.bundle()})
	})
	require.NoError(t, review.tell(request()))
	require.Equal(t, []artifact.State{artifact.InReview, artifact.Expired, artifact.Archived}, review.path())
	require.Error(t, errors.Join(late.rejected, late.failed), "a decision after the end")
	require.Equal(t, []string{"review_waiting", "review_waiting"}, review.alerts, "after 24 h and 48 h")
	require.Empty(t, review.runs)
}

func TestRefusalsNameTheirReasonByUpdateAndBySignal(t *testing.T) {
	s := newStory(t)
	var answers []*answer
	s.at(time.Minute, func() {
		bundle := s.bundle()
		for _, payload := range []map[string]any{
			{"actor": "user:author", "decision": "approve", "bundle_hash": bundle},
			{"actor": "user:stranger", "decision": "approve", "bundle_hash": bundle},
			{"actor": "user:a", "decision": "approve", "bundle_hash": hash},
			{"actor": "user:a", "decision": "praise", "bundle_hash": bundle},
			{"actor": "user:a", "decision": "approve"},
		} {
			answers = append(answers, s.update(DoorDecide, payload))
			s.env.SignalWorkflow(DoorDecide, payload)
		}
		s.env.SignalWorkflow(DoorDecide, "no object")
		s.env.SignalWorkflow(DoorExecute, map[string]any{"actor": "user:a"})
		s.env.SignalWorkflow(SupersededSignal, nil)
	})
	s.at(2*time.Minute, func() {
		status := s.status()
		require.Equal(t, artifact.InReview, status.State)
		require.Equal(t, 8, status.Refused)
		var reasons string
		for _, r := range status.Refusals {
			reasons += r.Reason + "\n"
		}
		for _, reason := range []string{"separation_of_duties", "not_an_approver", "other_bundle_hash", "must be approve or reject", "bundle_hash is needed", "decide:", "wrong_state", "no newer version"} {
			require.Contains(t, reasons, reason)
		}
		s.decide("user:b", artifact.Reject)
	})
	require.NoError(t, s.tell(request()))
	for i, reason := range []string{"separation_of_duties", "not_an_approver", "other_bundle_hash", "must be approve or reject", "bundle_hash is needed"} {
		require.ErrorContains(t, answers[i].rejected, reason)
	}
	require.Equal(t, []artifact.State{artifact.InReview, artifact.Rejected, artifact.Archived}, s.path())
}

func TestAHandlersRefusalFailsTheUpdateAndIsKept(t *testing.T) {
	s := newStory(t)
	s.check = func(r CheckRequest) (CheckResult, error) {
		if r.Command.Actor == "user:a" {
			return CheckResult{}, temporal.NewNonRetryableApplicationError("assurance: the signature does not fit", ErrRefused, nil)
		}
		return CheckResult{Assurance: artifact.Signed, Key: "SHA256:x"}, nil
	}
	var forged *answer
	s.at(time.Minute, func() {
		forged = s.update(DoorDecide, map[string]any{"actor": "user:a", "decision": "approve", "bundle_hash": s.bundle()})
	})
	s.at(2*time.Minute, func() {
		require.Equal(t, 1, s.status().Refused)
		s.decide("user:b", artifact.Approve)
	})
	require.NoError(t, s.tell(request()))
	require.NoError(t, forged.rejected)
	var typed *temporal.ApplicationError
	require.ErrorAs(t, forged.failed, &typed)
	require.Equal(t, ErrRefused, typed.Type())
	require.Equal(t, artifact.Signed, s.steps[0].Decision.Assurance)
	require.Equal(t, "SHA256:x", s.steps[0].Decision.Key)
}

func TestAQuorumOfTwoNeedsTwoActors(t *testing.T) {
	s := newStory(t)
	s.at(1*time.Minute, func() { s.decide("user:a", artifact.Approve) })
	s.at(2*time.Minute, func() { s.decide("user:a", artifact.Approve) })
	s.at(3*time.Minute, func() {
		status := s.status()
		require.Equal(t, artifact.InReview, status.State)
		require.Equal(t, []string{"user:b"}, status.Tally.Wanted)
		s.decide("user:b", artifact.Approve)
	})
	require.NoError(t, s.tell(request(func(r *artifact.Request) { r.Spec.Policy.Required = 2 })))
	require.Contains(t, s.path(), artifact.Executed)
	require.Equal(t, s.steps[0].Decision.RecordedAt, *s.steps[1].Earlier, "the second word replaces the first")
	require.Nil(t, s.steps[0].Earlier)
}

func TestTheSameCommandTwiceChangesNothing(t *testing.T) {
	s := newStory(t)
	payload := map[string]any{"actor": "user:a", "decision": "approve", "at": start.Add(30 * time.Second)}
	var again *answer
	s.at(time.Minute, func() { payload["bundle_hash"] = s.bundle(); s.env.SignalWorkflow(DoorDecide, payload) })
	s.at(2*time.Minute, func() { s.env.SignalWorkflow(DoorDecide, payload); again = s.update(DoorDecide, payload) })
	s.at(3*time.Minute, func() { require.Zero(t, s.status().Refused); s.decide("user:b", artifact.Approve) })
	require.NoError(t, s.tell(request(func(r *artifact.Request) { r.Spec.Policy.Required = 2 })))
	require.NoError(t, errors.Join(again.rejected, again.failed))
	decisions := 0
	for _, step := range s.steps {
		if step.Decision != nil {
			decisions++
		}
	}
	require.Equal(t, 2, decisions)
}

func TestExecuteAfterAndByHand(t *testing.T) {
	s := newStory(t)
	after := start.Add(100 * time.Hour)
	var early *answer
	s.at(time.Hour, func() { s.decide("user:a", artifact.Approve) })
	s.at(2*time.Hour, func() { early = s.update(DoorExecute, map[string]any{"actor": "user:b"}) })
	s.at(120*time.Hour, func() { s.update(DoorExecute, map[string]any{"actor": "user:b"}) })
	require.NoError(t, s.tell(request(func(r *artifact.Request) {
		r.Spec.Policy.ExecuteAfter, r.Spec.Policy.AutoExecute = &after, new(false)
	})))
	require.ErrorContains(t, early.rejected, "before_execute_after")
	require.Contains(t, s.path(), artifact.Executed, "waiting for execute_after does not count towards expiry")

	auto := newStory(t)
	auto.at(time.Hour, func() { auto.decide("user:a", artifact.Approve) })
	require.NoError(t, auto.tell(request(func(r *artifact.Request) { r.Spec.Policy.ExecuteAfter = &after })))
	for _, step := range auto.steps {
		if step.To == artifact.Executing {
			require.Equal(t, after, step.Record.At)
		}
	}
	require.Contains(t, auto.path(), artifact.Executed)

	never := newStory(t)
	never.at(time.Hour, func() { never.decide("user:a", artifact.Approve) })
	require.NoError(t, never.tell(request(func(r *artifact.Request) { r.Spec.Policy.AutoExecute = new(false) })))
	require.Equal(t, []artifact.State{artifact.InReview, artifact.Approved, artifact.Expired, artifact.Archived}, never.path())
}

func TestANewerVersionSupersedesThisOne(t *testing.T) {
	s := newStory(t)
	s.at(time.Minute, func() { s.env.SignalWorkflow(SupersededSignal, nil) })
	s.at(2*time.Minute, func() { s.head.ApprovedVersion = 2; s.env.SignalWorkflow(SupersededSignal, nil) })
	require.NoError(t, s.tell(request()))
	require.Equal(t, []artifact.State{artifact.InReview, artifact.Superseded, artifact.Archived}, s.path())

	late := newStory(t)
	late.commit = func(step Step) error {
		if step.Head == headApprove {
			return temporal.NewNonRetryableApplicationError("version 2 is approved", ErrSuperseded, nil)
		}
		return nil
	}
	late.at(time.Minute, func() { late.decide("user:a", artifact.Approve) })
	require.NoError(t, late.tell(request()))
	require.Equal(t, []artifact.State{artifact.InReview, artifact.Superseded, artifact.Archived}, late.path())
	late.whole()
}

func TestAVersionWaitsForItsTurn(t *testing.T) {
	s := newStory(t)
	tries := 0
	s.commit = func(step Step) error {
		if step.Head == headRun {
			if tries++; tries < 4 {
				return temporal.NewNonRetryableApplicationError("another version runs", ErrBusy, nil)
			}
		}
		return nil
	}
	s.at(time.Minute, func() { s.decide("user:a", artifact.Approve) })
	require.NoError(t, s.tell(request()))
	require.Equal(t, 4, tries)
	require.Contains(t, s.path(), artifact.Executed)
	s.whole()
}

func TestAFailedRunIsUndone(t *testing.T) {
	s := newStory(t)
	undos := 0
	s.run = func(r RunRequest) (RunResult, error) {
		if r.Role == artifact.Primary {
			return RunResult{Status: RunFailed, ExitCode: 3, Detail: "exit status 3"}, nil
		}
		if undos++; undos < 3 {
			return RunResult{Status: RunFailed, ExitCode: 1}, nil
		}
		return RunResult{Status: RunSucceeded}, nil
	}
	s.at(time.Minute, func() { s.decide("user:a", artifact.Approve) })
	require.NoError(t, s.tell(request()))
	require.Equal(t, []artifact.State{artifact.InReview, artifact.Approved, artifact.Executing, artifact.Failed, artifact.Compensating, artifact.Compensated, artifact.Archived}, s.path())
	require.Equal(t, 3, undos)
	ids := map[string]bool{}
	for _, r := range s.runs {
		ids[r.RunID] = true
	}
	require.Len(t, ids, 4, "every attempt is a run of its own")
	require.Contains(t, s.alerts, "execution_failed")
	for _, step := range s.steps {
		switch step.To {
		case artifact.Failed:
			require.Empty(t, step.Head, "HEAD is held until it is undone")
		case artifact.Compensating:
			require.Equal(t, headUndo, step.Head)
		case artifact.Compensated:
			require.Equal(t, headRelease, step.Head)
			require.Equal(t, undoDone, step.Undo.State)
			require.Equal(t, 3, step.Undo.Attempts)
		}
	}
}

func TestAnUndoThatFailsIsSeenAndCanBeTriedAgain(t *testing.T) {
	s := newStory(t)
	broken := true
	s.run = func(r RunRequest) (RunResult, error) {
		if r.Role == artifact.Primary || broken {
			return RunResult{Status: RunFailed, ExitCode: 1, Detail: "exit status 1"}, nil
		}
		return RunResult{Status: RunSucceeded}, nil
	}
	s.at(time.Minute, func() { s.decide("user:a", artifact.Approve) })
	s.at(time.Hour, func() {
		require.Equal(t, artifact.CompensationFailed, s.status().State)
		require.Equal(t, 5, s.status().Undo.Attempts)
		broken = false
		s.env.SignalWorkflow(DoorCompensate, map[string]any{"actor": "user:b"})
	})
	require.NoError(t, s.tell(request()))
	require.Equal(t, artifact.Archived, s.path()[len(s.path())-1])
	require.Contains(t, s.path(), artifact.Compensated)
	require.Contains(t, s.alerts, "compensation_failed")
	require.Len(t, s.runs, 7)
	s.whole()
}

func TestChangedContentNeverRunsAndIsNotUndone(t *testing.T) {
	s := newStory(t)
	s.verify = func(VerifyRequest) error { return integrity() }
	var undo *answer
	s.at(time.Minute, func() { s.decide("user:a", artifact.Approve) })
	s.at(time.Hour, func() { undo = s.update(DoorCompensate, map[string]any{"actor": "user:a"}) })
	s.at(2*time.Hour, func() {
		require.Len(t, s.status().Runs, 1)
		require.Equal(t, RunFailed, s.status().Runs[0].Status, "nothing runs")
		require.Contains(t, s.status().Runs[0].Detail, ErrIntegrity)
	})
	require.NoError(t, s.tell(request()))
	require.Equal(t, []artifact.State{artifact.InReview, artifact.Approved, artifact.Executing, artifact.Failed, artifact.Archived}, s.path())
	require.Empty(t, s.runs)
	require.Contains(t, s.steps[3].Reason, ErrIntegrity)
	require.Equal(t, headRelease, s.steps[3].Head)
	require.Equal(t, []string{"execution_failed"}, s.alerts)
	require.ErrorContains(t, undo.rejected, "nothing_to_undo")
}

func TestACorruptRollbackIsNotTriedAgain(t *testing.T) {
	s := newStory(t)
	s.verify = func(r VerifyRequest) error {
		if !r.Decisions {
			return integrity()
		}
		return nil
	}
	s.run = func(RunRequest) (RunResult, error) { return RunResult{Status: RunFailed, ExitCode: 1}, nil }
	s.at(time.Minute, func() { s.decide("user:a", artifact.Approve) })
	require.NoError(t, s.tell(request()))
	require.Contains(t, s.path(), artifact.CompensationFailed)
	require.Len(t, s.runs, 1)
}

func TestAnUndoOnRequestAfterSuccess(t *testing.T) {
	s := newStory(t)
	s.at(time.Minute, func() { s.decide("user:a", artifact.Approve) })
	s.at(time.Hour, func() { s.update(DoorCompensate, map[string]any{"actor": "user:b", "comment": "it made things worse"}) })
	require.NoError(t, s.tell(request()))
	require.Contains(t, s.path(), artifact.Compensated)
	require.Len(t, s.runs, 2)
}

func TestWithoutARollbackAFailureStays(t *testing.T) {
	s := newStory(t)
	s.run = func(RunRequest) (RunResult, error) { return RunResult{Status: RunTimedOut, ExitCode: -1}, nil }
	s.at(time.Minute, func() { s.decide("user:a", artifact.Approve) })
	require.NoError(t, s.tell(request(func(r *artifact.Request) { r.Files = r.Files[:1] })))
	require.Equal(t, []artifact.State{artifact.InReview, artifact.Approved, artifact.Executing, artifact.Failed, artifact.Archived}, s.path())
}

func TestALostWorkersScriptIsSurelyDeadBeforeTheUndo(t *testing.T) {
	s := newStory(t)
	var lost, undone time.Time
	s.run = func(r RunRequest) (RunResult, error) {
		if r.Role == artifact.Rollback {
			undone = s.env.Now()
			return RunResult{Status: RunSucceeded}, nil
		}
		lost = s.env.Now()
		return RunResult{}, temporal.NewHeartbeatTimeoutError()
	}
	s.at(time.Minute, func() { s.decide("user:a", artifact.Approve) })
	s.at(time.Hour, func() {
		require.Equal(t, RunWorkerLost, s.status().Runs[0].Status)
	})
	require.NoError(t, s.tell(request()))
	require.Contains(t, s.path(), artifact.Compensated)
	require.GreaterOrEqual(t, undone.Sub(lost), RunHeartbeat, "the two must never run beside each other")
}

func TestARunThatNeverBeganIsNotUndone(t *testing.T) {
	s := newStory(t)
	s.run = func(RunRequest) (RunResult, error) {
		return RunResult{}, temporal.NewTimeoutError(enums.TIMEOUT_TYPE_SCHEDULE_TO_START, nil)
	}
	s.settle = func(SettleRequest) SettleResult { return SettleResult{} }
	s.at(time.Minute, func() { s.decide("user:a", artifact.Approve) })
	require.NoError(t, s.tell(request()))
	require.NotContains(t, s.path(), artifact.Compensating)
	require.Contains(t, s.steps[3].Reason, "never began")
}

func TestACancelledReviewIsWithdrawn(t *testing.T) {
	s := newStory(t)
	s.at(time.Minute, func() { s.env.CancelWorkflow() })
	require.True(t, temporal.IsCanceledError(s.tell(request())))
	require.Equal(t, []artifact.State{artifact.InReview, artifact.Withdrawn}, s.path())
}

func TestACancelledRunIsUndone(t *testing.T) {
	s := newStory(t)
	s.at(time.Minute, func() { s.decide("user:a", artifact.Approve) })
	s.run = func(r RunRequest) (RunResult, error) {
		if r.Role == artifact.Primary {
			s.env.CancelWorkflow()
			return RunResult{Status: RunCancelled, ExitCode: -1, Detail: "cancelled"}, nil
		}
		return RunResult{Status: RunSucceeded}, nil
	}
	err := s.tell(request())
	require.True(t, temporal.IsCanceledError(err), "%v", err)
	require.Equal(t, []artifact.State{artifact.InReview, artifact.Approved, artifact.Executing, artifact.Failed, artifact.Compensating, artifact.Compensated}, s.path())
}

func TestCommandsDuringARunAreRefusedAtOnce(t *testing.T) {
	s := newStory(t)
	var during *answer
	s.run = func(RunRequest) (RunResult, error) {
		during = s.update(DoorWithdraw, map[string]any{"actor": "user:author"})
		s.env.SignalWorkflow(DoorWithdraw, map[string]any{"actor": "user:author"})
		return RunResult{Status: RunSucceeded}, nil
	}
	s.at(time.Minute, func() { s.decide("user:a", artifact.Approve) })
	s.at(time.Hour, func() { require.Equal(t, 1, s.status().Refused) })
	require.NoError(t, s.tell(request()))
	require.ErrorContains(t, during.rejected, "wrong_state")
	require.Contains(t, s.path(), artifact.Executed)
}

func TestAFailedArchiveIsTriedAgain(t *testing.T) {
	s := newStory(t)
	tries := 0
	s.archive = func() error {
		if tries++; tries == 1 {
			return integrity()
		}
		return nil
	}
	s.at(time.Minute, func() { s.decide("user:a", artifact.Reject) })
	require.NoError(t, s.tell(request()))
	require.Equal(t, 2, tries)
	require.Equal(t, []string{"archive_failed"}, s.alerts)
	require.Equal(t, 1, s.cleared)
}

// TestAStepThatWasMadeBeforeCounts is a workflow task that was lost after it had
// written: done again, it gets what it wrote the first time, at another time.
func TestAStepThatWasMadeBeforeCounts(t *testing.T) {
	s := newStory(t)
	const earlierRun = "01900000-0000-7000-8000-000000000001"
	s.written = func(step Step) Written {
		before := Written{Record: step.Record, Run: step.Run}
		before.Record.At = before.Record.At.Add(-time.Nanosecond)
		before.Record.Hash = artifact.HashOf([]byte(step.Record.Step))
		if step.Head == headRun {
			before.Run = earlierRun
		}
		return before
	}
	s.at(time.Minute, func() { s.decide("user:a", artifact.Approve) })
	require.NoError(t, s.tell(request()))
	require.Equal(t, artifact.Archived, s.path()[len(s.path())-1])
	for i, step := range s.steps[1:] {
		require.Equal(t, artifact.HashOf([]byte(s.steps[i].Record.Step)), step.Record.Prev, "the chain goes on from what was written")
		if step.Head == headRelease {
			require.Equal(t, earlierRun, step.Run, "HEAD is held for the run that claimed it")
		}
	}
	require.Equal(t, earlierRun, s.runs[0].RunID)
}

func TestWhatFactoriesRunIsNotArchivedYet(t *testing.T) {
	s := newStory(t)
	tries := 0
	s.archive = func() error {
		if tries++; tries < 4 {
			return temporal.NewNonRetryableApplicationError("factories run it", ErrBusy, nil)
		}
		return nil
	}
	s.at(time.Minute, func() { s.decide("user:a", artifact.Approve) })
	require.NoError(t, s.tell(request()))
	require.Equal(t, artifact.Archived, s.path()[len(s.path())-1])
	require.Equal(t, 4, tries, "it is looked at each day")
	require.Empty(t, s.alerts, "nobody is alarmed")
}

func TestArchivingByHandIsAtOnce(t *testing.T) {
	s := newStory(t)
	s.at(time.Minute, func() { s.decide("user:a", artifact.Reject) })
	s.at(time.Hour, func() { s.update(DoorArchive, map[string]any{"actor": "user:b"}) })
	require.NoError(t, s.tell(request()))
	require.Equal(t, start.Add(time.Hour), s.steps[len(s.steps)-1].Record.At.Truncate(time.Minute))
}

func TestAStartThatBreaksARuleIsRefused(t *testing.T) {
	for name, input := range map[string]Input{
		"a forged state":       {Request: request(), Carry: &Carry{State: artifact.Approved}},
		"a path in a name":     {Request: request(func(r *artifact.Request) { r.Files[0].Filename = "../x" })},
		"another workflow id":  {Request: request(func(r *artifact.Request) { r.Version = 2 })},
		"a policy for no one":  {Request: request(func(r *artifact.Request) { r.Spec.Policy.Required = 9 })},
		"an author with spice": {Request: request(func(r *artifact.Request) { r.Author = "user:a b" })},
	} {
		s := newStory(t)
		s.env.ExecuteWorkflow(ArtifactLifecycle, input)
		require.Error(t, s.env.GetWorkflowError(), name)
		require.Empty(t, s.path(), name)
	}
}

func TestADecisionInFlightSurvivesContinueAsNew(t *testing.T) {
	s := newStory(t)
	s.at(time.Minute, func() { s.decide("user:a", artifact.Approve) })
	s.at(2*time.Minute, func() {
		s.env.SetContinueAsNewSuggested(true)
		s.decide("user:a", artifact.Reject)
		s.env.SignalWorkflow(DoorDecide, map[string]any{"actor": "user:author", "decision": "approve", "bundle_hash": s.bundle()})
	})
	err := s.tell(request(func(r *artifact.Request) { r.Spec.Policy.Required, r.Spec.Policy.RejectionsToReject = 2, 2 }))
	var next *workflow.ContinueAsNewError
	require.ErrorAs(t, err, &next)
	var in Input
	require.NoError(t, decode(next, &in))
	require.Len(t, in.Carry.Decisions, 1, "of each actor the last one")
	require.Equal(t, artifact.Reject, in.Carry.Decisions[0].Verb, "the decision that arrived with the end is kept")
	require.Equal(t, artifact.InReview, in.Carry.State)
	require.Equal(t, 1, in.Carry.Refused)
	require.NotEmpty(t, in.Carry.Handled)

	second := newStory(t)
	second.env.SetContinuedExecutionRunID("before")
	second.at(time.Minute, func() { second.decide("user:b", artifact.Reject) })
	second.env.ExecuteWorkflow(ArtifactLifecycle, in)
	require.NoError(t, second.env.GetWorkflowError())
	require.Equal(t, []artifact.State{artifact.Rejected, artifact.Archived}, second.path())
	require.Equal(t, in.Carry.Chain.Last, second.steps[0].Record.Prev, "the chain goes on")
}

func TestRequestsUseTheirOwnExecutor(t *testing.T) {
	s := newStory(t)
	s.at(time.Minute, func() { s.decide("user:a", artifact.Approve) })
	require.NoError(t, s.tell(request(func(r *artifact.Request) {
		r.Spec.Kind, r.Spec.Args = artifact.HTTP, []byte(`{"method":"POST","url":"https://example.org/x"}`)
	})))
	require.Contains(t, s.path(), artifact.Executed)
}

func TestTheDetailsTellTheStory(t *testing.T) {
	s := newStory(t)
	s.settings.SearchAttributes = true
	s.at(time.Minute, func() {
		s.env.SignalWorkflow(DoorExecute, map[string]any{"actor": "user:a"})
		s.decide("user:a", artifact.Reject)
	})
	s.at(time.Hour, func() {
		value, err := s.env.QueryWorkflow("__temporal_workflow_metadata")
		require.NoError(t, err)
		require.True(t, value.HasValue())
	})
	require.NoError(t, s.tell(request()))
	l := &lifecycle{request: request(), Carry: Carry{State: artifact.InReview, Since: start, Refusals: []Refusal{{Reason: "no|pipe\nline"}}}}
	policy, err := l.request.Spec.Policy.Complete("user:author", nil, true)
	require.NoError(t, err)
	l.request.Spec.Policy = policy
	require.Contains(t, l.details(), "**in_review**")
	require.Contains(t, l.details(), `no\|pipe line`)
}
