package publisher

import (
	"context"
	"errors"
	"io/fs"
	"syscall"
	"time"

	"millrace/domain/factory"
)

// flight is a message on its way.
type flight struct {
	name     string
	receipt  Receipt
	deadline time.Time
}

// failure is why a message was not confirmed.
func (f flight) failure() error {
	select {
	case <-f.receipt.Done():
		return f.receipt.Error()
	default:
		return errUnconfirmed
	}
}

// send reads, checks and sends a message. The flight is nil when there is
// nothing to wait for; the error is that of the connection.
func (r *pass) send(ctx context.Context, name string) (*flight, error) {
	if r.held.isDelivered(name) {
		r.remove(name)
		return nil, nil
	}
	message, ok := r.read(name)
	if !ok {
		return nil, nil
	}
	r.pace.wait(ctx)
	if err := r.Transport.Connect(ctx); err != nil {
		r.result.Failed++
		return nil, err
	}
	wire, err := message.Wire(r.Now(), r.Config.InstanceID)
	if err != nil {
		r.quarantine(name, err)
		return nil, nil
	}
	receipt := r.Transport.Send(message.Topic(), wire)
	return &flight{name: name, receipt: receipt, deadline: time.Now().Add(r.Config.Timeout)}, nil
}

// await waits until a message is confirmed, and then deletes its file.
func (r *pass) await(f flight) error {
	timer := time.NewTimer(time.Until(f.deadline))
	defer timer.Stop()
	select {
	case <-f.receipt.Done():
	case <-timer.C:
	}
	if err := f.failure(); err != nil {
		return err
	}
	r.losses = 0
	r.result.Published++
	r.remove(f.name)
	return nil
}

// remove deletes the file of a delivered message. When that fails, the message
// is remembered as delivered, so that only the deletion is tried again.
func (r *pass) remove(name string) {
	if err := r.Outbox.Remove(name); err != nil {
		r.result.Failed++
		r.held.addDelivered(name, r.Now())
		r.Log.Error("published message can't be deleted", "file", name, "error", err)
		return
	}
	r.held.forget(name)
}

// read returns a message that may be published. A file that can never be is
// moved to quarantine; one that can't be read just now stays.
func (r *pass) read(name string) (factory.Outgoing, bool) {
	body, err := r.Outbox.Read(name, factory.MaxBody)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		r.held.forget(name)
		return factory.Outgoing{}, false
	case isExhausted(err):
		r.result.Failed++
		r.Log.Error("message can't be read now, kept in the outbox", "file", name, "error", err)
		return factory.Outgoing{}, false
	case err != nil:
		r.quarantine(name, err)
		return factory.Outgoing{}, false
	}
	message, err := factory.ParseOutgoing(body)
	if err != nil {
		r.quarantine(name, err)
		return factory.Outgoing{}, false
	}
	return message, true
}

// isExhausted tells that the machine is out of something, which is not the
// file's fault.
func isExhausted(err error) bool {
	return errors.Is(err, syscall.EMFILE) || errors.Is(err, syscall.ENFILE) || errors.Is(err, syscall.ENOMEM)
}

func (r *pass) quarantine(name string, reason error) {
	r.held.forget(name)
	moved, err := r.Outbox.Quarantine(name, r.Now())
	if err != nil {
		r.result.Failed++
		r.Log.Error("message can't be moved to quarantine", "file", name, "reason", reason, "error", err)
		return
	}
	r.result.Quarantined++
	r.Log.Warn("message moved to quarantine", "file", name, "reason", reason, "moved_to", moved)
}
