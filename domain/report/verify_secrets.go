package report

import "regexp"

// secretPatterns are the forms of credentials. They take no quotation mark and no
// backslash, so that what is left out of a JSON text leaves it JSON.
var secretPatterns = []*regexp.Regexp{
	regexp.MustCompile(`\b(?:AKIA|ASIA|AROA|AIDA)[0-9A-Z]{16}\b`),
	regexp.MustCompile(`-----BEGIN [A-Z0-9 ]{0,40}(?:PRIVATE KEY|CERTIFICATE)[A-Z ]{0,10}-----`),
	regexp.MustCompile(`\beyJ[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]{8,}(?:\.[A-Za-z0-9_-]*)?`),
	regexp.MustCompile(`(?i)\bhooks\.slack\.com/[^\s"'\\]*`),
	regexp.MustCompile(`\bxox[a-z]-[A-Za-z0-9-]{8,}|\bxapp-[A-Za-z0-9-]{8,}`),
	regexp.MustCompile(`\bgh[pousr]_[A-Za-z0-9]{20,}|\bgithub_pat_[A-Za-z0-9_]{20,}`),
	regexp.MustCompile(`\bsk-[A-Za-z0-9_-]{20,}|\bAIza[0-9A-Za-z_-]{30,}`),
	regexp.MustCompile(`\bmr_[A-Za-z0-9_-]{20,}`), // this product's own tokens
	regexp.MustCompile(`(?i)\bbearer\s+[A-Za-z0-9._~+/=-]{16,}`),
	regexp.MustCompile(`(?i)\b(?:password|passwd|secret|api[_-]?key|access[_-]?key|token)\s?[:=]\s?[^\s"'\\]{6,}`),
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
