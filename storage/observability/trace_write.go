package observability

import (
	"context"
	"fmt"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"millrace/domain/observability"
	"millrace/storage/table"
)

const (
	// maxBatchWrite is DynamoDB's limit for one BatchWriteItem.
	maxBatchWrite = 25
	// unprocessedAttempts bounds how often DynamoDB may leave rows for later.
	unprocessedAttempts = 8
	unprocessedWait     = 20 * time.Millisecond
)

// PutTraces writes the trace rows of signals that belong to a request and
// returns how many. Writing a row again changes nothing.
func (s Store) PutTraces(ctx context.Context, signals []observability.Pending) (int, error) {
	rows := map[table.Key]table.Item{}
	for _, signal := range signals {
		if signal.RequestID != "" {
			rows[table.Key{Partition: observability.TracePK(signal.RequestID), Sort: observability.SignalSK(signal.Timestamp, signal.SignalID)}] = traceRow(signal)
		}
	}
	writes := make([]types.WriteRequest, 0, maxBatchWrite)
	for _, row := range rows {
		writes = append(writes, types.WriteRequest{PutRequest: &types.PutRequest{Item: row}})
		if len(writes) == maxBatchWrite {
			if err := s.writeAll(ctx, writes); err != nil {
				return 0, err
			}
			writes = writes[:0]
		}
	}
	return len(rows), s.writeAll(ctx, writes)
}

func (s Store) writeAll(ctx context.Context, writes []types.WriteRequest) error {
	wait := unprocessedWait
	for attempt := 1; len(writes) > 0; attempt++ {
		out, err := s.Client.BatchWriteItem(ctx, &dynamodb.BatchWriteItemInput{RequestItems: map[string][]types.WriteRequest{s.Table.Name: writes}})
		if err != nil {
			return fmt.Errorf("put trace rows: %w", err)
		}
		writes = out.UnprocessedItems[s.Table.Name]
		if len(writes) == 0 {
			return nil
		}
		if attempt == unprocessedAttempts {
			return fmt.Errorf("put trace rows: %d left unprocessed", len(writes))
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(wait):
		}
		wait *= 2
	}
	return nil
}

func traceRow(p observability.Pending) table.Item {
	row := table.Item{
		"PK": table.String(observability.TracePK(p.RequestID)), "SK": table.String(observability.SignalSK(p.Timestamp, p.SignalID)),
		"app_id": table.String(p.AppID), "signal_id": table.String(p.SignalID), "protocol": table.String(string(p.Protocol)),
		"type": table.String(string(p.Type)), "status": table.String(string(p.Status)),
		expires: expiry(p.Timestamp.Add(observability.SignalTTL)),
	}
	measures(row, p)
	return row
}
