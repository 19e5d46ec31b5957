package artifact

import (
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"time"
)

// NewRunID is a UUIDv7 (RFC 9562) of a time whose other bits come from a seed:
// the same seed gives the same id, so a workflow needs no side effect for it.
// The seed must be unique, as the end of a provenance chain is.
func NewRunID(at time.Time, seed string) string {
	sum := sha256.Sum256([]byte(seed))
	var id [16]byte
	copy(id[6:], sum[:10])
	var clock [8]byte
	binary.BigEndian.PutUint64(clock[:], uint64(max(0, at.UnixMilli()))<<16) //nolint:gosec // not negative
	copy(id[:6], clock[:6])
	id[6] = 0x70 | id[6]&0x0f
	id[8] = 0x80 | id[8]&0x3f
	return fmt.Sprintf("%x-%x-%x-%x-%x", id[:4], id[4:6], id[6:8], id[8:10], id[10:])
}
