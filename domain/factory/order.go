package factory

import (
	"cmp"
	"time"
)

// Order is a message's place among the messages of its factory and source
// type: source time first, then message id.
type Order struct {
	At        time.Time
	MessageID string
}

// Compare is negative when o comes before p, 0 when both are the same message,
// positive when o comes after p.
func (o Order) Compare(p Order) int {
	return cmp.Or(o.At.Compare(p.At), cmp.Compare(o.MessageID, p.MessageID))
}
