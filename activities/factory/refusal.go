package factory

import (
	"context"
	"errors"

	"millrace/domain/factory"
)

// refuse puts a body that can never be processed into quarantine, with the
// reason. Errors that are no rule of the domain are passed on.
func (i Ingester) refuse(ctx context.Context, e Envelope, err error) (Result, error) {
	var invalid *factory.InvalidError
	if !errors.As(err, &invalid) {
		return Result{}, err
	}
	_, err = i.Store.PutNew(ctx, factory.QuarantineKey(e.rawKey()), factory.Refusal{
		Field: invalid.Field, Rule: invalid.Rule,
		Topic: e.Topic, RawKey: e.rawKey(), ReceivedAt: e.receivedAt(), Body: e.Body,
	})
	if err != nil {
		return Result{}, err
	}
	return Result{Outcome: Quarantined, Reason: invalid.Error()}, i.at(StepQuarantine)
}
