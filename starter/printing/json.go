// Package printing writes what the starter's commands answer.
package printing

import (
	"encoding/json"
	"fmt"
	"io"
)

// JSON writes a document as indented JSON, with <, > and & as they are.
func JSON(out io.Writer, document any) error {
	encoder := json.NewEncoder(out)
	encoder.SetIndent("", "  ")
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(document); err != nil {
		return fmt.Errorf("print: %w", err)
	}
	return nil
}
