package monitoring

import (
	"regexp"
	"strings"
	"time"
	"unicode/utf8"

	"golang.org/x/text/cases"
	"golang.org/x/text/unicode/norm"
)

// Limits of memory.
const (
	// MaxMemoryValue is the number of characters of a value.
	MaxMemoryValue = 10_000
	// MaxMemoryRequest is the number of bytes of the JSON request.
	MaxMemoryRequest = 16 << 10

	maxProject   = 128
	maxMemoryKey = 256
	// maxMemorySK is DynamoDB's limit of a sort key in bytes.
	maxMemorySK = 1024
)

// MemoryPrefix starts the sort keys of an owner's memory.
const MemoryPrefix = "MEMORY#"

// Memory is one value that an agent keeps under a project and a key. It has
// nothing to do with an agent's context utilization and never expires.
type Memory struct {
	// Token is what the legacy adapter calls the owner: the non-secret owner id,
	// never a bearer token. It is not shown.
	Token     string    `json:"token"`
	Project   string    `json:"project"`
	Key       string    `json:"key"`
	Value     string    `json:"value"`
	CreatedAt time.Time `json:"createdAt"`
	UpdatedAt time.Time `json:"updatedAt"`
}

// MemoryAddress names a value: its normalised project and its key.
type MemoryAddress struct {
	Project string
	Key     string
}

// SK is the sort key of the value in its owner's partition.
func (a MemoryAddress) SK() string {
	return MemoryPrefix + Segmented(a.Project) + "#" + Segmented(a.Key)
}

// NewMemoryAddress normalises the project and checks both parts.
func NewMemoryAddress(project, key string) (MemoryAddress, error) {
	if !utf8.ValidString(project) {
		return MemoryAddress{}, invalid("project", "must be valid UTF-8")
	}
	a := MemoryAddress{Project: NormaliseProject(project), Key: key}
	if err := checkName("project", a.Project, maxProject); err != nil {
		return MemoryAddress{}, err
	}
	if err := checkName("key", key, maxMemoryKey); err != nil {
		return MemoryAddress{}, err
	}
	if len(a.SK()) > maxMemorySK {
		return MemoryAddress{}, invalid("key", "must be shorter: project and key have room for some 1000 bytes together")
	}
	return a, nil
}

// separators are what people put between the words of a project's name.
var separators = regexp.MustCompile(`[\s\p{Z}_/\\-]+`)

// NormaliseProject is the one spelling of a project's name: trimmed, case-folded,
// in NFC, with one "-" for every run of spaces, "-", "_", "/" and "\". So
// "My Project", "my_project" and "MY--PROJECT " are the same project.
func NormaliseProject(name string) string {
	// Lower case first: x/text's Fold alone swaps the two cases of Cherokee.
	folded := norm.NFC.String(cases.Fold().String(strings.ToLower(norm.NFC.String(name))))
	return strings.Trim(separators.ReplaceAllString(folded, "-"), "-")
}

// CheckMemoryValue refuses a value of more than 10,000 characters.
func CheckMemoryValue(value string) error {
	if !utf8.ValidString(value) {
		return invalid("value", "must be valid UTF-8")
	}
	if utf8.RuneCountInString(value) > MaxMemoryValue {
		return invalid("value", "must have at most 10000 characters")
	}
	return nil
}
