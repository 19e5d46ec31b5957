package provision

import (
	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
)

// Table is the shape of a table: string keys, indexes and the attribute by which
// items expire. Tables are billed on demand.
type Table struct {
	Name         string
	PartitionKey string
	SortKey      string
	TTL          string
	Indexes      []Index
	// Stream has the table publish both images of every changed item.
	Stream bool
}

// Index is a global secondary index with the keys {Name}PK and {Name}SK. Include
// lists what it carries besides keys; nil carries the keys only.
type Index struct {
	Name    string
	Include []string
}

// pendingSignal is what the index of signals not yet counted carries: all that a
// rollup adds up, so that it reads no item.
var pendingSignal = []string{
	"protocol", "type", "status", "request_id", "duration_ms",
	"input_tokens", "cached_input_tokens", "output_tokens", "reasoning_tokens", "total_tokens", "cost_usd",
}

// GovernanceTable holds artifacts and signals (seeds ALP 9.1 and UOP 7.1). GSI2
// is sparse: it has the signals that no rollup counted yet.
func GovernanceTable(name string) Table {
	return Table{
		Name: name, PartitionKey: "PK", SortKey: "SK", TTL: "expires_at",
		Indexes: []Index{{Name: "GSI1"}, {Name: "GSI2", Include: pendingSignal}},
	}
}

// MonitoringTable holds tokens, sources, minutes, memory and budgets.
func MonitoringTable(name string) Table {
	return Table{Name: name, PartitionKey: "PK", SortKey: "SK", TTL: "expires_at", Indexes: []Index{{Name: "GSI1"}}}
}

// FactoryStatusTable holds the factory read models; it has no index and a stream
// with new and old images.
func FactoryStatusTable(name string) Table {
	return Table{Name: name, PartitionKey: "pk", SortKey: "sk", TTL: "ttl", Stream: true}
}

func (t Table) input() *dynamodb.CreateTableInput {
	in := &dynamodb.CreateTableInput{
		TableName:            &t.Name,
		BillingMode:          types.BillingModePayPerRequest,
		KeySchema:            keySchema(t.PartitionKey, t.SortKey),
		AttributeDefinitions: t.attributes(),
		StreamSpecification:  t.stream(),
	}
	for _, index := range t.Indexes {
		in.GlobalSecondaryIndexes = append(in.GlobalSecondaryIndexes, types.GlobalSecondaryIndex{
			IndexName: aws.String(index.Name), KeySchema: index.keySchema(), Projection: index.projection(),
		})
	}
	return in
}

func (t Table) attributes() []types.AttributeDefinition {
	attributes := stringAttributes(t.PartitionKey, t.SortKey)
	for _, index := range t.Indexes {
		attributes = append(attributes, stringAttributes(index.keys())...)
	}
	return attributes
}

func (t Table) stream() *types.StreamSpecification {
	if !t.Stream {
		return nil
	}
	return &types.StreamSpecification{StreamEnabled: aws.Bool(true), StreamViewType: types.StreamViewTypeNewAndOldImages}
}

func (i Index) keys() (partition, sort string) { return i.Name + "PK", i.Name + "SK" }

func (i Index) keySchema() []types.KeySchemaElement { return keySchema(i.keys()) }

func (i Index) projection() *types.Projection {
	if i.Include == nil {
		return &types.Projection{ProjectionType: types.ProjectionTypeKeysOnly}
	}
	return &types.Projection{ProjectionType: types.ProjectionTypeInclude, NonKeyAttributes: i.Include}
}

func keySchema(partition, sort string) []types.KeySchemaElement {
	return []types.KeySchemaElement{
		{AttributeName: &partition, KeyType: types.KeyTypeHash},
		{AttributeName: &sort, KeyType: types.KeyTypeRange},
	}
}

func stringAttributes(partition, sort string) []types.AttributeDefinition {
	return []types.AttributeDefinition{
		{AttributeName: &partition, AttributeType: types.ScalarAttributeTypeS},
		{AttributeName: &sort, AttributeType: types.ScalarAttributeTypeS},
	}
}
