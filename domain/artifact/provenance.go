package artifact

import (
	"fmt"
	"regexp"
	"strings"
	"time"
)

// Record is one link of a version's provenance chain.
type Record struct {
	Step    string    `json:"step"`
	Actor   string    `json:"actor"`
	At      time.Time `json:"at"`
	Subject string    `json:"subject"`
	// PayloadHash is the hash of Event, which is no part of the record's own hash.
	PayloadHash string `json:"payload_hash"`
	Event       *Event `json:"event,omitempty"`
	// Prev is the hash of the record before; empty for the first.
	Prev string `json:"prev,omitempty"`
	// Hash is that of this record without Event and Hash itself.
	Hash string `json:"hash"`
}

var stepName = regexp.MustCompile(`^v[0-9]{4}-[0-9]{4}-[a-z_]+$`)

// Chain is the end of a provenance chain, to which records are added.
type Chain struct {
	Length int    `json:"length"`
	Last   string `json:"last,omitempty"`
}

// Extend makes the next record of a version's chain.
func (c Chain) Extend(version int, name, actor string, at time.Time, subject string, event Event) (Record, Chain, error) {
	body, err := Canonical(event)
	if err != nil {
		return Record{}, c, err
	}
	r := Record{
		Step:  fmt.Sprintf("v%04d-%04d-%s", version, c.Length+1, name),
		Actor: actor, At: at.UTC(), Subject: subject, PayloadHash: HashOf(body), Event: &event, Prev: c.Last,
	}
	if r.Hash, err = r.sum(); err != nil {
		return Record{}, c, err
	}
	return r, Chain{Length: c.Length + 1, Last: r.Hash}, nil
}

func (r Record) sum() (string, error) {
	r.Hash, r.Event = "", nil
	body, err := Canonical(r)
	if err != nil {
		return "", err
	}
	return HashOf(body), nil
}

// ChainError tells where a provenance chain is broken.
type ChainError struct {
	Step, Rule string
}

// Error names the step and what is wrong with it.
func (e *ChainError) Error() string { return fmt.Sprintf("step %s %s", e.Step, e.Rule) }

// tells tells whether the record's event is the one that its hash is of. Records
// may come without their events.
func (r Record) tells() (bool, error) {
	if r.Event == nil {
		return true, nil
	}
	body, err := Canonical(*r.Event)
	return HashOf(body) == r.PayloadHash, err
}

// VerifyChain checks every link of a version's chain and gives its end.
func VerifyChain(version int, records []Record) (Chain, error) {
	var end Chain
	for i, r := range records {
		sum, err := r.sum()
		if err != nil {
			return Chain{}, err
		}
		same, err := r.tells()
		if err != nil {
			return Chain{}, err
		}
		prefix := fmt.Sprintf("v%04d-%04d-", version, i+1)
		switch {
		case !stepName.MatchString(r.Step) || !strings.HasPrefix(r.Step, prefix):
			return Chain{}, &ChainError{Step: r.Step, Rule: "is out of order: it should begin with " + prefix}
		case r.Prev != end.Last:
			return Chain{}, &ChainError{Step: r.Step, Rule: "does not follow the record before it"}
		case r.Hash != sum:
			return Chain{}, &ChainError{Step: r.Step, Rule: "was changed: its hash is not its content's"}
		case !same:
			return Chain{}, &ChainError{Step: r.Step, Rule: "was changed: its event is another than its payload hash says"}
		case i > 0 && r.At.Before(records[i-1].At):
			return Chain{}, &ChainError{Step: r.Step, Rule: "is older than the record before it"}
		}
		end = Chain{Length: i + 1, Last: r.Hash}
	}
	return end, nil
}
