package monitoring

import (
	"fmt"
	"time"
)

// BudgetKind is what a request is counted as.
type BudgetKind string

// The budgets of an owner.
const (
	BudgetRead        BudgetKind = "read"
	BudgetWrite       BudgetKind = "write"
	BudgetTokenCreate BudgetKind = "token-create"
)

// Limits are the requests an owner may make in a minute, by all tokens and
// through all instances together.
type Limits struct {
	Read        int64
	Write       int64
	TokenCreate int64
}

// DefaultLimits are the limits of the design.
var DefaultLimits = Limits{Read: 600, Write: 600, TokenCreate: 10}

// Of is the limit of one kind.
func (l Limits) Of(kind BudgetKind) int64 {
	switch kind {
	case BudgetRead:
		return l.Read
	case BudgetTokenCreate:
		return l.TokenCreate
	}
	return l.Write
}

// BudgetTTL is how long a count outlives the moment it was first written.
const BudgetTTL = 2 * time.Minute

// BudgetPK is the partition of an owner's counts.
func BudgetPK(owner string) string { return "BUDGET#" + Segmented(owner) }

// BudgetSK is the sort key of the count of one kind and UTC minute, so that an
// old count is never used for a later minute.
func BudgetSK(kind BudgetKind, at time.Time) string {
	return string(kind) + "#" + at.UTC().Format("2006-01-02T15:04")
}

// BudgetExceededError tells that an owner has used up a minute's budget.
type BudgetExceededError struct {
	Kind       BudgetKind
	Limit      int64
	RetryAfter time.Duration
}

// Error names the budget and its limit.
func (e *BudgetExceededError) Error() string {
	return fmt.Sprintf("budget of %d %s requests a minute is used up", e.Limit, e.Kind)
}

// UntilNextMinute is the time until the next budget begins, in whole seconds from
// 1 to 60.
func UntilNextMinute(now time.Time) time.Duration {
	rest := now.Truncate(time.Minute).Add(time.Minute).Sub(now)
	return (rest + time.Second - 1).Truncate(time.Second)
}
