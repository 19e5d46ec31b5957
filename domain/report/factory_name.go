package report

import (
	"strings"
	"unicode"
)

// maxName bounds a name that came with the data, in characters.
const maxName = 80

// unnamed is what goes without a name.
const unnamed = "unknown"

// nameOr is the safe name, or unknown for an empty one.
func nameOr(text string) string {
	if text == "" {
		return unnamed
	}
	return safeName(text)
}

// workloadName is namespace/name, as far as they are known.
func workloadName(namespace, name string) string {
	if namespace == "" {
		return nameOr(name)
	}
	return safeName(namespace + "/" + name)
}

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
