package server

import (
	"context"
	"crypto/rand"
	"errors"
	"net/http"
	"time"

	"millrace/domain/monitoring"
	monitoringstore "millrace/storage/monitoring"
)

// TokenKeeper is what the token routes need of the monitoring store.
type TokenKeeper interface {
	CreateToken(context.Context, monitoring.Token) error
	Token(ctx context.Context, owner, id string) (monitoring.Token, error)
	Tokens(ctx context.Context, owner, cursor string, limit int32) ([]monitoring.Token, string, error)
	RevokeToken(ctx context.Context, owner, id string, now time.Time) (monitoring.Token, error)
	DeleteToken(ctx context.Context, owner, id string) error
}

// TokenRequest asks for a token.
type TokenRequest struct {
	Name   string   `json:"name" minLength:"1" maxLength:"100" doc:"What to call it." example:"grafana"`
	Scopes []string `json:"scopes" nullable:"false" minItems:"1" maxItems:"64" doc:"What it shall allow: at most what the calling token does." example:"[\"read\"]"`
}

// TokenPlaintext is a token with its plaintext.
type TokenPlaintext struct {
	Token    string          `json:"token" doc:"The token itself. Keep it secret."`
	Metadata monitoring.View `json:"metadata"`
}

// TokenList is a page of tokens, newest first.
type TokenList struct {
	Tokens     []monitoring.View `json:"tokens" nullable:"false"`
	NextCursor string            `json:"nextCursor,omitempty" doc:"Where the next page begins; absent at the end."`
}

type tokenInput struct {
	TokenID string `path:"token_id" pattern:"^tok_[0-9a-f]{32}$" doc:"Id of the token."`
}

type createTokenInput struct {
	Body TokenRequest
}

type listTokensInput struct {
	Limit  int32  `query:"limit" minimum:"1" maximum:"100" default:"50" doc:"Greatest number of tokens in the page."`
	Cursor string `query:"cursor" maxLength:"4096" doc:"The nextCursor of the page before."`
}

type createdTokenOutput struct {
	Location string `header:"Location"`
	Body     TokenPlaintext
}

type plaintextOutput struct {
	Body TokenPlaintext
}

type tokenOutput struct {
	Body monitoring.View
}

type tokenListOutput struct {
	Body TokenList
}

type tokenRoutes struct {
	store TokenKeeper
	ring  monitoring.KeyRing
	now   func() time.Time
}

// Tokens adds the routes of an owner's tokens. An owner sees no token of another.
func Tokens(store TokenKeeper, ring monitoring.KeyRing, now func() time.Time) Routes {
	t := tokenRoutes{store: store, ring: ring, now: now}
	return func(r *Router) {
		Handle(r, tokenOperation("create-token", http.MethodPost, "/v1/tokens", "Make a token",
			"The plaintext is in this answer and, where the server has recovery keys, can be revealed later. "+
				"The scopes must be within those of the calling token. Each call makes another token: a retry after a lost answer leaves one to delete."), t.create)
		Handle(r, tokenOperation("list-tokens", http.MethodGet, "/v1/tokens", "List tokens",
			"Newest first, revoked ones included."), t.list)
		Handle(r, tokenOperation("get-token", http.MethodGet, "/v1/tokens/{token_id}", "Read a token's metadata", ""), t.get)
		Handle(r, tokenOperation("reveal-token", http.MethodPost, "/v1/tokens/{token_id}/reveal", "Show a token's plaintext again",
			"Works for active tokens with a saved copy (canReveal) whose scopes are within those of the calling token; tokens with the scope admin are never revealed."), t.reveal)
		Handle(r, tokenOperation("revoke-token", http.MethodPost, "/v1/tokens/{token_id}/revoke", "Revoke a token",
			"Ends its access for good and removes its saved copy. Idempotent: a second call changes nothing."), t.revoke)
		Handle(r, tokenOperation("delete-token", http.MethodDelete, "/v1/tokens/{token_id}", "Delete a token",
			"Removes the token and its metadata; sources and their history stay. A second call answers 404."), t.remove)
	}
}

func tokenOperation(id, method, path, summary, description string) Operation {
	op := Operation{
		ID: id, Method: method, Path: path, Tag: "tokens", Summary: summary, Description: description,
		Scope: monitoring.ScopeTokens, MaxBody: 8 << 10,
	}
	switch id {
	case "create-token":
		op.Status, op.Budget = http.StatusCreated, monitoring.BudgetTokenCreate
	case "list-tokens":
	case "reveal-token":
		op.Problems = []int{http.StatusNotFound, http.StatusConflict}
	case "revoke-token":
		op.Problems = []int{http.StatusNotFound, http.StatusServiceUnavailable}
	default:
		op.Problems = []int{http.StatusNotFound}
	}
	return op
}

func (t tokenRoutes) create(ctx context.Context, in *createTokenInput) (*createdTokenOutput, error) {
	caller := PrincipalFrom(ctx)
	token, secret, err := monitoring.Issue(monitoring.Request{Owner: caller.Owner, Name: in.Body.Name, Scopes: in.Body.Scopes}, t.ring, rand.Reader, t.now())
	if err != nil {
		return nil, inBody(err)
	}
	if err := within(caller, token.Scopes); err != nil {
		return nil, err
	}
	if err := t.store.CreateToken(ctx, token); err != nil {
		return nil, err
	}
	return &createdTokenOutput{Location: "/v1/tokens/" + token.ID, Body: plaintextOf(token, secret)}, nil
}

// within refuses to hand out what the caller's own token does not allow.
func within(caller Principal, scopes monitoring.Scopes) error {
	for _, scope := range scopes {
		if err := caller.Require(scope); err != nil {
			return err
		}
	}
	return nil
}

func plaintextOf(token monitoring.Token, secret monitoring.Secret) TokenPlaintext {
	return TokenPlaintext{Token: secret.Plaintext(), Metadata: token.View()}
}

func (t tokenRoutes) list(ctx context.Context, in *listTokensInput) (*tokenListOutput, error) {
	tokens, next, err := t.store.Tokens(ctx, PrincipalFrom(ctx).Owner, in.Cursor, in.Limit)
	if err != nil {
		return nil, err
	}
	out := &tokenListOutput{Body: TokenList{Tokens: make([]monitoring.View, len(tokens)), NextCursor: next}}
	for i, token := range tokens {
		out.Body.Tokens[i] = token.View()
	}
	return out, nil
}

func (t tokenRoutes) get(ctx context.Context, in *tokenInput) (*tokenOutput, error) {
	token, err := t.store.Token(ctx, PrincipalFrom(ctx).Owner, in.TokenID)
	if err != nil {
		return nil, tokenProblem(err)
	}
	return &tokenOutput{Body: token.View()}, nil
}

func (t tokenRoutes) reveal(ctx context.Context, in *tokenInput) (*plaintextOutput, error) {
	caller := PrincipalFrom(ctx)
	token, err := t.store.Token(ctx, caller.Owner, in.TokenID)
	if err != nil {
		return nil, tokenProblem(err)
	}
	if token.Scopes.Has(monitoring.ScopeAdmin) {
		return nil, NewProblem(http.StatusForbidden, "never-revealed", "a token with the scope admin is never revealed")
	}
	if err := within(caller, token.Scopes); err != nil {
		return nil, err
	}
	if !token.CanReveal() {
		return nil, NewProblem(http.StatusConflict, "not-revealable", "the token is revoked or has no saved copy")
	}
	secret, err := t.ring.Open(*token.Recovery, token.Owner, token.ID)
	if errors.Is(err, monitoring.ErrUnknownKey) {
		return nil, NewProblem(http.StatusConflict, "not-revealable", "the server no longer has the key of the saved copy")
	}
	if err != nil {
		return nil, err
	}
	return &plaintextOutput{Body: plaintextOf(token, secret)}, nil
}

func (t tokenRoutes) revoke(ctx context.Context, in *tokenInput) (*tokenOutput, error) {
	token, err := t.store.RevokeToken(ctx, PrincipalFrom(ctx).Owner, in.TokenID, t.now())
	if err != nil {
		return nil, tokenProblem(err)
	}
	return &tokenOutput{Body: token.View()}, nil
}

func (t tokenRoutes) remove(ctx context.Context, in *tokenInput) (*struct{}, error) {
	if err := t.store.DeleteToken(ctx, PrincipalFrom(ctx).Owner, in.TokenID); err != nil {
		return nil, tokenProblem(err)
	}
	return nil, nil
}

func tokenProblem(err error) error {
	switch {
	case errors.Is(err, monitoringstore.ErrTokenNotFound):
		return NewProblem(http.StatusNotFound, "not-found", "there is no such token")
	case errors.Is(err, monitoringstore.ErrContended):
		return NewProblem(http.StatusServiceUnavailable, "contended", "the token is changed by too many at once; nothing was written").
			WithHeader("Retry-After", "1").Because(err)
	}
	return err
}
