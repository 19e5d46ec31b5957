package artifactcmd

import (
	"context"
	"fmt"
	"os"
	"strings"
	"time"
)

// ApproverCommand manages the keys of approvers.
type ApproverCommand struct {
	Add    AddKeyCommand    `cmd:"" help:"Register a public key by which an approver signs."`
	List   ListKeysCommand  `cmd:"" help:"List an approver's keys."`
	Revoke RevokeKeyCommand `cmd:"" help:"End the use of a key; what it signed before stays signed."`
}

// AddKeyCommand registers a key.
type AddKeyCommand struct {
	Stores

	Actor string `arg:"" help:"user:NAME or app:ID."`
	File  string `arg:"" help:"Public key file, such as ~/.ssh/id_ed25519.pub." type:"existingfile"`
}

// Run registers the key.
func (c AddKeyCommand) Run(ctx context.Context) error {
	store, err := c.store(ctx)
	if err != nil {
		return err
	}
	body, err := os.ReadFile(c.File)
	if err != nil {
		return fmt.Errorf("read key: %w", err)
	}
	key, err := store.AddKey(ctx, c.Actor, string(body), now())
	if err != nil {
		return err
	}
	if key.RevokedAt != nil {
		return fmt.Errorf("key %s of %s was revoked at %s and stays so: make another", key.Fingerprint, key.Actor, key.RevokedAt.Format(time.RFC3339))
	}
	_, err = fmt.Fprintf(os.Stdout, "%s signs with %s\n", key.Actor, key.Fingerprint)
	return err
}

// ListKeysCommand lists keys.
type ListKeysCommand struct {
	Stores

	Actor string `arg:"" help:"user:NAME or app:ID."`
}

// Run prints a line for each key.
func (c ListKeysCommand) Run(ctx context.Context) error {
	store, err := c.store(ctx)
	if err != nil {
		return err
	}
	keys, err := store.KeysOf(ctx, c.Actor)
	if err != nil {
		return err
	}
	for _, key := range keys {
		state := "active"
		if key.RevokedAt != nil {
			state = "revoked " + key.RevokedAt.Format(time.RFC3339)
		}
		if _, err := fmt.Fprintf(os.Stdout, "%s  %s  since %s\n", key.Fingerprint, state, key.CreatedAt.Format(time.RFC3339)); err != nil {
			return fmt.Errorf("print: %w", err)
		}
	}
	return nil
}

// RevokeKeyCommand revokes a key.
type RevokeKeyCommand struct {
	Stores

	Actor       string `arg:"" help:"user:NAME or app:ID."`
	Fingerprint string `arg:"" help:"SHA256:... as list shows it."`
}

// Run revokes the key.
func (c RevokeKeyCommand) Run(ctx context.Context) error {
	store, err := c.store(ctx)
	if err != nil {
		return err
	}
	return store.RevokeKey(ctx, c.Actor, c.Fingerprint, now())
}

// GroupCommand manages groups of approvers.
type GroupCommand struct {
	Add    AddMemberCommand    `cmd:"" help:"Add an actor to a group."`
	Remove RemoveMemberCommand `cmd:"" help:"Take an actor out of a group; policies frozen before keep the member."`
	List   ListMembersCommand  `cmd:"" help:"List the members of a group."`
}

// Member names an actor in a group.
type Member struct {
	Stores

	Group string `arg:"" help:"Name of the group."`
	Actor string `arg:"" help:"user:NAME or app:ID."`
}

// AddMemberCommand adds a member.
type AddMemberCommand struct{ Member }

// Run adds the member.
func (c AddMemberCommand) Run(ctx context.Context) error {
	store, err := c.store(ctx)
	if err != nil {
		return err
	}
	return store.AddMember(ctx, c.Group, c.Actor, now())
}

// RemoveMemberCommand removes a member.
type RemoveMemberCommand struct{ Member }

// Run removes the member.
func (c RemoveMemberCommand) Run(ctx context.Context) error {
	store, err := c.store(ctx)
	if err != nil {
		return err
	}
	return store.RemoveMember(ctx, c.Group, c.Actor)
}

// ListMembersCommand lists a group.
type ListMembersCommand struct {
	Stores

	Group string `arg:"" help:"Name of the group."`
}

// Run prints the members, one a line.
func (c ListMembersCommand) Run(ctx context.Context) error {
	store, err := c.store(ctx)
	if err != nil {
		return err
	}
	members, err := store.Members(ctx, c.Group)
	if err != nil || len(members) == 0 {
		return err
	}
	_, err = fmt.Fprintln(os.Stdout, strings.Join(members, "\n"))
	return err
}
