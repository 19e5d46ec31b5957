package artifact

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"millrace/domain/artifact"
)

// Check checks everything that is told of a version against its chain, and every
// signature. GatewayKeys are the public keys of the gateways, as in
// authorized_keys.
func (d Dossier) Check(gatewayKeys []string) error {
	s, err := d.tell()
	if err != nil {
		return err
	}
	v := d.Artifact
	for _, err := range []error{
		same("the version", s.item, v), sameItems("transition", s.transitions, d.Transitions), sameItems("decision", s.approvals, d.Approvals),
		d.checkMetadata(), d.checkRuns(s),
	} {
		if err != nil {
			return err
		}
	}
	if err := d.checkClaim(gatewayKeys); err != nil {
		return fmt.Errorf("author: %w", err)
	}
	for _, a := range d.Approvals {
		if err := d.checkVoucher(a.Command, a.Assurance, a.Key, gatewayKeys); err != nil {
			return fmt.Errorf("decision of %s at %s: %w", a.Actor, artifact.Timestamp(a.RecordedAt), err)
		}
	}
	return d.checkOutcome(s)
}

// checkMetadata compares the hash of metadata.json, which tells the item as it
// was at a step.
func (d Dossier) checkMetadata() error {
	v := d.Artifact
	if (v.MetadataChain == "") != (v.MetadataHash == "") {
		return errors.New("metadata_hash and metadata_chain stand together")
	}
	if v.MetadataChain != v.ChainLast {
		if v.MetadataChain != "" && !slices.ContainsFunc(d.Records, func(r artifact.Record) bool { return r.Hash == v.MetadataChain }) {
			return errors.New("metadata_chain is no step of the version")
		}
		return nil
	}
	want := v.MetadataHash
	v.MetadataHash, v.MetadataChain = "", ""
	body, err := artifact.Canonical(v)
	if err == nil && artifact.HashOf(body) != want {
		err = errors.New("metadata_hash is not that of the version")
	}
	return err
}

// checkRuns compares the runs with their sum in the chain.
func (d Dossier) checkRuns(s story) error {
	runs := byID(d.Runs)
	for _, run := range runs {
		if err := same("run "+run.RunID, execution(s.item.ArtifactID, s.item.Version, run.Run), run); err != nil {
			return err
		}
	}
	underWay := s.item.State == artifact.Executing || s.item.State == artifact.Compensating
	if len(runs) < s.runs.Count || len(runs) > s.runs.Count && !underWay {
		return fmt.Errorf("there are %d runs, the chain says %d", len(runs), s.runs.Count)
	}
	if s.runs.Hash == "" {
		return nil
	}
	sum, err := SumRuns(runs[:s.runs.Count])
	if err == nil && sum != s.runs {
		err = errors.New("the runs are not what the chain says")
	}
	return err
}

// checkClaim checks who vouched for the author.
func (d Dossier) checkClaim(gatewayKeys []string) error {
	v := d.Artifact
	claim := v.Claim
	if claim.Signature == "" {
		if v.Submission == artifact.Signed || v.Submission == artifact.Gateway {
			return errors.New("there is no signature")
		}
		return nil
	}
	claim.Verb = artifact.Create
	if claim.Actor != v.Author {
		return fmt.Errorf("%s vouched, not %s", claim.Actor, v.Author)
	}
	key, err := claim.SignedBy()
	if err != nil {
		return err
	}
	return d.checkVoucher(claim, v.Submission, key, gatewayKeys)
}

// checkVoucher checks the signature of a command.
func (d Dossier) checkVoucher(c artifact.Command, by artifact.Assurance, fingerprint string, gatewayKeys []string) error {
	v := d.Artifact
	switch by {
	case artifact.Signed:
		text, ok := d.Keys[fingerprint]
		if !ok {
			return fmt.Errorf("key %s is not known", fingerprint)
		}
		key, err := artifact.ParseKey(text)
		if err != nil {
			return err
		}
		if key.Fingerprint() != fingerprint {
			return fmt.Errorf("key %s is another: %s", fingerprint, key.Fingerprint())
		}
		return c.VerifySignature(v.ArtifactID, v.Version, text)
	case artifact.Gateway:
		for _, key := range gatewayKeys {
			if c.VerifySignature(v.ArtifactID, v.Version, key) == nil {
				return nil
			}
		}
		return errors.New("is signed by no gateway that is named")
	}
	return nil
}

// checkOutcome counts the decisions again where a version was approved.
func (d Dossier) checkOutcome(s story) error {
	if !s.approved {
		return nil
	}
	var decisions []artifact.Decision
	for _, a := range s.approvals {
		decisions = append(decisions, a.Decision)
	}
	v := s.item
	if tally := v.Spec.Policy.Tally(v.Author, v.BundleHash, decisions); tally.Outcome != artifact.Approved {
		return fmt.Errorf("was approved with %d of %d approvals", len(tally.Approvals), tally.Required)
	}
	return nil
}

// Check checks a document on its own: its hash and every version in it.
func (d Document) Check(gatewayKeys []string) error {
	sum, err := d.sum()
	if err != nil {
		return err
	}
	if sum != d.Hash {
		return errors.New("the document was changed: its hash is not its content's")
	}
	if len(d.Versions) == 0 {
		return errors.New("the document has no version")
	}
	last := 0
	for _, v := range d.Versions {
		if err := d.checkPlace(v, last); err != nil {
			return err
		}
		last = v.Artifact.Version
		if err := v.Check(gatewayKeys); err != nil {
			return fmt.Errorf("version %d: %w", v.Artifact.Version, err)
		}
	}
	return nil
}

func (d Document) checkPlace(v Dossier, last int) error {
	if v.Artifact.ArtifactID != d.ArtifactID || v.Artifact.Version <= last {
		return fmt.Errorf("version %d of %s stands in the document of %s after version %d", v.Artifact.Version, v.Artifact.ArtifactID, d.ArtifactID, last)
	}
	return nil
}

// sameItems compares lists of items by their keys.
func sameItems[T interface{ indexed() keys }](what string, want, got []T) error {
	found := map[string]T{}
	for _, item := range got {
		found[item.indexed().SK] = item
	}
	for _, item := range want {
		key := item.indexed().SK
		other, ok := found[key]
		if !ok {
			return fmt.Errorf("the %s %s is missing", what, key)
		}
		if err := same(what+" "+key, item, other); err != nil {
			return err
		}
		delete(found, key)
	}
	if len(found) > 0 || len(want) != len(got) {
		return fmt.Errorf("the chain has no %s %s", what, strings.Join(slices.Sorted(maps.Keys(found)), ", "))
	}
	return nil
}

// same compares an item as it must be with the one that is there, and names what
// differs. When an item was last touched is no matter of the chain.
func same(what string, want, got any) error {
	a, err := attributes(want)
	if err != nil {
		return err
	}
	b, err := attributes(got)
	if err != nil {
		return err
	}
	maps.Copy(a, map[string]json.RawMessage{updatedAt: b[updatedAt]})
	var differing []string
	for name := range a {
		if !bytes.Equal(a[name], b[name]) {
			differing = append(differing, name)
		}
	}
	for name := range b {
		if _, known := a[name]; !known {
			differing = append(differing, name)
		}
	}
	if len(differing) == 0 {
		return nil
	}
	slices.Sort(differing)
	return fmt.Errorf("%s: %s is not what the chain says", what, strings.Join(differing, ", "))
}

const updatedAt = "updated_at"

func attributes(item any) (map[string]json.RawMessage, error) {
	body, err := artifact.Canonical(item)
	if err != nil {
		return nil, err
	}
	var all map[string]json.RawMessage
	err = json.Unmarshal(body, &all)
	return all, err
}
