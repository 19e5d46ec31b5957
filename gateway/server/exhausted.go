package server

import (
	"errors"
	"sync"
	"time"

	"millrace/domain/monitoring"
)

// exhausted remembers the budgets that were found used up in one minute. Counts
// only grow within a minute, so what it remembers stays true.
type exhausted struct {
	lock   sync.Mutex
	minute time.Time
	keys   map[string]bool
}

func (e *exhausted) has(owner string, kind monitoring.BudgetKind, now time.Time) bool {
	e.lock.Lock()
	defer e.lock.Unlock()
	return e.minute.Equal(now.Truncate(time.Minute)) && e.keys[string(kind)+" "+owner]
}

func (e *exhausted) add(owner string, kind monitoring.BudgetKind, now time.Time) {
	e.lock.Lock()
	defer e.lock.Unlock()
	if minute := now.Truncate(time.Minute); !e.minute.Equal(minute) {
		e.minute, e.keys = minute, map[string]bool{}
	}
	e.keys[string(kind)+" "+owner] = true
}

func isExceeded(err error) bool {
	var exceeded *monitoring.BudgetExceededError
	return errors.As(err, &exceeded)
}
