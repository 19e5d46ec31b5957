package alert

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
)

// InvalidError says which field of an input breaks which rule. It is final:
// the same input can never become valid.
type InvalidError struct {
	Field string
	Rule  string
}

// Error names the field and the rule.
func (e *InvalidError) Error() string { return fmt.Sprintf("%s: %s", e.Field, e.Rule) }

func invalid(field, rule string) error { return &InvalidError{Field: field, Rule: rule} }

// typed names the field of a JSON value that is of another type than it must be.
func typed(err error) error {
	wrong, ok := errors.AsType[*json.UnmarshalTypeError](err)
	if !ok {
		return err
	}
	field := strings.ReplaceAll(wrong.Field, ".section.", ".")
	if field == "" {
		field = "snapshot"
	}
	return invalid(field, "must not be a JSON "+wrong.Value)
}
