package provision

import (
	"context"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	dynamotypes "github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/aws-sdk-go-v2/service/s3/types"
	"github.com/aws/smithy-go"
	"github.com/stretchr/testify/require"
)

// describe is a table of this shape as DynamoDB describes it.
func describe(t Table) *dynamotypes.TableDescription {
	in := t.input()
	described := &dynamotypes.TableDescription{
		KeySchema: in.KeySchema, StreamSpecification: in.StreamSpecification, TableStatus: dynamotypes.TableStatusActive,
		BillingModeSummary: &dynamotypes.BillingModeSummary{BillingMode: in.BillingMode},
	}
	for _, index := range in.GlobalSecondaryIndexes {
		described.GlobalSecondaryIndexes = append(described.GlobalSecondaryIndexes, dynamotypes.GlobalSecondaryIndexDescription{
			IndexName: index.IndexName, KeySchema: index.KeySchema, Projection: index.Projection,
		})
	}
	return described
}

// fakeTables is an AWS that knows point-in-time recovery.
type fakeTables struct {
	TableAPI
	table   *dynamodb.CreateTableInput
	ttl     *dynamodb.UpdateTimeToLiveInput
	backups *dynamodb.UpdateContinuousBackupsInput
}

func (f *fakeTables) DescribeTable(context.Context, *dynamodb.DescribeTableInput, ...func(*dynamodb.Options)) (*dynamodb.DescribeTableOutput, error) {
	if f.table == nil {
		return nil, &dynamotypes.ResourceNotFoundException{}
	}
	return &dynamodb.DescribeTableOutput{Table: &dynamotypes.TableDescription{TableStatus: dynamotypes.TableStatusActive}}, nil
}

func (f *fakeTables) CreateTable(_ context.Context, in *dynamodb.CreateTableInput, _ ...func(*dynamodb.Options)) (*dynamodb.CreateTableOutput, error) {
	f.table = in
	return &dynamodb.CreateTableOutput{}, nil
}

func (f *fakeTables) DescribeTimeToLive(context.Context, *dynamodb.DescribeTimeToLiveInput, ...func(*dynamodb.Options)) (*dynamodb.DescribeTimeToLiveOutput, error) {
	return &dynamodb.DescribeTimeToLiveOutput{TimeToLiveDescription: &dynamotypes.TimeToLiveDescription{TimeToLiveStatus: dynamotypes.TimeToLiveStatusDisabled}}, nil
}

func (f *fakeTables) UpdateTimeToLive(_ context.Context, in *dynamodb.UpdateTimeToLiveInput, _ ...func(*dynamodb.Options)) (*dynamodb.UpdateTimeToLiveOutput, error) {
	f.ttl = in
	return &dynamodb.UpdateTimeToLiveOutput{}, nil
}

func (f *fakeTables) DescribeContinuousBackups(context.Context, *dynamodb.DescribeContinuousBackupsInput, ...func(*dynamodb.Options)) (*dynamodb.DescribeContinuousBackupsOutput, error) {
	return &dynamodb.DescribeContinuousBackupsOutput{}, nil
}

func (f *fakeTables) UpdateContinuousBackups(_ context.Context, in *dynamodb.UpdateContinuousBackupsInput, _ ...func(*dynamodb.Options)) (*dynamodb.UpdateContinuousBackupsOutput, error) {
	f.backups = in
	return &dynamodb.UpdateContinuousBackupsOutput{}, nil
}

func TestWhatIsAskedOfDynamoDB(t *testing.T) {
	client := &fakeTables{}
	found, err := Tables(t.Context(), client, true, GovernanceTable("g"))
	require.NoError(t, err)
	require.Len(t, found, 3)
	require.Equal(t, dynamotypes.BillingModePayPerRequest, client.table.BillingMode)
	require.Nil(t, client.table.StreamSpecification)
	require.Equal(t, "PK HASH, SK RANGE", keyText(client.table.KeySchema))
	indexes := client.table.GlobalSecondaryIndexes
	require.Len(t, indexes, 2)
	require.Equal(t, "GSI1PK HASH, GSI1SK RANGE", keyText(indexes[0].KeySchema))
	require.Equal(t, dynamotypes.ProjectionTypeKeysOnly, indexes[0].Projection.ProjectionType)
	require.Equal(t, "GSI2PK HASH, GSI2SK RANGE", keyText(indexes[1].KeySchema))
	require.Equal(t, dynamotypes.ProjectionTypeInclude, indexes[1].Projection.ProjectionType)
	require.ElementsMatch(t, []string{
		"protocol", "type", "status", "request_id", "duration_ms", "input_tokens", "cached_input_tokens",
		"output_tokens", "reasoning_tokens", "total_tokens", "cost_usd",
	}, indexes[1].Projection.NonKeyAttributes)
	require.Len(t, client.table.AttributeDefinitions, 6)
	require.Equal(t, "expires_at", aws.ToString(client.ttl.TimeToLiveSpecification.AttributeName))
	require.True(t, aws.ToBool(client.ttl.TimeToLiveSpecification.Enabled))
	require.True(t, aws.ToBool(client.backups.PointInTimeRecoverySpecification.PointInTimeRecoveryEnabled))

	client = &fakeTables{}
	_, err = Tables(t.Context(), client, true, FactoryStatusTable("f"))
	require.NoError(t, err)
	require.Equal(t, "pk HASH, sk RANGE", keyText(client.table.KeySchema))
	require.Equal(t, dynamotypes.StreamViewTypeNewAndOldImages, client.table.StreamSpecification.StreamViewType)
	require.Empty(t, client.table.GlobalSecondaryIndexes)
	require.Equal(t, "ttl", aws.ToString(client.ttl.TimeToLiveSpecification.AttributeName))
}

// fakeBucket is an S3 that knows lifecycle rules.
type fakeBucket struct {
	BucketAPI
	created    *s3.CreateBucketInput
	ownership  *s3.PutBucketOwnershipControlsInput
	public     *s3.PutPublicAccessBlockInput
	versioning *s3.PutBucketVersioningInput
	encryption *s3.PutBucketEncryptionInput
	lifecycle  *s3.PutBucketLifecycleConfigurationInput
	present    []types.LifecycleRule
}

func neverMade(code string) error { return &smithy.GenericAPIError{Code: code} }

func (f *fakeBucket) HeadBucket(context.Context, *s3.HeadBucketInput, ...func(*s3.Options)) (*s3.HeadBucketOutput, error) {
	return &s3.HeadBucketOutput{}, nil
}

func (f *fakeBucket) CreateBucket(_ context.Context, in *s3.CreateBucketInput, _ ...func(*s3.Options)) (*s3.CreateBucketOutput, error) {
	f.created = in
	return &s3.CreateBucketOutput{}, nil
}

func (f *fakeBucket) GetBucketVersioning(context.Context, *s3.GetBucketVersioningInput, ...func(*s3.Options)) (*s3.GetBucketVersioningOutput, error) {
	return &s3.GetBucketVersioningOutput{}, nil
}

func (f *fakeBucket) PutBucketVersioning(_ context.Context, in *s3.PutBucketVersioningInput, _ ...func(*s3.Options)) (*s3.PutBucketVersioningOutput, error) {
	f.versioning = in
	return &s3.PutBucketVersioningOutput{}, nil
}

func (f *fakeBucket) GetBucketEncryption(context.Context, *s3.GetBucketEncryptionInput, ...func(*s3.Options)) (*s3.GetBucketEncryptionOutput, error) {
	return nil, neverMade("ServerSideEncryptionConfigurationNotFoundError")
}

func (f *fakeBucket) PutBucketEncryption(_ context.Context, in *s3.PutBucketEncryptionInput, _ ...func(*s3.Options)) (*s3.PutBucketEncryptionOutput, error) {
	f.encryption = in
	return &s3.PutBucketEncryptionOutput{}, nil
}

func (f *fakeBucket) GetPublicAccessBlock(context.Context, *s3.GetPublicAccessBlockInput, ...func(*s3.Options)) (*s3.GetPublicAccessBlockOutput, error) {
	return nil, neverMade("NoSuchPublicAccessBlockConfiguration")
}

func (f *fakeBucket) PutPublicAccessBlock(_ context.Context, in *s3.PutPublicAccessBlockInput, _ ...func(*s3.Options)) (*s3.PutPublicAccessBlockOutput, error) {
	f.public = in
	return &s3.PutPublicAccessBlockOutput{}, nil
}

func (f *fakeBucket) GetBucketOwnershipControls(context.Context, *s3.GetBucketOwnershipControlsInput, ...func(*s3.Options)) (*s3.GetBucketOwnershipControlsOutput, error) {
	return nil, neverMade("OwnershipControlsNotFoundError")
}

func (f *fakeBucket) PutBucketOwnershipControls(_ context.Context, in *s3.PutBucketOwnershipControlsInput, _ ...func(*s3.Options)) (*s3.PutBucketOwnershipControlsOutput, error) {
	f.ownership = in
	return &s3.PutBucketOwnershipControlsOutput{}, nil
}

func (f *fakeBucket) GetBucketLifecycleConfiguration(context.Context, *s3.GetBucketLifecycleConfigurationInput, ...func(*s3.Options)) (*s3.GetBucketLifecycleConfigurationOutput, error) {
	if f.present == nil {
		return nil, neverMade("NoSuchLifecycleConfiguration")
	}
	return &s3.GetBucketLifecycleConfigurationOutput{Rules: f.present}, nil
}

func (f *fakeBucket) PutBucketLifecycleConfiguration(_ context.Context, in *s3.PutBucketLifecycleConfigurationInput, _ ...func(*s3.Options)) (*s3.PutBucketLifecycleConfigurationOutput, error) {
	f.lifecycle = in
	return &s3.PutBucketLifecycleConfigurationOutput{}, nil
}

func TestWhatIsAskedOfS3(t *testing.T) {
	client := &fakeBucket{}
	found, err := BucketOf(t.Context(), client, true, Bucket{Name: "the-data"})
	require.NoError(t, err)
	require.Equal(t, map[string]State{
		"bucket": OK, "bucket  ownership": Created, "bucket  public access block": Created,
		"bucket  versioning": Created, "bucket  encryption": Created, "bucket  lifecycle": Created,
	}, states(found, "the-data"), "%v", found)
	require.Equal(t, types.BucketVersioningStatusEnabled, client.versioning.VersioningConfiguration.Status)
	require.Equal(t, types.ServerSideEncryptionAes256, client.encryption.ServerSideEncryptionConfiguration.Rules[0].ApplyServerSideEncryptionByDefault.SSEAlgorithm)
	require.Equal(t, types.ObjectOwnershipBucketOwnerEnforced, client.ownership.OwnershipControls.Rules[0].ObjectOwnership)
	block := client.public.PublicAccessBlockConfiguration
	for _, on := range []*bool{block.BlockPublicAcls, block.BlockPublicPolicy, block.IgnorePublicAcls, block.RestrictPublicBuckets} {
		require.True(t, aws.ToBool(on))
	}
	require.Equal(t, types.TransitionDefaultMinimumObjectSizeAllStorageClasses128k, client.lifecycle.TransitionDefaultMinimumObjectSize)
	require.Equal(t, []string{
		"Enabled, prefix raw/, GLACIER_IR after 90 d, old versions expire after 90 d",
		"Enabled, prefix processed/, STANDARD_IA after 365 d, old versions expire after 90 d",
		"Enabled, prefix latest/, old versions expire after 30 d",
		"Enabled, prefix artifacts/, STANDARD_IA after 30 d",
		"Enabled, prefix , uploads end after 7 d",
	}, ruleTexts(client.lifecycle.LifecycleConfiguration.Rules))
	for _, rule := range client.lifecycle.LifecycleConfiguration.Rules {
		require.Nil(t, rule.Expiration, "nothing current ever expires")
		require.Nil(t, rule.Filter.And)
	}
}

func ruleTexts(rules []types.LifecycleRule) []string {
	texts := make([]string, len(rules))
	for i, rule := range rules {
		texts[i] = ruleText(rule)
	}
	return texts
}

func TestSmallObjectsMoveOnlyWhenAskedFor(t *testing.T) {
	rules := Lifecycle{SmallObjects: true}.rules()
	for _, rule := range rules {
		if len(rule.Transitions) == 0 {
			require.Nil(t, rule.Filter.And)
			continue
		}
		require.Equal(t, int64(anySize), aws.ToInt64(rule.Filter.And.ObjectSizeGreaterThan))
		require.NotEmpty(t, aws.ToString(rule.Filter.And.Prefix))
		require.Nil(t, rule.Filter.Prefix)
	}
	require.Empty(t, Lifecycle{SmallObjects: true}.differences(rules))
	require.Len(t, Lifecycle{}.differences(rules), 3)
}

func TestLifecycleDriftIsNamedAndLeftAlone(t *testing.T) {
	rules := Lifecycle{}.rules()
	rules[0].Transitions[0].Days = aws.Int32(30)
	rules[1].Expiration = &types.LifecycleExpiration{Days: aws.Int32(400)}
	rules[4].ID = aws.String("someone's")
	client := &fakeBucket{present: rules}
	found, err := BucketOf(t.Context(), client, true, Bucket{Name: "the-data"})
	require.NoError(t, err)
	drift := Wanting(found)
	require.Len(t, drift, 1)
	for _, difference := range []string{
		"rule millrace-raw is Enabled, prefix raw/, GLACIER_IR after 30 d", "expires after 400 d",
		"rule millrace-uploads is missing", "rule someone's is not ours",
	} {
		require.Contains(t, drift[0].Detail, difference)
	}
	require.Nil(t, client.lifecycle)
}
