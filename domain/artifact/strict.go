package artifact

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"regexp"
)

var unknownField = regexp.MustCompile(`^json: unknown field "(.{1,64})"$`)

// DecodeStrict reads one JSON document and refuses fields that are not known: a
// word that was misspelt must not leave a rule looser than its author meant. The
// error is an *InvalidError; place is where the document stands.
func DecodeStrict(place string, body []byte, into any) error {
	decoder := json.NewDecoder(bytes.NewReader(body))
	decoder.DisallowUnknownFields()
	err := decoder.Decode(into)
	if err == nil {
		if _, end := decoder.Token(); !errors.Is(end, io.EOF) {
			err = errors.New("something follows it")
		}
	}
	if err == nil {
		return nil
	}
	if unknown := unknownField.FindStringSubmatch(err.Error()); unknown != nil {
		return invalidf(place, "has no field %q", Printable(unknown[1]))
	}
	return invalidf(place, "can't be read: %v", err)
}
