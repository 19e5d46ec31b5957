package server

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"

	"millrace/domain/exact"
	"millrace/domain/monitoring"
	"millrace/domain/observability"
	observabilitystore "millrace/storage/observability"
)

// RuleStore is what the routes of alert rules need of the governance table.
type RuleStore interface {
	CreateRule(ctx context.Context, r observability.Rule) (observability.Rule, error)
	Rule(ctx context.Context, appID, ruleID string) (observability.Rule, error)
	Rules(ctx context.Context, appID string) ([]observability.Rule, error)
	ChangeRule(ctx context.Context, appID, ruleID string, rev int64, spec observability.Spec, now time.Time) (observability.Rule, error)
	DeleteRule(ctx context.Context, appID, ruleID string, rev int64, now time.Time) error
}

// RuleSpec is what an alert rule watches.
type RuleSpec struct {
	Name           string        `json:"name" doc:"1 to 256 characters."`
	Kind           string        `json:"kind" enum:"daily_cost,error_rate,p95_latency,silence"`
	Threshold      exact.Decimal `json:"threshold" doc:"daily_cost: the day's budget in US dollars, with notices at 80, 95 and 100 %, once a day each. error_rate: per cent. p95_latency: milliseconds. silence: minutes, 5 to 43200."`
	WindowHours    int64         `json:"window_hours,omitempty" doc:"error_rate and p95_latency: hours looked at, the current one included; 1 to 24, by default 1."`
	MinSignals     int64         `json:"min_signals,omitempty" doc:"error_rate and p95_latency: signals it takes; by default 20."`
	Severity       string        `json:"severity,omitempty" enum:"warning,danger" doc:"By default warning. Budgets have their own: danger from 100 % on."`
	Disabled       bool          `json:"disabled,omitempty"`
	NotifyRecovery bool          `json:"notify_recovery,omitempty" doc:"Tell when the condition is over; not for budgets."`
}

// AlertRule is an alert rule of an application.
type AlertRule struct {
	RuleID         string        `json:"rule_id"`
	AppID          string        `json:"app_id"`
	Name           string        `json:"name"`
	Kind           string        `json:"kind"`
	Threshold      exact.Decimal `json:"threshold"`
	WindowHours    int64         `json:"window_hours,omitempty"`
	MinSignals     int64         `json:"min_signals,omitempty"`
	Severity       string        `json:"severity"`
	Disabled       bool          `json:"disabled"`
	NotifyRecovery bool          `json:"notify_recovery"`
	Rev            int64         `json:"rev" doc:"Grows with every change; it is the ETag."`
	CreatedAt      time.Time     `json:"created_at"`
	UpdatedAt      time.Time     `json:"updated_at"`
}

// AlertRuleList are the rules of an application.
type AlertRuleList struct {
	Rules []AlertRule `json:"rules" nullable:"false"`
}

// RulePath names an alert rule.
type RulePath struct {
	AppPath
	RuleID string `path:"rule_id" maxLength:"64" doc:"Id of the rule."`
}

// NewAlertRule is an alert rule to be made.
type NewAlertRule struct {
	RuleID         string        `json:"rule_id" doc:"1 to 64 of a-z, 0-9 and dash, not beginning with a dash."`
	Name           string        `json:"name" doc:"1 to 256 characters."`
	Kind           string        `json:"kind" enum:"daily_cost,error_rate,p95_latency,silence"`
	Threshold      exact.Decimal `json:"threshold" doc:"As for a change."`
	WindowHours    int64         `json:"window_hours,omitempty"`
	MinSignals     int64         `json:"min_signals,omitempty"`
	Severity       string        `json:"severity,omitempty" enum:"warning,danger"`
	Disabled       bool          `json:"disabled,omitempty"`
	NotifyRecovery bool          `json:"notify_recovery,omitempty"`
}

type createRuleInput struct {
	AppPath
	Body NewAlertRule
}

type changeRuleInput struct {
	RulePath
	IfMatch string `header:"If-Match" maxLength:"64" doc:"The ETag of the rule that the change builds on. Without it the answer is 428."`
	Body    RuleSpec
}

type deleteRuleInput struct {
	RulePath
	IfMatch string `header:"If-Match" maxLength:"64" doc:"Delete only this revision."`
}

type ruleOutput struct {
	ETag string `header:"ETag" doc:"What If-Match takes."`
	Body AlertRule
}

type ruleListOutput struct {
	Body AlertRuleList
}

type ruleRoutes struct {
	store RuleStore
	now   func() time.Time
}

// AlertRules adds the routes of applications' alert rules.
func AlertRules(store RuleStore, now func() time.Time) Routes {
	a := ruleRoutes{store: store, now: now}
	const all, one = "/v1/apps/{app_id}/rules", "/v1/apps/{app_id}/rules/{rule_id}"
	return func(r *Router) {
		Handle(r, ruleOperation("list-alert-rules", http.MethodGet, all, "List alert rules", "At most 50, by id."), a.list)
		create := ruleOperation("create-alert-rule", http.MethodPost, all, "Make an alert rule",
			"Rules are judged after each rollup, every five minutes. Making the same rule again, as a retry does, answers like the first time; another one with its id is 409.", http.StatusConflict)
		create.Status = http.StatusCreated
		Handle(r, create, a.create)
		Handle(r, ruleOperation("get-alert-rule", http.MethodGet, one, "Read an alert rule", "", http.StatusNotFound), a.get)
		Handle(r, ruleOperation("change-alert-rule", http.MethodPut, one, "Change an alert rule", "Replaces what the rule says, if it still is the one that If-Match names.",
			http.StatusNotFound, http.StatusPreconditionFailed, http.StatusPreconditionRequired), a.change)
		Handle(r, ruleOperation("delete-alert-rule", http.MethodDelete, one, "Delete an alert rule", "Idempotent: deleting what is not there answers 204 too.",
			http.StatusPreconditionFailed), a.remove)
	}
}

func ruleOperation(id, method, path, summary, description string, problems ...int) Operation {
	op := Operation{ID: id, Method: method, Path: path, Tag: "signals", Scope: monitoring.ScopeAdmin, Summary: summary, Description: description, Problems: problems}
	if method == http.MethodGet {
		op.Scope = monitoring.ScopeRead
	}
	return op
}

func (a ruleRoutes) list(ctx context.Context, in *AppPath) (*ruleListOutput, error) {
	if err := observability.CheckAppID(in.AppID); err != nil {
		return nil, signalProblem("path", err)
	}
	rules, err := a.store.Rules(ctx, in.AppID)
	if err != nil {
		return nil, err
	}
	out := &ruleListOutput{Body: AlertRuleList{Rules: make([]AlertRule, len(rules))}}
	for i, rule := range rules {
		out.Body.Rules[i] = ruleOf(rule)
	}
	return out, nil
}

func (a ruleRoutes) create(ctx context.Context, in *createRuleInput) (*ruleOutput, error) {
	if err := observability.CheckAppID(in.AppID); err != nil {
		return nil, signalProblem("path", err)
	}
	if err := observability.CheckRuleID(in.Body.RuleID); err != nil {
		return nil, signalProblem("body", err)
	}
	b := in.Body
	spec, err := RuleSpec{
		Name: b.Name, Kind: b.Kind, Threshold: b.Threshold, WindowHours: b.WindowHours, MinSignals: b.MinSignals, Severity: b.Severity,
		Disabled: b.Disabled, NotifyRecovery: b.NotifyRecovery,
	}.settled()
	if err != nil {
		return nil, err
	}
	now := a.now().UTC()
	rule, err := a.store.CreateRule(ctx, observability.Rule{RuleID: b.RuleID, AppID: in.AppID, Spec: spec, Rev: 1, CreatedAt: now, UpdatedAt: now})
	return ruleAnswer(rule, err)
}

func (a ruleRoutes) get(ctx context.Context, in *RulePath) (*ruleOutput, error) {
	if err := in.check(); err != nil {
		return nil, err
	}
	rule, err := a.store.Rule(ctx, in.AppID, in.RuleID)
	return ruleAnswer(rule, err)
}

func (a ruleRoutes) change(ctx context.Context, in *changeRuleInput) (*ruleOutput, error) {
	if err := in.check(); err != nil {
		return nil, err
	}
	if in.IfMatch == "" {
		return nil, NewProblem(http.StatusPreconditionRequired, "precondition-required", "If-Match with the ETag of the rule is required")
	}
	rev, err := revisionOf(in.IfMatch)
	if err != nil {
		return nil, err
	}
	spec, err := in.Body.settled()
	if err != nil {
		return nil, err
	}
	rule, err := a.store.ChangeRule(ctx, in.AppID, in.RuleID, rev, spec, a.now())
	return ruleAnswer(rule, err)
}

func (a ruleRoutes) remove(ctx context.Context, in *deleteRuleInput) (*struct{}, error) {
	if err := in.check(); err != nil {
		return nil, err
	}
	var rev int64
	if in.IfMatch != "" {
		var err error
		if rev, err = revisionOf(in.IfMatch); err != nil {
			return nil, err
		}
	}
	return nil, ruleProblem(a.store.DeleteRule(ctx, in.AppID, in.RuleID, rev, a.now()))
}

func (in *RulePath) check() error {
	if err := observability.CheckAppID(in.AppID); err != nil {
		return signalProblem("path", err)
	}
	return signalProblem("path", observability.CheckRuleID(in.RuleID))
}

func revisionOf(tag string) (int64, error) {
	rev, err := strconv.ParseInt(strings.Trim(tag, `"`), 10, 64)
	if err != nil || rev < 1 {
		return 0, invalidInput("header.If-Match", "must be the ETag of a rule")
	}
	return rev, nil
}

func (s RuleSpec) settled() (observability.Spec, error) {
	spec, err := observability.Spec{
		Name: s.Name, Kind: observability.RuleKind(s.Kind), Threshold: s.Threshold, WindowHours: s.WindowHours, MinSignals: s.MinSignals,
		Severity: s.Severity, Disabled: s.Disabled, NotifyRecovery: s.NotifyRecovery,
	}.Settled()
	return spec, signalProblem("body", err)
}

func ruleAnswer(rule observability.Rule, err error) (*ruleOutput, error) {
	if err != nil {
		return nil, ruleProblem(err)
	}
	return &ruleOutput{ETag: fmt.Sprintf("%q", strconv.FormatInt(rule.Rev, 10)), Body: ruleOf(rule)}, nil
}

// ruleProblem is the problem of an error of the store.
func ruleProblem(err error) error {
	switch {
	case errors.Is(err, observabilitystore.ErrRuleNotFound):
		return NewProblem(http.StatusNotFound, "not-found", "there is no such rule")
	case errors.Is(err, observabilitystore.ErrRuleExists):
		return NewProblem(http.StatusConflict, "rule-exists", "another rule has this id").WithField("body.rule_id", "must be new")
	case errors.Is(err, observabilitystore.ErrTooManyRules):
		return NewProblem(http.StatusConflict, "too-many-rules", fmt.Sprintf("an application has at most %d rules", observability.MaxRules))
	case errors.Is(err, observabilitystore.ErrRuleChanged):
		return NewProblem(http.StatusPreconditionFailed, "precondition-failed", "the rule is no longer the one that If-Match names")
	}
	return err
}

func ruleOf(r observability.Rule) AlertRule {
	return AlertRule{
		RuleID: r.RuleID, AppID: r.AppID, Name: r.Name, Kind: string(r.Kind), Threshold: r.Threshold, WindowHours: r.WindowHours,
		MinSignals: r.MinSignals, Severity: r.Severity, Disabled: r.Disabled, NotifyRecovery: r.NotifyRecovery,
		Rev: r.Rev, CreatedAt: r.CreatedAt, UpdatedAt: r.UpdatedAt,
	}
}
