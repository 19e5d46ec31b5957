package factory

import (
	"regexp"
	"strings"
)

// Identifiers become segments of table keys and object keys, so their alphabets
// leave no way out of a segment.
var (
	factoryIDPattern = regexp.MustCompile(`^[a-z0-9][a-z0-9-]{0,63}$`)
	nodeIDPattern    = regexp.MustCompile(`^[A-Za-z0-9._-]{1,128}$`)
	messageIDPattern = regexp.MustCompile(`^[A-Za-z0-9:._-]{1,256}$`)
)

// reservedIDs are alert scopes that are no factories.
var reservedIDs = map[string]bool{"cloud-infra": true, "artifacts": true, "observability": true}

// CheckFactoryID refuses what can't name a factory: [a-z0-9][a-z0-9-]{0,63} and
// none of the reserved alert scopes.
func CheckFactoryID(id string) error {
	if !factoryIDPattern.MatchString(id) {
		return invalid("factory_id", "must match [a-z0-9][a-z0-9-]{0,63}")
	}
	if reservedIDs[id] {
		return invalid("factory_id", "is a reserved name")
	}
	return nil
}

// CheckNodeID refuses what can't name a node: [A-Za-z0-9._-]{1,128}.
func CheckNodeID(id string) error {
	if !nodeIDPattern.MatchString(id) {
		return invalid("node_id", "must match [A-Za-z0-9._-]{1,128}")
	}
	return nil
}

// CheckMessageID refuses what can't be the leaf of an object key:
// [A-Za-z0-9:._-]{1,256} without "..".
func CheckMessageID(id string) error {
	if !messageIDPattern.MatchString(id) || strings.Contains(id, "..") {
		return invalid("message_id", `must match [A-Za-z0-9:._-]{1,256} without ".."`)
	}
	return nil
}
