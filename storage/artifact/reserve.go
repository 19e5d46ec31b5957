package artifact

import (
	"context"
	"errors"
	"fmt"
	"time"

	"millrace/domain/artifact"
	"millrace/storage/table"
)

// Reservation is the claim of one submission on the number of a version, made
// before its content is stored: of two submissions of the same number only one
// gets to write below its keys. It stays when the version was written, so that a
// repeated submission is told from another one.
type Reservation struct {
	common

	// Fingerprint is the hash of what is submitted, content included.
	Fingerprint string `json:"fingerprint"`
	// Holder is the attempt that may write until Until.
	Holder string    `json:"holder"`
	Until  time.Time `json:"until"`
}

// ReservationTime is how long a claim holds: whoever holds one must have stored
// the content and started the lifecycle well before it is over.
const ReservationTime = 5 * time.Minute

func reservationKey(id string, version int) table.Key {
	return table.Key{Partition: partition(id), Sort: fmt.Sprintf("RESERVED#%d", version)}
}

// NewReservation is a claim that holds from now on.
func NewReservation(r artifact.Request, fingerprint, holder string, now time.Time) Reservation {
	key := reservationKey(r.ArtifactID, r.Version)
	return Reservation{
		common:      newCommon("reservation", r.ArtifactID, r.Version, now, keys{SK: key.Sort}),
		Fingerprint: fingerprint, Holder: holder, Until: now.Add(ReservationTime),
	}
}

// Reserve claims a number. A claim for the same submission is taken over at once,
// which the first result tells, one for another only when its time is over: until
// then the error is ErrTaken.
func (s Store) Reserve(ctx context.Context, r Reservation) (bool, error) {
	before, found, err := s.Reservation(ctx, r.ArtifactID, r.Version)
	if err != nil {
		return false, err
	}
	same := found && before.Fingerprint == r.Fingerprint
	condition := s.Table.Absent()
	switch {
	case found && !same && r.CreatedAt.Before(before.Until):
		return false, fmt.Errorf("version %d of %s is being submitted: %w", r.Version, r.ArtifactID, ErrTaken)
	case found:
		condition = heldBy(before.Holder)
	}
	err = s.Table.Put(ctx, r, &condition)
	if _, refused := errors.AsType[*table.ConflictError](err); refused {
		return false, fmt.Errorf("version %d of %s is being submitted: %w", r.Version, r.ArtifactID, ErrTaken)
	}
	return same, err
}

// Reservation reads the claim on a number, and tells whether there is one.
func (s Store) Reservation(ctx context.Context, id string, version int) (Reservation, bool, error) {
	var r Reservation
	found, err := s.Table.Get(ctx, reservationKey(id, version), &r)
	return r, found, err
}

// HighestReserved is the highest number that was ever claimed, 0 for none.
func (s Store) HighestReserved(ctx context.Context, id string) (int, error) {
	reservations, err := all[Reservation](ctx, s.Table, id, "RESERVED#")
	highest := 0
	for _, r := range reservations {
		highest = max(highest, r.Version)
	}
	return highest, err
}

// CheckNext refuses a number that skips others: there are only so many, and who
// takes the last one ends the artifact for everybody.
func (s Store) CheckNext(ctx context.Context, id string, version int) error {
	head, err := s.Head(ctx, id)
	if err != nil || version <= head.LatestVersion+1 {
		return err
	}
	reserved, err := s.HighestReserved(ctx, id)
	if next := max(head.LatestVersion, reserved) + 1; err == nil && version > next {
		return &artifact.InvalidError{Field: "version", Rule: fmt.Sprintf("must be at most %d: numbers are not skipped", next)}
	}
	return err
}

// Release gives a claim up that led to nothing; one that somebody else has taken
// over stays.
func (s Store) Release(ctx context.Context, r Reservation) error {
	condition := heldBy(r.Holder)
	err := s.Table.Delete(ctx, reservationKey(r.ArtifactID, r.Version), &condition)
	if _, refused := errors.AsType[*table.ConflictError](err); refused {
		return nil
	}
	return err
}

func heldBy(holder string) table.Condition {
	return table.Condition{
		Expression: "#holder = :holder", Names: map[string]string{"#holder": "holder"}, Values: table.Item{":holder": table.String(holder)},
	}
}
