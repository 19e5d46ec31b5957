package sweep

import (
	"context"
	"errors"
	"log/slog"
	"strconv"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/stretchr/testify/require"

	"millrace/deploy/local/internal/tooltest"
)

var now = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

func client(t *testing.T) *dynamodb.Client {
	t.Helper()
	return dynamodb.New(dynamodb.Options{
		BaseEndpoint: aws.String(tooltest.DynamoDB(t)), Region: "ap-south-2",
		Credentials: credentials.NewStaticCredentialsProvider("a", "b", ""),
	})
}

// makeTable makes a table with a reserved word as its time to live attribute, when it has one.
func makeTable(t *testing.T, db *dynamodb.Client, name, ttl string) {
	t.Helper()
	_, err := db.CreateTable(t.Context(), &dynamodb.CreateTableInput{
		TableName: &name, BillingMode: types.BillingModePayPerRequest,
		KeySchema: []types.KeySchemaElement{
			{AttributeName: aws.String("pk"), KeyType: types.KeyTypeHash}, {AttributeName: aws.String("sk"), KeyType: types.KeyTypeRange},
		},
		AttributeDefinitions: []types.AttributeDefinition{
			{AttributeName: aws.String("pk"), AttributeType: types.ScalarAttributeTypeS}, {AttributeName: aws.String("sk"), AttributeType: types.ScalarAttributeTypeS},
		},
	})
	require.NoError(t, err)
	if ttl == "" {
		return
	}
	_, err = db.UpdateTimeToLive(t.Context(), &dynamodb.UpdateTimeToLiveInput{
		TableName: &name, TimeToLiveSpecification: &types.TimeToLiveSpecification{AttributeName: &ttl, Enabled: aws.Bool(true)},
	})
	require.NoError(t, err)
}

func key(sk string) map[string]types.AttributeValue {
	return map[string]types.AttributeValue{"pk": &types.AttributeValueMemberS{Value: "p"}, "sk": &types.AttributeValueMemberS{Value: sk}}
}

func put(t *testing.T, db *dynamodb.Client, table, sk, attribute string, value types.AttributeValue) {
	t.Helper()
	item := key(sk)
	if value != nil {
		item[attribute] = value
	}
	_, err := db.PutItem(t.Context(), &dynamodb.PutItemInput{TableName: &table, Item: item})
	require.NoError(t, err)
}

func epoch(at time.Time) types.AttributeValue {
	return &types.AttributeValueMemberN{Value: strconv.FormatInt(at.Unix(), 10)}
}

func left(t *testing.T, db *dynamodb.Client, table string) []string {
	t.Helper()
	out, err := db.Query(t.Context(), &dynamodb.QueryInput{
		TableName: &table, KeyConditionExpression: aws.String("pk = :p"),
		ExpressionAttributeValues: map[string]types.AttributeValue{":p": &types.AttributeValueMemberS{Value: "p"}},
	})
	require.NoError(t, err)
	var sks []string
	for _, item := range out.Items {
		sks = append(sks, item["sk"].(*types.AttributeValueMemberS).Value)
	}
	return sks
}

func TestExpiredItemsAreDeletedAndOthersKept(t *testing.T) {
	db := client(t)
	makeTable(t, db, "factory-status", "ttl")
	makeTable(t, db, "governance", "expires_at")
	makeTable(t, db, "without", "")
	put(t, db, "factory-status", "a-second-ago", "ttl", epoch(now.Add(-time.Second)))
	put(t, db, "factory-status", "at-this-second", "ttl", epoch(now))
	put(t, db, "factory-status", "in-a-second", "ttl", epoch(now.Add(time.Second)))
	put(t, db, "factory-status", "never", "ttl", nil)
	put(t, db, "factory-status", "six-years-ago", "ttl", epoch(now.AddDate(-6, 0, 0)))
	put(t, db, "factory-status", "text", "ttl", &types.AttributeValueMemberS{Value: "1"})
	put(t, db, "governance", "a-day-ago", "expires_at", epoch(now.AddDate(0, 0, -1)))
	put(t, db, "governance", "wrong-attribute", "ttl", epoch(now.AddDate(0, 0, -1)))
	put(t, db, "without", "a-day-ago", "ttl", epoch(now.AddDate(0, 0, -1)))

	deleted, err := Once(t.Context(), db, now)
	require.NoError(t, err)
	require.Equal(t, 2, deleted)
	require.Equal(t, []string{"at-this-second", "in-a-second", "never", "six-years-ago", "text"}, left(t, db, "factory-status"))
	require.Equal(t, []string{"wrong-attribute"}, left(t, db, "governance"))
	require.Equal(t, []string{"a-day-ago"}, left(t, db, "without"))

	deleted, err = Once(t.Context(), db, now)
	require.NoError(t, err)
	require.Zero(t, deleted, "a second sweep finds nothing")
}

func TestSweepGoesThroughAllPages(t *testing.T) {
	db := client(t)
	makeTable(t, db, "many", "ttl")
	const items = 2*pageSize + 37
	for i := 0; i < items; i += 25 {
		var requests []types.WriteRequest
		for j := i; j < min(i+25, items); j++ {
			item := key(strconv.Itoa(j))
			item["ttl"] = epoch(now.Add(-time.Hour))
			requests = append(requests, types.WriteRequest{PutRequest: &types.PutRequest{Item: item}})
		}
		_, err := db.BatchWriteItem(t.Context(), &dynamodb.BatchWriteItemInput{RequestItems: map[string][]types.WriteRequest{"many": requests}})
		require.NoError(t, err)
	}
	deleted, err := Once(t.Context(), db, now)
	require.NoError(t, err)
	require.Equal(t, items, deleted)
	require.Empty(t, left(t, db, "many"))
}

// prolonging prolongs each item between the sweep's read and its deletion.
type prolonging struct {
	Tables
	prolong func()
}

func (p prolonging) DeleteItem(ctx context.Context, in *dynamodb.DeleteItemInput, opts ...func(*dynamodb.Options)) (*dynamodb.DeleteItemOutput, error) {
	p.prolong()
	return p.Tables.DeleteItem(ctx, in, opts...)
}

func TestItemProlongedMeanwhileIsKept(t *testing.T) {
	db := client(t)
	makeTable(t, db, "small", "ttl")
	put(t, db, "small", "x", "ttl", epoch(now.Add(-time.Hour)))
	deleted, err := Once(t.Context(), prolonging{Tables: db, prolong: func() {
		put(t, db, "small", "x", "ttl", epoch(now.Add(time.Hour)))
	}}, now)
	require.NoError(t, err)
	require.Zero(t, deleted)
	require.Equal(t, []string{"x"}, left(t, db, "small"))
}

// failing cannot describe one table.
type failing struct {
	Tables
	table string
}

func (f failing) DescribeTimeToLive(ctx context.Context, in *dynamodb.DescribeTimeToLiveInput, opts ...func(*dynamodb.Options)) (*dynamodb.DescribeTimeToLiveOutput, error) {
	if aws.ToString(in.TableName) == f.table {
		return nil, errors.New("refused")
	}
	return f.Tables.DescribeTimeToLive(ctx, in, opts...)
}

func TestATableThatFailsIsNamedAndTheOthersAreSwept(t *testing.T) {
	db := client(t)
	makeTable(t, db, "aaa", "ttl")
	makeTable(t, db, "bbb", "ttl")
	put(t, db, "bbb", "x", "ttl", epoch(now.Add(-time.Hour)))
	deleted, err := Once(t.Context(), failing{Tables: db, table: "aaa"}, now)
	require.ErrorContains(t, err, "aaa")
	require.Equal(t, 1, deleted)
}

func TestRunSweepsUntilItsContextEnds(t *testing.T) {
	db := client(t)
	makeTable(t, db, "small", "ttl")
	put(t, db, "small", "x", "ttl", epoch(time.Now().Add(-time.Minute)))
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() {
		defer close(done)
		Run(ctx, db, 10*time.Millisecond, slog.New(slog.DiscardHandler))
	}()
	require.Eventually(t, func() bool { return len(left(t, db, "small")) == 0 }, 10*time.Second, 10*time.Millisecond)
	cancel()
	<-done
}
