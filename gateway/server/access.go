package server

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/danielgtaylor/huma/v2"
	"github.com/danielgtaylor/huma/v2/adapters/humachi"

	"millrace/domain/monitoring"
)

// Principal is who makes a request: the owner of the token and what it allows.
type Principal struct {
	Owner   string
	TokenID string
	Scopes  monitoring.Scopes
}

type principalKey struct{}

// PrincipalFrom is who makes the request that ctx belongs to; the zero value for
// public operations.
func PrincipalFrom(ctx context.Context) Principal {
	p, _ := ctx.Value(principalKey{}).(Principal)
	return p
}

// Require refuses a principal without a scope, where the scope depends on what
// the request says. The error is a *Problem.
func (p Principal) Require(scope monitoring.Scope) error {
	if p.Scopes.Has(scope) {
		return nil
	}
	return forbidden(scope)
}

func forbidden(scope monitoring.Scope) *Problem {
	return NewProblem(http.StatusForbidden, "forbidden", fmt.Sprintf("the token does not have the scope %s", scope)).
		WithHeader("WWW-Authenticate", fmt.Sprintf(`Bearer realm="millrace", error="insufficient_scope", scope="%s"`, scope))
}

func unauthenticated(detail, challenge string) *Problem {
	return NewProblem(http.StatusUnauthorized, "unauthenticated", detail).WithHeader("WWW-Authenticate", challenge)
}

// TokenStore is what the doors need of the monitoring store.
type TokenStore interface {
	Grant(ctx context.Context, hash string) (monitoring.Grant, bool, error)
	Spend(ctx context.Context, owner string, kind monitoring.BudgetKind, limit int64, now time.Time) error
	RecordUse(ctx context.Context, owner, id string, now time.Time) (bool, error)
	SaveRecovery(ctx context.Context, grant monitoring.Grant, envelope *monitoring.Envelope) error
}

// guard lets a request into an operation when its token is known and has the
// scope, and counts it against its owner's budget: one read of one row and one
// conditional increment. The rest of what a token's use leads to is done later.
func (s *Server) guard(op Operation) func(huma.Context, func(huma.Context)) {
	return func(ctx huma.Context, next func(huma.Context)) {
		principal, problem := s.admit(ctx, op)
		if problem != nil {
			r, w := humachi.Unwrap(ctx)
			writeProblem(w, r, problem)
			return
		}
		ctx.SetHeader("Cache-Control", "no-store")
		next(huma.WithValue(ctx, principalKey{}, principal))
	}
}

func (s *Server) admit(ctx huma.Context, op Operation) (Principal, *Problem) {
	r, _ := humachi.Unwrap(ctx)
	secret, problem := bearer(r.Header.Values("Authorization"))
	if problem != nil {
		return Principal{}, problem
	}
	hash := secret.Hash()
	grant, found, err := s.tokens.Grant(ctx.Context(), hash)
	if err != nil {
		return Principal{}, problemOf(fmt.Errorf("look up token: %w", err))
	}
	if !found || !grant.Active(hash) {
		return Principal{}, unauthenticated("the token is unknown, revoked or deleted", `Bearer realm="millrace", error="invalid_token"`)
	}
	if problem := op.permits(grant.Scopes, ctx.Param); problem != nil {
		return Principal{}, problem
	}
	if err := s.spend(ctx.Context(), grant.Owner, op.budget()); err != nil {
		return Principal{}, problemOf(err)
	}
	s.afterUse.note(grant, secret)
	return Principal{Owner: grant.Owner, TokenID: grant.TokenID, Scopes: grant.Scopes}, nil
}

// bearer reads the one token of a request.
func bearer(headers []string) (monitoring.Secret, *Problem) {
	if len(headers) == 0 {
		return monitoring.Secret{}, unauthenticated("a Bearer token is required", `Bearer realm="millrace"`)
	}
	scheme, text, _ := strings.Cut(headers[0], " ")
	if len(headers) > 1 || !strings.EqualFold(scheme, "Bearer") {
		return monitoring.Secret{}, unauthenticated("one Authorization header with a Bearer token is required", `Bearer realm="millrace"`)
	}
	secret, err := monitoring.ParseSecret(text)
	if err != nil {
		return monitoring.Secret{}, unauthenticated("this is not a token", `Bearer realm="millrace", error="invalid_token"`)
	}
	return secret, nil
}

// permits tells whether scopes open the operation. A scope with a parameter,
// image:upload/{factory_id}, is completed by the path; where the path does not
// have the parameter, any scope of its kind opens the door and the handler must
// call Principal.Require for the exact one.
func (op Operation) permits(scopes monitoring.Scopes, param func(string) string) *Problem {
	kind, name, parametric := strings.Cut(strings.TrimSuffix(string(op.Scope), "}"), "{")
	held := scopes.Has(op.Scope)
	switch {
	case parametric && strings.Contains(op.Path, "{"+name+"}"):
		held = scopes.Has(monitoring.Scope(kind + param(name)))
	case parametric:
		held = slices.ContainsFunc(scopes, func(s monitoring.Scope) bool { return strings.HasPrefix(string(s), kind) })
	}
	if held {
		return nil
	}
	return forbidden(op.Scope)
}

// spend counts a request. A budget found used up is remembered until its minute
// ends, so that a flood of refused requests costs the store nothing.
func (s *Server) spend(ctx context.Context, owner string, kind monitoring.BudgetKind) error {
	now := s.now()
	limit := s.limits.Of(kind)
	if s.exhausted.has(owner, kind, now) {
		s.metrics.overBudget.WithLabelValues(string(kind)).Inc()
		return &monitoring.BudgetExceededError{Kind: kind, Limit: limit, RetryAfter: monitoring.UntilNextMinute(now)}
	}
	err := s.tokens.Spend(ctx, owner, kind, limit, now)
	if isExceeded(err) {
		s.exhausted.add(owner, kind, now)
		s.metrics.overBudget.WithLabelValues(string(kind)).Inc()
	}
	return err
}
