package report

import "fmt"

// InvalidError is bad input: the field and the rule that it breaks. It never
// repeats the value.
type InvalidError struct {
	Field string
	Rule  string
}

// Error names the field and the rule.
func (e *InvalidError) Error() string { return fmt.Sprintf("%s %s", e.Field, e.Rule) }

func invalid(field, rule string) error { return &InvalidError{Field: field, Rule: rule} }
