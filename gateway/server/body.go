package server

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"strconv"
	"unicode/utf16"
	"unicode/utf8"

	"github.com/danielgtaylor/huma/v2"
)

// strictJSON reads bodies as their senders meant them, or refuses them: the
// standard decoder would let the last of two equal names win, and would put
// U+FFFD where text is no Unicode.
var strictJSON = huma.Format{Marshal: huma.DefaultJSONFormat.Marshal, Unmarshal: readStrictly}

// The framework would also take names of fields in another case than theirs.
func init() { huma.ValidateStrictCasing = true } //nolint:gochecknoinits // the framework knows no other way

// readStrictly is asked twice for every body: once for a generic value, by which
// the framework validates, and then for the operation's own type. Its errors
// never repeat a value.
func readStrictly(body []byte, into any) error {
	if err := json.Unmarshal(body, into); err != nil {
		return withoutValue(err)
	}
	if _, generic := into.(*any); !generic {
		return nil
	}
	if !utf8.Valid(body) || !pairedSurrogates(body) {
		return errors.New("must be Unicode text, in UTF-8")
	}
	return uniqueNames(json.NewDecoder(bytes.NewReader(body)))
}

func withoutValue(err error) error {
	var mistyped *json.UnmarshalTypeError
	if !errors.As(err, &mistyped) {
		return err
	}
	if mistyped.Field == "" {
		return fmt.Errorf("has a value out of range at byte %d", mistyped.Offset)
	}
	return fmt.Errorf("has a value of a wrong type or out of range in %s", mistyped.Field)
}

// jsonEscape is one escape of a JSON text; taken one after the other, an escaped
// backslash never begins another.
var jsonEscape = regexp.MustCompile(`\\(?:u([0-9a-fA-F]{4})|.)`)

// pairedSurrogates tells whether every escaped surrogate of a valid JSON text is
// one half of a pair.
func pairedSurrogates(body []byte) bool {
	if !bytes.Contains(body, []byte(`\u`)) {
		return true
	}
	high, end := rune(0), 0
	for _, at := range jsonEscape.FindAllSubmatchIndex(body, -1) {
		var unit rune
		if at[2] >= 0 {
			code, _ := strconv.ParseUint(string(body[at[2]:at[3]]), 16, 16) // the pattern lets nothing else through
			unit = rune(code)
		}
		switch {
		case high != 0 && (at[0] != end || utf16.DecodeRune(high, unit) == utf8.RuneError):
			return false
		case high != 0:
			high = 0
		case utf16.IsSurrogate(unit) && unit >= 0xDC00:
			return false
		case utf16.IsSurrogate(unit):
			high, end = unit, at[1]
		}
	}
	return high == 0
}

// uniqueNames refuses an object that has a name twice. The text is known to be
// valid and not nested too deeply.
func uniqueNames(decoder *json.Decoder) error {
	token, err := decoder.Token()
	if err != nil {
		return err
	}
	switch token {
	case json.Delim('{'):
		return uniqueInObject(decoder)
	case json.Delim('['):
		for decoder.More() {
			if err := uniqueNames(decoder); err != nil {
				return err
			}
		}
		_, err = decoder.Token()
	}
	return err
}

func uniqueInObject(decoder *json.Decoder) error {
	seen := map[json.Token]bool{}
	for decoder.More() {
		name, err := decoder.Token()
		if err != nil {
			return err
		}
		if seen[name] {
			return fmt.Errorf("must not have the name %.64q twice in one object, as at byte %d", name, decoder.InputOffset())
		}
		seen[name] = true
		if err := uniqueNames(decoder); err != nil {
			return err
		}
	}
	_, err := decoder.Token()
	return err
}
