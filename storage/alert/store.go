// Package alert keeps what the alert machinery must remember: reservations and
// observations (ALERT#{scope}), the log of every outcome (ALERTLOG#{scope}) and
// silences (SILENCE#{scope}), all in the factory status table. The state of an
// application's alerts lies beside its rules in the governance table. Whether
// an alert may be sent is decided by single conditional updates only, so that
// any number of workers decide it once.
package alert

import (
	"time"

	"millrace/domain/alert"
	"millrace/domain/factory"
	"millrace/storage/table"
)

// Store is where alerts are remembered.
type Store struct {
	// Status is the factory status table (pk, sk, ttl).
	Status table.Table
	// Governance is the governance table (PK, SK, expires_at).
	Governance table.Table
}

// New is the store over the tables of these names.
func New(client table.API, statusTable, governanceTable string) Store {
	return Store{
		Status:     table.Table{Client: client, Name: statusTable, PartitionKey: "pk", SortKey: "sk"},
		Governance: table.Table{Client: client, Name: governanceTable, PartitionKey: "PK", SortKey: "SK"},
	}
}

// stateTTL is how long alert state lives after it was last touched (seed).
const stateTTL = 604_800 * time.Second

// place is where the state of an alert lies: table, key and the name of the
// table's TTL attribute.
func (s Store) place(a alert.Alert, k alert.Key) (table.Table, table.Key, string) {
	key := table.Key{Partition: k.PK, Sort: k.SK}
	if _, app := alert.AppOf(a.Scope); app {
		return s.Governance, key, "expires_at"
	}
	return s.Status, key, "ttl"
}

func expiry(at time.Time, cooldown time.Duration) int64 {
	return at.Add(max(stateTTL, cooldown)).Unix()
}

// maxAhead is how far a collector's clock may run ahead before its stamps are
// not believed.
const maxAhead = 5 * time.Minute

// orderOf is the stamp by which snapshots of one key are ordered. A stamp far in
// the future is replaced by the time it was seen: it would make every honest
// snapshot after it look stale.
func orderOf(a alert.Alert, at time.Time) factory.Millis {
	if a.SourceUpdatedAt.After(at.Add(maxAhead)) {
		return factory.MillisOf(at)
	}
	return a.SourceUpdatedAt
}
