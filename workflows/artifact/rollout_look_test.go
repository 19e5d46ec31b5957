package artifact

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"millrace/domain/artifact"
)

// silence has a factory fall silent: what it said last stays.
func (s *story) silence(id string) {
	s.plants.mu.Lock()
	defer s.plants.mu.Unlock()
	s.plants.byID[id].quiet = s.env.Now()
}

func TestAFactoryThatFallsSilentAfterItPassedStopsTheNextWave(t *testing.T) {
	for name, pause := range map[string]time.Duration{"without a pause": 0, "with a short one": 10 * time.Second, "with a long one": 10 * time.Minute} {
		s := newRolloutStory(t, four...)
		answer := s.plants.answer
		s.plants.answer = func(after time.Duration, r JobResult) {
			answer(after, r)
			if r.FactoryID == "plant-1" { // it passes 4 s after its job was sent, by this
				s.at(3900*time.Millisecond, func() { s.silence("plant-1") })
			}
		}
		args := inThree(four...)
		args.Pause = artifact.Duration(pause)
		s.at(2*time.Hour, func() {
			f := s.factory("plant-1")
			require.Equal(t, FactoryFailed, f.State, name)
			require.Equal(t, artifact.Stale, f.Verdict, name)
			require.Equal(t, FactoryWaiting, s.factory("plant-2").State, name)
		})
		require.NoError(t, s.tell(jobRequest(args)), name)
		require.Equal(t, []string{"primary plant-1", "rollback plant-1"}, s.plants.jobs(), name)
		require.Contains(t, s.reasonOf(artifact.Failed), "plant-1 (wave 1): before the next wave, after 5m0s it was not heard again", name)
	}
}

func TestAllFactoriesAreHeardAgainBeforeTheEnd(t *testing.T) {
	s := newRolloutStory(t, four...)
	answer := s.plants.answer
	s.plants.answer = func(after time.Duration, r JobResult) {
		answer(after, r)
		if r.FactoryID == "plant-4" {
			s.at(3900*time.Millisecond, func() { s.silence("plant-2") })
		}
	}
	s.at(23*time.Minute, func() { require.Contains(t, s.status().WaitingFor, "1 factory to be heard again") })
	require.NoError(t, s.tell(jobRequest(inThree(four...))))
	require.Equal(t, []artifact.State{
		artifact.InReview, artifact.Approved, artifact.Executing, artifact.Failed, artifact.Compensating, artifact.Compensated, artifact.Archived,
	}, s.path())
	require.Contains(t, s.reasonOf(artifact.Failed), "plant-2 (wave 2): before the end, after 5m0s it was not heard again; not changed: 0 of 4")
	require.Len(t, s.plants.jobs(), 8)
}

func TestAFactoryThatIsHeardAgainInTimeGoesOn(t *testing.T) {
	s := newRolloutStory(t, four...)
	s.at(5*time.Minute, func() { s.silence("plant-1") })
	s.at(14*time.Minute, func() {
		require.Equal(t, FactoryPassed, s.factory("plant-1").State)
		require.Contains(t, s.status().WaitingFor, "1 factory to be heard again")
		s.plants.mu.Lock()
		defer s.plants.mu.Unlock()
		s.plants.byID["plant-1"].quiet = time.Time{}
	})
	require.NoError(t, s.tell(jobRequest(inThree(four...))))
	require.Contains(t, s.path(), artifact.Executed)
}

func TestACancellationEndsTheLookForFactories(t *testing.T) {
	s := newRolloutStory(t, four...)
	s.at(5*time.Minute, func() { s.silence("plant-1") })
	s.at(14*time.Minute, s.env.CancelWorkflow)
	require.Error(t, s.tell(jobRequest(inThree(four...))))
	require.Contains(t, s.reasonOf(artifact.Failed), "the workflow was cancelled")
	require.Equal(t, []string{"primary plant-1", "rollback plant-1"}, s.plants.jobs())
}

// TestAForgedAnswerChangesNothing has somebody who can signal, but is no device,
// answer for one.
func TestAForgedAnswerChangesNothing(t *testing.T) {
	s := newRolloutStory(t, four...)
	s.plants.byID["plant-1"].silent = true
	forge := func() {
		s.env.SignalWorkflow(JobResultSignal, JobResult{
			RunID: s.factory("plant-1").RunID, FactoryID: "plant-1", Status: RunSucceeded, FinishedAt: start.AddDate(-5, 0, 0),
		})
	}
	s.at(2*time.Minute, func() { forge(); forge() })
	s.at(3*time.Minute, func() {
		status := s.status()
		require.Equal(t, FactoryRunning, s.factory("plant-1").State)
		require.NotZero(t, status.Refused)
		last := status.Refusals[len(status.Refusals)-1]
		require.Equal(t, "plant-1", last.Actor)
		require.Equal(t, JobResultSignal, string(last.Verb))
		require.Contains(t, last.Reason, "no answer of its device was recorded")
		forge()
	})
	s.at(time.Hour, func() { require.Equal(t, FactoryTimedOut, s.factory("plant-1").State) })
	require.NoError(t, s.tell(jobRequest(inThree(four...))))
	require.Equal(t, []string{"primary plant-1", "rollback plant-1"}, s.plants.jobs())
}

// TestOnlyWhatWasRecordedCounts has a signal that tells another end than the
// store.
func TestOnlyWhatWasRecordedCounts(t *testing.T) {
	s := newRolloutStory(t, four...)
	s.plants.byID["plant-1"].fails = true
	answer := s.plants.answer
	s.plants.answer = func(after time.Duration, r JobResult) {
		r.Status, r.ExitCode, r.FinishedAt = RunSucceeded, 0, start.AddDate(-5, 0, 0)
		answer(after, r)
	}
	require.NoError(t, s.tell(jobRequest(inThree(four...))))
	require.Contains(t, s.reasonOf(artifact.Failed), "the job failed with exit code 3: exit status 3")
}
