package stack

import (
	"context"
	"fmt"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
)

// stopStreams switches the streams of all tables off: the stand-in reads every record of a stream
// at each write, and nothing here reads a stream. Tables of a directory that an older version made
// may have one.
func (s *Stack) stopStreams(ctx context.Context, client *dynamodb.Client) error {
	pages := dynamodb.NewListTablesPaginator(client, &dynamodb.ListTablesInput{})
	for pages.HasMorePages() {
		page, err := pages.NextPage(ctx)
		if err != nil {
			return fmt.Errorf("list tables: %w", err)
		}
		for _, name := range page.TableNames {
			if err := s.stopStream(ctx, client, name); err != nil {
				return err
			}
		}
	}
	return nil
}

func (s *Stack) stopStream(ctx context.Context, client *dynamodb.Client, name string) error {
	table, err := client.DescribeTable(ctx, &dynamodb.DescribeTableInput{TableName: &name})
	if err != nil {
		return fmt.Errorf("describe table %s: %w", name, err)
	}
	if stream := table.Table.StreamSpecification; stream == nil || !aws.ToBool(stream.StreamEnabled) {
		return nil
	}
	_, err = client.UpdateTable(ctx, &dynamodb.UpdateTableInput{
		TableName: &name, StreamSpecification: &types.StreamSpecification{StreamEnabled: aws.Bool(false)},
	})
	if err != nil {
		return fmt.Errorf("switch off the stream of table %s: %w", name, err)
	}
	s.Say("the stream of table %s is off now: here it makes each write slower than the one before", name)
	return nil
}
