package observability

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"millrace/domain/exact"
	"millrace/domain/observability"
	"millrace/storage/table"
)

// Put keeps a received signal, unless one with its id and timestamp is there
// already: it tells whether it was new. Attributes above 1 KiB have an item of
// their own, which is written first, so that a signal never lacks them. Repeating
// a Put changes nothing.
func (s Store) Put(ctx context.Context, signal observability.Signal) (fresh bool, err error) {
	item := encode(signal)
	if signal.AttributesSize() > observability.LargeAttributes {
		if _, err := s.putAbsent(ctx, largeAttributes(signal)); err != nil {
			return false, err
		}
		delete(item, "attributes")
		item["attributes_apart"] = &types.AttributeValueMemberBOOL{Value: true}
	}
	return s.putAbsent(ctx, item)
}

func (s Store) putAbsent(ctx context.Context, item table.Item) (bool, error) {
	_, err := s.Client.PutItem(ctx, &dynamodb.PutItemInput{
		TableName: &s.Table.Name, Item: item, ConditionExpression: aws.String("attribute_not_exists(PK)"),
	})
	var exists *types.ConditionalCheckFailedException
	switch {
	case errors.As(err, &exists):
		return false, nil
	case err != nil:
		return false, fmt.Errorf("put signal: %w", err)
	}
	return true, nil
}

// encode is the item of a signal. It is written out, not reflected: this is the
// hot path of ingest.
func encode(s observability.Signal) table.Item {
	sk := observability.SignalSK(s.Timestamp, s.SignalID)
	item := table.Item{
		"PK": table.String(observability.AppPK(s.AppID)), "SK": table.String(sk),
		gsi2PK:      table.String(observability.PendingPK(observability.ShardOf(s.AppID))),
		gsi2SK:      table.String(observability.PendingSK(s.ReceivedAt, s.SignalID)),
		"signal_id": table.String(s.SignalID), "app_id": table.String(s.AppID),
		"timestamp": table.String(observability.Stamp(s.Timestamp)), "received_at": table.String(observability.Stamp(s.ReceivedAt)),
		"protocol": table.String(string(s.Protocol)), "type": table.String(string(s.Type)), "status": table.String(string(s.Status)),
		expires: expiry(s.Timestamp.Add(observability.SignalTTL)),
	}
	if s.RequestID != "" {
		item["GSI1PK"], item["GSI1SK"] = table.String(observability.RequestPK(s.RequestID)), table.String(sk)
	}
	for name, value := range map[string]string{
		"request_id": s.RequestID, "name": s.Name, "parent_signal_id": s.ParentSignalID, "model": s.Model,
		"cost_source": s.CostSource, "price_version": s.PriceVersion,
	} {
		if value != "" {
			item[name] = table.String(value)
		}
	}
	if s.TokenMismatch {
		item["token_mismatch"] = &types.AttributeValueMemberBOOL{Value: true}
	}
	if len(s.Attributes) > 0 {
		item["attributes"] = attributes(s.Attributes)
	}
	measures(item, s.Pending())
	return item
}

// measures adds the numbers of a signal to its item or its trace row.
func measures(item table.Item, p observability.Pending) {
	for name, count := range map[string]int64{
		"input_tokens": p.Input, "cached_input_tokens": p.CachedInput, "output_tokens": p.Output, "reasoning_tokens": p.Reasoning,
		"total_tokens": p.TotalTokens,
	} {
		if count != 0 {
			item[name] = table.Int(count)
		}
	}
	for name, value := range map[string]*exact.Decimal{"duration_ms": p.DurationMS, "cost_usd": p.CostUSD} {
		if value != nil {
			item[name] = &types.AttributeValueMemberN{Value: value.String()}
		}
	}
}

func attributes(all map[string]string) types.AttributeValue {
	values := make(table.Item, len(all))
	for name, value := range all {
		values[name] = table.String(value)
	}
	return &types.AttributeValueMemberM{Value: values}
}

func largeAttributes(s observability.Signal) table.Item {
	return table.Item{
		"PK":         table.String(observability.AppPK(s.AppID)),
		"SK":         table.String(observability.AttributesSK(s.Timestamp, s.SignalID)),
		"attributes": attributes(s.Attributes),
		expires:      expiry(s.Timestamp.Add(observability.SignalTTL)),
	}
}

func expiry(at time.Time) types.AttributeValue {
	return &types.AttributeValueMemberN{Value: strconv.FormatInt(at.Unix(), 10)}
}
