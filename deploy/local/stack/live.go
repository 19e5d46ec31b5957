package stack

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/config"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"millrace/domain/factory"
)

const (
	livePoll = time.Second
	// lateAfter is when the person is told which factory shows nothing yet.
	lateAfter = 60 * time.Second

	statusTableEnv     = "MILLRACE_FACTORY_STATUS_TABLE"
	defaultStatusTable = "millrace-factory-status"
)

// tables returns a client of the DynamoDB stand-in.
func (s *Stack) tables(ctx context.Context) (*dynamodb.Client, error) {
	cfg, err := config.LoadDefaultConfig(ctx,
		config.WithRegion(region),
		config.WithCredentialsProvider(credentials.NewStaticCredentialsProvider(accessKey, secretKey, "")),
		config.WithSharedConfigFiles(nil), config.WithSharedCredentialsFiles(nil))
	if err != nil {
		return nil, fmt.Errorf("configure table client: %w", err)
	}
	return dynamodb.NewFromConfig(cfg, func(o *dynamodb.Options) {
		o.BaseEndpoint = aws.String("http://" + addr(s.Ports.DynamoDB))
	}), nil
}

// watchLive says when each factory's state is first seen to come from a message sent after began.
func (s *Stack) watchLive(ctx context.Context, client *dynamodb.Client, began time.Time) {
	waiting := append([]string(nil), Factories...)
	late := began.Add(lateAfter)
	for len(waiting) > 0 {
		select {
		case <-ctx.Done():
			return
		case <-time.After(livePoll):
		}
		live, err := liveSince(ctx, client, waiting, began.Truncate(time.Second))
		if err != nil {
			slog.Debug("look for live data", "error", err)
		}
		waiting = without(waiting, live)
		for _, id := range live {
			s.Say("live data from %s after %s", id, time.Since(began).Round(time.Second))
		}
		if !late.IsZero() && len(waiting) > 0 && time.Now().After(late) {
			s.Say("no live data yet from %s: see the logs of worker, iot and edge-* in %s", strings.Join(waiting, ", "), s.path("logs"))
			late = time.Time{}
		}
	}
	s.Say("all factories live after %s", time.Since(began).Round(time.Second))
}

// liveSince returns which factories have a state not older than since, in one read.
func liveSince(ctx context.Context, client *dynamodb.Client, ids []string, since time.Time) ([]string, error) {
	table := os.Getenv(statusTableEnv)
	if table == "" {
		table = defaultStatusTable
	}
	keys := make([]map[string]types.AttributeValue, 0, len(ids))
	for _, id := range ids {
		keys = append(keys, map[string]types.AttributeValue{
			"pk": &types.AttributeValueMemberS{Value: factory.PK(id)},
			"sk": &types.AttributeValueMemberS{Value: factory.LatestSK},
		})
	}
	out, err := client.BatchGetItem(ctx, &dynamodb.BatchGetItemInput{RequestItems: map[string]types.KeysAndAttributes{
		table: {Keys: keys, ProjectionExpression: aws.String("factory_id, last_factory_state_at")},
	}})
	if err != nil {
		return nil, fmt.Errorf("read factory states: %w", err)
	}
	var live []string
	for _, item := range out.Responses[table] {
		id, at := text(item["factory_id"]), text(item["last_factory_state_at"])
		if t, err := time.Parse(time.RFC3339Nano, at); err == nil && !t.Before(since) {
			live = append(live, id)
		}
	}
	return live, nil
}

func text(v types.AttributeValue) string {
	if s, ok := v.(*types.AttributeValueMemberS); ok {
		return s.Value
	}
	return ""
}

func without(all, remove []string) []string {
	var left []string
	for _, a := range all {
		found := false
		for _, r := range remove {
			found = found || a == r
		}
		if !found {
			left = append(left, a)
		}
	}
	return left
}
