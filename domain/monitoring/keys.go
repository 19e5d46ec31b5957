package monitoring

import (
	"fmt"
	"regexp"
	"strings"
	"unicode"
	"unicode/utf8"
)

var segmentEscapes = strings.NewReplacer("%", "%25", "#", "%23")

// Segmented makes one segment of a table key of any text: # and % are
// percent-encoded, so that no text can end its segment.
func Segmented(text string) string { return segmentEscapes.Replace(text) }

// OwnerPK is the partition of an owner's tokens, sources and memory.
func OwnerPK(owner string) string { return "OWNER#" + Segmented(owner) }

const maxUserName = 128

var appOwner = regexp.MustCompile(`^app:[A-Za-z0-9._-]{1,64}$`)

// CheckOwner refuses what is no actor: "user:" with 1 to 128 visible characters,
// or "app:" with an app id, [A-Za-z0-9._-]{1,64}.
func CheckOwner(owner string) error {
	if appOwner.MatchString(owner) {
		return nil
	}
	name, found := strings.CutPrefix(owner, "user:")
	length := utf8.RuneCountInString(name)
	if !found || !utf8.ValidString(name) || length < 1 || length > maxUserName || strings.ContainsFunc(name, invisible) {
		return invalid("owner", `must be "user:" with 1 to 128 visible characters, or "app:" with [A-Za-z0-9._-]{1,64}`)
	}
	return nil
}

func invisible(r rune) bool { return !unicode.IsGraphic(r) || unicode.IsSpace(r) }

// InvalidError is bad input: the field and the rule that it breaks.
type InvalidError struct {
	Field string
	Rule  string
}

// Error names the field and the rule.
func (e *InvalidError) Error() string { return fmt.Sprintf("%s %s", e.Field, e.Rule) }

func invalid(field, rule string) error { return &InvalidError{Field: field, Rule: rule} }
