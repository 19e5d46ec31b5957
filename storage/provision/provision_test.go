package provision

import (
	"context"
	"crypto/rand"
	"errors"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/smithy-go"
	"github.com/stretchr/testify/require"

	"millrace/storage/storagetest"
)

func unique(kind string) string { return "test-" + kind + "-" + strings.ToLower(rand.Text()) }

// states are the findings by part, with the name under test left out.
func states(findings []Finding, name string) map[string]State {
	found := make(map[string]State)
	for _, f := range findings {
		found[strings.TrimSpace(strings.Replace(f.Part, name, "", 1))] = f.State
	}
	return found
}

func TestTablesAreCreatedOnceAndThenLeftAlone(t *testing.T) {
	client := dynamodb.NewFromConfig(storagetest.Config(t))
	for name, table := range map[string]Table{
		"governance": GovernanceTable(unique("g")), "monitoring": MonitoringTable(unique("m")), "factory status": FactoryStatusTable(unique("f")),
	} {
		t.Run(name, func(t *testing.T) {
			t.Cleanup(func() {
				_, err := client.DeleteTable(context.WithoutCancel(t.Context()), &dynamodb.DeleteTableInput{TableName: &table.Name})
				require.NoError(t, err)
			})
			found, err := Tables(t.Context(), client, false, table)
			require.NoError(t, err)
			require.Equal(t, []Finding{{Part: "table " + table.Name, State: Missing}}, found)

			expiry := "table  expiry by " + table.TTL
			found, err = Tables(t.Context(), client, true, table)
			require.NoError(t, err)
			require.Equal(t, map[string]State{"table": Created, expiry: Created, "table  point-in-time recovery": Unsupported}, states(found, table.Name))
			for _, create := range []bool{true, false} {
				found, err = Tables(t.Context(), client, create, table)
				require.NoError(t, err)
				require.Equal(t, map[string]State{"table": OK, expiry: OK, "table  point-in-time recovery": Unsupported}, states(found, table.Name), "%v", found)
				require.Empty(t, Wanting(found))
			}
		})
	}
}

func TestATableOfAnotherShapeIsDriftAndStays(t *testing.T) {
	client := dynamodb.NewFromConfig(storagetest.Config(t))
	table := storagetest.Table(t, storagetest.Factory)
	wanted := GovernanceTable(table.Name)
	wanted.Stream = true
	found, err := Tables(t.Context(), client, true, wanted)
	require.NoError(t, err)
	require.Equal(t, Drift, found[0].State)
	for _, difference := range []string{"keys are pk HASH, sk RANGE, not PK HASH, SK RANGE", "stream", "index GSI1 is missing", "index GSI2 is missing"} {
		require.Contains(t, found[0].Detail, difference)
	}
	require.NotEmpty(t, Wanting(found))
}

func TestAnIndexThatCarriesSomethingElseIsDrift(t *testing.T) {
	wanted := GovernanceTable("x")
	got := wanted.Indexes[1]
	got.Include = append([]string{"surplus"}, got.Include...)
	differing := wanted
	differing.Indexes = []Index{wanted.Indexes[0], got}
	require.Empty(t, wanted.differences(describe(wanted)))
	require.Len(t, wanted.differences(describe(differing)), 1)
	require.Contains(t, wanted.differences(describe(differing))[0], "index GSI2 carries INCLUDE")
}

func TestABucketIsCreatedOnceAndThenLeftAlone(t *testing.T) {
	cfg := storagetest.Config(t)
	client := s3.NewFromConfig(cfg, func(o *s3.Options) { o.UsePathStyle = true })
	bucket := Bucket{Name: unique("b"), Region: cfg.Region}
	t.Cleanup(func() {
		_, err := client.DeleteBucket(context.WithoutCancel(t.Context()), &s3.DeleteBucketInput{Bucket: &bucket.Name})
		require.NoError(t, err)
	})
	found, err := BucketOf(t.Context(), client, false, bucket)
	require.NoError(t, err)
	require.Equal(t, []Finding{{Part: "bucket " + bucket.Name, State: Missing}}, found)

	found, err = BucketOf(t.Context(), client, true, bucket)
	require.NoError(t, err)
	got := states(found, bucket.Name)
	require.Equal(t, Created, got["bucket"])
	require.Equal(t, Created, got["bucket  versioning"])
	require.Equal(t, Unsupported, got["bucket  lifecycle"], "the stand-in has none")
	found, err = BucketOf(t.Context(), client, true, bucket)
	require.NoError(t, err)
	require.Empty(t, Wanting(found))
	require.NotContains(t, slices.Collect(maps.Values(states(found, bucket.Name))), Created)
}

func TestQueuesAreCreatedOnceAndThenLeftAlone(t *testing.T) {
	client := sqs.NewFromConfig(storagetest.Config(t))
	queues := Queues{Telemetry: unique("t"), TelemetryDLQ: unique("d"), RuleErrors: unique("r"), JobResults: unique("j")}
	found, err := QueuesOf(t.Context(), client, false, queues)
	require.NoError(t, err)
	require.Len(t, Wanting(found), 4)

	found, err = QueuesOf(t.Context(), client, true, queues)
	require.NoError(t, err)
	t.Cleanup(func() {
		for _, name := range []string{queues.Telemetry, queues.TelemetryDLQ, queues.RuleErrors, queues.JobResults} {
			out, err := client.GetQueueUrl(context.WithoutCancel(t.Context()), &sqs.GetQueueUrlInput{QueueName: &name})
			require.NoError(t, err)
			_, err = client.DeleteQueue(context.WithoutCancel(t.Context()), &sqs.DeleteQueueInput{QueueUrl: out.QueueUrl})
			require.NoError(t, err)
		}
	})
	for _, f := range found {
		require.Equal(t, Created, f.State)
	}
	for _, create := range []bool{true, false} {
		found, err = QueuesOf(t.Context(), client, create, queues)
		require.NoError(t, err)
		require.Empty(t, Wanting(found), "%v", found)
	}
	swapped := queues
	swapped.TelemetryDLQ = queues.JobResults
	found, err = QueuesOf(t.Context(), client, true, swapped)
	require.NoError(t, err)
	require.Len(t, Wanting(found), 1)
	require.Contains(t, Wanting(found)[0].Detail, "dead letters go to")
}

func TestAFaultEndsProvisioningWithThePartsName(t *testing.T) {
	denied := &smithy.GenericAPIError{Code: "AccessDenied"}
	_, err := settleAll(t.Context(), true, part{
		name: "thing", read: func(context.Context) (string, bool, error) { return "", false, denied },
	})
	require.ErrorIs(t, err, denied)
	require.ErrorContains(t, err, "check thing")

	_, err = settleAll(t.Context(), true, part{
		name:   "thing",
		read:   func(context.Context) (string, bool, error) { return "", false, nil },
		create: func(context.Context) error { return denied },
	})
	require.ErrorContains(t, err, "create thing")
}

func TestWhatAnEndpointDoesNotKnowIsPassedOver(t *testing.T) {
	unknown := &smithy.GenericAPIError{Code: "NotImplemented"}
	other := part{name: "other", read: func(context.Context) (string, bool, error) { return "", true, nil }}
	for name, p := range map[string]part{
		"read":   {name: "thing", read: func(context.Context) (string, bool, error) { return "", false, unknown }},
		"create": {name: "thing", read: func(context.Context) (string, bool, error) { return "", false, nil }, create: func(context.Context) error { return unknown }},
	} {
		t.Run(name, func(t *testing.T) {
			found, err := settleAll(t.Context(), true, p, other)
			require.NoError(t, err)
			require.Equal(t, []Finding{{Part: "thing", State: Unsupported, Detail: "NotImplemented"}, {Part: "other", State: OK}}, found)
			require.Empty(t, Wanting(found))
		})
	}
}

func TestNothingIsEverCreatedByACheck(t *testing.T) {
	found, err := settleAll(t.Context(), false, part{
		name:   "thing",
		read:   func(context.Context) (string, bool, error) { return "", false, nil },
		create: func(context.Context) error { return errors.New("created") },
	})
	require.NoError(t, err)
	require.Equal(t, []Finding{{Part: "thing", State: Missing}}, found)
}

func TestTheNamesOfTheRegionsBucket(t *testing.T) {
	for region, want := range map[string]string{"us-east-1": "", "": "", "ap-northeast-2": "ap-northeast-2"} {
		client := &fakeBucket{}
		require.NoError(t, bucketParts{client, Bucket{Name: "b", Region: region}}.create(t.Context()))
		if want == "" {
			require.Nil(t, client.created.CreateBucketConfiguration)
			continue
		}
		require.Equal(t, want, string(client.created.CreateBucketConfiguration.LocationConstraint))
		require.Equal(t, "b", aws.ToString(client.created.Bucket))
	}
}
