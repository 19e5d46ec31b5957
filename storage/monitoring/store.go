// Package monitoring keeps tokens, request budgets, sources, minute summaries
// and memory in the table millrace-monitoring (PK, SK and the index GSI1), in
// the keys of the monitoring design.
package monitoring

import (
	"time"

	"millrace/storage/table"
)

// Store is the monitoring table.
type Store struct {
	Table table.Table
	// MinuteRetention is how long minute summaries are kept; 0 is the default.
	MinuteRetention time.Duration
}

// Key attributes of the monitoring table.
const (
	PartitionKey = "PK"
	SortKey      = "SK"
	// Index is the index of tokens by recovery key, with keys GSI1PK and GSI1SK.
	Index = "GSI1"
)

// New is the store over the monitoring table of that name.
func New(client table.API, name string) Store {
	return Store{Table: table.Table{Client: client, Name: name, PartitionKey: PartitionKey, SortKey: SortKey}}
}
