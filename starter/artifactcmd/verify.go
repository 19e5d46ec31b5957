package artifactcmd

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"

	"millrace/domain/artifact"
	storage "millrace/storage/artifact"
)

// VerifyCommand checks what is known of an artifact.
type VerifyCommand struct {
	Stores

	ID          string   `arg:"" optional:"" help:"Id of the artifact."`
	File        string   `help:"Provenance document or export to check instead, without any store." type:"existingfile" placeholder:"FILE"`
	PublicKey   string   `help:"File with the public key that an export is signed with: authorized_keys or PEM." type:"existingfile" env:"MILLRACE_PROVENANCE_PUBLIC_KEY_FILE" placeholder:"FILE"`
	GatewayKeys []string `name:"gateway-public-keys" sep:";" help:"Public keys of the gateways, separated by semicolons." env:"MILLRACE_GATEWAY_PUBLIC_KEYS" placeholder:"KEY"`
}

// Validate wants exactly one of the two.
func (c VerifyCommand) Validate() error {
	if (c.ID == "") == (c.File == "") {
		return errors.New("name an artifact or a --file")
	}
	return nil
}

// Run prints a line for each version and fails when one is not in order.
func (c VerifyCommand) Run(ctx context.Context) error {
	if c.File != "" {
		return c.file(os.Stdout)
	}
	store, err := c.store(ctx)
	if err != nil {
		return err
	}
	dossiers, err := dossiersOf(ctx, store, c.ID)
	if err != nil {
		return err
	}
	return c.check(dossiers, func(a storage.Artifact) error { return store.VerifyStored(ctx, a) }, os.Stdout)
}

func dossiersOf(ctx context.Context, store storage.Store, id string) ([]storage.Dossier, error) {
	dossiers, err := store.Dossiers(ctx, id)
	if err == nil && len(dossiers) == 0 {
		err = fmt.Errorf("artifact %s: %w", id, storage.ErrNotFound)
	}
	return dossiers, err
}

// check checks each version; content is nil where there is no store.
func (c VerifyCommand) check(dossiers []storage.Dossier, content func(storage.Artifact) error, out io.Writer) error {
	var problems []error
	for _, d := range dossiers {
		err := checkDossier(d, c.GatewayKeys)
		verdict := "in order"
		switch {
		case err == nil && d.Artifact.State == artifact.Archived:
			verdict = "in order; content: restore needed"
		case err == nil && content != nil:
			err = content(d.Artifact)
		case err == nil:
			verdict = "in order; content was not read"
		}
		if err != nil {
			verdict = "BROKEN: " + err.Error()
			problems = append(problems, fmt.Errorf("version %d: %w", d.Artifact.Version, err))
		}
		if _, err := fmt.Fprintf(out, "%s v%d %s: %s\n", d.Artifact.ArtifactID, d.Artifact.Version, d.Artifact.State, verdict); err != nil {
			return fmt.Errorf("print: %w", err)
		}
	}
	return errors.Join(problems...)
}

// checkDossier checks a version's chain against the end that its item names,
// what was approved, and every decision with its signature.
func checkDossier(d storage.Dossier, gatewayKeys []string) error {
	v := d.Artifact
	end, err := artifact.VerifyChain(v.Version, d.Records)
	if err != nil {
		return err
	}
	if end.Last != v.ChainLast || end.Length != v.ChainLength {
		return errors.New("the chain does not end where the item says")
	}
	var files []artifact.File
	for _, f := range v.Files {
		files = append(files, f.File())
	}
	bundle, err := artifact.BundleHash(files, v.Spec)
	if err != nil {
		return err
	}
	if bundle != v.BundleHash {
		return fmt.Errorf("files and spec are %s, the item says %s", bundle, v.BundleHash)
	}
	for _, a := range d.Approvals {
		if err := checkDecision(d, a.Decision, gatewayKeys); err != nil {
			return fmt.Errorf("decision of %s at %s: %w", a.Actor, artifact.Timestamp(a.RecordedAt), err)
		}
	}
	return checkOutcome(d)
}

// checkDecision finds a decision's record in the chain and checks its signature.
func checkDecision(d storage.Dossier, decision artifact.Decision, gatewayKeys []string) error {
	decision.SupersededBy = nil
	v := d.Artifact
	event := artifact.Event{From: artifact.InReview, To: artifact.InReview, BundleHash: decision.BundleHash, Decision: &decision}
	body, err := artifact.Canonical(event)
	if err != nil {
		return err
	}
	recorded := slices.ContainsFunc(d.Records, func(r artifact.Record) bool {
		return r.At.Equal(decision.RecordedAt) && r.Actor == decision.Actor && r.PayloadHash == artifact.HashOf(body)
	})
	if !recorded {
		return errors.New("is not what the chain recorded")
	}
	switch decision.Assurance {
	case artifact.Signed:
		key, ok := d.Keys[decision.Key]
		if !ok {
			return fmt.Errorf("key %s is not known", decision.Key)
		}
		return decision.VerifySignature(v.ArtifactID, v.Version, key)
	case artifact.Gateway:
		for _, key := range gatewayKeys {
			if decision.VerifySignature(v.ArtifactID, v.Version, key) == nil {
				return nil
			}
		}
		return errors.New("is signed by no gateway that is named")
	}
	return nil
}

// checkOutcome counts the decisions again where a version was approved.
func checkOutcome(d storage.Dossier) error {
	v := d.Artifact
	approved := slices.ContainsFunc(d.Records, func(r artifact.Record) bool { return len(r.Step) > 11 && r.Step[11:] == string(artifact.Approved) })
	if !approved {
		return nil
	}
	var decisions []artifact.Decision
	for _, a := range d.Approvals {
		decisions = append(decisions, a.Decision)
	}
	if tally := v.Spec.Policy.Tally(v.Author, v.BundleHash, decisions); tally.Outcome != artifact.Approved {
		return fmt.Errorf("was approved with %d of %d approvals", len(tally.Approvals), tally.Required)
	}
	return nil
}
