// Package monitoring does the side effects of the monitoring workflows.
package monitoring

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"

	"go.temporal.io/sdk/activity"
	"golang.org/x/sync/errgroup"

	"millrace/domain/monitoring"
	store "millrace/storage/monitoring"
	workflows "millrace/workflows/monitoring"
)

// TokenStore is what re-encryption needs of the monitoring store.
type TokenStore interface {
	TokensUnderKey(ctx context.Context, keyID, cursor string, limit int32) ([]monitoring.Token, string, error)
	SaveRecovery(ctx context.Context, grant monitoring.Grant, envelope *monitoring.Envelope) error
}

// Rekeyer seals saved copies of tokens again.
type Rekeyer struct {
	Store TokenStore
	Ring  monitoring.KeyRing
}

const (
	// rekeyPage is how many tokens one page has: one BatchGetItem reads them.
	rekeyPage = 100
	// rekeyConcurrency bounds the transactions at once.
	rekeyConcurrency = 4
	// maxBrokenNamed bounds the tokens that a result names.
	maxBrokenNamed = 20
)

// RekeyBatch works through some pages of the tokens under a key. After a retry it
// goes on where the last heartbeat was.
func (r Rekeyer) RekeyBatch(ctx context.Context, in workflows.RekeyBatch) (workflows.RekeyBatchResult, error) {
	if err := r.check(in); err != nil {
		return workflows.RekeyBatchResult{}, err
	}
	progress := workflows.RekeyBatchResult{Cursor: in.Cursor, CurrentKeyID: r.Ring.Current}
	page := 0
	if resumed, ok := resume(ctx); ok {
		progress, page = resumed.Result, resumed.Page
	}
	for ; page < in.Pages; page++ {
		tokens, next, err := r.Store.TokensUnderKey(ctx, in.KeyID, progress.Cursor, rekeyPage)
		if err != nil {
			return progress, failure(fmt.Errorf("read tokens under key %s: %w", in.KeyID, err))
		}
		beat := func() { activity.RecordHeartbeat(ctx, rekeyProgress{Page: page, Result: progress}) }
		if err := r.sealAll(ctx, tokens, &progress, beat); err != nil {
			return progress, failure(err)
		}
		progress.Cursor = next
		if next == "" {
			break
		}
	}
	return progress, nil
}

// rekeyProgress is the heartbeat: the page under way and what was done so far. A
// page that is begun again finds only what is left of it.
type rekeyProgress struct {
	Page   int                        `json:"page"`
	Result workflows.RekeyBatchResult `json:"result"`
}

func resume(ctx context.Context) (rekeyProgress, bool) {
	if !activity.HasHeartbeatDetails(ctx) {
		return rekeyProgress{}, false
	}
	var progress rekeyProgress
	err := activity.GetHeartbeatDetails(ctx, &progress)
	return progress, err == nil
}

func (r Rekeyer) check(in workflows.RekeyBatch) error {
	switch {
	case r.Ring.Current == "":
		return invalidInput("this worker has no key ring")
	case in.KeyID == r.Ring.Current:
		return invalidInput(fmt.Sprintf("key %s is the current key: rotate the key ring first", in.KeyID))
	case !r.Ring.Has(in.KeyID):
		return invalidInput(fmt.Sprintf("key %s is not in the key ring of this worker", in.KeyID))
	case in.Pages < 1:
		return invalidInput("pages must be at least 1")
	}
	return nil
}

// sealAll seals tokens again until one fails. Those under way then are not
// broken off: whether they were written would be unknown, and the counts wrong.
func (r Rekeyer) sealAll(ctx context.Context, tokens []monitoring.Token, progress *workflows.RekeyBatchResult, beat func()) error {
	var group errgroup.Group
	group.SetLimit(rekeyConcurrency)
	var lock sync.Mutex
	var failed atomic.Bool
	for _, token := range tokens {
		group.Go(func() error {
			if failed.Load() {
				return nil
			}
			err := r.seal(ctx, token)
			lock.Lock()
			defer lock.Unlock()
			err = count(token, err, progress)
			beat()
			failed.CompareAndSwap(false, err != nil)
			return err
		})
	}
	return group.Wait()
}

func (r Rekeyer) seal(ctx context.Context, token monitoring.Token) error {
	secret, err := r.Ring.Open(*token.Recovery, token.Owner, token.ID)
	if err != nil {
		return err
	}
	envelope, err := r.Ring.Seal(secret, token.Owner, token.ID, rand.Reader)
	if err != nil {
		return err
	}
	return r.Store.SaveRecovery(ctx, token.Grant(), envelope)
}

// count adds how the sealing of a token ended; what only fails now is an error.
func count(token monitoring.Token, err error, progress *workflows.RekeyBatchResult) error {
	counts := &progress.Counts
	switch {
	case err == nil:
		counts.Sealed++
	case errors.Is(err, store.ErrTokenChanged):
		counts.Overtaken++
	case errors.Is(err, monitoring.ErrSealBroken):
		counts.Broken++
		if len(progress.Broken) < maxBrokenNamed {
			progress.Broken = append(progress.Broken, token.ID)
		}
	default:
		return fmt.Errorf("seal token %s again: %w", token.ID, err)
	}
	counts.Seen++
	return nil
}
