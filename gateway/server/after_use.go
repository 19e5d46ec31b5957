package server

import (
	"context"
	"crypto/rand"
	"errors"
	"log/slog"
	"sync"
	"time"

	"millrace/domain/monitoring"
	monitoringstore "millrace/storage/monitoring"
)

const (
	// afterUseWorkers and afterUseQueue bound the work that uses of tokens leave
	// behind; beyond them it is dropped, for the next use to do.
	afterUseWorkers = 2
	afterUseQueue   = 1024
	// afterUseTimeout bounds one piece of that work.
	afterUseTimeout = 5 * time.Second
)

// afterUse does what the use of a token leads to, off the request's path: it
// notes the time of the use and gives the token a saved copy under the current
// key. Each token is looked at once a minute by each process.
type afterUse struct {
	store   TokenStore
	ring    monitoring.KeyRing
	now     func() time.Time
	logger  *slog.Logger
	metrics *metrics

	lock   sync.Mutex
	closed bool
	minute time.Time
	seen   map[string]bool
	queue  chan use
	done   sync.WaitGroup
}

type use struct {
	grant  monitoring.Grant
	secret monitoring.Secret
	at     time.Time
}

func (a *afterUse) start() {
	a.queue = make(chan use, afterUseQueue)
	for range afterUseWorkers {
		a.done.Go(func() {
			for u := range a.queue {
				a.handle(u)
			}
		})
	}
}

// note takes in a use and never blocks.
func (a *afterUse) note(grant monitoring.Grant, secret monitoring.Secret) {
	now := a.now()
	a.lock.Lock()
	defer a.lock.Unlock()
	if minute := now.Truncate(time.Minute); !a.minute.Equal(minute) {
		a.minute, a.seen = minute, map[string]bool{}
	}
	if a.closed || a.seen[grant.TokenID] {
		return
	}
	select {
	case a.queue <- use{grant: grant, secret: secret, at: now}:
		a.seen[grant.TokenID] = true
	default:
		a.metrics.afterUse.WithLabelValues("dropped").Inc()
	}
}

// close takes in nothing more and waits for what was taken in, at most until ctx
// ends.
func (a *afterUse) close(ctx context.Context) error {
	a.lock.Lock()
	if !a.closed {
		a.closed = true
		close(a.queue)
	}
	a.lock.Unlock()
	drained := make(chan struct{})
	go func() {
		a.done.Wait()
		close(drained)
	}()
	select {
	case <-drained:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (a *afterUse) handle(u use) {
	ctx, cancel := context.WithTimeout(context.Background(), afterUseTimeout)
	defer cancel()
	_, err := a.store.RecordUse(ctx, u.grant.Owner, u.grant.TokenID, u.at)
	a.report(ctx, "use", u, err)
	if a.ring.Outdated(u.grant.RecoveryKeyID) {
		a.report(ctx, "copy", u, a.saveCopy(ctx, u))
	}
}

func (a *afterUse) saveCopy(ctx context.Context, u use) error {
	envelope, err := a.ring.Seal(u.secret, u.grant.Owner, u.grant.TokenID, rand.Reader)
	if err != nil {
		return err
	}
	return a.store.SaveRecovery(ctx, u.grant, envelope)
}

func (a *afterUse) report(ctx context.Context, work string, u use, err error) {
	switch {
	case err == nil:
		a.metrics.afterUse.WithLabelValues(work + "_done").Inc()
	case errors.Is(err, monitoringstore.ErrTokenChanged):
		a.metrics.afterUse.WithLabelValues(work + "_overtaken").Inc()
	default:
		a.metrics.afterUse.WithLabelValues(work + "_failed").Inc()
		a.logger.WarnContext(ctx, "work after a token's use failed", "work", work, "token_id", u.grant.TokenID, "error", err)
	}
}
