package artifact

import (
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"

	"millrace/domain/artifact"
)

var four = []string{"plant-1", "plant-2", "plant-3", "plant-4"}

// newRolloutStory is a lifecycle whose factories answer as they are told. It is
// approved after a minute.
func newRolloutStory(t *testing.T, ids ...string) *story {
	t.Helper()
	s := newStory(t)
	s.plants = newPlants(s.env.Now, func(after time.Duration, r JobResult) {
		s.at(after, func() { s.plants.answered(); s.env.SignalWorkflow(JobResultSignal, r) })
	}, ids...)
	s.settle = s.plants.settle
	s.at(time.Minute, func() { s.decide("user:a", artifact.Approve) })
	return s
}

func (s *story) factory(id string) *FactoryRun {
	s.Helper()
	for _, f := range s.status().Rollout.Factories {
		if f.FactoryID == id {
			return f
		}
	}
	s.Fatalf("no factory %s", id)
	return nil
}

// changed are the factories that were changed, in order.
func (s *story) changed() []string {
	s.Helper()
	factories := slices.DeleteFunc(s.status().Rollout.Factories, func(f *FactoryRun) bool { return f.Change == 0 })
	slices.SortFunc(factories, func(a, b *FactoryRun) int { return a.Change - b.Change })
	return idsOf(factories)
}

func (s *story) reasonOf(state artifact.State) string {
	s.Helper()
	reason := ""
	for _, step := range s.steps {
		if step.To == state && step.From != state {
			reason = step.Reason
		}
	}
	return reason
}

func TestARolloutGoesThroughItsWaves(t *testing.T) {
	s := newRolloutStory(t, four...)
	s.at(5*time.Minute, func() {
		status := s.status()
		require.Equal(t, artifact.Executing, status.State)
		require.Contains(t, status.WaitingFor, "the pause before wave 2 of 3")
		require.False(t, status.Until.IsZero())
		require.Equal(t, FactoryPassed, s.factory("plant-1").State)
		require.Equal(t, FactoryWaiting, s.factory("plant-2").State)
	})
	s.at(2*time.Hour, func() {
		for i, f := range s.status().Rollout.Factories {
			require.Equal(t, FactoryPassed, f.State)
			require.Equal(t, artifact.Passed, f.Verdict)
			require.Equal(t, "90", f.Baseline.Score.String())
			require.Equal(t, "90", f.After.String())
			require.Equal(t, []int{1, 2, 2, 3}[i], f.Wave)
			require.NoError(t, artifact.CheckRunID(f.RunID))
		}
	})
	require.NoError(t, s.tell(jobRequest(inThree(four...))))
	require.Equal(t, []artifact.State{artifact.InReview, artifact.Approved, artifact.Executing, artifact.Executed, artifact.Archived}, s.path())
	require.Equal(t, "4 factories in 3 waves", s.reasonOf(artifact.Executed))
	jobs := s.plants.jobs()
	require.Equal(t, "primary plant-1", jobs[0])
	require.ElementsMatch(t, []string{"primary plant-2", "primary plant-3"}, jobs[1:3])
	require.Equal(t, []string{"primary plant-4"}, jobs[3:])
	require.Len(t, s.plants.runs, 4, "each factory has a run of its own")
	require.ElementsMatch(t, four, s.plants.unlocked)
	require.Equal(t, headRelease, s.steps[3].Head)
	require.GreaterOrEqual(t, s.steps[3].Record.At.Sub(s.steps[2].Record.At), 20*time.Minute, "two pauses")
	s.whole()
}

func TestAGateThatClosesUndoesInReverseOrder(t *testing.T) {
	s := newRolloutStory(t, four...)
	s.plants.byID["plant-3"].sick = "79.99"
	var changed []string
	s.at(3*time.Hour, func() { changed = s.changed() })
	require.NoError(t, s.tell(jobRequest(inThree(four...))))
	require.Equal(t, []artifact.State{
		artifact.InReview, artifact.Approved, artifact.Executing, artifact.Failed, artifact.Compensating, artifact.Compensated, artifact.Archived,
	}, s.path())
	jobs := s.plants.jobs()
	require.Len(t, jobs, 6)
	require.NotContains(t, jobs, "primary plant-4", "no wave begins after a failure")
	require.Equal(t, "plant-1", changed[0])
	require.Equal(t, []string{"rollback " + changed[2], "rollback " + changed[1], "rollback plant-1"}, jobs[3:])
	reason := s.reasonOf(artifact.Failed)
	require.Contains(t, reason, "plant-3 (wave 2): the score fell from 90 to 79.99, by more than 10")
	require.NotContains(t, reason, "plant-2")
	require.Contains(t, reason, "not changed: 1 of 4 factories")
	require.Contains(t, s.alerts, "execution_failed")
	require.ElementsMatch(t, four, s.plants.unlocked)
	s.whole()
}

func TestWhatFailsAtOneFactoryLetsItsWaveFinish(t *testing.T) {
	s := newRolloutStory(t, four...)
	s.plants.byID["plant-2"].fails = true
	s.at(3*time.Hour, func() {
		require.Equal(t, FactoryFailed, s.factory("plant-2").State)
		require.Equal(t, FactoryPassed, s.factory("plant-3").State, "it was under way")
		require.Equal(t, FactoryWaiting, s.factory("plant-4").State)
		require.Contains(t, s.factory("plant-2").Detail, "exit code 3")
	})
	require.NoError(t, s.tell(jobRequest(inThree(four...))))
	require.Contains(t, s.path(), artifact.Compensated)
	require.Contains(t, s.plants.jobs(), "rollback plant-2", "what failed may have changed something")
}

func TestASilentDeviceIsTimedOutAndCountsAsChanged(t *testing.T) {
	s := newRolloutStory(t, four...)
	s.plants.byID["plant-1"].silent = true
	var sent, failed time.Time
	s.commit = func(step Step) error {
		switch step.To {
		case artifact.Executing:
			sent = step.Record.At
		case artifact.Failed:
			failed = step.Record.At
		}
		return nil
	}
	s.at(time.Hour, func() {
		f := s.factory("plant-1")
		require.Equal(t, FactoryTimedOut, f.State)
		require.Equal(t, 1, f.Change)
		require.Equal(t, undoDone, f.Undo.State)
	})
	require.NoError(t, s.tell(jobRequest(inThree(four...))))
	require.Equal(t, []string{"primary plant-1", "rollback plant-1"}, s.plants.jobs())
	require.Equal(t, 5*time.Minute+jobGrace, failed.Sub(sent).Round(time.Second), "the timeout and the way there and back")
	require.Contains(t, s.reasonOf(artifact.Failed), "plant-1 (wave 1): the device gave no answer in time")
}

func TestAResultThatWasRecordedButNeverToldCounts(t *testing.T) {
	s := newRolloutStory(t, "plant-1")
	s.plants.byID["plant-1"].silent = true
	s.settle = func(SettleRequest) SettleResult {
		return SettleResult{Began: true, Result: RunResult{Status: RunSucceeded}}
	}
	args := inThree("plant-1")
	args.Waves = []artifact.Wave{1}
	require.NoError(t, s.tell(jobRequest(args)))
	require.Contains(t, s.path(), artifact.Executed)
}

func TestAJobThatWasNeverSentChangedNothing(t *testing.T) {
	s := newRolloutStory(t, four...)
	s.plants.byID["plant-1"].refused = true
	s.at(time.Hour, func() { require.Zero(t, s.factory("plant-1").Change) })
	require.NoError(t, s.tell(jobRequest(inThree(four...))))
	require.Equal(t, []artifact.State{artifact.InReview, artifact.Approved, artifact.Executing, artifact.Failed, artifact.Archived}, s.path())
	require.Empty(t, s.plants.jobs())
	require.Contains(t, s.reasonOf(artifact.Failed), "never sent: the broker refuses the topic")
	require.ElementsMatch(t, four, s.plants.unlocked)
}

func TestAFactoryWithoutABaselineIsLeftAlone(t *testing.T) {
	s := newRolloutStory(t, four...)
	s.plants.byID["plant-1"].score = ""
	require.NoError(t, s.tell(jobRequest(inThree(four...))))
	require.Empty(t, s.plants.jobs())
	require.Contains(t, s.reasonOf(artifact.Failed), "no risk score")
}

func TestStaleDataAfterTheJobFailsTheGate(t *testing.T) {
	s := newRolloutStory(t, four...)
	s.plants.byID["plant-1"].stale = true
	s.at(30*time.Minute, func() {
		require.Equal(t, artifact.Stale, s.factory("plant-1").Verdict)
		require.Contains(t, s.factory("plant-1").Detail, "after 5m0s no factory_state is newer")
	})
	require.NoError(t, s.tell(jobRequest(inThree(four...))))
	require.Equal(t, []string{"primary plant-1", "rollback plant-1"}, s.plants.jobs())
}

func TestAFactoryIsLookedAtAtMostFortyTimes(t *testing.T) {
	for _, within := range []time.Duration{10 * time.Second, time.Minute, 10 * time.Minute, time.Hour, 24 * time.Hour} {
		looks, poll, waited := 0, firstGatePoll, time.Duration(0)
		for ; waited < within; poll = nextGatePoll(artifact.Gate{Within: artifact.Duration(within)}, poll) {
			waited += min(poll, within-waited)
			looks++
		}
		require.LessOrEqual(t, looks, 40, within)
		require.GreaterOrEqual(t, looks, 3, within)
	}
}

func TestWhatShowsLateIsSeenBeforeTheNextWave(t *testing.T) {
	s := newRolloutStory(t, four...)
	s.at(8*time.Minute, func() {
		s.plants.mu.Lock()
		defer s.plants.mu.Unlock()
		s.plants.byID["plant-1"].score = "49.99"
	})
	require.NoError(t, s.tell(jobRequest(inThree(four...))))
	require.Equal(t, []string{"primary plant-1", "rollback plant-1"}, s.plants.jobs())
	require.Contains(t, s.reasonOf(artifact.Failed), "before the next wave, the score is 49.99, below 50")
}

func TestAnswersOfDevicesCountOnceAndOnlyTheirOwn(t *testing.T) {
	s := newRolloutStory(t, four...)
	s.plants.answer = func(after time.Duration, r JobResult) {
		failed, stranger, unknown := r, r, r
		failed.Status, failed.ExitCode = RunFailed, 1
		stranger.FactoryID, stranger.Status = "plant-9", RunFailed
		unknown.RunID, unknown.Status = "no-such-run", RunFailed
		s.at(after, func() {
			s.plants.answered()
			for _, signal := range []JobResult{stranger, unknown, r, r, failed} {
				s.env.SignalWorkflow(JobResultSignal, signal)
			}
			s.env.SignalWorkflow(JobResultSignal, "no object")
		})
		s.at(4*time.Hour, func() { s.env.SignalWorkflow(JobResultSignal, failed) })
	}
	s.at(5*time.Hour, func() { require.Equal(t, 8, s.status().Refused, "what can't be read, and what is another factory's") })
	require.NoError(t, s.tell(jobRequest(inThree(four...))))
	require.Equal(t, []artifact.State{artifact.InReview, artifact.Approved, artifact.Executing, artifact.Executed, artifact.Archived}, s.path())
}

func TestAnAnswerMayComeBeforeTheSendersOwn(t *testing.T) {
	s := newRolloutStory(t, four...)
	s.plants.answer = func(_ time.Duration, r JobResult) {
		s.plants.under--
		s.env.SignalWorkflow(JobResultSignal, r)
	}
	require.NoError(t, s.tell(jobRequest(inThree(four...))))
	require.Contains(t, s.path(), artifact.Executed)
}

func TestARolloutWaitsForTheLockOfAnother(t *testing.T) {
	s := newRolloutStory(t, four...)
	s.plants.own("plant-3", "artifact/other/v7")
	s.at(30*time.Minute, func() {
		require.Contains(t, s.status().WaitingFor, "the lock of factory plant-3, which artifact/other/v7 has until")
		require.Empty(t, s.plants.jobs(), "nothing is changed before all factories are locked")
		s.plants.own("plant-3", "")
	})
	require.NoError(t, s.tell(jobRequest(inThree(four...))))
	require.Contains(t, s.path(), artifact.Executed)
	require.Less(t, s.plants.locks, 40, "waiting is no rush")

	never := newRolloutStory(t, four...)
	never.plants.own("plant-3", "artifact/other/v7")
	require.NoError(t, never.tell(jobRequest(inThree(four...))))
	require.Equal(t, []artifact.State{artifact.InReview, artifact.Approved, artifact.Executing, artifact.Failed, artifact.Archived}, never.path())
	require.Contains(t, never.reasonOf(artifact.Failed), "waited in vain for the lock of factory plant-3")
	require.Empty(t, never.plants.jobs())
	require.Equal(t, map[string]string{"plant-3": "artifact/other/v7"}, never.plants.owners)
}

func TestALockThatIsLostStopsTheRollout(t *testing.T) {
	s := newRolloutStory(t, four...)
	args := inThree(four...)
	args.Pause = artifact.Duration(3 * time.Hour)
	s.at(time.Hour, func() { s.plants.own("plant-4", "artifact/other/v7") })
	require.NoError(t, s.tell(jobRequest(args)))
	require.Contains(t, s.reasonOf(artifact.Failed), "the lock of factory plant-4 was lost to artifact/other/v7")
	require.Equal(t, []string{"primary plant-1", "rollback plant-1"}, s.plants.jobs())
}

func TestAnUndoThatFailedCanBeTriedAgainAfterACancellation(t *testing.T) {
	s := newRolloutStory(t, four...)
	s.plants.byID["plant-1"].brokenUndos = 5
	s.at(5*time.Minute, s.env.CancelWorkflow)
	var again *answer
	s.at(2*time.Hour, func() {
		require.Equal(t, artifact.CompensationFailed, s.status().State)
		again = s.update(DoorCompensate, map[string]any{"actor": "user:b"})
	})
	require.NoError(t, s.tell(jobRequest(inThree(four...))), "it lives on until its archive")
	require.NoError(t, errors.Join(again.rejected, again.failed))
	path := s.path()
	require.Equal(t, []artifact.State{artifact.CompensationFailed, artifact.Compensating, artifact.Compensated, artifact.Archived}, path[len(path)-4:])
	require.Len(t, s.plants.jobs(), 7)
}

func TestAJobFromBeforeAResetCountsAsDone(t *testing.T) {
	s := newRolloutStory(t, four...)
	s.plants.byID["plant-2"].had = true
	require.NoError(t, s.tell(jobRequest(inThree(four...))))
	require.Contains(t, s.reasonOf(artifact.Failed), "plant-2 (wave 2): the factory had this job before")
	require.Contains(t, s.plants.jobs(), "rollback plant-2")
	require.NotContains(t, s.plants.jobs(), "primary plant-4")
	require.Contains(t, s.path(), artifact.Compensated)
}

func TestACancelledRolloutIsUndone(t *testing.T) {
	for name, at := range map[string]time.Duration{
		"while a device works":  time.Minute + time.Second,
		"while a gate is open":  time.Minute + 5*time.Second,
		"during a pause":        5 * time.Minute,
		"while a lock is asked": 2 * time.Minute,
	} {
		s := newRolloutStory(t, four...)
		locked := strings.Contains(name, "lock")
		if locked {
			s.plants.own("plant-4", "artifact/other/v7")
		}
		s.at(at, s.env.CancelWorkflow)
		err := s.tell(jobRequest(inThree(four...)))
		require.True(t, temporal.IsCanceledError(err), "%s: %v", name, err)
		require.Contains(t, s.reasonOf(artifact.Failed), RunCancelled, name)
		if locked {
			require.Empty(t, s.plants.jobs(), name)
			continue
		}
		require.Equal(t, []artifact.State{
			artifact.InReview, artifact.Approved, artifact.Executing, artifact.Failed, artifact.Compensating, artifact.Compensated,
		}, s.path(), name)
		require.Equal(t, []string{"primary plant-1", "rollback plant-1"}, s.plants.jobs(), name)
		require.Empty(t, s.plants.owners, name)
	}
}

func TestARolloutIsUndoneOnRequest(t *testing.T) {
	s := newRolloutStory(t, four...)
	s.at(2*time.Hour, func() {
		require.Equal(t, artifact.Executed, s.status().State)
		s.update(DoorCompensate, map[string]any{"actor": "user:b", "comment": "it made things worse"})
	})
	require.NoError(t, s.tell(jobRequest(inThree(four...))))
	require.Contains(t, s.path(), artifact.Compensated)
	jobs := s.plants.jobs()
	require.Equal(t, "rollback plant-4", jobs[4])
	require.Equal(t, "rollback plant-1", jobs[7])
	require.Len(t, jobs, 8)
	require.Empty(t, s.plants.owners)
}

func TestUndoingIsTriedAgainForWhatIsLeftOnly(t *testing.T) {
	s := newRolloutStory(t, four...)
	s.plants.byID["plant-3"].sick = "10"
	s.plants.byID["plant-1"].brokenUndos = 6
	s.plants.byID["plant-2"].quietUndos = 2
	s.at(3*time.Hour, func() {
		status := s.status()
		require.Equal(t, artifact.CompensationFailed, status.State)
		require.Contains(t, status.Undo.Detail, "left to undo: plant-1 (exit status 1)")
		require.NotContains(t, status.Undo.Detail, "plant-2")
		require.Equal(t, 5, s.factory("plant-1").Undo.Attempts)
		require.Equal(t, 3, s.factory("plant-2").Undo.Attempts)
		require.Equal(t, undoFailed, s.factory("plant-1").Undo.State)
		require.Empty(t, s.plants.owners, "others may help the factory")
		s.update(DoorCompensate, map[string]any{"actor": "user:b"})
	})
	require.NoError(t, s.tell(jobRequest(inThree(four...))))
	path := s.path()
	require.Equal(t, []artifact.State{artifact.Compensating, artifact.CompensationFailed, artifact.Compensating, artifact.Compensated, artifact.Archived}, path[len(path)-5:])
	jobs := s.plants.jobs()
	require.Equal(t, []string{"rollback plant-1", "rollback plant-1"}, jobs[len(jobs)-2:], "the sixth fails, the seventh does it")
	require.Contains(t, s.alerts, "compensation_failed")
	require.Contains(t, s.reasonOf(artifact.CompensationFailed), "plant-1")
	ids := map[string]bool{}
	for id := range s.plants.runs {
		ids[id] = true
	}
	require.Len(t, ids, len(jobs), "every attempt is a run of its own")
	s.whole()
}

func TestACorruptRollbackOfARolloutNamesAllThatIsLeft(t *testing.T) {
	s := newRolloutStory(t, four...)
	s.plants.byID["plant-2"].fails = true
	s.verify = func(r VerifyRequest) error {
		if !r.Decisions {
			return integrity()
		}
		return nil
	}
	require.NoError(t, s.tell(jobRequest(inThree(four...))))
	reason := s.reasonOf(artifact.CompensationFailed)
	for _, id := range four[:3] {
		require.Contains(t, reason, id)
	}
	require.NotContains(t, reason, "plant-4")
	require.Contains(t, reason, ErrIntegrity)
	require.Len(t, s.plants.jobs(), 3)
}

func TestWithoutARollbackAFailedRolloutStays(t *testing.T) {
	s := newRolloutStory(t, four...)
	s.plants.byID["plant-1"].fails = true
	require.NoError(t, s.tell(jobRequest(inThree(four...), func(r *artifact.Request) { r.Files = r.Files[:1] })))
	require.Equal(t, []artifact.State{artifact.InReview, artifact.Approved, artifact.Executing, artifact.Failed, artifact.Archived}, s.path())
	require.Empty(t, s.plants.owners)
}

func TestARolloutContinuesAsNewBetweenItsParts(t *testing.T) {
	s := newRolloutStory(t, four...)
	s.at(5*time.Minute, func() {
		s.env.SetContinueAsNewSuggested(true)
		s.env.SignalWorkflow(DoorWithdraw, map[string]any{"actor": "user:author"})
	})
	err := s.tell(jobRequest(inThree(four...)))
	var next *workflow.ContinueAsNewError
	require.ErrorAs(t, err, &next)
	var in Input
	require.NoError(t, decode(next, &in))
	require.Equal(t, artifact.Executing, in.Carry.State)
	require.Equal(t, 1, in.Carry.Rollout.Changes)
	require.Equal(t, 1, in.Carry.Refused)
	require.Equal(t, []string{"primary plant-1"}, s.plants.jobs())

	body, err := json.Marshal(in.Carry)
	require.NoError(t, err)
	var again Carry
	require.NoError(t, json.Unmarshal(body, &again))
	require.Equal(t, *in.Carry, again, "everything is handed on")

	second := newRolloutStory(t, four...)
	second.env.SetStartTime(s.env.Now())
	second.env.SetContinuedExecutionRunID("before")
	second.plants.byID["plant-4"].fails = true
	second.env.ExecuteWorkflow(ArtifactLifecycle, in)
	require.NoError(t, second.env.GetWorkflowError())
	require.Contains(t, second.path(), artifact.Compensated)
	jobs := second.plants.jobs()
	require.NotContains(t, jobs, "primary plant-1")
	require.Len(t, jobs, 7)
	require.Equal(t, []string{"rollback plant-4", "rollback plant-1"}, []string{jobs[3], jobs[6]}, "also what the run before changed")
}

func TestUndoingContinuesAsNewBetweenTwoFactories(t *testing.T) {
	s := newRolloutStory(t, four...)
	s.plants.byID["plant-4"].fails = true
	answer := s.plants.answer
	s.plants.answer = func(after time.Duration, r JobResult) {
		if s.plants.runs[r.RunID].Role == artifact.Rollback {
			s.env.SetContinueAsNewSuggested(true)
		}
		answer(after, r)
	}
	err := s.tell(jobRequest(inThree(four...)))
	var next *workflow.ContinueAsNewError
	require.ErrorAs(t, err, &next)
	var in Input
	require.NoError(t, decode(next, &in))
	require.Equal(t, artifact.Compensating, in.Carry.State)

	second := newRolloutStory(t, four...)
	second.env.SetContinuedExecutionRunID("before")
	second.env.ExecuteWorkflow(ArtifactLifecycle, in)
	require.NoError(t, second.env.GetWorkflowError())
	require.Equal(t, []artifact.State{artifact.Compensated, artifact.Archived}, second.path())
	undone := append(s.plants.jobs()[4:], second.plants.jobs()...)
	require.Len(t, undone, 4, "each factory is undone once: %v", undone)
	require.Equal(t, "rollback plant-4", undone[0])
	require.Equal(t, "rollback plant-1", undone[3])
}

func many() []string {
	var ids []string
	for _, row := range "abcde" {
		for _, seat := range "123456" {
			ids = append(ids, string([]rune{row, seat}))
		}
	}
	return ids
}

func TestAWaveIsChangedAFewFactoriesAtATime(t *testing.T) {
	s := newRolloutStory(t, many()...)
	args := inThree(many()...)
	args.Waves = []artifact.Wave{artifact.Rest}
	require.NoError(t, s.tell(jobRequest(args)))
	require.Contains(t, s.path(), artifact.Executed)
	require.Len(t, s.plants.jobs(), 30)
	require.LessOrEqual(t, s.plants.most, rolloutParallel)
	require.Greater(t, s.plants.most, 1)
}

func TestALongWaveContinuesAsNewInItsMiddle(t *testing.T) {
	s := newRolloutStory(t, many()...)
	args := inThree(many()...)
	args.Waves = []artifact.Wave{artifact.Rest}
	s.at(time.Minute+3*time.Second, func() { s.env.SetContinueAsNewSuggested(true) })
	err := s.tell(jobRequest(args))
	var next *workflow.ContinueAsNewError
	require.ErrorAs(t, err, &next)
	var in Input
	require.NoError(t, decode(next, &in))
	before := s.plants.jobs()
	require.Greater(t, len(before), 1)
	require.Less(t, len(before), 30)
	require.Len(t, in.Carry.Rollout.where((*FactoryRun).waiting), 30-len(before))
	require.Empty(t, in.Carry.Rollout.where(func(f *FactoryRun) bool { return f.State == FactoryRunning || f.State == FactoryJudging }), "nothing is under way")

	second := newRolloutStory(t, many()...)
	second.env.SetContinuedExecutionRunID("before")
	second.env.ExecuteWorkflow(ArtifactLifecycle, in)
	require.NoError(t, second.env.GetWorkflowError())
	require.Contains(t, second.path(), artifact.Executed)
	var all []string
	for _, id := range many() {
		all = append(all, "primary "+id)
	}
	require.ElementsMatch(t, all, append(before, second.plants.jobs()...), "each factory once")
}

func TestACancelledRolloutIsBroughtToItsEndInOneRun(t *testing.T) {
	s := newRolloutStory(t, four...)
	s.at(5*time.Minute, func() {
		s.env.SetContinueAsNewSuggested(true)
		s.env.CancelWorkflow()
	})
	err := s.tell(jobRequest(inThree(four...)))
	require.True(t, temporal.IsCanceledError(err), "%v", err)
	require.Contains(t, s.path(), artifact.Compensated)
}

func TestWhatCannotBeReadFailsTheGate(t *testing.T) {
	for name, c := range map[string]struct {
		from time.Duration
		want string
		jobs int
	}{
		"before":            {0, "not changed, its state can't be read: no such table", 0},
		"after":             {time.Minute + 2*time.Second, "after 5m0s its state can't be read: no such table", 2},
		"between the waves": {5 * time.Minute, "the factories of earlier waves can't be looked at: no such table", 2},
	} {
		s := newRolloutStory(t, four...)
		s.plants.broken = func() bool { return s.env.Now().Sub(start) >= c.from }
		require.NoError(t, s.tell(jobRequest(inThree(four...))), name)
		require.Contains(t, s.reasonOf(artifact.Failed), c.want, name)
		require.Len(t, s.plants.jobs(), c.jobs, name)
	}
}

func TestTheDetailsShowEachFactory(t *testing.T) {
	s := newRolloutStory(t, four...)
	s.plants.byID["plant-2"].fails = true
	s.at(3*time.Hour, func() {
		l := &lifecycle{request: jobRequest(inThree(four...)), Carry: Carry{Rollout: s.status().Rollout}}
		text := l.details()
		require.Contains(t, text, "Wave 2 of 3")
		require.Contains(t, text, "| plant-1 | 1 | passed | 90 | 90 |")
		require.Contains(t, text, "| plant-4 | 3 | waiting |")
		require.Contains(t, text, "compensated, attempt 1")
	})
	require.NoError(t, s.tell(jobRequest(inThree(four...))))
}
