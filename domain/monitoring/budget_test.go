package monitoring

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestBudgetsEndAtTheNextMinute(t *testing.T) {
	minute := time.Date(2026, 11, 30, 23, 59, 0, 0, time.UTC)
	for after, want := range map[time.Duration]time.Duration{
		0:                             time.Minute,
		time.Millisecond:              time.Minute,
		30 * time.Second:              30 * time.Second,
		59 * time.Second:              time.Second,
		time.Minute - time.Nanosecond: time.Second,
	} {
		require.Equal(t, want, UntilNextMinute(minute.Add(after)), "%s after the minute", after)
	}
}

func TestBudgetKeysHaveTheUTCMinute(t *testing.T) {
	seoul := time.FixedZone("KST", 9*3600)
	at := time.Date(2026, 12, 1, 0, 5, 59, 0, seoul)
	require.Equal(t, "read#2026-11-30T15:05", BudgetSK(BudgetRead, at))
	require.Equal(t, "token-create#2026-11-30T15:05", BudgetSK(BudgetTokenCreate, at))
}

func TestLimitsByKind(t *testing.T) {
	limits := Limits{Read: 1, Write: 2, TokenCreate: 3}
	require.Equal(t, int64(1), limits.Of(BudgetRead))
	require.Equal(t, int64(2), limits.Of(BudgetWrite))
	require.Equal(t, int64(3), limits.Of(BudgetTokenCreate))
	require.Equal(t, Limits{Read: 600, Write: 600, TokenCreate: 10}, DefaultLimits)
}
