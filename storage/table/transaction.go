package table

import (
	"context"
	"errors"
	"fmt"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
)

// MaxTransaction is the greatest number of writes in one transaction.
const MaxTransaction = 100

// PutWrite is a put of a transaction; a nil condition always holds.
func (t Table) PutWrite(document any, condition *Condition) (types.TransactWriteItem, error) {
	item, err := Encode(document)
	if err != nil {
		return types.TransactWriteItem{}, err
	}
	put := &types.Put{TableName: &t.Name, Item: item}
	if condition != nil {
		put.ConditionExpression = &condition.Expression
		put.ExpressionAttributeNames, put.ExpressionAttributeValues = condition.Names, condition.Values
		put.ReturnValuesOnConditionCheckFailure = types.ReturnValuesOnConditionCheckFailureAllOld
	}
	return types.TransactWriteItem{Put: put}, nil
}

// DeleteWrite is a delete of a transaction; a nil condition always holds.
func (t Table) DeleteWrite(k Key, condition *Condition) types.TransactWriteItem {
	del := &types.Delete{TableName: &t.Name, Key: t.key(k)}
	if condition != nil {
		del.ConditionExpression = &condition.Expression
		del.ExpressionAttributeNames, del.ExpressionAttributeValues = condition.Names, condition.Values
		del.ReturnValuesOnConditionCheckFailure = types.ReturnValuesOnConditionCheckFailureAllOld
	}
	return types.TransactWriteItem{Delete: del}
}

// Transact makes all writes or none. A condition that does not hold is a
// *ConflictError with the item of the first refused write. A collision with
// another transaction is returned as it comes: it says nothing of the item and
// is to be tried again.
func (t Table) Transact(ctx context.Context, writes ...types.TransactWriteItem) error {
	_, err := t.Client.TransactWriteItems(ctx, &dynamodb.TransactWriteItemsInput{TransactItems: writes})
	if err == nil {
		return nil
	}
	if cancelled, ok := errors.AsType[*types.TransactionCanceledException](err); ok {
		for _, reason := range cancelled.CancellationReasons {
			if reason.Code != nil && *reason.Code == "ConditionalCheckFailed" {
				return &ConflictError{Current: reason.Item}
			}
		}
	}
	return fmt.Errorf("write transaction of %s: %w", t.Name, err)
}
