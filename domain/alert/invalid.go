package alert

import "fmt"

// InvalidError says which field of an input breaks which rule. It is final:
// the same input can never become valid.
type InvalidError struct {
	Field string
	Rule  string
}

// Error names the field and the rule.
func (e *InvalidError) Error() string { return fmt.Sprintf("%s: %s", e.Field, e.Rule) }

func invalid(field, rule string) error { return &InvalidError{Field: field, Rule: rule} }
