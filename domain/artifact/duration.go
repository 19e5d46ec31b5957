package artifact

import (
	"encoding/json"
	"fmt"
	"time"
)

// Duration is a time.Duration whose JSON form is text such as "72h".
type Duration time.Duration

// Of is the duration as Go has it.
func (d Duration) Of() time.Duration { return time.Duration(d) }

// MarshalJSON writes the text.
func (d Duration) MarshalJSON() ([]byte, error) { return json.Marshal(time.Duration(d).String()) }

// UnmarshalJSON reads the text.
func (d *Duration) UnmarshalJSON(body []byte) error {
	var text string
	if err := json.Unmarshal(body, &text); err != nil {
		return fmt.Errorf("duration must be text such as \"72h\": %w", err)
	}
	parsed, err := time.ParseDuration(text)
	if err != nil {
		return fmt.Errorf("duration must be text such as \"72h\": %w", err)
	}
	*d = Duration(parsed)
	return nil
}
