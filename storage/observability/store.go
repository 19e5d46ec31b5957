// Package observability keeps signals, aggregates, traces, alerts and alert
// rules in the governance table (UOP seed, section 7).
package observability

import (
	"context"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"millrace/domain/observability"
	"millrace/storage/table"
)

// API is the part of the DynamoDB client that the store needs.
type API interface {
	table.API
	BatchWriteItem(context.Context, *dynamodb.BatchWriteItemInput, ...func(*dynamodb.Options)) (*dynamodb.BatchWriteItemOutput, error)
	TransactGetItems(context.Context, *dynamodb.TransactGetItemsInput, ...func(*dynamodb.Options)) (*dynamodb.TransactGetItemsOutput, error)
}

// Store is the governance table (PK, SK; GSI1 keys only, GSI2 of pending
// signals).
type Store struct {
	Table  table.Table
	Client API
}

// New is the store over the table of this name.
func New(client API, name string) Store {
	return Store{Table: table.Table{Client: client, Name: name, PartitionKey: "PK", SortKey: "SK"}, Client: client}
}

// Names of the indexes and of key attributes.
const (
	gsi1    = "GSI1"
	gsi2    = "GSI2"
	gsi2PK  = "GSI2PK"
	gsi2SK  = "GSI2SK"
	expires = "expires_at"
)

func key(k table.Key) table.Item {
	return table.Item{"PK": table.String(k.Partition), "SK": table.String(k.Sort)}
}

func signalKey(p observability.Pending) table.Key {
	return table.Key{Partition: observability.AppPK(p.AppID), Sort: observability.SignalSK(p.Timestamp, p.SignalID)}
}

// text is a string attribute, "" where there is none.
func text(item table.Item, name string) string {
	if s, ok := item[name].(*types.AttributeValueMemberS); ok {
		return s.Value
	}
	return ""
}

// number is the text of a number attribute, "" where there is none.
func number(item table.Item, name string) string {
	if n, ok := item[name].(*types.AttributeValueMemberN); ok {
		return n.Value
	}
	return ""
}

// expired tells whether an item is past its time: DynamoDB deletes late.
func expired(item table.Item, now time.Time) bool {
	var at struct {
		ExpiresAt int64 `json:"expires_at"`
	}
	if value, ok := item[expires]; !ok || table.Decode(table.Item{expires: value}, &at) != nil {
		return false
	}
	return at.ExpiresAt <= now.Unix()
}
