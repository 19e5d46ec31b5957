package server

import (
	"context"
	"errors"
	"net/http"
	"time"

	"millrace/domain/artifact"
	"millrace/domain/monitoring"
	storage "millrace/storage/artifact"
	"millrace/storage/table"
)

// ApproverKey is a public key by which an actor signs decisions.
type ApproverKey struct {
	Actor       string     `json:"actor"`
	Fingerprint string     `json:"fingerprint" example:"SHA256:47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU"`
	PublicKey   string     `json:"public_key"`
	CreatedAt   time.Time  `json:"created_at"`
	RevokedAt   *time.Time `json:"revoked_at,omitempty" doc:"What the key signed before stays signed."`
}

func keyView(k storage.ApproverKey) ApproverKey {
	return ApproverKey{Actor: k.Actor, Fingerprint: k.Fingerprint, PublicKey: k.PublicKey, CreatedAt: k.CreatedAt, RevokedAt: k.RevokedAt}
}

// ApproverGroup is a group with its members.
type ApproverGroup struct {
	Group   string   `json:"group"`
	Members []string `json:"members" nullable:"false"`
}

type actorPath struct {
	Actor string `path:"actor" maxLength:"128" example:"user:kim"`
}

type keyPath struct {
	Actor       string `path:"actor" maxLength:"128" example:"user:kim"`
	Fingerprint string `path:"fingerprint" maxLength:"128" pattern:"^SHA256:[A-Za-z0-9+/]{43}$" doc:"As it is listed, percent-encoded."`
}

type addKeyInput struct {
	Actor string `path:"actor" maxLength:"128" example:"user:kim"`
	Body  struct {
		PublicKey string `json:"public_key" minLength:"1" maxLength:"8192" doc:"A line of an authorized_keys file."`
	}
}

type groupPath struct {
	Group string `path:"group" maxLength:"64"`
}

type memberPath struct {
	Group string `path:"group" maxLength:"64"`
	Actor string `path:"actor" maxLength:"128" example:"user:kim"`
}

type keyOutput struct{ Body ApproverKey }

type groupOutput struct{ Body ApproverGroup }

func (a artifactRoutes) addPeople(r *Router) {
	administer := func(id, method, path, summary string, problems ...int) Operation {
		return Operation{ID: id, Method: method, Path: path, Tag: "approvers", Scope: monitoring.ScopeAdmin, Summary: summary, Problems: problems}
	}
	const keys, members = "/v1/approvers/{actor}/keys", "/v1/groups/{group}/members"
	Handle(r, administer("list-approver-keys", http.MethodGet, keys, "List the keys of an approver"), a.keys)
	Handle(r, administer("add-approver-key", http.MethodPost, keys, "Register a public key of an approver"), a.addKey)
	Handle(r, administer("revoke-approver-key", http.MethodPost, keys+"/{fingerprint}/revoke", "End the use of a key", http.StatusNotFound), a.revokeKey)
	Handle(r, administer("list-group-members", http.MethodGet, members, "List the members of a group"), a.members)
	Handle(r, administer("add-group-member", http.MethodPut, members+"/{actor}", "Add an actor to a group"), a.addMember)
	Handle(r, administer("remove-group-member", http.MethodDelete, members+"/{actor}", "Take an actor out of a group; policies frozen before keep the member"), a.removeMember)
}

func (a artifactRoutes) keys(ctx context.Context, in *actorPath) (*pageOutput[ApproverKey], error) {
	if err := artifact.CheckActor("actor", in.Actor); err != nil {
		return nil, artifactProblem("path", err)
	}
	keys, err := a.Store.KeysOf(ctx, in.Actor)
	return listOf(keyView, keys, "", err)
}

// addKey registers a key; one that is there already is answered as it stands.
func (a artifactRoutes) addKey(ctx context.Context, in *addKeyInput) (*keyOutput, error) {
	if err := artifact.CheckActor("actor", in.Actor); err != nil {
		return nil, artifactProblem("path", err)
	}
	key, err := a.Store.AddKey(ctx, in.Actor, in.Body.PublicKey, a.Now().UTC())
	if err != nil {
		return nil, artifactProblem("body", err)
	}
	return &keyOutput{Body: keyView(key)}, nil
}

func (a artifactRoutes) revokeKey(ctx context.Context, in *keyPath) (*keyOutput, error) {
	if err := artifact.CheckActor("actor", in.Actor); err != nil {
		return nil, artifactProblem("path", err)
	}
	err := a.Store.RevokeKey(ctx, in.Actor, in.Fingerprint, a.Now().UTC())
	if _, absent := errors.AsType[*table.ConflictError](err); absent {
		return nil, NewProblem(http.StatusNotFound, "not-found", "the actor has no such key")
	}
	if err != nil {
		return nil, err
	}
	key, _, err := a.Store.Key(ctx, in.Actor, in.Fingerprint)
	return &keyOutput{Body: keyView(key)}, err
}

func (a artifactRoutes) members(ctx context.Context, in *groupPath) (*groupOutput, error) {
	if err := artifact.CheckGroup(in.Group); err != nil {
		return nil, artifactProblem("path", err)
	}
	return a.group(ctx, in.Group)
}

func (a artifactRoutes) group(ctx context.Context, name string) (*groupOutput, error) {
	members, err := a.Store.Members(ctx, name)
	return &groupOutput{Body: ApproverGroup{Group: name, Members: append([]string{}, members...)}}, err
}

func (a artifactRoutes) addMember(ctx context.Context, in *memberPath) (*groupOutput, error) {
	if err := in.check(); err != nil {
		return nil, err
	}
	if err := a.Store.AddMember(ctx, in.Group, in.Actor, a.Now().UTC()); err != nil {
		return nil, err
	}
	return a.group(ctx, in.Group)
}

func (a artifactRoutes) removeMember(ctx context.Context, in *memberPath) (*groupOutput, error) {
	if err := in.check(); err != nil {
		return nil, err
	}
	if err := a.Store.RemoveMember(ctx, in.Group, in.Actor); err != nil {
		return nil, err
	}
	return a.group(ctx, in.Group)
}

func (p *memberPath) check() error {
	return artifactProblem("path", errors.Join(artifact.CheckGroup(p.Group), artifact.CheckActor("actor", p.Actor)))
}
