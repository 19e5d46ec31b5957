package artifactcmd

import (
	"bytes"
	"crypto/ed25519"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"reflect"

	"millrace/domain/artifact"
	storage "millrace/storage/artifact"
)

// file checks a provenance document, or the lines of an export.
func (c VerifyCommand) file(out io.Writer) error {
	body, err := os.ReadFile(c.File)
	if err != nil {
		return fmt.Errorf("read %s: %w", c.File, err)
	}
	var form struct {
		ArtifactID string `json:"artifact_id"`
	}
	if err := json.NewDecoder(bytes.NewReader(body)).Decode(&form); err != nil {
		return fmt.Errorf("read %s: %w", c.File, err)
	}
	if form.ArtifactID == "" {
		return c.export(bytes.NewReader(body), out)
	}
	var document storage.Document
	if err := json.Unmarshal(body, &document); err != nil {
		return fmt.Errorf("read provenance document: %w", err)
	}
	return report(c.findings(document), "in order; content was not read", out)
}

// findings are what can be said of a document without the stores.
func (c VerifyCommand) findings(document storage.Document) []storage.Finding {
	var findings []storage.Finding
	for _, d := range document.Versions {
		findings = append(findings, storage.Finding{ArtifactID: document.ArtifactID, Version: d.Artifact.Version, State: d.Artifact.State, Err: d.Check(c.GatewayKeys)})
	}
	if err := document.Check(c.GatewayKeys); err != nil {
		findings = append(findings, storage.Finding{ArtifactID: document.ArtifactID, Err: err})
	}
	return findings
}

// export checks the lines of an export: each with its signature where a key is
// named, and all together as one chain about the same content.
func (c VerifyCommand) export(in io.Reader, out io.Writer) error {
	key, err := c.openingKey()
	if err != nil {
		return err
	}
	var first artifact.Statement
	var records []artifact.Record
	lines := json.NewDecoder(in)
	for n := 1; ; n++ {
		var line json.RawMessage
		if err := lines.Decode(&line); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			return fmt.Errorf("line %d: %w", n, err)
		}
		s, err := statementOf(line, key)
		if err != nil {
			return fmt.Errorf("line %d: %w", n, err)
		}
		if n == 1 {
			first = s
		}
		if !reflect.DeepEqual(s.Subject, first.Subject) {
			return fmt.Errorf("line %d: is about other content than the first", n)
		}
		records = append(records, s.Predicate)
	}
	return reportExport(out, records, first, key != nil)
}

func reportExport(out io.Writer, records []artifact.Record, first artifact.Statement, signed bool) error {
	if len(records) == 0 || len(first.Subject) == 0 {
		return errors.New("the export is empty")
	}
	var version int
	if _, err := fmt.Sscanf(records[0].Step, "v%04d-", &version); err != nil {
		return fmt.Errorf("line 1: step %q: %w", records[0].Step, err)
	}
	if _, err := artifact.VerifyChain(version, records); err != nil {
		return err
	}
	how := "unsigned"
	if signed {
		how = "signed"
	}
	_, err := fmt.Fprintf(out, "%s v%d: %d %s statements in order, up to %s\n", first.Subject[0].Name, version, len(records), how, records[len(records)-1].Step)
	return err
}

// openingKey is the key that signed the export; nil when none is named.
func (c VerifyCommand) openingKey() (ed25519.PublicKey, error) {
	if c.PublicKey == "" {
		return nil, nil
	}
	text, err := os.ReadFile(c.PublicKey)
	if err != nil {
		return nil, fmt.Errorf("read public key: %w", err)
	}
	return artifact.ParseOpeningKey(text)
}

// statementOf reads a line. What is signed is believed only with its key, and
// with a key only what it signed.
func statementOf(line []byte, key ed25519.PublicKey) (artifact.Statement, error) {
	var envelope artifact.Envelope
	if err := json.Unmarshal(line, &envelope); err != nil {
		return artifact.Statement{}, fmt.Errorf("read envelope: %w", err)
	}
	switch signed := envelope.PayloadType != ""; {
	case signed && key == nil:
		return artifact.Statement{}, errors.New("is signed: name the --public-key")
	case !signed && key != nil:
		return artifact.Statement{}, artifact.ErrUnsigned
	case signed:
		payload, err := envelope.Open(artifact.StatementPayload, key)
		if err != nil {
			return artifact.Statement{}, err
		}
		line = payload
	}
	var s artifact.Statement
	if err := json.Unmarshal(line, &s); err != nil {
		return artifact.Statement{}, fmt.Errorf("read statement: %w", err)
	}
	if s.Type != artifact.StatementType || s.PredicateType != artifact.PredicateType {
		return artifact.Statement{}, fmt.Errorf("is no statement of type %s with predicate %s", artifact.StatementType, artifact.PredicateType)
	}
	return s, nil
}
