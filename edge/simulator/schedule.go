package simulator

import (
	"math/rand/v2"
	"time"
)

// schedule is a fixed-rate schedule on the time elapsed since the start. Ticks
// that were missed, because the machine slept or was busy, are left out: the
// past is not made up later.
type schedule struct {
	every, due time.Duration
}

// tick returns the latest tick that is due, if any, and moves on.
func (s *schedule) tick(elapsed time.Duration) (at time.Duration, ok bool) {
	if elapsed < s.due {
		return 0, false
	}
	at = s.due + (elapsed-s.due)/s.every*s.every
	s.due = at + s.every
	return at, true
}

// rotation lets kinds of events take turns. The first is due one interval after
// the start, each further one an interval after the last.
type rotation struct {
	every       Interval
	kinds, next int
	due         time.Duration
}

func newRotation(every Interval, kinds int, rng *rand.Rand) rotation {
	r := rotation{every: every, kinds: kinds}
	if kinds > 0 {
		r.due = every.draw(rng)
	}
	return r
}

// take returns the kind whose turn it is when an event is due.
func (r *rotation) take(at time.Duration, rng *rand.Rand) (kind int, ok bool) {
	if r.kinds == 0 || at < r.due {
		return 0, false
	}
	kind = r.next
	r.next = (r.next + 1) % r.kinds
	r.due = at + r.every.draw(rng)
	return kind, true
}
