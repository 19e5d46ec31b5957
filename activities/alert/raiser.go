package alert

import (
	"cmp"
	"context"
	"fmt"
	"sync"
	"time"

	"go.temporal.io/sdk/client"

	"millrace/domain/alert"
	"millrace/domain/factory"
	workflows "millrace/workflows/alert"
	"millrace/workflows/names"
)

// Signaller is the part of the Temporal client that is needed.
type Signaller interface {
	SignalWithStartWorkflow(ctx context.Context, workflowID, signalName string, signalArg any, options client.StartWorkflowOptions, workflow any, workflowArgs ...any) (client.WorkflowRun, error)
}

const (
	// quietFor is how long a key that was signalled is not signalled again by this
	// process. A lost signal is made up for by the next refresh.
	quietFor = 30 * time.Second
	// maxSignals bounds the signals to one scope in signalWindow, whatever its
	// snapshots do.
	maxSignals   = 4
	signalWindow = time.Minute
	// maxScopes bounds what the raiser remembers.
	maxScopes = 1000
)

// Raiser hands the alerts of a snapshot to the scope's RiskAlert entity: one
// signal for all of them, and none for a normal snapshot.
type Raiser struct {
	Temporal Signaller
	// TaskQueue is where entities run; empty is the queue of alerts.
	TaskQueue string
	Now       func() time.Time
	Metrics   *Metrics

	mu     sync.Mutex
	scopes map[string]*signalled
}

// signalled is what was signalled to one scope lately.
type signalled struct {
	keys map[alert.Key]time.Time
	at   []time.Time
}

// Raise signals the alerts of a decision, which are all of one scope. Alerts of
// keys that were signalled within the last 30 s are left out, and so is
// everything above four signals a minute: the next snapshot raises them again.
func (r *Raiser) Raise(ctx context.Context, d alert.Decision) error {
	if len(d.Alerts) == 0 {
		return nil
	}
	scope := d.Alerts[0].Scope
	now := r.Now()
	fresh, ok := r.admit(scope, d.Alerts, now)
	if !ok {
		return nil
	}
	if err := r.Signal(ctx, scope, alert.Decision{Alerts: fresh, Suppressed: d.Suppressed}); err != nil {
		r.forget(scope, fresh)
		return err
	}
	return nil
}

// Signal hands alerts over whatever was signalled before: for what is raised
// once only, such as a crossed budget, and not again by the next snapshot.
func (r *Raiser) Signal(ctx context.Context, scope string, d alert.Decision) error {
	raise := workflows.Raise{Suppressed: d.Suppressed}
	for _, a := range d.Alerts {
		raise.Alerts = append(raise.Alerts, a.Trimmed())
	}
	options := client.StartWorkflowOptions{
		ID: names.RiskAlertID(scope), TaskQueue: cmp.Or(r.TaskQueue, names.QueueAlerts), StaticSummary: "Alerts of " + scope,
	}
	input := workflows.Input{Request: workflows.Request{Scope: scope}}
	_, err := r.Temporal.SignalWithStartWorkflow(ctx, options.ID, workflows.RaiseSignal, raise, options, names.RiskAlert, input)
	if err != nil {
		return fmt.Errorf("signal %d alerts of %s: %w", len(raise.Alerts), scope, err)
	}
	r.Metrics.signal(len(raise.Alerts))
	return nil
}

// admit chooses the alerts to signal now and remembers them.
func (r *Raiser) admit(scope string, alerts []alert.Alert, now time.Time) ([]alert.Alert, bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	s := r.of(scope)
	s.prune(now)
	if len(s.at) >= maxSignals {
		return nil, false
	}
	var fresh []alert.Alert
	for _, a := range alerts {
		if _, known := s.keys[a.Key()]; !known {
			fresh = append(fresh, a)
		}
	}
	if len(fresh) == 0 {
		return nil, false
	}
	for _, a := range fresh {
		s.keys[a.Key()] = now
	}
	s.at = append(s.at, now)
	return fresh, true
}

// of is the memory of a scope. When too many scopes are remembered, all are
// forgotten: at worst some signals are sent again.
func (r *Raiser) of(scope string) *signalled {
	if r.scopes == nil || len(r.scopes) >= maxScopes && r.scopes[scope] == nil {
		r.scopes = map[string]*signalled{}
	}
	s := r.scopes[scope]
	if s == nil {
		s = &signalled{keys: map[alert.Key]time.Time{}}
		r.scopes[scope] = s
	}
	return s
}

func (s *signalled) prune(now time.Time) {
	for key, at := range s.keys {
		if now.Sub(at) >= quietFor {
			delete(s.keys, key)
		}
	}
	for len(s.at) > 0 && now.Sub(s.at[0]) >= signalWindow {
		s.at = s.at[1:]
	}
}

// forget lets alerts be signalled again whose signal was lost. The attempt still
// counts for the rate.
func (r *Raiser) forget(scope string, alerts []alert.Alert) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, a := range alerts {
		delete(r.of(scope).keys, a.Key())
	}
}

// Observer runs the factory rules on the newest state of a factory. It costs a
// normal state nothing: no request and no signal.
type Observer struct {
	Raiser *Raiser
}

// Observe raises the alerts of a factory's newest state.
func (o Observer) Observe(ctx context.Context, newest factory.Latest) error {
	return o.Raiser.Raise(ctx, alert.Factory(newest))
}

// ObserveFast raises the alerts of a fast snapshot of the cloud infrastructure,
// given as JSON; sourceKey is the object it is stored as.
func (o Observer) ObserveFast(ctx context.Context, snapshot []byte, sourceKey string) error {
	return o.observe(ctx, alert.Fast, snapshot, sourceKey)
}

// ObserveSlow raises the alerts of a slow snapshot of the cloud infrastructure.
func (o Observer) ObserveSlow(ctx context.Context, snapshot []byte, sourceKey string) error {
	return o.observe(ctx, alert.Slow, snapshot, sourceKey)
}

func (o Observer) observe(ctx context.Context, decide func([]byte, string) (alert.Decision, error), snapshot []byte, sourceKey string) error {
	decision, err := decide(snapshot, sourceKey)
	if err != nil {
		return err
	}
	return o.Raiser.Raise(ctx, decision)
}
