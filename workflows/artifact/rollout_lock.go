package artifact

import (
	"fmt"
	"time"

	"go.temporal.io/sdk/workflow"

	"millrace/domain/artifact"
)

// lockTargets takes or renews the locks of all factories of the rollout, before
// the first is changed: they are taken in one order, so that two rollouts can't
// wait for each other. A rollout that gets them too late is stopped.
func (l *lifecycle) lockTargets(ctx, safe workflow.Context) {
	if l.Rollout.Stopped != "" {
		return
	}
	if why := l.lock(safe, idsOf(l.Rollout.Factories), func() bool { return ctx.Err() != nil }); why != "" && ctx.Err() == nil {
		l.Rollout.stop(why)
	}
}

// lock takes or renews locks, and waits for those that others have until
// LockBy, or until the wait is given up. It tells why it has not all of them.
func (l *lifecycle) lock(safe workflow.Context, ids []string, givenUp func() bool) string {
	poll := lockPoll
	for {
		result, err := l.askForLocks(safe, ids)
		switch {
		case err != nil:
			return "the locks of the factories can't be had: " + messageOf(err)
		case result.FactoryID == "":
			return ""
		}
		what := fmt.Sprintf("the lock of factory %s, which %s has until %s", result.FactoryID, result.Owner, artifact.Timestamp(result.Until))
		left := l.Rollout.LockBy.Sub(workflow.Now(safe))
		if left <= 0 || givenUp() {
			return "waited in vain for " + what
		}
		l.expect(safe, what, l.Rollout.LockBy)
		options := workflow.AwaitOptions{Timeout: min(poll, left), TimerOptions: workflow.TimerOptions{Summary: cut("Until "+what, maxDetail)}}
		if _, err := workflow.AwaitWithOptions(safe, options, givenUp); err != nil {
			return err.Error()
		}
		poll = min(2*poll, maxLockPoll)
	}
}

func (l *lifecycle) askForLocks(safe workflow.Context, ids []string) (LockResult, error) {
	request := LockRequest{FactoryIDs: ids, Owner: l.owner(safe), Lease: artifact.Duration(lockLease)}
	var result LockResult
	err := l.local(safe, "Lock "+count(len(ids), "factory", "factories"), LockActivity, request, &result)
	return result, err
}

// owner names the lifecycle in locks: the same in all its runs.
func (l *lifecycle) owner(ctx workflow.Context) string {
	return workflow.GetInfo(ctx).WorkflowExecution.ID
}

// renewal renews locks in the background until it is stopped.
type renewal struct{ done bool }

func (r *renewal) stop() { r.done = true }

// keepLocks renews the locks of factories as long as they are needed. A lock that
// is lost is told: somebody else may be changing the factory.
func (l *lifecycle) keepLocks(safe workflow.Context, factories []*FactoryRun, lost func(why string)) *renewal {
	r, ids := &renewal{}, idsOf(factories)
	workflow.GoNamed(safe, "locks", func(safe workflow.Context) {
		for {
			options := workflow.AwaitOptions{Timeout: lockRenewal, TimerOptions: workflow.TimerOptions{Summary: "Until the locks are renewed"}}
			over, err := workflow.AwaitWithOptions(safe, options, func() bool { return r.done })
			if over || err != nil {
				return
			}
			switch other, err := l.askForLocks(safe, ids); {
			case err != nil:
				lost("the locks of the factories can't be renewed: " + messageOf(err))
			case other.FactoryID != "":
				lost(fmt.Sprintf("the lock of factory %s was lost to %s", other.FactoryID, other.Owner))
			}
		}
	})
	return r
}

// unlock gives the locks of all factories free. What can't be given free runs out
// by itself.
func (l *lifecycle) unlock(ctx workflow.Context) {
	request := UnlockRequest{FactoryIDs: idsOf(l.Rollout.Factories), Owner: l.owner(ctx)}
	if err := l.local(ctx, "Unlock "+count(len(request.FactoryIDs), "factory", "factories"), UnlockActivity, request, nil); err != nil {
		workflow.GetLogger(ctx).Warn("factories were not unlocked", "error", err)
	}
}

const (
	// lockLease is how long locks outlive a lifecycle that renews them no more;
	// lockRenewal is how often it does, three times in that time.
	lockLease   = time.Hour
	lockRenewal = 20 * time.Minute
	// lockWait is how long locks are waited for: longer than those of a lifecycle
	// that was terminated last.
	lockWait = 2 * time.Hour
	// lockPoll is the first wait for a lock, doubled up to maxLockPoll.
	lockPoll    = 10 * time.Second
	maxLockPoll = 2 * time.Minute
)
