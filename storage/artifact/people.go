package artifact

import (
	"context"
	"fmt"
	"time"

	"millrace/domain/artifact"
	"millrace/storage/table"
)

// ApproverKey is a public key by which an actor signs.
type ApproverKey struct {
	PK            string     `json:"PK"`
	SK            string     `json:"SK"`
	Entity        string     `json:"entity"`
	Version       int        `json:"version"`
	SchemaVersion int        `json:"schema_version"`
	Actor         string     `json:"actor"`
	Fingerprint   string     `json:"fingerprint"`
	PublicKey     string     `json:"public_key"`
	CreatedAt     time.Time  `json:"created_at"`
	UpdatedAt     time.Time  `json:"updated_at"`
	RevokedAt     *time.Time `json:"revoked_at,omitempty"`
}

// AddKey registers a key of an actor; doing it again changes nothing, and a
// revoked key stays revoked.
func (s Store) AddKey(ctx context.Context, actor, authorizedKey string, now time.Time) (ApproverKey, error) {
	if err := artifact.CheckActor("actor", actor); err != nil {
		return ApproverKey{}, err
	}
	key, err := artifact.ParseKey(authorizedKey)
	if err != nil {
		return ApproverKey{}, err
	}
	var stored ApproverKey
	err = s.Table.Update(ctx, table.Change{
		Key: table.Key{Partition: "APPROVER#" + actor, Sort: "KEY#" + key.Fingerprint()},
		SetOnce: map[string]any{
			"entity": "approver_key", "version": 1, "schema_version": schemaVersion, "actor": actor,
			"fingerprint": key.Fingerprint(), "public_key": key.String(), "created_at": now, "updated_at": now,
		},
	}, &stored)
	return stored, err
}

// RevokeKey ends the use of a key; what it signed before stays signed.
func (s Store) RevokeKey(ctx context.Context, actor, fingerprint string, now time.Time) error {
	present := s.Table.Present()
	err := s.Table.Update(ctx, table.Change{
		Key: table.Key{Partition: "APPROVER#" + actor, Sort: "KEY#" + fingerprint},
		Set: map[string]any{"updated_at": now}, SetOnce: map[string]any{"revoked_at": now}, Condition: &present,
	}, nil)
	if err != nil {
		return fmt.Errorf("revoke key %s of %s: %w", fingerprint, actor, err)
	}
	return nil
}

// Key reads a key of an actor, and tells whether there is one.
func (s Store) Key(ctx context.Context, actor, fingerprint string) (ApproverKey, bool, error) {
	var key ApproverKey
	found, err := s.Table.Get(ctx, table.Key{Partition: "APPROVER#" + actor, Sort: "KEY#" + fingerprint}, &key)
	return key, found, err
}

// KeysOf lists an actor's keys.
func (s Store) KeysOf(ctx context.Context, actor string) ([]ApproverKey, error) {
	var keys []ApproverKey
	for item, err := range s.Table.Query(ctx, table.Range{Partition: "APPROVER#" + actor, From: "KEY#", To: "KEY#~", Consistent: true}) {
		if err != nil {
			return nil, err
		}
		var key ApproverKey
		if err := table.Decode(item, &key); err != nil {
			return nil, err
		}
		keys = append(keys, key)
	}
	return keys, nil
}

// groupMember is one member of a group.
type groupMember struct {
	PK            string    `json:"PK"`
	SK            string    `json:"SK"`
	Entity        string    `json:"entity"`
	Version       int       `json:"version"`
	SchemaVersion int       `json:"schema_version"`
	Actor         string    `json:"actor"`
	CreatedAt     time.Time `json:"created_at"`
	UpdatedAt     time.Time `json:"updated_at"`
}

// AddMember adds an actor to a group; doing it again changes nothing.
func (s Store) AddMember(ctx context.Context, group, actor string, now time.Time) error {
	if err := artifact.CheckGroup(group); err != nil {
		return err
	}
	if err := artifact.CheckActor("actor", actor); err != nil {
		return err
	}
	return s.Table.Update(ctx, table.Change{
		Key: table.Key{Partition: "GROUP#" + group, Sort: "MEMBER#" + actor},
		SetOnce: map[string]any{
			"entity": "group_member", "version": 1, "schema_version": schemaVersion, "actor": actor, "created_at": now, "updated_at": now,
		},
	}, nil)
}

// RemoveMember takes an actor out of a group. Policies that were frozen before
// keep the member.
func (s Store) RemoveMember(ctx context.Context, group, actor string) error {
	return s.Table.Delete(ctx, table.Key{Partition: "GROUP#" + group, Sort: "MEMBER#" + actor}, nil)
}

// Members lists the actors of a group, sorted.
func (s Store) Members(ctx context.Context, group string) ([]string, error) {
	var actors []string
	for item, err := range s.Table.Query(ctx, table.Range{Partition: "GROUP#" + group, From: "MEMBER#", To: "MEMBER#~", Consistent: true}) {
		if err != nil {
			return nil, err
		}
		var member groupMember
		if err := table.Decode(item, &member); err != nil {
			return nil, err
		}
		actors = append(actors, member.Actor)
	}
	return actors, nil
}
