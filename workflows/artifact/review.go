package artifact

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"

	"millrace/domain/artifact"
)

// wait waits for a command or a time, the zero time for ever, and takes the
// command.
func (l *lifecycle) wait(ctx workflow.Context, until time.Time, what string) error {
	if l.waiting != what || !l.until.Equal(until) {
		l.waiting, l.until = what, until
		l.describe(ctx)
	}
	arrived := func() bool { return len(l.inbox) > 0 }
	var err error
	if until.IsZero() {
		err = workflow.Await(ctx, arrived)
	} else {
		options := workflow.AwaitOptions{Timeout: until.Sub(workflow.Now(ctx)), TimerOptions: workflow.TimerOptions{Summary: what}}
		_, err = workflow.AwaitWithOptions(ctx, options, arrived)
	}
	if err != nil {
		return err
	}
	if len(l.inbox) > 0 {
		l.serve(ctx)
	}
	return nil
}

// draft waits for the author.
func (l *lifecycle) draft(ctx workflow.Context) error {
	expires := l.draftExpires()
	if !workflow.Now(ctx).Before(expires) {
		return l.settle(ctx, artifact.Expired, artifact.System, "the draft was never submitted")
	}
	return l.wait(ctx, expires, "the author submits")
}

func (l *lifecycle) draftExpires() time.Time {
	return l.Since.Add(l.request.Spec.Policy.DraftExpiresAfter.Of())
}

// replace stores new content of a draft.
func (l *lifecycle) replace(ctx workflow.Context, c Command) error {
	if err := artifact.CheckFiles(c.Files); err != nil {
		return err
	}
	if bound := workflow.GetVersion(ctx, boundReplacement, workflow.DefaultVersion, today); bound >= today {
		if err := c.CheckReplacement(c.Files, l.request.Spec); err != nil {
			return err
		}
	}
	request := ContentRequest{ArtifactID: l.request.ArtifactID, Version: l.request.Version, Spec: l.request.Spec, Files: c.Files}
	var p Prepared
	err := workflow.ExecuteActivity(workflow.WithActivityOptions(ctx, contentOptions("Store the draft's new content")), ContentActivity, request).Get(ctx, &p)
	if err != nil {
		return err
	}
	err = l.commit(ctx, "replaced", l.State, c.Actor, c.Comment, func(s *Step) { s.Files, s.BundleHash = p.Files, p.BundleHash })
	if err != nil {
		return err
	}
	return l.publish(ctx)
}

// submit freezes a draft. What its author left open is completed from the final
// files, which makes it another bundle.
func (l *lifecycle) submit(ctx workflow.Context, c Command) error {
	var change func(*Step)
	spec := l.request.Spec
	if spec.Policy.OnFailure == "" {
		spec.Policy = spec.Policy.Freeze(l.request.Files)
		request := ContentRequest{ArtifactID: l.request.ArtifactID, Version: l.request.Version, Spec: spec, Files: l.request.Files}
		var p Prepared
		err := workflow.ExecuteActivity(workflow.WithActivityOptions(ctx, contentOptions("Complete the draft")), ContentActivity, request).Get(ctx, &p)
		if err != nil {
			return err
		}
		change = func(s *Step) { s.Files, s.BundleHash, s.Spec = p.Files, p.BundleHash, &spec }
	}
	if err := l.move(ctx, artifact.InReview, c.Actor, c.Comment, change); err != nil {
		return err
	}
	return l.publish(ctx)
}

// review waits for decisions, reminds of them and ends the review in time.
func (l *lifecycle) review(ctx workflow.Context) error {
	now, expires := workflow.Now(ctx), l.expiresAt()
	remind := l.RemindedAt.Add(l.request.Spec.Policy.RemindEvery.Of())
	switch {
	case !now.Before(expires):
		return l.settle(ctx, artifact.Expired, artifact.System, "the review ended without a decision")
	case !now.Before(remind):
		l.RemindedAt = now
		t := l.tally()
		l.notify(ctx, "review_waiting", fmt.Sprintf("%s v%d by %s has %d of %d approvals; wanted: %s",
			l.request.ArtifactID, l.request.Version, l.request.Author, len(t.Approvals), t.Required, strings.Join(t.Wanted, ", ")), false)
		return nil
	}
	return l.wait(ctx, earlier(expires, remind), "decisions of "+strings.Join(l.tally().Wanted, ", "))
}

func earlier(a, b time.Time) time.Time {
	if b.IsZero() || !a.IsZero() && a.Before(b) {
		return a
	}
	return b
}

func (l *lifecycle) tally() artifact.Tally {
	if l.State == artifact.None {
		return artifact.Tally{}
	}
	return l.request.Spec.Policy.Tally(l.request.Author, l.BundleHash, l.Decisions)
}

// expiresAt is when a review or an approval ends; waiting for execute_after does
// not count.
func (l *lifecycle) expiresAt() time.Time {
	p := l.request.Spec.Policy
	switch l.State {
	case artifact.InReview:
		return l.ReviewSince.Add(p.ExpiresAfter.Of())
	case artifact.Approved:
		expires := l.ReviewSince.Add(p.ExpiresAfter.Of())
		if p.ExecuteAfter != nil && p.ExecuteAfter.After(l.ApprovedAt) {
			expires = expires.Add(p.ExecuteAfter.Sub(l.ApprovedAt))
		}
		return expires
	}
	return time.Time{}
}

// decide records a decision and what follows from it.
func (l *lifecycle) decide(ctx workflow.Context, c Command, by CheckResult) error {
	d := artifact.Decision{Command: c.Command, Assurance: by.Assurance, Key: by.Key}
	var before *time.Time
	for _, known := range l.Decisions {
		if known.Actor == d.Actor {
			before = new(known.RecordedAt)
		}
	}
	err := l.commit(ctx, "decided", l.State, c.Actor, "", func(s *Step) { s.Decision, s.Earlier = &d, before })
	if err != nil {
		return err
	}
	l.know(d)
	switch l.tally().Outcome {
	case artifact.Rejected:
		return l.settle(ctx, artifact.Rejected, c.Actor, c.Comment)
	case artifact.Approved:
		return l.approve(ctx, c.Actor)
	}
	l.describe(ctx)
	return nil
}

// know keeps what counts of a decision: the store has the rest, and the earlier
// ones of the same actor.
func (l *lifecycle) know(d artifact.Decision) {
	d.Comment, d.Signature = "", ""
	others := slices.DeleteFunc(slices.Clone(l.Decisions), func(known artifact.Decision) bool { return known.Actor == d.Actor })
	l.Decisions = append(others, d)
}

// approve is the move to approved, unless a newer version was approved before.
func (l *lifecycle) approve(ctx workflow.Context, actor string) error {
	err := l.move(ctx, artifact.Approved, actor, "the policy is satisfied", func(s *Step) { s.Head = headApprove })
	if typeOf(err) == ErrSuperseded {
		return l.settle(ctx, artifact.Superseded, artifact.System, messageOf(err))
	}
	if err != nil {
		return err
	}
	if err := l.publish(ctx); err != nil {
		return err
	}
	disconnected, cancel := workflow.NewDisconnectedContext(ctx)
	defer cancel()
	options := noticeOptions("Tell older versions that they are superseded")
	if err := workflow.ExecuteActivity(workflow.WithActivityOptions(disconnected, options), SupersedeActivity, l.ref()).Get(disconnected, nil); err != nil {
		// HEAD forbids them to run all the same.
		workflow.GetLogger(ctx).Warn("older versions were not told", "error", err)
	}
	return nil
}

// approved waits until the version may run, and begins its run.
func (l *lifecycle) approved(ctx workflow.Context) error {
	p, now, expires := l.request.Spec.Policy, workflow.Now(ctx), l.expiresAt()
	if !now.Before(expires) {
		return l.settle(ctx, artifact.Expired, artifact.System, "the approval ended before a run")
	}
	if !*p.AutoExecute && !l.Requested {
		return l.wait(ctx, expires, "somebody executes it")
	}
	due := l.NotBefore
	if p.ExecuteAfter != nil && p.ExecuteAfter.After(due) {
		due = *p.ExecuteAfter
	}
	if now.Before(due) {
		return l.wait(ctx, earlier(expires, due), "its turn to run"+l.Ahead)
	}
	return l.begin(ctx)
}

// begin claims HEAD for a run. While another version runs, this one waits.
func (l *lifecycle) begin(ctx workflow.Context) error {
	run := artifact.NewRunID(workflow.Now(ctx), l.Chain.Last)
	err := l.move(ctx, artifact.Executing, artifact.System, "", func(s *Step) { s.Head, s.Run = headRun, run })
	switch typeOf(err) {
	case ErrBusy:
		l.Ahead = cut(" after "+messageOf(err), maxDetail)
		l.NotBefore = workflow.Now(ctx).Add(l.turnWait(ctx))
		return nil
	case ErrSuperseded:
		return l.settle(ctx, artifact.Superseded, artifact.System, messageOf(err))
	}
	if err != nil {
		return err
	}
	if l.inWaves() {
		return nil // each factory has a run of its own
	}
	l.Runs = remember(l.Runs, RunInfo{RunID: l.Holder, Role: artifact.Primary, Status: "running", At: workflow.Now(ctx)}, maxRuns)
	return nil
}

// turnWait is how long to wait before asking for a turn again: twice as long each
// time. The timers of a history from before fired every ten seconds.
func (l *lifecycle) turnWait(ctx workflow.Context) time.Duration {
	if workflow.GetVersion(ctx, patientTurns, workflow.DefaultVersion, today) < today {
		return busyWait
	}
	wait := min(busyWait<<min(l.Turns, maxTurns), maxBusyWait)
	l.Turns++
	return wait
}

// isTimeout tells whether an activity's error is a timeout of a kind.
func isTimeout(err error) bool { return temporal.IsTimeoutError(err) }
