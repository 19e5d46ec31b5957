// Package storagetest gives tests their own tables, buckets and queues on the
// local stand-ins, found by the AWS SDK's own environment variables.
package storagetest

import (
	"context"
	"crypto/rand"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/config"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/stretchr/testify/require"

	"millrace/storage/objects"
	"millrace/storage/table"
)

// Schema is the shape of a table.
type Schema struct {
	PartitionKey string
	SortKey      string
	Indexes      []Index
}

// Index is an index with keys {Name}PK and {Name}SK. Include lists what it
// carries besides the keys; nil carries the keys only.
type Index struct {
	Name    string
	Include []string
}

// Shapes of the product's tables.
var (
	Factory    = Schema{PartitionKey: "pk", SortKey: "sk"}
	Monitoring = Schema{PartitionKey: "PK", SortKey: "SK", Indexes: []Index{{Name: "GSI1"}}}
)

// Config is the AWS configuration of the local stand-ins. It fails the test when
// there are none, so that a test never reaches AWS itself.
func Config(t testing.TB) aws.Config {
	t.Helper()
	require.NotEmpty(t, os.Getenv("AWS_ENDPOINT_URL_DYNAMODB"), "no local stand-ins: run make test, or bin/local exec -- go test")
	cfg, err := config.LoadDefaultConfig(context.Background(),
		config.WithRegion(envOr("AWS_REGION", "ap-northeast-2")),
		config.WithCredentialsProvider(credentials.NewStaticCredentialsProvider(envOr("AWS_ACCESS_KEY_ID", "local"), envOr("AWS_SECRET_ACCESS_KEY", "local"), "")))
	require.NoError(t, err)
	return cfg
}

func envOr(name, fallback string) string {
	if value := os.Getenv(name); value != "" {
		return value
	}
	return fallback
}

// Table is a new, empty table that is removed after the test.
func Table(t testing.TB, schema Schema) table.Table {
	t.Helper()
	client := dynamodb.NewFromConfig(Config(t))
	name := unique("t")
	_, err := client.CreateTable(t.Context(), schema.input(name))
	require.NoError(t, err)
	t.Cleanup(func() {
		ctx, stop := afterwards()
		defer stop()
		_, err := client.DeleteTable(ctx, &dynamodb.DeleteTableInput{TableName: &name})
		require.NoError(t, err)
	})
	wait := dynamodb.NewTableExistsWaiter(client)
	require.NoError(t, wait.Wait(t.Context(), &dynamodb.DescribeTableInput{TableName: &name}, time.Minute))
	return table.Table{Client: client, Name: name, PartitionKey: schema.PartitionKey, SortKey: schema.SortKey}
}

func (s Schema) input(name string) *dynamodb.CreateTableInput {
	in := &dynamodb.CreateTableInput{
		TableName: &name, BillingMode: types.BillingModePayPerRequest, KeySchema: keys(s.PartitionKey, s.SortKey),
		AttributeDefinitions: []types.AttributeDefinition{stringAttribute(s.PartitionKey), stringAttribute(s.SortKey)},
	}
	for _, index := range s.Indexes {
		partition, sort := index.Name+"PK", index.Name+"SK"
		in.AttributeDefinitions = append(in.AttributeDefinitions, stringAttribute(partition), stringAttribute(sort))
		projection := &types.Projection{ProjectionType: types.ProjectionTypeKeysOnly}
		if index.Include != nil {
			projection = &types.Projection{ProjectionType: types.ProjectionTypeInclude, NonKeyAttributes: index.Include}
		}
		in.GlobalSecondaryIndexes = append(in.GlobalSecondaryIndexes, types.GlobalSecondaryIndex{
			IndexName: aws.String(index.Name), KeySchema: keys(partition, sort), Projection: projection,
		})
	}
	return in
}

func keys(partition, sort string) []types.KeySchemaElement {
	return []types.KeySchemaElement{
		{AttributeName: &partition, KeyType: types.KeyTypeHash},
		{AttributeName: &sort, KeyType: types.KeyTypeRange},
	}
}

func stringAttribute(name string) types.AttributeDefinition {
	return types.AttributeDefinition{AttributeName: &name, AttributeType: types.ScalarAttributeTypeS}
}

// Bucket is a new, empty bucket; it is emptied and removed after the test.
func Bucket(t testing.TB) objects.Bucket {
	t.Helper()
	client := s3.NewFromConfig(Config(t), func(o *s3.Options) { o.UsePathStyle = true })
	name := unique("b")
	_, err := client.CreateBucket(t.Context(), &s3.CreateBucketInput{Bucket: &name})
	require.NoError(t, err)
	t.Cleanup(func() { removeBucket(t, client, name) })
	return objects.Bucket{Client: client, Name: name}
}

func removeBucket(t testing.TB, client *s3.Client, name string) {
	ctx, stop := afterwards()
	defer stop()
	pages := s3.NewListObjectsV2Paginator(client, &s3.ListObjectsV2Input{Bucket: &name})
	for pages.HasMorePages() {
		page, err := pages.NextPage(ctx)
		require.NoError(t, err)
		for _, object := range page.Contents {
			_, err := client.DeleteObject(ctx, &s3.DeleteObjectInput{Bucket: &name, Key: object.Key})
			require.NoError(t, err)
		}
	}
	_, err := client.DeleteBucket(ctx, &s3.DeleteBucketInput{Bucket: &name})
	require.NoError(t, err)
}

// Queue is a new queue, with its URL, that is removed after the test.
func Queue(t testing.TB) (*sqs.Client, string) {
	t.Helper()
	client := sqs.NewFromConfig(Config(t))
	out, err := client.CreateQueue(t.Context(), &sqs.CreateQueueInput{QueueName: aws.String(unique("q"))})
	require.NoError(t, err)
	t.Cleanup(func() {
		ctx, stop := afterwards()
		defer stop()
		_, err := client.DeleteQueue(ctx, &sqs.DeleteQueueInput{QueueUrl: out.QueueUrl})
		require.NoError(t, err)
	})
	return client, *out.QueueUrl
}

// afterwards is a context for clean-up: that of the test has ended by then.
func afterwards() (context.Context, context.CancelFunc) {
	return context.WithTimeout(context.Background(), 30*time.Second)
}

func unique(kind string) string { return "test-" + kind + "-" + strings.ToLower(rand.Text()) }
