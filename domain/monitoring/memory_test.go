package monitoring

import (
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

func TestProjectsHaveOneSpelling(t *testing.T) {
	for spelling, want := range map[string]string{
		"My Project":           "my-project",
		"  my_project\t":       "my-project",
		"MY--PROJECT":          "my-project",
		`C:\src\My Project\`:   "c:-src-my-project",
		"/home/ann/My.Project": "home-ann-my.project",
		"Straße":               "strasse",
		"\u13f8":               "\u13f0",
		"\u13f0":               "\u13f0",
		"Cafe\u0301":           "caf\u00e9",
		"\u212Bngstro\u0308m":  "\u00e5ngstr\u00f6m",
		"a\u00a0\u3000b":       "a-b",
		" - ":                  "",
	} {
		require.Equal(t, want, NormaliseProject(spelling), spelling)
	}
}

func TestNormalisingAgainChangesNothing(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		once := NormaliseProject(rapid.String().Draw(t, "project"))
		require.Equal(t, once, NormaliseProject(once))
	})
}

func TestEveryLetterHasOneSpelling(t *testing.T) {
	for r := rune(0); r <= unicode.MaxRune; r++ {
		once := NormaliseProject(string(r))
		if again := NormaliseProject(once); once != again {
			t.Errorf("%U: %q, then %q", r, once, again)
		}
	}
}

func FuzzMemoryAddress(f *testing.F) {
	f.Add("My Project", "key")
	f.Add("\u0345", "a#b%23")
	f.Fuzz(func(t *testing.T, project, key string) {
		a, err := NewMemoryAddress(project, key)
		if err != nil {
			return
		}
		require.True(t, utf8.ValidString(a.SK()))
		require.Equal(t, 2, strings.Count(a.SK(), "#"))
		again, err := NewMemoryAddress(a.Project, a.Key)
		require.NoError(t, err)
		require.Equal(t, a, again)
	})
}

func TestMemoryAddressesAreChecked(t *testing.T) {
	for _, c := range []struct{ field, project, key string }{
		{"project", "", "k"},
		{"project", " _ ", "k"},
		{"project", "\xff", "k"},
		{"project", strings.Repeat("x", 129), "k"},
		{"key", "p", ""},
		{"key", "p", "a b"},
		{"key", "p", ".."},
		{"key", "p", strings.Repeat("x", 257)},
		{"key", "p", strings.Repeat("😀", 256)},
		{"key", strings.Repeat("#", 128), strings.Repeat("#", 256)},
	} {
		_, err := NewMemoryAddress(c.project, c.key)
		var broken *InvalidError
		require.ErrorAs(t, err, &broken)
		require.Equal(t, c.field, broken.Field)
	}
	longest, err := NewMemoryAddress("p", strings.Repeat("😀", 253))
	require.NoError(t, err)
	require.LessOrEqual(t, len(longest.SK()), 1024, "DynamoDB takes no longer sort key")
	a, err := NewMemoryAddress("My #1", "notes#2")
	require.NoError(t, err)
	require.Equal(t, "MEMORY#my-%231#notes%232", a.SK())
}

func TestMemoryValuesAreBoundedInCharacters(t *testing.T) {
	require.NoError(t, CheckMemoryValue(""))
	require.NoError(t, CheckMemoryValue(strings.Repeat("가", MaxMemoryValue)))
	require.Error(t, CheckMemoryValue(strings.Repeat("x", MaxMemoryValue+1)))
	require.Error(t, CheckMemoryValue("\xff"))
}
