package artifact

import (
	"bytes"
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/pmezard/go-difflib/difflib"
)

// Bounds of each side of a comparison: comparing takes time that grows with the
// product of the lines.
const (
	// MaxDiff is in bytes.
	MaxDiff = 256 << 10
	// MaxDiffLines is in lines.
	MaxDiffLines = 2_000
)

// Diff is the unified difference of two texts for reviewers. What is no text, or
// too long to compare, is told in a sentence. Characters that hide something are
// escaped, and warned of.
func Diff(beforeName, afterName string, before, after []byte) (string, error) {
	switch {
	case bytes.Equal(before, after):
		return "", nil
	case long(before) || long(after):
		return "the files differ and are too long to compare\n", nil
	case !isText(before) || !isText(after):
		return "the files differ and are no text\n", nil
	}
	text, err := unified(beforeName, afterName, before, after)
	if shown := PrintableLines(text); err == nil && (shown != text || PrintableLines(string(after)) != string(after)) {
		text = "warning: the files have control or format characters, which may hide what they do; they are shown as \\u202e\n" + shown
	}
	return text, err
}

func unified(beforeName, afterName string, before, after []byte) (string, error) {
	text, err := difflib.GetUnifiedDiffString(difflib.UnifiedDiff{
		A: lines(before), B: lines(after), FromFile: beforeName, ToFile: afterName, Context: 3,
	})
	if err != nil {
		return "", fmt.Errorf("compare %s and %s: %w", beforeName, afterName, err)
	}
	return text, nil
}

// lines are the lines of a text with their ends; a last line without an end is
// marked as diff(1) does.
func lines(text []byte) []string {
	split := strings.SplitAfter(string(text), "\n")
	last := len(split) - 1
	if split[last] == "" {
		return split[:last]
	}
	split[last] += "\n\\ No newline at end of file\n"
	return split
}

func long(text []byte) bool {
	return len(text) > MaxDiff || bytes.Count(text, []byte("\n")) > MaxDiffLines
}

func isText(body []byte) bool { return utf8.Valid(body) && !bytes.ContainsRune(body, 0) }
