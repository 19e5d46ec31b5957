package stack

import (
	"context"
	"fmt"
	"net/url"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/stretchr/testify/require"

	"millrace/deploy/local/internal/tooltest"
	"millrace/domain/factory"
)

// states is a stack with a table of factory states.
func states(t *testing.T) (*Stack, *dynamodb.Client) {
	t.Helper()
	u, err := url.Parse(tooltest.DynamoDB(t))
	require.NoError(t, err)
	port, err := strconv.Atoi(u.Port())
	require.NoError(t, err)
	s := &Stack{Ports: Ports{DynamoDB: port}}
	client, err := s.tables(t.Context())
	require.NoError(t, err)
	attribute := func(name string) types.AttributeDefinition {
		return types.AttributeDefinition{AttributeName: aws.String(name), AttributeType: types.ScalarAttributeTypeS}
	}
	_, err = client.CreateTable(t.Context(), &dynamodb.CreateTableInput{
		TableName: aws.String(defaultStatusTable), BillingMode: types.BillingModePayPerRequest,
		AttributeDefinitions: []types.AttributeDefinition{attribute("pk"), attribute("sk")},
		KeySchema: []types.KeySchemaElement{
			{AttributeName: aws.String("pk"), KeyType: types.KeyTypeHash}, {AttributeName: aws.String("sk"), KeyType: types.KeyTypeRange},
		},
	})
	require.NoError(t, err)
	return s, client
}

func putState(t *testing.T, client *dynamodb.Client, id, at string) {
	t.Helper()
	text := func(s string) types.AttributeValue { return &types.AttributeValueMemberS{Value: s} }
	item := map[string]types.AttributeValue{"pk": text(factory.PK(id)), "sk": text(factory.LatestSK), "factory_id": text(id)}
	if at != "" {
		item["last_factory_state_at"] = text(at)
	}
	_, err := client.PutItem(t.Context(), &dynamodb.PutItemInput{TableName: aws.String(defaultStatusTable), Item: item})
	require.NoError(t, err)
}

func TestDataIsLiveWhenItsMessageIsNotOlderThanTheRun(t *testing.T) {
	_, client := states(t)
	began := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	putState(t, client, "factory-a", "2026-03-01T12:00:00Z")
	putState(t, client, "factory-b", "2026-03-01T11:59:59Z") // of the run before
	putState(t, client, "factory-c", "")                     // refreshed only
	live, err := liveSince(t.Context(), client, Factories, began)
	require.NoError(t, err)
	require.Equal(t, []string{"factory-a"}, live)
}

func TestWatchingEndsWhenAllAreLive(t *testing.T) {
	s, client := states(t)
	var mu sync.Mutex
	var said []string
	s.Say = func(format string, args ...any) {
		mu.Lock()
		defer mu.Unlock()
		said = append(said, fmt.Sprintf(format, args...))
	}
	s.Dir = t.TempDir()
	for _, id := range Factories {
		putState(t, client, id, time.Now().UTC().Add(time.Second).Format(time.RFC3339))
	}
	s.watchLive(t.Context(), client, time.Now())
	mu.Lock()
	defer mu.Unlock()
	require.Len(t, said, len(Factories)+1)
	require.Contains(t, said[len(Factories)], "all factories live")
}

func TestWatchingSaysWhichFactoryIsLate(t *testing.T) {
	s, client := states(t)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	said := make(chan string, 10)
	s.Say = func(format string, args ...any) { said <- fmt.Sprintf(format, args...) }
	began := time.Now().Add(-lateAfter)
	putState(t, client, "factory-a", time.Now().UTC().Format(time.RFC3339))
	done := make(chan struct{})
	go func() { defer close(done); s.watchLive(ctx, client, began) }()
	require.Contains(t, <-said, "live data from factory-a")
	late := <-said
	require.Contains(t, late, "no live data yet from factory-b, factory-c")
	cancel()
	<-done
	require.Empty(t, said)
}
