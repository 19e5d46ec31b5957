package provision

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
)

// TableAPI is the part of the DynamoDB client that provisioning needs.
type TableAPI interface {
	DescribeTable(context.Context, *dynamodb.DescribeTableInput, ...func(*dynamodb.Options)) (*dynamodb.DescribeTableOutput, error)
	CreateTable(context.Context, *dynamodb.CreateTableInput, ...func(*dynamodb.Options)) (*dynamodb.CreateTableOutput, error)
	DescribeTimeToLive(context.Context, *dynamodb.DescribeTimeToLiveInput, ...func(*dynamodb.Options)) (*dynamodb.DescribeTimeToLiveOutput, error)
	UpdateTimeToLive(context.Context, *dynamodb.UpdateTimeToLiveInput, ...func(*dynamodb.Options)) (*dynamodb.UpdateTimeToLiveOutput, error)
	DescribeContinuousBackups(context.Context, *dynamodb.DescribeContinuousBackupsInput, ...func(*dynamodb.Options)) (*dynamodb.DescribeContinuousBackupsOutput, error)
	UpdateContinuousBackups(context.Context, *dynamodb.UpdateContinuousBackupsInput, ...func(*dynamodb.Options)) (*dynamodb.UpdateContinuousBackupsOutput, error)
}

// tableWait bounds how long a new table may take to become usable.
const tableWait = 5 * time.Minute

// Tables settles tables, their expiry and their point-in-time recovery.
func Tables(ctx context.Context, client TableAPI, create bool, tables ...Table) ([]Finding, error) {
	var findings []Finding
	for _, t := range tables {
		own, err := tableParts{client, t}.settle(ctx, create)
		findings = append(findings, own...)
		if err != nil {
			return findings, err
		}
	}
	return findings, nil
}

type tableParts struct {
	client TableAPI
	table  Table
}

func (p tableParts) settle(ctx context.Context, create bool) ([]Finding, error) {
	name := "table " + p.table.Name
	findings, err := settleAll(ctx, create, part{name, p.read, p.create})
	if err != nil || findings[0].State == Missing {
		return findings, err
	}
	more, err := settleAll(ctx, create,
		part{name + " expiry by " + p.table.TTL, p.readTTL, p.createTTL},
		part{name + " point-in-time recovery", p.readBackups, p.createBackups},
	)
	return append(findings, more...), err
}

func (p tableParts) read(ctx context.Context) (string, bool, error) {
	out, err := p.client.DescribeTable(ctx, &dynamodb.DescribeTableInput{TableName: &p.table.Name})
	if _, missing := errors.AsType[*types.ResourceNotFoundException](err); missing {
		return "", false, nil
	}
	if err != nil {
		return "", false, err
	}
	return strings.Join(p.table.differences(out.Table), "; "), true, nil
}

func (p tableParts) create(ctx context.Context) error {
	_, err := p.client.CreateTable(ctx, p.table.input())
	var exists *types.ResourceInUseException
	if err != nil && !errors.As(err, &exists) {
		return err
	}
	wait := dynamodb.NewTableExistsWaiter(p.client, func(o *dynamodb.TableExistsWaiterOptions) { o.MinDelay = time.Second })
	return wait.Wait(ctx, &dynamodb.DescribeTableInput{TableName: &p.table.Name}, tableWait)
}

func (p tableParts) readTTL(ctx context.Context) (string, bool, error) {
	out, err := p.client.DescribeTimeToLive(ctx, &dynamodb.DescribeTimeToLiveInput{TableName: &p.table.Name})
	if err != nil {
		return "", false, err
	}
	ttl := out.TimeToLiveDescription
	if ttl == nil || ttl.TimeToLiveStatus == types.TimeToLiveStatusDisabled || ttl.TimeToLiveStatus == types.TimeToLiveStatusDisabling {
		return "", false, nil
	}
	if got := aws.ToString(ttl.AttributeName); got != p.table.TTL {
		return fmt.Sprintf("expires by %q", got), true, nil
	}
	return "", true, nil
}

func (p tableParts) createTTL(ctx context.Context) error {
	_, err := p.client.UpdateTimeToLive(ctx, &dynamodb.UpdateTimeToLiveInput{
		TableName:               &p.table.Name,
		TimeToLiveSpecification: &types.TimeToLiveSpecification{AttributeName: &p.table.TTL, Enabled: aws.Bool(true)},
	})
	return err
}

func (p tableParts) readBackups(ctx context.Context) (string, bool, error) {
	out, err := p.client.DescribeContinuousBackups(ctx, &dynamodb.DescribeContinuousBackupsInput{TableName: &p.table.Name})
	if err != nil {
		return "", false, err
	}
	backups := out.ContinuousBackupsDescription
	on := backups != nil && backups.PointInTimeRecoveryDescription != nil &&
		backups.PointInTimeRecoveryDescription.PointInTimeRecoveryStatus == types.PointInTimeRecoveryStatusEnabled
	return "", on, nil
}

func (p tableParts) createBackups(ctx context.Context) error {
	_, err := p.client.UpdateContinuousBackups(ctx, &dynamodb.UpdateContinuousBackupsInput{
		TableName:                        &p.table.Name,
		PointInTimeRecoverySpecification: &types.PointInTimeRecoverySpecification{PointInTimeRecoveryEnabled: aws.Bool(true)},
	})
	return err
}

// differences name in what a table is not what it must be.
func (t Table) differences(got *types.TableDescription) []string {
	var found []string
	if want := keyText(keySchema(t.PartitionKey, t.SortKey)); keyText(got.KeySchema) != want {
		found = append(found, fmt.Sprintf("keys are %s, not %s", keyText(got.KeySchema), want))
	}
	if got.BillingModeSummary == nil || got.BillingModeSummary.BillingMode != types.BillingModePayPerRequest {
		found = append(found, "is not billed on demand")
	}
	if t.Stream && (got.StreamSpecification == nil || got.StreamSpecification.StreamViewType != types.StreamViewTypeNewAndOldImages) {
		found = append(found, "has no stream of new and old images")
	}
	for _, index := range t.Indexes {
		found = append(found, index.differences(got.GlobalSecondaryIndexes)...)
	}
	return found
}

func (i Index) differences(got []types.GlobalSecondaryIndexDescription) []string {
	at := slices.IndexFunc(got, func(g types.GlobalSecondaryIndexDescription) bool { return aws.ToString(g.IndexName) == i.Name })
	if at < 0 {
		return []string{"index " + i.Name + " is missing"}
	}
	var found []string
	if want := keyText(i.keySchema()); keyText(got[at].KeySchema) != want {
		found = append(found, fmt.Sprintf("index %s has keys %s, not %s", i.Name, keyText(got[at].KeySchema), want))
	}
	if want := projectionText(i.projection()); projectionText(got[at].Projection) != want {
		found = append(found, fmt.Sprintf("index %s carries %s, not %s", i.Name, projectionText(got[at].Projection), want))
	}
	return found
}

func keyText(schema []types.KeySchemaElement) string {
	names := make([]string, len(schema))
	for i, element := range schema {
		names[i] = fmt.Sprintf("%s %s", aws.ToString(element.AttributeName), element.KeyType)
	}
	return strings.Join(names, ", ")
}

func projectionText(projection *types.Projection) string {
	if projection == nil {
		return "nothing"
	}
	names := slices.Clone(projection.NonKeyAttributes)
	slices.Sort(names)
	return strings.TrimSpace(fmt.Sprintf("%s %s", projection.ProjectionType, strings.Join(names, ",")))
}
