package report

import (
	"strings"
	"unicode"
)

// maxName bounds a name that came with the data, in characters.
const maxName = 80

// safeName makes a name out of what devices sent as one. Names reach a model and
// Markdown, so that nothing may be left in them that ends a line, a table cell, a
// tag or a quotation, nor a space that would let them be prose.
func safeName(text string) string {
	var name strings.Builder
	for count, r := range []rune(strings.ToValidUTF8(text, "_")) {
		if count == maxName {
			break
		}
		if !unicode.IsLetter(r) && !unicode.IsDigit(r) && !strings.ContainsRune("._/:-", r) {
			r = '_'
		}
		name.WriteRune(r)
	}
	return name.String()
}
