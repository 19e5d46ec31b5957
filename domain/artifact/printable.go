package artifact

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf16"
)

// isHidden tells whether a character changes how a text looks without being seen:
// controls, such as escape sequences of terminals, and format characters, such as
// those that turn the direction of writing.
func isHidden(r rune) bool {
	return unicode.IsControl(r) || unicode.Is(unicode.Cf, r) || r == lineSeparator || r == paragraphSeparator
}

const (
	lineSeparator      = '\u2028'
	paragraphSeparator = '\u2029'
)

// checkWords refuses text that would show itself as something else. Lines and tabs
// are allowed, and what joins the parts of words and pictures.
func checkWords(field, text string) error {
	for _, r := range text {
		if r != '\n' && r != '\t' && (isHidden(r) && !unicode.Is(unicode.Cf, r) || unicode.Is(unicode.Bidi_Control, r)) {
			return invalidf(field, "must not contain the control character %U", r)
		}
	}
	return nil
}

// CheckWords refuses a reason with control characters. It is no part of Check:
// requests of before may have them.
func (r Request) CheckWords() error { return checkWords("reason", r.Reason) }

// CheckWords refuses a comment with control characters. It is no part of Check:
// commands of before may have them.
func (c Command) CheckWords() error { return checkWords("comment", c.Comment) }

// Printable is a text with its hidden characters escaped as JSON does, \u202e, so
// that it can be shown in one line as what it is.
func Printable(text string) string { return escape(text, func(rune) bool { return false }) }

// PrintableLines is Printable but for the ends of lines and tabs.
func PrintableLines(text string) string {
	return escape(text, func(r rune) bool { return r == '\n' || r == '\t' })
}

func escape(text string, keep func(rune) bool) string {
	if !strings.ContainsFunc(text, func(r rune) bool { return isHidden(r) && !keep(r) }) {
		return text
	}
	var out strings.Builder
	for _, r := range text {
		switch {
		case !isHidden(r) || keep(r):
			out.WriteRune(r)
		case r > 0xffff:
			high, low := utf16.EncodeRune(r)
			out.WriteString(fmt.Sprintf("\\u%04x\\u%04x", high, low)) //nolint:staticcheck // Fprintf is not known to be deterministic
		default:
			out.WriteString(fmt.Sprintf("\\u%04x", r)) //nolint:staticcheck // Fprintf is not known to be deterministic
		}
	}
	return out.String()
}
