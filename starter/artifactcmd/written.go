package artifactcmd

import (
	"context"
	"errors"
	"fmt"
	"time"

	"go.temporal.io/api/serviceerror"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/temporal"

	storage "millrace/storage/artifact"
)

const (
	// lookEvery is how often it is looked whether something is there.
	lookEvery = 200 * time.Millisecond
	// missingPatience is how long a command waits for an artifact that was just
	// submitted.
	missingPatience = 5 * time.Second
)

// written waits until a lifecycle has written its version. One that ended before
// tells why.
func written(ctx context.Context, store storage.Store, run client.WorkflowRun, t Target, patience time.Duration) error {
	waiting, enough := context.WithTimeout(ctx, patience)
	defer enough()
	ended := make(chan error, 1)
	go func() { ended <- run.Get(waiting, nil) }()
	for {
		v, err := store.Version(ctx, t.ID, t.Version)
		if err == nil && v.Creator == run.GetRunID() {
			return nil
		}
		if err != nil && !errors.Is(err, storage.ErrNotFound) {
			return err
		}
		select {
		case <-time.After(lookEvery):
		case err := <-ended:
			_, late := errors.AsType[*serviceerror.DeadlineExceeded](err) // the call's own clock may run out first
			if ctx.Err() == nil && (waiting.Err() != nil || late || errors.Is(err, context.DeadlineExceeded)) {
				return fmt.Errorf("%s v%d was not written within %s; see it with: starter artifact status %s %d", t.ID, t.Version, patience, t.ID, t.Version)
			}
			return whyNot(err, t)
		}
	}
}

// whyNot tells why a version was not written, by how its lifecycle ended.
func whyNot(err error, t Target) error {
	if err == nil {
		return nil // it has ended already, and so was written
	}
	if refused, ok := errors.AsType[*temporal.ApplicationError](err); ok {
		return fmt.Errorf("%s v%d was refused (%s): %s", t.ID, t.Version, refused.Type(), refused.Message())
	}
	return fmt.Errorf("%s v%d was not written: %w", t.ID, t.Version, err)
}

// present is the version that is meant, which may have been submitted a moment
// ago.
func (t Target) present(ctx context.Context, store storage.Store, patience time.Duration) (Target, error) {
	until := time.Now().Add(patience)
	for {
		found, err := t.resolve(ctx, store)
		if err == nil {
			_, err = store.Version(ctx, found.ID, found.Version)
		}
		if !errors.Is(err, storage.ErrNotFound) || !time.Now().Before(until) {
			return found, err
		}
		select {
		case <-ctx.Done():
			return found, ctx.Err()
		case <-time.After(lookEvery):
		}
	}
}
