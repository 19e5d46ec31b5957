package artifact

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"millrace/domain/artifact"
	"millrace/storage/table"
)

// Version reads one version consistently.
func (s Store) Version(ctx context.Context, id string, version int) (Artifact, error) {
	var item Artifact
	found, err := s.Table.Get(ctx, versionKey(id, version), &item)
	if err == nil && !found {
		err = fmt.Errorf("version %d of %s: %w", version, id, ErrNotFound)
	}
	return item, err
}

// Head reads what guards the versions of an artifact; zero when there is none.
func (s Store) Head(ctx context.Context, id string) (Head, error) {
	var head Head
	_, err := s.Table.Get(ctx, headKey(id), &head)
	return head, err
}

// Versions are all versions of an artifact, the newest first.
func (s Store) Versions(ctx context.Context, id string) ([]Artifact, error) {
	versions, err := all[Artifact](ctx, s.Table, id, "V#")
	slices.SortFunc(versions, func(a, b Artifact) int { return cmp.Compare(b.Version, a.Version) })
	return versions, err
}

// Transitions are the changes of state of a version, in order.
func (s Store) Transitions(ctx context.Context, id string, version int) ([]Transition, error) {
	items, err := all[Transition](ctx, s.Table, id, "TRANS#")
	return slices.DeleteFunc(items, func(i Transition) bool { return i.Version != version }), err
}

// Approvals are the decisions about a version, in order.
func (s Store) Approvals(ctx context.Context, id string, version int) ([]Approval, error) {
	items, err := all[Approval](ctx, s.Table, id, "APPROVAL#")
	return slices.DeleteFunc(items, func(i Approval) bool { return i.Version != version }), err
}

// Runs are the runs of a version, in order.
func (s Store) Runs(ctx context.Context, id string, version int) ([]Execution, error) {
	items, err := all[Execution](ctx, s.Table, id, "EXEC#")
	return slices.DeleteFunc(items, func(i Execution) bool { return i.Version != version }), err
}

// Provenance is the chain of a version, in order.
func (s Store) Provenance(ctx context.Context, id string, version int) ([]artifact.Record, error) {
	items, err := all[Provenance](ctx, s.Table, id, fmt.Sprintf("PROV#v%04d-", version))
	records := make([]artifact.Record, len(items))
	for i, item := range items {
		records[i] = item.Record
	}
	return records, err
}

// Compensations are the undos of an artifact's versions.
func (s Store) Compensations(ctx context.Context, id string) ([]Compensation, error) {
	return all[Compensation](ctx, s.Table, id, "COMP#")
}

func all[T any](ctx context.Context, t table.Table, id, prefix string) ([]T, error) {
	var documents []T
	for item, err := range t.Query(ctx, table.Range{Partition: partition(id), From: prefix, To: prefix + "~", Consistent: true}) {
		if err != nil {
			return nil, err
		}
		var document T
		if err := table.Decode(item, &document); err != nil {
			return nil, err
		}
		documents = append(documents, document)
	}
	return documents, nil
}

// Page asks for a page of a list.
type Page struct {
	Limit  int32
	Cursor string
	// Descending gives the newest first.
	Descending bool
}

// InState pages through the versions in a state, by the time of their creation.
func (s Store) InState(ctx context.Context, state artifact.State, p Page) ([]Artifact, string, error) {
	return listed[Artifact](ctx, s.Table, "STATE#"+string(state), p)
}

// ByApprover pages through an actor's decisions.
func (s Store) ByApprover(ctx context.Context, actor string, p Page) ([]Approval, string, error) {
	return listed[Approval](ctx, s.Table, "APPROVER#"+actor, p)
}

// TransitionsOn pages through the changes of state of a UTC day, 2006-01-02.
func (s Store) TransitionsOn(ctx context.Context, day string, p Page) ([]Transition, string, error) {
	return listed[Transition](ctx, s.Table, "TRANS#"+day, p)
}

// RunsOn pages through the runs that began on a UTC day, 2006-01-02.
func (s Store) RunsOn(ctx context.Context, day string, p Page) ([]Execution, string, error) {
	return listed[Execution](ctx, s.Table, "RUN#"+day, p)
}

// CompensationsIn pages through the undos in a state.
func (s Store) CompensationsIn(ctx context.Context, state CompensationState, p Page) ([]Compensation, string, error) {
	return listed[Compensation](ctx, s.Table, "COMP_STATE#"+string(state), p)
}

// listed reads a page of the index, which has keys only, and the items behind
// it. An item that has moved since the index was read is left out.
func listed[T interface{ indexed() keys }](ctx context.Context, t table.Table, indexPartition string, p Page) ([]T, string, error) {
	rows, next, err := t.Page(ctx, table.PageQuery{Index: gsi1, Partition: indexPartition, Cursor: p.Cursor, Limit: p.Limit, Descending: p.Descending})
	if err != nil {
		return nil, "", err
	}
	wanted, order := make([]table.Key, len(rows)), map[table.Key]int{}
	for i, row := range rows {
		var k keys
		if err := table.Decode(row, &k); err != nil {
			return nil, "", err
		}
		wanted[i], order[k.key()] = k.key(), i
	}
	items, err := t.BatchGet(ctx, wanted)
	if err != nil {
		return nil, "", err
	}
	var documents []T
	for _, item := range items {
		var document T
		if err := table.Decode(item, &document); err != nil {
			return nil, "", err
		}
		if document.indexed().GSI1PK == indexPartition {
			documents = append(documents, document)
		}
	}
	slices.SortFunc(documents, func(a, b T) int { return cmp.Compare(order[a.indexed().key()], order[b.indexed().key()]) })
	return documents, next, nil
}

func (c common) indexed() keys { return c.keys }
