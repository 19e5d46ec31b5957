package alert

import (
	"fmt"

	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"

	"millrace/domain/alert"
	"millrace/workflows/names"
)

// Names of what a RiskAlert entity answers to.
const (
	// RaiseSignal hands over the alerts of one snapshot: a Raise.
	RaiseSignal = "raise"
	// RaiseUpdate does the same for callers who want to know at once what was
	// refused: a Raise, answered by an Accepted.
	RaiseUpdate = "raise"
	// StatusQuery answers with a Status.
	StatusQuery = "status"
)

// Raise are the alerts that one snapshot raised, and the candidates that the
// rules suppressed.
type Raise struct {
	Alerts     []alert.Alert       `json:"alerts"`
	Suppressed []alert.Suppression `json:"suppressed,omitempty"`
}

// Accepted is the answer to an update: how many alerts were taken on.
type Accepted struct {
	Started  int `json:"started"`
	InFlight int `json:"in_flight"`
}

// Input starts an entity; Carry is only for its own continuation.
type Input struct {
	Request Request `json:"request"`
	Carry   *Carry  `json:"carry,omitempty"`
}

// Request names the scope whose alerts the entity sends.
type Request struct {
	Scope string `json:"scope"`
}

// RiskAlert sends the alerts of one scope, for ever. It gets only alerts raised,
// so it idles while all is well.
func RiskAlert(ctx workflow.Context, in Input) error {
	w, err := newRiskAlert(ctx, in)
	if err != nil {
		return err
	}
	if err := w.register(ctx); err != nil {
		return err
	}
	return w.run(ctx)
}

// riskAlert is a running entity.
type riskAlert struct {
	scope string
	state Carry
	// inFlight are the keys that are being dealt with: a second alert of such a
	// key never starts a second send.
	inFlight map[string]bool
	// busy counts coroutines that must finish before the run may end.
	busy     int
	watching bool
	// unwritten are log lines that wait for the write under way to end.
	unwritten map[string]alert.Record
	writing   bool
}

func newRiskAlert(ctx workflow.Context, in Input) (*riskAlert, error) {
	if err := alert.CheckScope(in.Request.Scope); err != nil {
		return nil, temporal.NewNonRetryableApplicationError(err.Error(), "InvalidInput", err)
	}
	w := &riskAlert{scope: in.Request.Scope, inFlight: map[string]bool{}, unwritten: map[string]alert.Record{}}
	if in.Carry != nil {
		if workflow.GetInfo(ctx).ContinuedExecutionRunID == "" {
			return nil, temporal.NewNonRetryableApplicationError("carry is only for a continued run", "InvalidInput", nil)
		}
		w.state = *in.Carry
	}
	w.state.init()
	return w, nil
}

func (w *riskAlert) register(ctx workflow.Context) error {
	if err := workflow.SetQueryHandler(ctx, StatusQuery, func() (Status, error) { return w.status(), nil }); err != nil {
		return err
	}
	return workflow.SetUpdateHandlerWithOptions(ctx, RaiseUpdate, w.take, workflow.UpdateHandlerOptions{
		Validator: func(raise Raise) error {
			if err := w.check(raise); err != nil {
				return temporal.NewNonRetryableApplicationError(err.Error(), "InvalidInput", err)
			}
			return nil
		},
	})
}

// run works until the history is long enough: then it finishes what it has in
// hand, takes what came meanwhile and continues as new.
func (w *riskAlert) run(ctx workflow.Context) error {
	signals := workflow.GetSignalChannel(ctx, RaiseSignal)
	w.describe(ctx)
	w.resume(ctx)
	workflow.GoNamed(ctx, "signals", func(ctx workflow.Context) { w.listen(ctx, signals) })
	err := workflow.Await(ctx, func() bool { return w.full(ctx) && signals.Len() == 0 && w.idle(ctx) })
	if err != nil {
		return w.cancelled(ctx, err)
	}
	return workflow.NewContinueAsNewError(ctx, names.RiskAlert, Input{Request: Request{Scope: w.scope}, Carry: &w.state})
}

// full tells that the history is long enough for a new run: nothing new is begun
// then.
func (w *riskAlert) full(ctx workflow.Context) bool {
	return workflow.GetInfo(ctx).GetContinueAsNewSuggested()
}

func (w *riskAlert) idle(ctx workflow.Context) bool {
	return w.busy == 0 && workflow.AllHandlersFinished(ctx)
}

// cancelled lets the alerts in hand settle, so that none stays reserved without
// being sent.
func (w *riskAlert) cancelled(ctx workflow.Context, cause error) error {
	settle, stop := workflow.NewDisconnectedContext(ctx)
	defer stop()
	if err := workflow.Await(settle, func() bool { return w.idle(settle) }); err != nil {
		return err
	}
	return cause
}

// resume begins what an earlier run took on but did not begin.
func (w *riskAlert) resume(ctx workflow.Context) {
	pending := w.state.Pending
	w.state.Pending = nil
	for _, a := range pending {
		w.begin(ctx, a)
	}
	w.watch(ctx)
}

// check is the decision whether a raise is taken; signals and updates share it.
func (w *riskAlert) check(raise Raise) error {
	for i, a := range raise.Alerts {
		if err := w.checkAlert(a); err != nil {
			return fmt.Errorf("alerts[%d]: %w", i, err)
		}
	}
	return nil
}

func (w *riskAlert) checkAlert(a alert.Alert) error {
	if a.Scope != w.scope {
		return fmt.Errorf("scope: must be %s", w.scope)
	}
	return a.Check()
}
