package artifact

import (
	"fmt"
	"slices"
	"time"

	"go.temporal.io/sdk/converter"
	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"

	"millrace/domain/artifact"
)

// Doors are the names of the Updates and of the Signals, with the same payload.
const (
	DoorSubmit     = "submit"
	DoorDecide     = "decide"
	DoorWithdraw   = "withdraw"
	DoorExecute    = "execute"
	DoorCompensate = "compensate"
	DoorArchive    = "archive"
	// DoorReplace replaces the files of a draft; its payload has files besides.
	DoorReplace = "replace"
	// SupersededSignal tells an older version that a newer one was approved. It is
	// only a hint: HEAD is read before it is believed.
	SupersededSignal = "superseded"
	// StatusQuery answers with a Status.
	StatusQuery = "status"
)

// verbOf is the verb of a door; that of decide stands in the payload.
var verbOf = map[string]artifact.Verb{
	DoorSubmit: artifact.Submit, DoorWithdraw: artifact.Withdraw, DoorExecute: artifact.Execute,
	DoorCompensate: artifact.Undo, DoorArchive: artifact.ArchiveNow, DoorReplace: artifact.Replace,
}

// doors in a fixed order, for determinism.
var doors = []string{DoorSubmit, DoorDecide, DoorWithdraw, DoorExecute, DoorCompensate, DoorArchive, DoorReplace}

// Command is the payload of every door.
type Command struct {
	artifact.Command

	// Files are the new files of a draft.
	Files []artifact.File `json:"files,omitempty"`
}

// supersede is the verb of the hint that a newer version was approved.
const supersede artifact.Verb = "superseded"

// pending is a command that waits for its turn.
type pending struct {
	Command
	err  error
	done bool
}

// read is the command that comes through a door. It is read here and not by the
// SDK, whose errors repeat what they can't read, however long that is.
func read(door string, raw converter.RawValue) (Command, error) {
	var c Command
	if raw.Payload() == nil {
		return c, &artifact.InvalidError{Field: "payload", Rule: "is needed"}
	}
	if err := converter.GetDefaultDataConverter().FromPayload(raw.Payload(), &c); err != nil {
		return c, &artifact.InvalidError{Field: "payload", Rule: "can't be read: " + cut(err.Error(), maxRefusalReason)}
	}
	return through(door, c)
}

// through is a command as it comes through a door.
func through(door string, c Command) (Command, error) {
	if door == DoorDecide {
		if c.Verb != artifact.Approve && c.Verb != artifact.Reject {
			return c, &artifact.InvalidError{Field: "decision", Rule: "must be approve or reject"}
		}
		return c, nil
	}
	verb := verbOf[door]
	if c.Verb != "" && c.Verb != verb {
		return c, &artifact.InvalidError{Field: "decision", Rule: "is not for this door"}
	}
	c.Verb = verb
	return c, nil
}

// register opens the doors before anything else happens.
func (l *lifecycle) register(ctx workflow.Context) error {
	if err := workflow.SetQueryHandler(ctx, StatusQuery, func() (Status, error) { return l.status(), nil }); err != nil {
		return err
	}
	for _, door := range doors {
		err := workflow.SetUpdateHandlerWithOptions(ctx, door,
			func(ctx workflow.Context, raw converter.RawValue) (Status, error) { return l.update(ctx, door, raw) },
			workflow.UpdateHandlerOptions{Validator: func(ctx workflow.Context, raw converter.RawValue) error { return l.validate(ctx, door, raw) }})
		if err != nil {
			return err
		}
		l.listen(ctx, door)
	}
	l.listen(ctx, SupersededSignal)
	l.listenJobs(ctx)
	return nil
}

// validate refuses an Update before it is taken into the history.
func (l *lifecycle) validate(ctx workflow.Context, door string, raw converter.RawValue) error {
	c, err := read(door, raw)
	if err == nil {
		err = c.CheckWords()
	}
	if err != nil {
		return applicationError(err)
	}
	if l.State == artifact.None {
		return applicationError(c.Check())
	}
	if l.handled(c) {
		return nil
	}
	if err := l.standing().Judge(c.Command, workflow.Now(ctx)); err != nil {
		return applicationError(err)
	}
	if c.Verb == artifact.Replace {
		return applicationError(c.CheckReplacement(c.Files, l.request.Spec))
	}
	return nil
}

// update is an Update that passed its validator: it takes its turn.
func (l *lifecycle) update(ctx workflow.Context, door string, raw converter.RawValue) (Status, error) {
	c, err := read(door, raw)
	if err != nil {
		return Status{}, applicationError(err)
	}
	p := &pending{Command: c}
	l.take(ctx, p)
	// The answer must come even when the workflow is being cancelled.
	ctx, cancel := workflow.NewDisconnectedContext(ctx)
	defer cancel()
	if err := workflow.Await(ctx, func() bool { return p.done }); err != nil {
		return Status{}, err
	}
	return l.status(), applicationError(p.err)
}

// listen takes the signals of one door. They are read raw, so that one that
// can't be read is refused with its reason.
func (l *lifecycle) listen(ctx workflow.Context, door string) {
	channel := workflow.GetSignalChannel(ctx, door)
	workflow.Go(ctx, func(ctx workflow.Context) {
		// A coroutine blocked in Receive is handed a signal before it runs, and a run
		// that continues as new in that moment would lose it; the length of a channel
		// is seen by drain.
		waiting, stop := workflow.NewDisconnectedContext(ctx)
		defer stop()
		for workflow.Await(waiting, func() bool { return channel.Len() > 0 }) == nil {
			var raw converter.RawValue
			channel.Receive(ctx, &raw)
			l.signal(ctx, door, raw)
		}
	})
}

func (l *lifecycle) signal(ctx workflow.Context, door string, raw converter.RawValue) {
	if door == SupersededSignal {
		l.take(ctx, &pending{Command: Command{Command: artifact.Command{Verb: supersede, Actor: artifact.System}}})
		return
	}
	c, err := read(door, raw)
	if words := c.CheckWords(); err == nil && words != nil && workflow.GetVersion(ctx, strictInput, workflow.DefaultVersion, today) >= today {
		err = words
	}
	if err != nil {
		l.refuse(ctx, c, fmt.Errorf("%s: %w", door, err))
		return
	}
	l.take(ctx, &pending{Command: c})
}

// drain takes the signals that have arrived and that no coroutine has read yet.
func (l *lifecycle) drain(ctx workflow.Context) {
	for _, door := range append(slices.Clone(doors), SupersededSignal) {
		channel := workflow.GetSignalChannel(ctx, door)
		for {
			var raw converter.RawValue
			if !channel.ReceiveAsync(&raw) {
				break
			}
			l.signal(ctx, door, raw)
		}
	}
}

// take has a command wait for its turn. While a run is under way there is none:
// the command is judged at once, which refuses it.
func (l *lifecycle) take(ctx workflow.Context, p *pending) {
	if l.State == artifact.Executing || l.State == artifact.Compensating || l.State == artifact.Archived {
		l.dismiss(ctx, p)
		return
	}
	l.inbox = append(l.inbox, p)
}

// dismiss refuses a command that no state would take now.
func (l *lifecycle) dismiss(ctx workflow.Context, p *pending) {
	if p.Verb != supersede && !l.handled(p.Command) {
		p.err = l.standing().Judge(p.Command.Command, workflow.Now(ctx))
		if p.err == nil {
			p.err = &artifact.RefusedError{Why: artifact.WhyState, Detail: "the lifecycle is ending"}
		}
		l.refuse(ctx, p.Command, p.err)
	}
	p.done = true
}

// flush dismisses everything that waits.
func (l *lifecycle) flush(ctx workflow.Context) {
	waiting := l.inbox
	l.inbox = nil
	for _, p := range waiting {
		l.dismiss(ctx, p)
	}
}

// serve takes the first command that waits.
func (l *lifecycle) serve(ctx workflow.Context) {
	p := l.inbox[0]
	l.inbox = slices.Clone(l.inbox[1:])
	if p.err = l.apply(ctx, p.Command); p.err != nil {
		l.refuse(ctx, p.Command, p.err)
	}
	p.done = true
}

// refuse keeps a command that was not taken. It may be of anybody, and say
// anything at any length.
func (l *lifecycle) refuse(ctx workflow.Context, c Command, err error) {
	if err == nil {
		return
	}
	l.Refused++
	l.Refusals = remember(l.Refusals, Refusal{
		At: workflow.Now(ctx).UTC(), Verb: artifact.Verb(cut(string(c.Verb), maxRefusalVerb)), Actor: cut(c.Actor, maxRefusalActor),
		Reason: cut(messageOf(err), maxRefusalReason),
	}, maxRefusals)
	l.describe(ctx)
}

// standing is what commands are judged by now.
func (l *lifecycle) standing() artifact.Standing {
	return artifact.Standing{
		State: l.State, Author: l.request.Author, BundleHash: l.BundleHash, Policy: l.request.Spec.Policy,
		Decisions: l.Decisions, Since: l.Since, ExpiresAt: l.expiresAt(),
		Undoable: l.Began && artifact.Rollbackable(l.request.Files),
	}
}

// handled tells whether this very command was taken before. Commands that say
// no time can't be told apart.
func (l *lifecycle) handled(c Command) bool {
	return !c.At.IsZero() && slices.Contains(l.Handled, l.idOf(c))
}

func (l *lifecycle) idOf(c Command) string { return c.ID(l.request.ArtifactID, l.request.Version) }

// apply judges a command, asks who vouches for it, and does it. The judgement is
// made again after the question, which takes time.
func (l *lifecycle) apply(ctx workflow.Context, c Command) error {
	if c.Verb == supersede {
		return l.supersede(ctx)
	}
	if l.handled(c) {
		return nil
	}
	if err := l.standing().Judge(c.Command, workflow.Now(ctx)); err != nil {
		return err
	}
	check := CheckRequest{ArtifactID: l.request.ArtifactID, Version: l.request.Version, Command: c.Command, Policy: l.request.Spec.Policy}
	var by CheckResult
	if err := l.local(ctx, "Ask who vouches for "+c.Actor, CheckActivity, check, &by); err != nil {
		return err
	}
	if c.At.IsZero() {
		c.At = l.stamp(ctx)
	}
	if err := l.standing().Judge(c.Command, workflow.Now(ctx)); err != nil {
		return err
	}
	if err := l.do(ctx, c, by); err != nil {
		return err
	}
	l.Handled = remember(l.Handled, l.idOf(c), maxHandled)
	return nil
}

func (l *lifecycle) do(ctx workflow.Context, c Command, by CheckResult) error {
	switch c.Verb {
	case artifact.Replace:
		return l.replace(ctx, c)
	case artifact.Submit:
		return l.submit(ctx, c)
	case artifact.Approve, artifact.Reject:
		return l.decide(ctx, c, by)
	case artifact.Withdraw:
		return l.settle(ctx, artifact.Withdrawn, c.Actor, c.Comment)
	case artifact.Execute:
		l.Requested, l.NotBefore, l.Turns = true, time.Time{}, 0
		return l.commit(ctx, "requested", l.State, c.Actor, c.Comment, nil)
	case artifact.Undo:
		return l.startUndo(ctx, c.Actor, c.Comment)
	case artifact.ArchiveNow:
		return l.archive(ctx, c.Actor, c.Comment)
	}
	return temporal.NewNonRetryableApplicationError("unknown command", ErrInvalid, nil)
}

// settle is a move to a final decision.
func (l *lifecycle) settle(ctx workflow.Context, to artifact.State, actor, reason string) error {
	if err := l.move(ctx, to, actor, reason, nil); err != nil {
		return err
	}
	return l.publish(ctx)
}

// supersede believes the hint that a newer version was approved only when HEAD
// says so.
func (l *lifecycle) supersede(ctx workflow.Context) error {
	if l.State != artifact.InReview && l.State != artifact.Approved {
		return nil
	}
	var head Head
	if err := l.local(ctx, "Look which version is approved", HeadActivity, l.ref(), &head); err != nil {
		return err
	}
	if head.ApprovedVersion <= l.request.Version {
		return &artifact.RefusedError{Why: artifact.WhyMissed, Detail: "no newer version is approved"}
	}
	return l.settle(ctx, artifact.Superseded, artifact.System, fmt.Sprintf("version %d was approved", head.ApprovedVersion))
}
