package observability

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"millrace/domain/exact"
	"millrace/domain/observability"
	"millrace/storage/table"
)

// PendingQuery asks for a page of a shard's pending signals, in the order of
// their receipt.
type PendingQuery struct {
	Shard int
	// From and To bound the receipt: from From on, before To. A zero From is the
	// beginning.
	From, To time.Time
	// After is the position that the last page returned, nil for the beginning.
	After table.Item
	Limit int32
}

// Pending reads one page of pending signals and the position after it, nil at
// the end. The index is eventually consistent: signals that were counted already
// may be among them, and the newest may be missing.
func (s Store) Pending(ctx context.Context, q PendingQuery) ([]observability.Pending, table.Item, error) {
	out, err := s.Client.Query(ctx, &dynamodb.QueryInput{
		TableName: &s.Table.Name, IndexName: aws.String(gsi2), Limit: &q.Limit, ExclusiveStartKey: q.After,
		KeyConditionExpression: aws.String("GSI2PK = :pk AND GSI2SK BETWEEN :from AND :to"),
		ExpressionAttributeValues: table.Item{
			// A sort key goes on with # after the stamp, so that what was received at To is above it.
			":pk": table.String(observability.PendingPK(q.Shard)), ":from": table.String(observability.Stamp(q.From)), ":to": table.String(observability.Stamp(q.To)),
		},
	})
	if err != nil {
		return nil, nil, fmt.Errorf("query pending signals: %w", err)
	}
	signals := make([]observability.Pending, 0, len(out.Items))
	for _, item := range out.Items {
		signal, err := decodePending(item)
		if err != nil {
			return nil, nil, err
		}
		signals = append(signals, signal)
	}
	return signals, out.LastEvaluatedKey, nil
}

// decodePending reads what counters need of a signal's item or index entry.
func decodePending(item table.Item) (observability.Pending, error) {
	at, id, err := observability.ParseSignalSK(text(item, "SK"))
	if err != nil {
		return observability.Pending{}, err
	}
	p := observability.Pending{
		AppID: observability.AppOfPK(text(item, "PK")), SignalID: id, Timestamp: at,
		Protocol: observability.Protocol(text(item, "protocol")), Type: observability.Type(text(item, "type")),
		Status: observability.Status(text(item, "status")), RequestID: text(item, "request_id"),
	}
	if stamp, _, pending := strings.Cut(text(item, gsi2SK), "#"); pending {
		if p.ReceivedAt, err = time.Parse(observability.TimestampLayout, stamp); err != nil {
			return p, fmt.Errorf("read receipt of a signal: %w", err)
		}
	}
	for name, into := range map[string]*int64{
		"input_tokens": &p.Input, "cached_input_tokens": &p.CachedInput, "output_tokens": &p.Output, "reasoning_tokens": &p.Reasoning,
		"total_tokens": &p.TotalTokens,
	} {
		if literal := number(item, name); literal != "" {
			if *into, err = strconv.ParseInt(literal, 10, 64); err != nil {
				return p, fmt.Errorf("read %s of a signal: %w", name, err)
			}
		}
	}
	for name, into := range map[string]**exact.Decimal{"duration_ms": &p.DurationMS, "cost_usd": &p.CostUSD} {
		if literal := number(item, name); literal != "" {
			value, err := exact.Parse(literal)
			if err != nil {
				return p, fmt.Errorf("read %s of a signal: %w", name, err)
			}
			*into = &value
		}
	}
	return p, nil
}
