package table

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
)

// Increment adds one to a whole-number attribute, sets others beside it and
// returns the new count. It is not idempotent: a repeat counts again.
func (t Table) Increment(ctx context.Context, k Key, counter string, set Item) (int64, error) {
	names := map[string]string{"#counter": counter}
	values := Item{":one": Int(1)}
	assignments := make([]string, 0, len(set))
	for name, value := range set {
		names["#"+name], values[":"+name] = name, value
		assignments = append(assignments, fmt.Sprintf("#%s = :%s", name, name))
	}
	expression := "ADD #counter :one"
	if len(assignments) > 0 {
		slices.Sort(assignments)
		expression += " SET " + strings.Join(assignments, ", ")
	}
	out, err := t.Client.UpdateItem(ctx, &dynamodb.UpdateItemInput{
		TableName: &t.Name, Key: t.key(k),
		UpdateExpression:         aws.String(expression),
		ExpressionAttributeNames: names, ExpressionAttributeValues: values,
		ReturnValues: types.ReturnValueUpdatedNew,
	})
	if err != nil {
		return 0, t.wrap("increment", err)
	}
	var count map[string]int64
	if err := Decode(Item{counter: out.Attributes[counter]}, &count); err != nil {
		return 0, err
	}
	return count[counter], nil
}
