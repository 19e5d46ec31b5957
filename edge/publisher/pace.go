package publisher

import (
	"context"
	"time"
)

// pace spreads messages so that no more than rate a second leave.
type pace struct {
	rate int
	next time.Time
}

func (p *pace) wait(ctx context.Context) {
	if p.rate <= 0 {
		return
	}
	now := time.Now()
	if p.next.Before(now) {
		p.next = now
	}
	sleep(ctx, p.next.Sub(now))
	p.next = p.next.Add(time.Second / time.Duration(p.rate))
}
