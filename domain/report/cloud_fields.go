package report

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"strings"
	"time"
	"unicode"

	"millrace/domain/cloudinfra"
	"millrace/domain/exact"
	"millrace/domain/factory"
)

// cloudFields reads a snapshot leniently: whatever has the wrong type is as if it
// were missing, so that one odd field does not cost a sample.
type cloudFields map[string]any

// Bounds of what is taken of one snapshot.
const (
	maxCloudName = 80
	maxCloudList = 100
)

// maxMeasured bounds believable measurements: larger ones are taken for garbage.
var maxMeasured = exact.FromInt(1e15)

func readCloudFields(body []byte) (cloudFields, error) {
	decoder := json.NewDecoder(bytes.NewReader(body))
	decoder.UseNumber()
	var fields cloudFields
	if err := decoder.Decode(&fields); err != nil {
		return nil, err
	}
	if _, err := decoder.Token(); !errors.Is(err, io.EOF) {
		return nil, errors.New("something follows the document")
	}
	return fields, nil
}

// child is the object at key, nil without one.
func (f cloudFields) child(key string) cloudFields {
	object, _ := f[key].(map[string]any)
	return object
}

func (f cloudFields) children(key string) []cloudFields {
	list, _ := f[key].([]any)
	children := make([]cloudFields, 0, min(len(list), maxCloudList))
	for _, element := range list[:min(len(list), maxCloudList)] {
		if object, ok := element.(map[string]any); ok {
			children = append(children, object)
		}
	}
	return children
}

func (f cloudFields) number(key string) *exact.Decimal {
	literal, ok := f[key].(json.Number)
	if !ok {
		return nil
	}
	d, err := exact.Parse(literal.String())
	if err != nil || d.Sign() < 0 || maxMeasured.Less(d) {
		return nil
	}
	d = d.Round(4)
	return &d
}

// integer is a count, nil without one.
func (f cloudFields) integer(key string) *int64 {
	d := f.number(key)
	if d == nil {
		return nil
	}
	n, _ := d.Int64()
	return &n
}

func (f cloudFields) flag(key string) bool {
	value, _ := f[key].(bool)
	return value
}

// name is a name of someone else's choosing, made harmless.
func (f cloudFields) name(key string) string {
	text, _ := f[key].(string)
	return cloudName(text)
}

// reasons are a section's reason tokens, made harmless.
func (f cloudFields) reasons() []string {
	list, _ := f["reasons"].([]any)
	var reasons []string
	for _, element := range list[:min(len(list), maxCloudList)] {
		if text, ok := element.(string); ok && text != "" {
			reasons = append(reasons, cloudReason(text))
		}
	}
	return reasons
}

func (f cloudFields) instant(key string) *time.Time {
	text, _ := f[key].(string)
	at, err := factory.ParseInstant(text)
	if err != nil {
		return nil
	}
	return &at
}

// status is a section's status: one that is missing or none of ours is unknown.
func (f cloudFields) status(key string) cloudinfra.Status {
	text, _ := f[key].(string)
	switch s := cloudinfra.Status(text); s {
	case cloudinfra.Normal, cloudinfra.Warning, cloudinfra.Critical, cloudinfra.NotConfigured:
		return s
	}
	return cloudinfra.Unknown
}

// Marks that names of resources have beside letters and digits, and those of
// reason tokens such as alb_target_5xx_count_5m>0.
const (
	nameMarks   = "-./:@"
	reasonMarks = nameMarks + "=<>!"
)

// cloudName keeps of a name what names of resources are made of. Everything else,
// such as spaces and the marks of Markdown, becomes an underscore: names come from
// whoever may create a pod, and go into tables and to a model.
// Credentials are left out before that hides them.
func cloudName(text string) string { return harmless(redact(text), nameMarks) }

func cloudReason(text string) string { return harmless(text, reasonMarks) }

func harmless(text, marks string) string {
	runes := []rune(strings.ToValidUTF8(text[:min(len(text), 4*maxCloudName)], ""))
	for i, r := range runes {
		if r > unicode.MaxASCII || (!unicode.IsLetter(r) && !unicode.IsDigit(r) && !strings.ContainsRune(marks, r)) {
			runes[i] = '_'
		}
	}
	if len(runes) > maxCloudName {
		runes = append(runes[:maxCloudName-1], '~')
	}
	return string(runes)
}
