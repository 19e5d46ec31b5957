package factory

import (
	"encoding/json"
	"strings"
	"unicode"
	"unicode/utf8"

	"millrace/domain/exact"
)

// fields reads a payload object leniently: whatever has the wrong type is as if
// it were missing. It counts the strings that it had to shorten.
type fields struct {
	object map[string]any
	cut    *Cut
}

// Bounds of a stored string in characters: of any text, and of labels such as
// times and versions, of which a state has many that are never cut away.
const (
	MaxString = 256
	MaxLabel  = 64
)

func (f fields) child(key string) fields {
	object, _ := f.object[key].(map[string]any)
	return fields{object: object, cut: f.cut}
}

// children are the objects in the list at key; other elements are passed over.
func (f fields) children(key string) []fields {
	list, _ := f.object[key].([]any)
	children := make([]fields, 0, len(list))
	for _, element := range list {
		if object, ok := element.(map[string]any); ok {
			children = append(children, fields{object: object, cut: f.cut})
		}
	}
	return children
}

// text is the name at key.
func (f fields) text(key, otherwise string) string {
	return textOr(f.optional(key, MaxString), otherwise)
}

// label is the short text at key.
func (f fields) label(key, otherwise string) string {
	return textOr(f.optionalLabel(key), otherwise)
}

func (f fields) optionalText(key string) *string { return f.optional(key, MaxString) }

func (f fields) optionalLabel(key string) *string { return f.optional(key, MaxLabel) }

func (f fields) optional(key string, limit int) *string {
	text, ok := f.object[key].(string)
	if !ok {
		return nil
	}
	text = f.bounded(text, limit)
	return &text
}

func (f fields) bounded(text string, limit int) string {
	if utf8.RuneCountInString(text) > limit {
		f.cut.Strings++
	}
	return bounded(text, limit)
}

// bounded is text without control characters and line separators, which would
// also take six bytes each in JSON, cut to limit characters.
func bounded(text string, limit int) string {
	clean := strings.Map(func(r rune) rune {
		if unicode.IsControl(r) || unicode.In(r, unicode.Zl, unicode.Zp) {
			return unicode.ReplacementChar
		}
		return r
	}, text)
	if len(clean) <= limit || utf8.RuneCountInString(clean) <= limit {
		return clean
	}
	return string([]rune(clean)[:limit])
}

func textOr(text *string, otherwise string) string {
	if text == nil {
		return otherwise
	}
	return *text
}

// number is the value at key rounded to four decimals, nil when it is no number
// or none that the store keeps exactly.
func (f fields) number(key string) *exact.Decimal {
	literal, ok := f.object[key].(json.Number)
	if !ok {
		return nil
	}
	d, err := exact.Parse(literal.String())
	if err != nil {
		return nil
	}
	d = d.Round(4)
	if !d.Storable() {
		return nil
	}
	return &d
}

// integer is the value at key without its fraction, 0 when it is no number.
func (f fields) integer(key string) int64 {
	if n := f.optionalInteger(key); n != nil {
		return *n
	}
	return 0
}

func (f fields) optionalInteger(key string) *int64 {
	if literal, ok := f.object[key].(json.Number); ok {
		if n, err := literal.Int64(); err == nil {
			return &n
		}
	}
	d := f.number(key)
	if d == nil {
		return nil
	}
	n, ok := d.Int64()
	if !ok {
		return nil
	}
	return &n
}

// count is a whole number that can't be negative; nil when there is none.
func (f fields) count(key string) *int64 {
	n := f.optionalInteger(key)
	if n == nil || *n < 0 {
		return nil
	}
	return n
}

func (f fields) flag(key string) (value, known bool) {
	value, known = f.object[key].(bool)
	return value, known
}
