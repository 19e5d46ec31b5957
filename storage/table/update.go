package table

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"millrace/domain/exact"
)

// Change is an update of one item under a condition. An update creates the item
// when it does not exist: a condition must forbid that where it is not wanted.
type Change struct {
	Key Key
	// Set replaces attributes by values with a JSON form.
	Set map[string]any
	// SetOnce gives attributes their first value and leaves later ones alone.
	SetOnce map[string]any
	// Add adds to numbers; an absent one counts as 0. It is not idempotent.
	Add map[string]exact.Decimal
	// Remove drops attributes.
	Remove []string
	// Condition must hold; nil always holds.
	Condition *Condition
}

// Present is the condition that an item exists.
func (t Table) Present() Condition {
	return Condition{Expression: "attribute_exists(#pk)", Names: map[string]string{"#pk": t.PartitionKey}}
}

// Update makes one change. When document is not nil it receives the item as it
// is afterwards. A condition that does not hold is a *ConflictError.
func (t Table) Update(ctx context.Context, c Change, document any) error {
	e, err := c.expression()
	if err != nil {
		return err
	}
	in := &dynamodb.UpdateItemInput{
		TableName: &t.Name, Key: t.key(c.Key), UpdateExpression: &e.update, ConditionExpression: e.condition,
		ExpressionAttributeNames: e.names, ExpressionAttributeValues: e.values,
	}
	if c.Condition != nil {
		in.ReturnValuesOnConditionCheckFailure = types.ReturnValuesOnConditionCheckFailureAllOld
	}
	if document != nil {
		in.ReturnValues = types.ReturnValueAllNew
	}
	out, err := t.Client.UpdateItem(ctx, in)
	if err != nil {
		return t.wrap("update item", err)
	}
	if document == nil {
		return nil
	}
	return Decode(out.Attributes, document)
}

// UpdateWrite is a change of a transaction.
func (t Table) UpdateWrite(c Change) (types.TransactWriteItem, error) {
	e, err := c.expression()
	if err != nil {
		return types.TransactWriteItem{}, err
	}
	update := &types.Update{
		TableName: &t.Name, Key: t.key(c.Key), UpdateExpression: &e.update, ConditionExpression: e.condition,
		ExpressionAttributeNames: e.names, ExpressionAttributeValues: e.values,
	}
	if c.Condition != nil {
		update.ReturnValuesOnConditionCheckFailure = types.ReturnValuesOnConditionCheckFailureAllOld
	}
	return types.TransactWriteItem{Update: update}, nil
}

// CheckWrite is a condition of a transaction on an item that it does not change.
func (t Table) CheckWrite(k Key, condition Condition) types.TransactWriteItem {
	return types.TransactWriteItem{ConditionCheck: &types.ConditionCheck{
		TableName: &t.Name, Key: t.key(k), ConditionExpression: &condition.Expression,
		ExpressionAttributeNames: condition.Names, ExpressionAttributeValues: condition.Values,
		ReturnValuesOnConditionCheckFailure: types.ReturnValuesOnConditionCheckFailureAllOld,
	}}
}

// expression is an update expression under construction. Its aliases begin with
// u, so that they never meet those of a condition.
type expression struct {
	update    string
	condition *string
	names     map[string]string
	values    Item
	clauses   map[string][]string
}

func (c Change) expression() (expression, error) {
	e := expression{names: map[string]string{}, values: Item{}, clauses: map[string][]string{}}
	for _, part := range []struct {
		values map[string]any
		clause string
		format string
	}{
		{c.Set, "SET", "%[1]s = %[2]s"},
		{c.SetOnce, "SET", "%[1]s = if_not_exists(%[1]s, %[2]s)"},
		{decimals(c.Add), "ADD", "%[1]s %[2]s"},
	} {
		if err := e.assign(part.values, part.clause, part.format); err != nil {
			return expression{}, err
		}
	}
	for _, name := range c.Remove {
		e.clauses["REMOVE"] = append(e.clauses["REMOVE"], e.alias(name))
	}
	for _, clause := range []string{"SET", "ADD", "REMOVE"} {
		if terms := e.clauses[clause]; len(terms) > 0 {
			e.update += clause + " " + strings.Join(terms, ", ") + " "
		}
	}
	if c.Condition != nil {
		e.condition = &c.Condition.Expression
		maps.Copy(e.names, c.Condition.Names)
		maps.Copy(e.values, c.Condition.Values)
	}
	if len(e.values) == 0 {
		e.values = nil
	}
	return e, nil
}

func decimals(numbers map[string]exact.Decimal) map[string]any {
	values := make(map[string]any, len(numbers))
	for name, number := range numbers {
		values[name] = number
	}
	return values
}

func (e *expression) assign(values map[string]any, clause, format string) error {
	encoded, err := Encode(values)
	if err != nil {
		return err
	}
	for _, name := range slices.Sorted(maps.Keys(encoded)) {
		alias := e.alias(name)
		value := ":" + alias[1:]
		e.values[value] = encoded[name]
		e.clauses[clause] = append(e.clauses[clause], fmt.Sprintf(format, alias, value))
	}
	return nil
}

func (e *expression) alias(name string) string {
	alias := fmt.Sprintf("#u%d", len(e.names))
	e.names[alias] = name
	return alias
}
