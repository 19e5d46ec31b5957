package report

import (
	"regexp"
	"strings"
	"unicode"
	"unicode/utf8"
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

// redactedName stands in a name where a credential was.
const redactedName = "[redacted]"

// address is what a reader of Markdown would make a link of.
var address = regexp.MustCompile(`(?i)\bwww\.`)

// safeName makes a name out of what devices sent as one. Names reach a model and
// Markdown, so that nothing may be left in them that ends a line, a table cell, a
// tag or a quotation, begins a link, nor a space that would let them be prose.
// Credentials are left out first: what is left of their marks afterwards would
// hide them.
func safeName(text string) string {
	parts := strings.Split(redact(strings.ToValidUTF8(text, "_")), redacted)
	for i := range parts {
		parts[i] = address.ReplaceAllLiteralString(strings.Map(safeRune, parts[i]), "www_")
	}
	name := []rune(strings.Join(parts, redactedName))
	return redactName(string(name[:min(len(name), maxName)]))
}

// redactName leaves out what became a credential when it was made safe.
func redactName(name string) string {
	if hasSecret(name) {
		return redactedName
	}
	return name
}

func safeRune(r rune) rune {
	if !unicode.IsLetter(r) && !unicode.IsDigit(r) && !strings.ContainsRune("._/-", r) {
		return '_'
	}
	return r
}

// maxNames bounds the names of one finding together, in characters: a finding as
// long as a sentence may be could not be worded.
const maxNames = 180

// fitting are the first names that have room in a finding, one at least.
func fitting(names []string) []string {
	room := maxNames
	for i, name := range names {
		if room -= utf8.RuneCountInString(name) + 2; room < 0 && i > 0 {
			return names[:i]
		}
	}
	return names
}
