package table

import (
	"context"
	"fmt"
	"iter"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
)

// Range is a stretch of one partition: sort keys From to To, both inclusive.
type Range struct {
	Partition  string
	From, To   string
	Descending bool
	// Page bounds how many items one request reads; 0 leaves it to DynamoDB.
	Page int32
	// Consistent reads see every acknowledged write.
	Consistent bool
}

// Query walks the items of a range in order, fetching pages as they are needed.
func (t Table) Query(ctx context.Context, r Range) iter.Seq2[Item, error] {
	return func(yield func(Item, error) bool) {
		pages := dynamodb.NewQueryPaginator(queryOnly{t.Client}, t.queryInput(r))
		for pages.HasMorePages() {
			page, err := pages.NextPage(ctx)
			if err != nil {
				yield(nil, fmt.Errorf("query %s: %w", t.Name, err))
				return
			}
			for _, item := range page.Items {
				if !yield(item, nil) {
					return
				}
			}
		}
	}
}

type queryOnly struct{ API }

func (t Table) queryInput(r Range) *dynamodb.QueryInput {
	in := &dynamodb.QueryInput{
		TableName:                 &t.Name,
		KeyConditionExpression:    aws.String("#pk = :pk AND #sk BETWEEN :from AND :to"),
		ExpressionAttributeNames:  map[string]string{"#pk": t.PartitionKey, "#sk": t.SortKey},
		ExpressionAttributeValues: Item{":pk": String(r.Partition), ":from": String(r.From), ":to": String(r.To)},
		ScanIndexForward:          aws.Bool(!r.Descending),
		ConsistentRead:            aws.Bool(r.Consistent),
	}
	if r.Page > 0 {
		in.Limit = &r.Page
	}
	return in
}

// maxBatchGet is DynamoDB's limit for one BatchGetItem.
const maxBatchGet = 100

// BatchGet reads many items consistently, in no particular order; those that do
// not exist are left out. What DynamoDB leaves unprocessed is asked for again.
func (t Table) BatchGet(ctx context.Context, keys []Key) ([]Item, error) {
	var items []Item
	for len(keys) > 0 {
		n := min(len(keys), maxBatchGet)
		request := types.KeysAndAttributes{ConsistentRead: aws.Bool(true)}
		for _, k := range keys[:n] {
			request.Keys = append(request.Keys, t.key(k))
		}
		keys = keys[n:]
		for len(request.Keys) > 0 {
			out, err := t.Client.BatchGetItem(ctx, &dynamodb.BatchGetItemInput{RequestItems: map[string]types.KeysAndAttributes{t.Name: request}})
			if err != nil {
				return nil, fmt.Errorf("batch get of %s: %w", t.Name, err)
			}
			items = append(items, out.Responses[t.Name]...)
			request = out.UnprocessedKeys[t.Name]
		}
	}
	return items, nil
}
