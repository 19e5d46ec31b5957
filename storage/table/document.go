// Package table keeps documents in DynamoDB tables: exact decimals, conditions,
// transactions and paging. A document is any value with a JSON form; the item
// has the same fields, so that table, objects and API show one shape.
package table

import (
	"bytes"
	"encoding/json"
	"fmt"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"millrace/domain/exact"
)

// Item is a DynamoDB item.
type Item = map[string]types.AttributeValue

// Encode is the item of a document. Numbers keep every digit; a number that
// DynamoDB can't hold exactly is an error.
func Encode(document any) (Item, error) {
	body, err := json.Marshal(document)
	if err != nil {
		return nil, fmt.Errorf("encode item: %w", err)
	}
	decoder := json.NewDecoder(bytes.NewReader(body))
	decoder.UseNumber()
	var fields map[string]any
	if err := decoder.Decode(&fields); err != nil {
		return nil, fmt.Errorf("encode item: %w", err)
	}
	item := make(Item, len(fields))
	for name, value := range fields {
		if item[name], err = encodeValue(value); err != nil {
			return nil, fmt.Errorf("encode attribute %s: %w", name, err)
		}
	}
	return item, nil
}

func encodeValue(value any) (types.AttributeValue, error) {
	switch v := value.(type) {
	case string:
		return &types.AttributeValueMemberS{Value: v}, nil
	case json.Number:
		return encodeNumber(v)
	case bool:
		return &types.AttributeValueMemberBOOL{Value: v}, nil
	case []any:
		return encodeList(v)
	case map[string]any:
		return encodeMap(v)
	default:
		return &types.AttributeValueMemberNULL{Value: true}, nil
	}
}

func encodeNumber(literal json.Number) (types.AttributeValue, error) {
	d, err := exact.Parse(literal.String())
	if err != nil {
		return nil, err
	}
	if !d.Storable() {
		return nil, fmt.Errorf("number of %d digits is more than a table holds: %w", d.Digits(), exact.ErrNotANumber)
	}
	return &types.AttributeValueMemberN{Value: d.String()}, nil
}

func encodeList(list []any) (types.AttributeValue, error) {
	values := make([]types.AttributeValue, len(list))
	for i, element := range list {
		value, err := encodeValue(element)
		if err != nil {
			return nil, err
		}
		values[i] = value
	}
	return &types.AttributeValueMemberL{Value: values}, nil
}

func encodeMap(fields map[string]any) (types.AttributeValue, error) {
	values := make(Item, len(fields))
	for name, field := range fields {
		value, err := encodeValue(field)
		if err != nil {
			return nil, err
		}
		values[name] = value
	}
	return &types.AttributeValueMemberM{Value: values}, nil
}

// Decode reads an item into a document.
func Decode(item Item, document any) error {
	body, err := json.Marshal(plainMap(item))
	if err != nil {
		return fmt.Errorf("decode item: %w", err)
	}
	if err := json.Unmarshal(body, document); err != nil {
		return fmt.Errorf("decode item: %w", err)
	}
	return nil
}

func plainMap(item Item) map[string]any {
	fields := make(map[string]any, len(item))
	for name, value := range item {
		fields[name] = plain(value)
	}
	return fields
}

func plain(value types.AttributeValue) any {
	switch v := value.(type) {
	case *types.AttributeValueMemberS:
		return v.Value
	case *types.AttributeValueMemberN:
		return json.Number(v.Value)
	case *types.AttributeValueMemberBOOL:
		return v.Value
	case *types.AttributeValueMemberB:
		return v.Value
	case *types.AttributeValueMemberM:
		return plainMap(v.Value)
	case *types.AttributeValueMemberL:
		list := make([]any, len(v.Value))
		for i, element := range v.Value {
			list[i] = plain(element)
		}
		return list
	case *types.AttributeValueMemberSS:
		return v.Value
	}
	return nil
}
