package report

import (
	"bytes"
	"encoding/json"
	"strings"
)

// contextFacts are what a context knows.
type contextFacts struct {
	tokens  []token
	keys    map[string]bool
	testbed bool
}

// readContext walks a context. One that is no JSON knows nothing.
func readContext(lang Language, context []byte) contextFacts {
	facts := contextFacts{keys: map[string]bool{}}
	decoder := json.NewDecoder(bytes.NewReader(context))
	decoder.UseNumber()
	var root any
	if err := decoder.Decode(&root); err != nil {
		return facts
	}
	facts.walk(lang, root)
	if object, ok := root.(map[string]any); ok {
		profile, _ := object["factory_profile"].(map[string]any)
		mode, _ := profile["interpretation_mode"].(string)
		facts.testbed = strings.HasPrefix(mode, "testbed")
	}
	return facts
}

func (f *contextFacts) walk(lang Language, value any) {
	switch v := value.(type) {
	case map[string]any:
		for key, inner := range v {
			f.keys[strings.ToLower(key)] = true
			f.walk(lang, inner)
		}
	case []any:
		for _, inner := range v {
			f.walk(lang, inner)
		}
	case string:
		f.tokens = append(f.tokens, tokensOf(lang, redact(v))...)
	case json.Number:
		f.tokens = append(f.tokens, tokensOf(lang, v.String())...)
	}
}
