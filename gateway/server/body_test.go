package server

import (
	"encoding/json"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/require"
)

func TestBodiesAreReadAsTheyWereMeantOrRefused(t *testing.T) {
	for name, c := range map[string]struct{ body, wrong string }{
		"plain":                         {`{"a":[{"b":1},{"b":2}],"b":{"a":null}}`, ""},
		"pair":                          {`{"a":"\ud83d\ude00"}`, ""},
		"escaped backslash before u":    {`{"a":"\\ud83d"}`, ""},
		"replacement character":         {`{"a":"\ufffd"}`, ""},
		"name twice":                    {`{"a":1,"b":2,"a":1}`, `the name "a" twice`},
		"name twice, escaped":           {`{"a":1,"\u0061":1}`, `the name "a" twice`},
		"name twice, below":             {`{"a":[{},{"b":{"c":1,"c":2}}]}`, `the name "c" twice in one object, as at byte 24`},
		"long name twice":               {`{"` + strings.Repeat("x", 9999) + `":1,"` + strings.Repeat("x", 9999) + `":1}`, "twice"},
		"no UTF-8":                      {"{\"a\":\"\xff\"}", "UTF-8"},
		"high surrogate alone":          {`{"a":"\ud83d"}`, "UTF-8"},
		"low surrogate alone":           {`{"a":"\ude00"}`, "UTF-8"},
		"surrogates apart":              {`{"a":"\ud83d-\ude00"}`, "UTF-8"},
		"surrogates the other way":      {`{"a":"\ude00\ud83d"}`, "UTF-8"},
		"high surrogate and a letter":   {`{"a":"\ud83d\u0061"}`, "UTF-8"},
		"high surrogate and a newline":  {`{"a":"\ud83d\n"}`, "UTF-8"},
		"two high surrogates and a low": {`{"a":"\ud83d\ud83d\ude00"}`, "UTF-8"},
		"number too large":              {`{"a":1e400}`, "out of range"},
		"two documents":                 {`{}{}`, "after top-level value"},
		"nested too deeply":             {strings.Repeat("[", 20_000), "max depth"},
	} {
		t.Run(name, func(t *testing.T) {
			var value any
			err := readStrictly([]byte(c.body), &value)
			if c.wrong == "" {
				require.NoError(t, err)
				return
			}
			require.ErrorContains(t, err, c.wrong)
			require.Less(t, len(err.Error()), 150, "no value is repeated")
		})
	}
}

func TestErrorsOfTypesNameTheField(t *testing.T) {
	var into struct {
		Inner struct {
			Count int `json:"count"`
		} `json:"inner"`
	}
	err := readStrictly([]byte(`{"inner":{"count":"secret"}}`), &into)
	require.EqualError(t, err, "has a value of a wrong type or out of range in inner.count")
}

func FuzzStrictJSON(f *testing.F) {
	for _, seed := range []string{`{"a":1}`, `{"a":1,"a":2}`, `["\ud83d\ude00"]`, `["\ud83d"]`, "[\"\xff\"]", `1e400`, `null`, ``} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		var strict, standard any
		if readStrictly(body, &strict) != nil {
			return
		}
		require.NoError(t, json.Unmarshal(body, &standard), "what is taken is valid JSON")
		require.Equal(t, standard, strict)
		if written, err := json.Marshal(strict); err == nil && !strings.Contains(string(body), "\ufffd") && !strings.Contains(strings.ToLower(string(body)), `\ufffd`) {
			require.NotContains(t, string(written), "\ufffd", "nothing was replaced")
			require.True(t, utf8.Valid(written))
		}
	})
}

func BenchmarkStrictJSON(b *testing.B) {
	deep := []byte(strings.Repeat(`{"a":`, 9_000) + "1" + strings.Repeat("}", 9_000))
	for name, body := range map[string][]byte{
		"observation": []byte(`{"kind":"agent","provider":"anthropic","account":"team-a","observedAt":"2026-11-30T12:00:00Z","metrics":{"contextUtilization":42.5,"inputTokens":120000,"cost":1.2345,"errors":null}}`),
		"deep":        deep,
	} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				var value any
				require.NoError(b, readStrictly(body, &value))
			}
		})
	}
}
