// Package sweep deletes expired items from the local tables: DynamoDB does so by itself within
// days, the stand-in never does.
package sweep

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strconv"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
)

const (
	// Every is the pause between two sweeps.
	Every = time.Minute
	// pageSize bounds the items read, and with them the deletions, before others get their turn.
	pageSize = 500
	// pagePause is the turn of others: reads and writes of the stand-in wait for each other.
	pagePause = 50 * time.Millisecond
	// tooOld is the age beyond which DynamoDB takes a time for a mistake and keeps the item.
	tooOld = 5 * 365 * 24 * time.Hour
)

// Tables is what a sweep needs of DynamoDB; *dynamodb.Client has it.
type Tables interface {
	ListTables(context.Context, *dynamodb.ListTablesInput, ...func(*dynamodb.Options)) (*dynamodb.ListTablesOutput, error)
	DescribeTable(context.Context, *dynamodb.DescribeTableInput, ...func(*dynamodb.Options)) (*dynamodb.DescribeTableOutput, error)
	DescribeTimeToLive(context.Context, *dynamodb.DescribeTimeToLiveInput, ...func(*dynamodb.Options)) (*dynamodb.DescribeTimeToLiveOutput, error)
	Scan(context.Context, *dynamodb.ScanInput, ...func(*dynamodb.Options)) (*dynamodb.ScanOutput, error)
	DeleteItem(context.Context, *dynamodb.DeleteItemInput, ...func(*dynamodb.Options)) (*dynamodb.DeleteItemOutput, error)
}

// Run sweeps every interval until ctx ends.
func Run(ctx context.Context, tables Tables, interval time.Duration, log *slog.Logger) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-time.After(interval):
		}
		deleted, err := Once(ctx, tables, time.Now())
		if err != nil && ctx.Err() == nil {
			log.Warn("sweep expired items", "deleted", deleted, "error", err)
		}
	}
}

// Once deletes what is expired at now from every table that has a time to live, and returns how
// many items that were. A table that fails does not keep the others from being swept.
func Once(ctx context.Context, tables Tables, now time.Time) (int, error) {
	names, err := tableNames(ctx, tables)
	if err != nil {
		return 0, err
	}
	deleted := 0
	var errs []error
	for _, name := range names {
		n, err := sweepTable(ctx, tables, name, now)
		deleted += n
		if err != nil {
			errs = append(errs, fmt.Errorf("sweep table %s: %w", name, err))
		}
	}
	return deleted, errors.Join(errs...)
}

func tableNames(ctx context.Context, tables Tables) ([]string, error) {
	var names []string
	pages := dynamodb.NewListTablesPaginator(tables, &dynamodb.ListTablesInput{})
	for pages.HasMorePages() {
		page, err := pages.NextPage(ctx)
		if err != nil {
			return nil, fmt.Errorf("list tables: %w", err)
		}
		names = append(names, page.TableNames...)
	}
	return names, nil
}

// table is what deleting from a table takes to know.
type table struct {
	name string
	ttl  string
	keys []string
}

func describe(ctx context.Context, tables Tables, name string) (table, bool, error) {
	ttl, err := tables.DescribeTimeToLive(ctx, &dynamodb.DescribeTimeToLiveInput{TableName: &name})
	if err != nil {
		return table{}, false, fmt.Errorf("describe time to live: %w", err)
	}
	d := ttl.TimeToLiveDescription
	if d == nil || d.TimeToLiveStatus != types.TimeToLiveStatusEnabled {
		return table{}, false, nil
	}
	out, err := tables.DescribeTable(ctx, &dynamodb.DescribeTableInput{TableName: &name})
	if err != nil {
		return table{}, false, fmt.Errorf("describe: %w", err)
	}
	t := table{name: name, ttl: aws.ToString(d.AttributeName)}
	for _, key := range out.Table.KeySchema {
		t.keys = append(t.keys, aws.ToString(key.AttributeName))
	}
	return t, true, nil
}

func sweepTable(ctx context.Context, tables Tables, name string, now time.Time) (int, error) {
	t, enabled, err := describe(ctx, tables, name)
	if err != nil || !enabled {
		return 0, err
	}
	deleted := 0
	pages := dynamodb.NewScanPaginator(tables, t.scan(now))
	for pages.HasMorePages() {
		page, err := pages.NextPage(ctx)
		if err != nil {
			return deleted, fmt.Errorf("scan: %w", err)
		}
		for _, key := range page.Items {
			gone, err := t.delete(ctx, tables, key, now)
			if err != nil {
				return deleted, err
			}
			if gone {
				deleted++
			}
		}
		if !pages.HasMorePages() {
			break
		}
		select {
		case <-ctx.Done():
			return deleted, ctx.Err()
		case <-time.After(pagePause):
		}
	}
	return deleted, nil
}

const expired = "attribute_type(#ttl, :number) AND #ttl < :now AND #ttl > :tooOld"

func (t table) scan(now time.Time) *dynamodb.ScanInput {
	names := map[string]string{"#ttl": t.ttl}
	projection := ""
	for i, key := range t.keys {
		alias := "#k" + strconv.Itoa(i)
		names[alias] = key
		if i > 0 {
			projection += ", "
		}
		projection += alias
	}
	return &dynamodb.ScanInput{
		TableName: &t.name, Limit: aws.Int32(pageSize),
		FilterExpression: aws.String(expired), ProjectionExpression: &projection,
		ExpressionAttributeNames: names, ExpressionAttributeValues: bounds(now),
	}
}

// delete removes an item if it is still expired: it may have been prolonged since it was read.
func (t table) delete(ctx context.Context, tables Tables, key map[string]types.AttributeValue, now time.Time) (bool, error) {
	_, err := tables.DeleteItem(ctx, &dynamodb.DeleteItemInput{
		TableName: &t.name, Key: key, ConditionExpression: aws.String(expired),
		ExpressionAttributeNames: map[string]string{"#ttl": t.ttl}, ExpressionAttributeValues: bounds(now),
	})
	if _, changed := errors.AsType[*types.ConditionalCheckFailedException](err); changed {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("delete: %w", err)
	}
	return true, nil
}

func bounds(now time.Time) map[string]types.AttributeValue {
	number := func(t time.Time) types.AttributeValue {
		return &types.AttributeValueMemberN{Value: strconv.FormatInt(t.Unix(), 10)}
	}
	return map[string]types.AttributeValue{
		":number": &types.AttributeValueMemberS{Value: "N"}, ":now": number(now), ":tooOld": number(now.Add(-tooOld)),
	}
}
