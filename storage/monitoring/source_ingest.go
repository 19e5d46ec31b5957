package monitoring

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"millrace/domain/monitoring"
	"millrace/storage/table"
)

// Ingested is what an observation did.
type Ingested struct {
	monitoring.Decision
	// Attempts is the number of writes that were tried, 0 when none was needed.
	Attempts int
}

// Ingest applies a checked observation: one read, and for an accepted one a
// single transaction that writes the latest row and the row of its minute.
//
// The minute row is a whole Put, computed from the sums on the latest row, and
// not an ADD: a mean and a maximum can't be added, and a Put conditional on the
// latest row's revision is exact even when an answer is lost. A repeat finds the
// revision moved on, reads the observation it wrote itself, and is a duplicate.
// A writer that loses recomputes from the row that stood in its way, which
// DynamoDB returns with the refusal, so no attempt after the first one reads.
func (s Store) Ingest(ctx context.Context, owner, id string, o monitoring.Observation, now time.Time) (Ingested, error) {
	latest, err := s.latest(ctx, owner, id)
	if err != nil {
		return Ingested{}, err
	}
	run := ingestion{
		store: s, owner: owner, latest: latest,
		arrival: monitoring.Arrival{SourceID: id, Observation: o, ReceivedAt: now.UTC(), Life: newLife()},
	}
	return run.run(ctx)
}

// ingestion is one observation on its way into the table, with what is known of
// the rows it meets.
type ingestion struct {
	store    Store
	owner    string
	arrival  monitoring.Arrival
	latest   *monitoring.Source
	retained *monitoring.Minute
}

func (i *ingestion) run(ctx context.Context) (Ingested, error) {
	var done Ingested
	err := contend(ctx, func() error {
		decision, err := i.arrival.Decide(i.latest, i.retained)
		if err != nil {
			return err
		}
		done.Decision = decision
		if decision.Outcome == monitoring.Duplicate || decision.Outcome == monitoring.Reversed {
			return nil
		}
		done.Attempts++
		return i.learn(i.write(ctx, decision))
	})
	if err != nil {
		return Ingested{}, fmt.Errorf("ingest observation: %w", err)
	}
	return done, nil
}

func (i *ingestion) write(ctx context.Context, d monitoring.Decision) error {
	if d.Outcome == monitoring.Alive {
		return i.store.Table.Update(ctx, table.Change{
			Key: i.key(), Set: map[string]any{"receivedAt": d.Next.ReceivedAt}, Condition: sameObservation(*i.latest),
		}, nil)
	}
	latest, err := i.latestWrite(d)
	if err != nil {
		return err
	}
	minute, err := i.store.Table.PutWrite(i.store.minuteRow(i.owner, d.Next), i.minuteCondition(d))
	if err != nil {
		return err
	}
	return i.store.Table.Transact(ctx, latest, minute)
}

func (i *ingestion) key() table.Key { return sourceKey(i.owner, i.arrival.SourceID) }

// latestWrite creates the row, or changes all of it but the configuration.
func (i *ingestion) latestWrite(d monitoring.Decision) (types.TransactWriteItem, error) {
	if d.Created {
		absent := i.store.Table.Absent()
		return i.store.Table.PutWrite(sourceRow{PK: i.key().Partition, SK: i.key().Sort, Source: d.Next}, &absent)
	}
	return i.store.Table.UpdateWrite(table.Change{
		Key: i.key(),
		Set: map[string]any{
			"observation": d.Next.Observation, "receivedAt": d.Next.ReceivedAt,
			"rev": d.Next.Rev, "minute": d.Next.Minute,
		},
		Condition: sameObservation(*i.latest),
	})
}

// minuteCondition guards the first write of a minute in this life of the source:
// the id may have been used before and left a row. Later writes need none, for
// only writers that also move the latest row's revision write the minute.
func (i *ingestion) minuteCondition(d monitoring.Decision) *table.Condition {
	switch {
	case !d.Opens:
		return nil
	case i.retained == nil:
		absent := i.store.Table.Absent()
		return &absent
	}
	return &table.Condition{
		Expression: "#count = :count", Names: map[string]string{"#count": "sampleCount"},
		Values: table.Item{":count": table.Int(i.retained.SampleCount)},
	}
}

// learn takes over the row that refused a write, and returns the refusal. Where
// there is no row, the one that the write built on is gone; should that have been
// the minute's, the next attempt is refused by the latest row itself.
func (i *ingestion) learn(refusal error) error {
	var conflict *table.ConflictError
	if !errors.As(refusal, &conflict) {
		return refusal
	}
	switch {
	case conflict.Current == nil:
		i.latest, i.retained = nil, nil
	case isSource(conflict.Current):
		var row sourceRow
		if err := table.Decode(conflict.Current, &row); err != nil {
			return err
		}
		i.latest = &row.Source
	default:
		i.retained = new(monitoring.Minute)
		if err := table.Decode(conflict.Current, i.retained); err != nil {
			return err
		}
	}
	return refusal
}

func isSource(item table.Item) bool {
	sk, ok := item[SortKey].(*types.AttributeValueMemberS)
	return ok && strings.HasPrefix(sk.Value, monitoring.SourcePrefix)
}
