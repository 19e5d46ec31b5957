package factory

import (
	"encoding/json"
	"fmt"

	"millrace/domain/exact"
)

// Value is what was observed behind a cause or a gate: a number, a text, or
// nothing (null).
type Value struct {
	Number *exact.Decimal
	Text   *string
}

func numberValue(d exact.Decimal) Value { return Value{Number: &d} }

func textValue(text string) Value { return Value{Text: &text} }

func ageValue(age *int64) Value {
	if age == nil {
		return Value{}
	}
	return numberValue(exact.FromInt(*age))
}

// MarshalJSON writes a number, a string or null.
func (v Value) MarshalJSON() ([]byte, error) {
	switch {
	case v.Number != nil:
		return v.Number.MarshalJSON()
	case v.Text != nil:
		return json.Marshal(*v.Text)
	}
	return []byte("null"), nil
}

// UnmarshalJSON reads what MarshalJSON writes.
func (v *Value) UnmarshalJSON(data []byte) error {
	*v = Value{}
	if string(data) == "null" {
		return nil
	}
	if data[0] == '"' {
		return json.Unmarshal(data, &v.Text)
	}
	if err := json.Unmarshal(data, &v.Number); err != nil {
		return fmt.Errorf("read observed value: %w", err)
	}
	return nil
}
