package table

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
)

// ErrBadCursor marks a cursor that this query did not hand out.
var ErrBadCursor = errors.New("cursor is not one of this list")

// PageQuery asks for one page of a partition, of the table or of an index.
type PageQuery struct {
	// Index is the index to read; "" is the table itself. The keys of an index
	// are named after it: GSI1 has GSI1PK and GSI1SK.
	Index     string
	Partition string
	// Prefix bounds the sort keys to those that begin with it; "" takes all.
	Prefix string
	// Cursor is where the last page ended; "" starts at the beginning.
	Cursor     string
	Limit      int32
	Descending bool
	// Consistent reads see every acknowledged write; indexes can't.
	Consistent bool
}

// Page reads one page and the cursor of the next one, "" at the end. A cursor
// of another list is ErrBadCursor.
func (t Table) Page(ctx context.Context, q PageQuery) ([]Item, string, error) {
	in, err := t.pageInput(q)
	if err != nil {
		return nil, "", err
	}
	out, err := t.Client.Query(ctx, in)
	if err != nil {
		return nil, "", fmt.Errorf("query page of %s: %w", t.Name, err)
	}
	cursor, err := encodeCursor(out.LastEvaluatedKey)
	return out.Items, cursor, err
}

func (t Table) pageInput(q PageQuery) (*dynamodb.QueryInput, error) {
	partitionKey, sortKey := t.PartitionKey, t.SortKey
	in := &dynamodb.QueryInput{TableName: &t.Name, ScanIndexForward: aws.Bool(!q.Descending), ConsistentRead: aws.Bool(q.Consistent)}
	keys := []string{t.PartitionKey, t.SortKey}
	if q.Index != "" {
		partitionKey, sortKey = q.Index+"PK", q.Index+"SK"
		in.IndexName = &q.Index
		keys = append(keys, partitionKey, sortKey)
	}
	condition := "#pk = :pk"
	in.ExpressionAttributeNames = map[string]string{"#pk": partitionKey}
	in.ExpressionAttributeValues = Item{":pk": String(q.Partition)}
	if q.Prefix != "" {
		condition += " AND begins_with(#sk, :prefix)"
		in.ExpressionAttributeNames["#sk"] = sortKey
		in.ExpressionAttributeValues[":prefix"] = String(q.Prefix)
	}
	in.KeyConditionExpression = &condition
	if q.Limit > 0 {
		in.Limit = &q.Limit
	}
	if q.Cursor == "" {
		return in, nil
	}
	start, err := decodeCursor(q.Cursor, keys)
	if err != nil || start[partitionKey] != q.Partition || !strings.HasPrefix(start[sortKey], q.Prefix) {
		return nil, ErrBadCursor
	}
	in.ExclusiveStartKey = Item{}
	for name, value := range start {
		in.ExclusiveStartKey[name] = String(value)
	}
	return in, nil
}

func encodeCursor(last Item) (string, error) {
	if len(last) == 0 {
		return "", nil
	}
	keys := make(map[string]string, len(last))
	for name, value := range last {
		text, ok := value.(*types.AttributeValueMemberS)
		if !ok {
			return "", fmt.Errorf("encode cursor: key attribute %s is no string", name)
		}
		keys[name] = text.Value
	}
	body, err := json.Marshal(keys)
	if err != nil {
		return "", fmt.Errorf("encode cursor: %w", err)
	}
	return base64.RawURLEncoding.EncodeToString(body), nil
}

const maxCursor = 8 * 1024

func decodeCursor(cursor string, want []string) (map[string]string, error) {
	if len(cursor) > maxCursor {
		return nil, ErrBadCursor
	}
	body, err := base64.RawURLEncoding.DecodeString(cursor)
	if err != nil {
		return nil, ErrBadCursor
	}
	var keys map[string]string
	if err := json.Unmarshal(body, &keys); err != nil || len(keys) != len(want) {
		return nil, ErrBadCursor
	}
	for _, name := range want {
		if keys[name] == "" {
			return nil, ErrBadCursor
		}
	}
	return keys, nil
}
