package table

import (
	"context"
	"fmt"
	"maps"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
)

// Count is the number of items of a partition whose sort keys begin with prefix
// and that meet the filter, nil for all. It reads consistently, page by page,
// and no item leaves DynamoDB.
func (t Table) Count(ctx context.Context, partition, prefix string, filter *Condition) (int64, error) {
	in, err := t.pageInput(PageQuery{Partition: partition, Prefix: prefix, Consistent: true})
	if err != nil {
		return 0, err
	}
	in.Select = types.SelectCount
	if filter != nil {
		in.FilterExpression = aws.String(filter.Expression)
		maps.Copy(in.ExpressionAttributeNames, filter.Names)
		maps.Copy(in.ExpressionAttributeValues, filter.Values)
	}
	var count int64
	pages := dynamodb.NewQueryPaginator(queryOnly{t.Client}, in)
	for pages.HasMorePages() {
		page, err := pages.NextPage(ctx)
		if err != nil {
			return 0, fmt.Errorf("count items of %s: %w", t.Name, err)
		}
		count += int64(page.Count)
	}
	return count, nil
}
