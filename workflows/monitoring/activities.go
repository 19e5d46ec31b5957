// Package monitoring has the durable work of the monitoring API.
package monitoring

// Names of the activities.
const (
	// RekeyBatchActivity takes a RekeyBatch and returns a RekeyBatchResult. It
	// seals again, under the current key, a stretch of the saved copies under an
	// older one. It is idempotent: a copy that moved on is skipped.
	RekeyBatchActivity = "RekeyTokenBatch"
)

// RekeyBatch is one stretch of the tokens whose saved copy is under KeyID.
type RekeyBatch struct {
	KeyID string `json:"key_id"`
	// Cursor is where the stretch before ended, "" at the beginning.
	Cursor string `json:"cursor,omitempty"`
	// Pages bounds the stretch.
	Pages int `json:"pages"`
}

// RekeyBatchResult is what a stretch did, and where the next one begins.
type RekeyBatchResult struct {
	Counts RekeyCounts `json:"counts"`
	// Cursor is "" at the end.
	Cursor string `json:"cursor,omitempty"`
	// CurrentKeyID is the key under which copies are sealed.
	CurrentKeyID string `json:"current_key_id"`
	// Broken are some tokens whose copy does not open.
	Broken []string `json:"broken,omitempty"`
}

// RekeyCounts counts tokens. What a worker did between its last heartbeat and a
// kill is done but not counted.
type RekeyCounts struct {
	// Seen had a saved copy under the old key when they were read.
	Seen int64 `json:"seen"`
	// Sealed have a copy under the current key now.
	Sealed int64 `json:"sealed"`
	// Overtaken were revoked, deleted or sealed by another meanwhile.
	Overtaken int64 `json:"overtaken"`
	// Broken have a copy that does not open; it stays as it is.
	Broken int64 `json:"broken"`
}

// Add adds other to c.
func (c *RekeyCounts) Add(other RekeyCounts) {
	c.Seen += other.Seen
	c.Sealed += other.Sealed
	c.Overtaken += other.Overtaken
	c.Broken += other.Broken
}
