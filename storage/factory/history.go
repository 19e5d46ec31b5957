package factory

import (
	"context"
	"iter"

	"millrace/domain/factory"
	"millrace/storage/table"
)

// History walks the HISTORY#STATE rows of a factory in the order in which they
// were written. Both sort keys are inclusive; rows that have expired may be
// among them, because DynamoDB deletes late.
func (s Store) History(ctx context.Context, factoryID, fromSK, toSK string) iter.Seq2[factory.Latest, error] {
	return documents[factory.Latest](s.Table.Query(ctx, table.Range{
		Partition: factory.PK(factoryID), From: fromSK, To: toSK, Consistent: true,
	}))
}

// documents are items decoded one by one.
func documents[T any](items iter.Seq2[table.Item, error]) iter.Seq2[T, error] {
	return func(yield func(T, error) bool) {
		for item, err := range items {
			var document T
			if err == nil {
				err = table.Decode(item, &document)
			}
			if !yield(document, err) || err != nil {
				return
			}
		}
	}
}
