package publisher

import (
	"cmp"
	"slices"
	"time"
)

// held are the files whose last attempt was not confirmed. They are left out of
// the stream and tried again alone, each after a delay that doubles, so that a
// message which the broker always refuses (by ending the connection) neither
// blocks nor slows the others.
type held struct {
	first, longest time.Duration
	files          map[string]hold
}

type hold struct {
	attempts int
	until    time.Time
	// delivered messages only wait for their file to be deleted.
	delivered bool
}

func (h *held) has(name string) bool {
	_, ok := h.files[name]
	return ok
}

func (h *held) isDelivered(name string) bool { return h.files[name].delivered }

func (h *held) addDelivered(name string, now time.Time) {
	next := h.add(name, now)
	next.delivered = true
	h.files[name] = next
}

func (h *held) add(name string, now time.Time) hold {
	last := h.files[name]
	delay := h.first
	for range last.attempts {
		delay = min(2*delay, h.longest)
	}
	next := hold{attempts: last.attempts + 1, until: now.Add(min(delay, h.longest))}
	h.files[name] = next
	return next
}

func (h *held) forget(name string) { delete(h.files, name) }

// due are the files whose delay is over, the longest waiting first.
func (h *held) due(now time.Time) []string {
	var names []string
	for name, hold := range h.files {
		if !hold.until.After(now) {
			names = append(names, name)
		}
	}
	slices.SortFunc(names, func(a, b string) int {
		return cmp.Or(h.files[a].until.Compare(h.files[b].until), cmp.Compare(a, b))
	})
	return names
}
