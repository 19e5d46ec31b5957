package artifact

import "fmt"

// InvalidError tells that input breaks a rule. Field is the path of the input's
// JSON form.
type InvalidError struct {
	Field, Rule string
}

// Error names the field and its rule.
func (e *InvalidError) Error() string { return e.Field + " " + e.Rule }

func invalid(field, rule string) error { return &InvalidError{Field: field, Rule: rule} }

func invalidf(field, format string, args ...any) error {
	return &InvalidError{Field: field, Rule: fmt.Sprintf(format, args...)}
}

// TransitionError tells that the state machine has no such transition.
type TransitionError struct {
	From, To State
}

// Error names both states.
func (e *TransitionError) Error() string {
	return fmt.Sprintf("no transition from %s to %s", e.From, e.To)
}

// Why is a machine-readable reason of a refusal.
type Why string

// The reasons of refusals.
const (
	WhyState        Why = "wrong_state"
	WhyInvalid      Why = "invalid"
	WhyNotApprover  Why = "not_an_approver"
	WhyOwnApproval  Why = "separation_of_duties"
	WhyOtherContent Why = "other_bundle_hash"
	WhyExpired      Why = "expired"
	WhyStale        Why = "older_than_previous"
	WhyFuture       Why = "in_the_future"
	WhyAssurance    Why = "assurance"
	WhyNotAuthor    Why = "not_the_author"
	WhyTooEarly     Why = "before_execute_after"
	WhyNothing      Why = "nothing_to_undo"
	WhyMissed       Why = "superseded"
	WhyNewerRan     Why = "newer_ran"
)

// RefusedError tells why a command was refused.
type RefusedError struct {
	Why    Why
	Detail string
}

// Error has the reason and its detail.
func (e *RefusedError) Error() string { return fmt.Sprintf("%s: %s", e.Why, e.Detail) }

func refuse(why Why, format string, args ...any) error {
	return &RefusedError{Why: why, Detail: fmt.Sprintf(format, args...)}
}
