package table

import (
	"context"
	"errors"
	"fmt"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
)

// API is the part of the DynamoDB client that tables need.
type API interface {
	GetItem(context.Context, *dynamodb.GetItemInput, ...func(*dynamodb.Options)) (*dynamodb.GetItemOutput, error)
	BatchGetItem(context.Context, *dynamodb.BatchGetItemInput, ...func(*dynamodb.Options)) (*dynamodb.BatchGetItemOutput, error)
	PutItem(context.Context, *dynamodb.PutItemInput, ...func(*dynamodb.Options)) (*dynamodb.PutItemOutput, error)
	UpdateItem(context.Context, *dynamodb.UpdateItemInput, ...func(*dynamodb.Options)) (*dynamodb.UpdateItemOutput, error)
	DeleteItem(context.Context, *dynamodb.DeleteItemInput, ...func(*dynamodb.Options)) (*dynamodb.DeleteItemOutput, error)
	Query(context.Context, *dynamodb.QueryInput, ...func(*dynamodb.Options)) (*dynamodb.QueryOutput, error)
	TransactWriteItems(context.Context, *dynamodb.TransactWriteItemsInput, ...func(*dynamodb.Options)) (*dynamodb.TransactWriteItemsOutput, error)
}

// Table is one DynamoDB table with a string partition and sort key.
type Table struct {
	Client       API
	Name         string
	PartitionKey string
	SortKey      string
}

// Key names one item.
type Key struct {
	Partition string
	Sort      string
}

func (t Table) key(k Key) Item {
	return Item{t.PartitionKey: String(k.Partition), t.SortKey: String(k.Sort)}
}

// String is a string attribute.
func String(text string) types.AttributeValue { return &types.AttributeValueMemberS{Value: text} }

// Int is a number attribute of a whole number.
func Int(n int64) types.AttributeValue {
	return &types.AttributeValueMemberN{Value: fmt.Sprintf("%d", n)}
}

// Condition is a condition expression with its aliases. Names must be aliased
// always: scope, ttl, status and many more are reserved words.
type Condition struct {
	Expression string
	Names      map[string]string
	Values     Item
}

// Absent is the condition that an item does not exist yet.
func (t Table) Absent() Condition {
	return Condition{Expression: "attribute_not_exists(#pk)", Names: map[string]string{"#pk": t.PartitionKey}}
}

// Revision is the condition that an item is still the one read with revision
// rev; 0 stands for an item that did not exist.
func (t Table) Revision(rev int64) Condition {
	if rev == 0 {
		return t.Absent()
	}
	return Condition{Expression: "#rev = :rev", Names: map[string]string{"#rev": "rev"}, Values: Item{":rev": Int(rev)}}
}

// ConflictError tells that a condition did not hold. Current is the item that
// stood in the way, nil when there is none.
type ConflictError struct {
	Current Item
}

// Error says that the condition did not hold.
func (e *ConflictError) Error() string { return "conditional write refused" }

// Get reads one item consistently into document and tells whether it exists.
func (t Table) Get(ctx context.Context, k Key, document any) (bool, error) {
	out, err := t.Client.GetItem(ctx, &dynamodb.GetItemInput{TableName: &t.Name, Key: t.key(k), ConsistentRead: aws.Bool(true)})
	if err != nil {
		return false, fmt.Errorf("get item of %s: %w", t.Name, err)
	}
	if len(out.Item) == 0 {
		return false, nil
	}
	return true, Decode(out.Item, document)
}

// Put writes a document under a condition; a nil condition replaces whatever
// is there. A condition that does not hold is a *ConflictError.
func (t Table) Put(ctx context.Context, document any, condition *Condition) error {
	item, err := Encode(document)
	if err != nil {
		return err
	}
	in := &dynamodb.PutItemInput{TableName: &t.Name, Item: item}
	if condition != nil {
		in.ConditionExpression = &condition.Expression
		in.ExpressionAttributeNames, in.ExpressionAttributeValues = condition.Names, condition.Values
		in.ReturnValuesOnConditionCheckFailure = types.ReturnValuesOnConditionCheckFailureAllOld
	}
	_, err = t.Client.PutItem(ctx, in)
	return t.wrap("put item", err)
}

// Delete removes one item under a condition; a nil condition always holds.
// Removing what is not there is no error.
func (t Table) Delete(ctx context.Context, k Key, condition *Condition) error {
	in := &dynamodb.DeleteItemInput{TableName: &t.Name, Key: t.key(k)}
	if condition != nil {
		in.ConditionExpression = &condition.Expression
		in.ExpressionAttributeNames, in.ExpressionAttributeValues = condition.Names, condition.Values
	}
	_, err := t.Client.DeleteItem(ctx, in)
	return t.wrap("delete item", err)
}

func (t Table) wrap(operation string, err error) error {
	var refused *types.ConditionalCheckFailedException
	switch {
	case err == nil:
		return nil
	case errors.As(err, &refused):
		return &ConflictError{Current: refused.Item}
	}
	return fmt.Errorf("%s of %s: %w", operation, t.Name, err)
}
