package cloudinfra

import (
	"cmp"
	"encoding/json"
	"regexp"
	"strings"
	"unicode"

	"millrace/domain/factory"
)

// Error is something that could not be measured.
type Error struct {
	// Source is the API and its operation, such as ecs:DescribeServices.
	Source    string         `json:"source" example:"ecs:DescribeServices"`
	Code      string         `json:"code,omitempty"`
	Message   string         `json:"message"`
	At        factory.Millis `json:"at"`
	FactoryID string         `json:"factory_id,omitempty"`
}

// Bounds of an error's texts in runes.
const (
	maxMessage = 300
	maxCode    = 64
)

// secrets are the parts of a message that must not be kept: signatures and
// credentials of signed URLs, tokens, access keys, and queries of URLs.
var secrets = regexp.MustCompile(`(?i)k8s-aws-v1\.[\w.-]+` +
	`|bearer\s+\S+` +
	`|\b(?:AKIA|ASIA)[A-Z0-9]{12,}` +
	`|\b(?:x-amz-[a-z-]+|password|passwd|secret|token|authorization|api[_-]?key)["']?\s*[=:]\s*["']?[^\s"'&,;]+` +
	`|://[^\s/@]+@` +
	`|\?[^\s"']+=[^\s"']*`)

// NewError is an error whose texts are bounded and free of secrets.
func NewError(source, code, message string, at factory.Millis) Error {
	message = secrets.ReplaceAllString(message, "***")
	return Error{Source: source, Code: bounded(code, maxCode), Message: cmp.Or(bounded(message, maxMessage), "no message"), At: at}
}

// bounded is one line of at most limit runes.
func bounded(text string, limit int) string {
	text = strings.Join(strings.FieldsFunc(strings.ToValidUTF8(text, "?"), func(r rune) bool {
		return unicode.IsSpace(r) || unicode.IsControl(r)
	}), " ")
	if runes := []rune(text); len(runes) > limit {
		return string(runes[:limit-1]) + "…"
	}
	return text
}

// UnmarshalJSON also reads the older shape with collector and error.
func (e *Error) UnmarshalJSON(data []byte) error {
	type plain Error
	var read struct {
		plain
		Collector string `json:"collector"`
		Error     string `json:"error"`
	}
	if err := json.Unmarshal(data, &read); err != nil {
		return err
	}
	*e = Error(read.plain)
	e.Source, e.Message = cmp.Or(e.Source, read.Collector), cmp.Or(e.Message, read.Error)
	return nil
}
