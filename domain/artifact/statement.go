package artifact

import "strings"

// Types of in-toto statements (in-toto Attestation Framework, Statement v1).
const (
	StatementType = "https://in-toto.io/Statement/v1"
	PredicateType = "https://millrace.dev/artifact/provenance/v1"
)

// Subject names what a statement is about by its digest.
type Subject struct {
	Name   string            `json:"name"`
	Digest map[string]string `json:"digest"`
}

// Statement is an in-toto statement about one step of a version.
type Statement struct {
	Type          string    `json:"_type"`
	Subject       []Subject `json:"subject"`
	PredicateType string    `json:"predicateType"`
	Predicate     Record    `json:"predicate"`
}

// Statement is the record as an in-toto statement whose subjects are the files
// of the version.
func (r Record) Statement(artifactID string, files []File) Statement {
	s := Statement{Type: StatementType, PredicateType: PredicateType, Predicate: r, Subject: []Subject{}}
	for _, f := range files {
		s.Subject = append(s.Subject, Subject{
			Name:   artifactID + "/" + f.StoredName(),
			Digest: map[string]string{"sha256": strings.TrimPrefix(f.ContentHash, "sha256:")},
		})
	}
	return s
}
