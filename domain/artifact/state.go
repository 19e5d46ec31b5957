package artifact

import (
	"fmt"
	"slices"
	"strings"
)

// State is where one version of an artifact is in its life.
type State string

// The states.
const (
	Draft              State = "draft"
	InReview           State = "in_review"
	Approved           State = "approved"
	Executing          State = "executing"
	Executed           State = "executed"
	Failed             State = "failed"
	Compensating       State = "compensating"
	Compensated        State = "compensated"
	CompensationFailed State = "compensation_failed"
	Rejected           State = "rejected"
	Withdrawn          State = "withdrawn"
	Expired            State = "expired"
	Superseded         State = "superseded"
	Archived           State = "archived"
)

// None is the state before the first one.
const None State = ""

// row is a state of the machine with the states that may follow.
type row struct {
	state State
	next  []State
}

// machine is the state machine. The diagram of docs/artifacts.md is drawn from
// it.
var machine = []row{
	{None, []State{Draft, InReview}},
	{Draft, []State{InReview, Withdrawn, Expired}},
	{InReview, []State{Approved, Rejected, Withdrawn, Expired, Superseded}},
	{Approved, []State{Executing, Withdrawn, Expired, Superseded}},
	{Executing, []State{Executed, Failed}},
	{Executed, []State{Compensating, Archived}},
	{Failed, []State{Compensating, Archived}},
	{Compensating, []State{Compensated, CompensationFailed}},
	{Compensated, []State{Archived}},
	{CompensationFailed, []State{Compensating, Archived}},
	{Rejected, []State{Archived}},
	{Withdrawn, []State{Archived}},
	{Expired, []State{Archived}},
	{Superseded, []State{Archived}},
	{Archived, nil},
}

// States are all states, in the order of the table.
func States() []State {
	var all []State
	for _, r := range machine[1:] {
		all = append(all, r.state)
	}
	return all
}

// Known tells whether s is a state.
func (s State) Known() bool { return slices.Contains(States(), s) }

// Next are the states that may follow s.
func (s State) Next() []State {
	for _, r := range machine {
		if r.state == s {
			return slices.Clone(r.next)
		}
	}
	return nil
}

// Transit refuses a transition that the machine does not have with a
// *TransitionError.
func Transit(from, to State) error {
	if slices.Contains(from.Next(), to) {
		return nil
	}
	return &TransitionError{From: from, To: to}
}

// Settled tells whether nothing but archiving or undoing may follow: the
// version's outcome is known.
func (s State) Settled() bool { return slices.Contains(s.Next(), Archived) || s == Archived }

// Diagram draws the state machine in Mermaid's notation.
func Diagram() string {
	var b strings.Builder
	b.WriteString("stateDiagram-v2\n")
	for _, r := range machine {
		for _, to := range r.next {
			fmt.Fprintf(&b, "    %s --> %s\n", mermaid(r.state), mermaid(to))
		}
	}
	fmt.Fprintf(&b, "    %s --> [*]\n", Archived)
	return b.String()
}

func mermaid(s State) string {
	if s == None {
		return "[*]"
	}
	return string(s)
}
