package simulator

import (
	"math/rand/v2"
	"time"
)

// schedule is a fixed-rate schedule on the time elapsed since the start. A tick
// that is late by a whole interval, and by a second, was missed, because the
// machine slept or was busy, and is left out: the past is not made up later.
type schedule struct {
	every, due time.Duration
}

// grace is how late a tick may be although the next one is due already: that
// happens only when messages come faster than one a second.
const grace = time.Second

// tick returns the next tick that is due, if any, and moves on.
func (s *schedule) tick(elapsed time.Duration) (at time.Duration, ok bool) {
	late := elapsed - s.due
	if late < 0 {
		return 0, false
	}
	if late >= max(s.every, grace) {
		s.due += late / s.every * s.every
	}
	at = s.due
	s.due += s.every
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
