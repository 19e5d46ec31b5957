package report

import "regexp"

// secretPatterns are the forms of credentials. They take no quotation mark and no
// backslash, so that what is left out of a JSON text leaves it JSON. An underscore
// bounds a word as well, as names are joined by it.
var secretPatterns = []*regexp.Regexp{
	regexp.MustCompile(`(?:\b|_)(?:AKIA|ASIA|AROA|AIDA)[0-9A-Z]{16}(?:\b|_)`),
	regexp.MustCompile(`-----BEGIN [A-Z0-9 ]{0,40}(?:PRIVATE KEY|CERTIFICATE)[A-Z ]{0,10}-----`),
	regexp.MustCompile(`(?:\b|_)eyJ[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]{8,}(?:\.[A-Za-z0-9_-]*)?`),
	regexp.MustCompile(`(?i)(?:\b|_)hooks\.slack\.com/[^\s"'\\]*`),
	regexp.MustCompile(`(?:\b|_)xox[a-z]-[A-Za-z0-9-]{8,}|(?:\b|_)xapp-[A-Za-z0-9-]{8,}`),
	regexp.MustCompile(`(?:\b|_)gh[pousr]_[A-Za-z0-9]{20,}|(?:\b|_)github_pat_[A-Za-z0-9_]{20,}`),
	regexp.MustCompile(`(?:\b|_)sk-[A-Za-z0-9_-]{20,}|(?:\b|_)AIza[0-9A-Za-z_-]{30,}`),
	regexp.MustCompile(`(?:\b|_)mr_[A-Za-z0-9_-]{20,}`), // this product's own tokens
	regexp.MustCompile(`(?i)(?:\b|_)bearer\s+[A-Za-z0-9._~+/=-]{16,}`),
	regexp.MustCompile(`(?i)(?:\b|_)(?:password|passwd|secret|(?:secret[_-]?)?(?:api|access)[_-]?key|token)\s?[:=]\s?[^\s"'\\]{6,}`),
	regexp.MustCompile(`://[^/\s:@"'\\]+:[^/\s@"'\\]+@`),
}

// redacted stands where a credential was.
const redacted = "(redacted)"

// maxRedactions is enough for what one redaction makes another pattern see.
const maxRedactions = 8

// redact leaves credentials out of a text.
func redact(text string) string {
	for range maxRedactions {
		before := text
		for _, pattern := range secretPatterns {
			text = pattern.ReplaceAllLiteralString(text, redacted)
		}
		if text == before || !hasSecret(text) {
			return text
		}
	}
	return redacted // nothing of it can be told
}

// clean is a text as it is published: one line, without credentials. The line
// comes first, as joining lines may complete a credential.
func clean(text string) string { return redact(oneLine(text)) }

func hasSecret(text string) bool {
	for _, pattern := range secretPatterns {
		if pattern.MatchString(text) {
			return true
		}
	}
	return false
}
