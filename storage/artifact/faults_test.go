package artifact_test

import (
	"context"
	"sync"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"millrace/storage/table"
)

// betweenQueries runs something once, after the first query.
type betweenQueries struct {
	table.API
	once sync.Once
	do   func()
}

// Query lets the other writer go right after.
func (b *betweenQueries) Query(ctx context.Context, in *dynamodb.QueryInput, options ...func(*dynamodb.Options)) (*dynamodb.QueryOutput, error) {
	out, err := b.API.Query(ctx, in, options...)
	b.once.Do(b.do)
	return out, err
}
