package factory

import (
	"errors"
	"fmt"
	"slices"
	"time"
)

// Explain is the state that raw messages of one factory lead to when they are
// judged at the given time: the answer to "why is this factory red?". Messages
// that would be quarantined are an error.
func Explain(bodies [][]byte, at time.Time) (Latest, error) {
	messages := make([]Message, 0, len(bodies))
	for _, body := range bodies {
		m, err := ParseMessage(body, at)
		if err != nil {
			return Latest{}, fmt.Errorf("message would be quarantined: %w", err)
		}
		messages = append(messages, m)
	}
	if len(messages) == 0 {
		return Latest{}, errors.New("no message to explain")
	}
	slices.SortStableFunc(messages, func(a, b Message) int { return a.ID().Compare(b.ID()) })
	var latest *Latest
	for _, m := range messages {
		if latest != nil && latest.FactoryID != m.FactoryID {
			return Latest{}, fmt.Errorf("messages of two factories: %s and %s", latest.FactoryID, m.FactoryID)
		}
		block, err := Normalise(m, at)
		if err != nil {
			return Latest{}, fmt.Errorf("message would be quarantined: %w", err)
		}
		next := Apply(latest, m, block, at)
		latest = &next
	}
	return *latest, nil
}
