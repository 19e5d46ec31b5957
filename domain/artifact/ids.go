package artifact

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"time"
)

var (
	artifactID = regexp.MustCompile(`^[a-z0-9][a-z0-9._-]{0,63}$`)
	actorID    = regexp.MustCompile(`^[a-z]+:[A-Za-z0-9._@-]{1,64}$`)
	groupName  = regexp.MustCompile(`^[a-z0-9][a-z0-9-]{0,63}$`)
	filename   = regexp.MustCompile(`^[A-Za-z0-9_-][A-Za-z0-9._-]{0,127}$`)
	hashText   = regexp.MustCompile(`^sha256:[0-9a-f]{64}$`)
	runID      = regexp.MustCompile(`^[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$`)
)

// System is the actor of what happens by itself.
const System = "system"

// Prefixes with a meaning of their own.
const (
	compensationPrefix = "comp-"
	// RollbackPrefix begins the names of rollback files.
	RollbackPrefix = "rollback-"
	// GroupPrefix marks a group among approvers.
	GroupPrefix = "group:"
)

// Reserved file names.
const (
	MetadataFile = "metadata.json"
	SpecFile     = "spec.json"
)

// MaxVersion keeps version numbers within four digits of a step's name.
const MaxVersion = 9999

// CheckID refuses what names no artifact.
func CheckID(id string) error {
	switch {
	case !artifactID.MatchString(id) || strings.Contains(id, ".."):
		return invalid("artifact_id", "must match [a-z0-9][a-z0-9._-]{0,63} without ..")
	case strings.HasPrefix(id, compensationPrefix):
		return invalid("artifact_id", "must not begin with comp-, which is for compensations")
	}
	return nil
}

// CheckVersion refuses what numbers no version.
func CheckVersion(version int) error {
	if version < 1 || version > MaxVersion {
		return invalidf("version", "must be 1 to %d", MaxVersion)
	}
	return nil
}

// CheckActor refuses what names no person and no application.
func CheckActor(field, actor string) error {
	if !actorID.MatchString(actor) || strings.HasPrefix(actor, GroupPrefix) {
		return invalid(field, "must be an actor such as user:kim or app:deployer: [a-z]+:[A-Za-z0-9._@-]{1,64}")
	}
	return nil
}

// CheckGroup refuses what names no group.
func CheckGroup(name string) error {
	if !groupName.MatchString(name) {
		return invalid("group", "must match [a-z0-9][a-z0-9-]{0,63}")
	}
	return nil
}

// CheckFilename refuses names that could leave their folder, hide, or take the
// place of a file of our own.
func CheckFilename(name string) error {
	switch {
	case !filename.MatchString(name):
		return invalid("filename", "must match [A-Za-z0-9._-]{1,128} and not begin with a dot")
	case name == MetadataFile || name == SpecFile || strings.HasPrefix(name, RollbackPrefix):
		return invalid("filename", "must not be metadata.json, spec.json or begin with rollback-: these are reserved")
	}
	return nil
}

// CheckHash refuses what is no hash string.
func CheckHash(field, hash string) error {
	if !hashText.MatchString(hash) {
		return invalid(field, "must be sha256: and 64 lower-case hexadecimal digits")
	}
	return nil
}

// CheckRunID refuses what is no UUIDv7.
func CheckRunID(id string) error {
	if !runID.MatchString(id) {
		return invalid("run_id", "must be a UUIDv7")
	}
	return nil
}

// HashOf is the hash string of a body.
func HashOf(body []byte) string {
	sum := sha256.Sum256(body)
	return HashString(sum[:])
}

// HashString is the hash string of a SHA-256 sum.
func HashString(sum []byte) string { return "sha256:" + hex.EncodeToString(sum) }

// CompensationID is the id of the artifact that undoes a version.
func CompensationID(id string, version int) string {
	return fmt.Sprintf("%s%s-v%d", compensationPrefix, id, version)
}

// ParseCompensationID is the version that an artifact undoes, false for an id that
// is of no compensation.
func ParseCompensationID(id string) (original string, version int, ok bool) {
	rest, ok := strings.CutPrefix(id, compensationPrefix)
	at := strings.LastIndex(rest, "-v")
	if !ok || at < 0 {
		return "", 0, false
	}
	original = rest[:at]
	version, err := strconv.Atoi(rest[at+len("-v"):])
	return original, version, err == nil && CheckID(original) == nil && CheckVersion(version) == nil && CompensationID(original, version) == id
}

// CheckReadableID refuses what names neither an artifact nor a compensation.
func CheckReadableID(id string) error {
	if _, _, ok := ParseCompensationID(id); ok {
		return nil
	}
	return CheckID(id)
}

// timestamps in keys have a fixed width, so that they sort as text.
const timestampLayout = "2006-01-02T15:04:05.000000000Z"

// Timestamp is the form of a time in keys and signed texts: UTC, nanoseconds,
// fixed width.
func Timestamp(at time.Time) string { return at.UTC().Format(timestampLayout) }

// Date is the UTC day of a time.
func Date(at time.Time) string { return at.UTC().Format(time.DateOnly) }
