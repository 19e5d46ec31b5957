package artifact_test

import (
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"millrace/domain/artifact"
)

func TestHiddenCharactersAreShown(t *testing.T) {
	for text, want := range map[string]string{
		"":                          "",
		"the line is stuck, größer": "the line is stuck, größer",
		"a\x00b\x1b[31m":            `a\u0000b\u001b[31m`,
		"a\u202eb\u2066c":           `a\u202eb\u2066c`,
		"a\r\nb\tc":                 `a\u000d\u000ab\u0009c`,
		"\U000e0041":                `\udb40\udc41`,
		"\u2028":                    `\u2028`,
	} {
		require.Equal(t, want, artifact.Printable(text))
	}
	require.Equal(t, "a\\u000d\nb\tc", artifact.PrintableLines("a\r\nb\tc"))
	rapid.Check(t, func(t *rapid.T) {
		text := rapid.String().Draw(t, "text")
		once := artifact.Printable(text)
		require.Equal(t, once, artifact.Printable(once), "what is printable stays as it is")
	})
}

func TestControlCharactersAreRefusedInReasonsAndComments(t *testing.T) {
	for _, hidden := range []string{"\x00", "\x1b[31m", "\u202e", "\u2066", "\r", "\u2028", "\u200e"} {
		require.ErrorContains(t, artifact.Request{Reason: "stuck" + hidden}.CheckWords(), "reason must not contain the control character U+")
		require.ErrorContains(t, artifact.Command{Comment: "fine" + hidden}.CheckWords(), "comment must not contain the control character U+")
	}
	for _, plain := range []string{"", "first\n\tsecond: größer", "\U0001f469\u200d\U0001f527", "\u0645\u06cc\u200c\u062e\u0648\u0627\u0647\u0645"} {
		require.NoError(t, artifact.Request{Reason: plain}.CheckWords())
		require.NoError(t, artifact.Command{Comment: plain}.CheckWords())
	}
}

func TestFieldsThatAreNotKnownAreRefused(t *testing.T) {
	var p artifact.Policy
	require.NoError(t, artifact.DecodeStrict("--policy", []byte(`{"required":2,"auto_execute":false}`), &p))
	require.Equal(t, 2, p.Required)
	for body, says := range map[string]string{
		`{"auto_execut":false}`: `--policy has no field "auto_execut"`,
		`{} {}`:                 "--policy can't be read: something follows it",
		`{"required":"2"}`:      "--policy can't be read",
		``:                      "--policy can't be read",
	} {
		require.ErrorContains(t, artifact.DecodeStrict("--policy", []byte(body), &p), says)
	}
}
