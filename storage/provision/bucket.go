package provision

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	awshttp "github.com/aws/aws-sdk-go-v2/aws/transport/http"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/aws-sdk-go-v2/service/s3/types"
)

// BucketAPI is the part of the S3 client that provisioning needs.
type BucketAPI interface {
	HeadBucket(context.Context, *s3.HeadBucketInput, ...func(*s3.Options)) (*s3.HeadBucketOutput, error)
	CreateBucket(context.Context, *s3.CreateBucketInput, ...func(*s3.Options)) (*s3.CreateBucketOutput, error)
	GetBucketVersioning(context.Context, *s3.GetBucketVersioningInput, ...func(*s3.Options)) (*s3.GetBucketVersioningOutput, error)
	PutBucketVersioning(context.Context, *s3.PutBucketVersioningInput, ...func(*s3.Options)) (*s3.PutBucketVersioningOutput, error)
	GetBucketEncryption(context.Context, *s3.GetBucketEncryptionInput, ...func(*s3.Options)) (*s3.GetBucketEncryptionOutput, error)
	PutBucketEncryption(context.Context, *s3.PutBucketEncryptionInput, ...func(*s3.Options)) (*s3.PutBucketEncryptionOutput, error)
	GetPublicAccessBlock(context.Context, *s3.GetPublicAccessBlockInput, ...func(*s3.Options)) (*s3.GetPublicAccessBlockOutput, error)
	PutPublicAccessBlock(context.Context, *s3.PutPublicAccessBlockInput, ...func(*s3.Options)) (*s3.PutPublicAccessBlockOutput, error)
	GetBucketOwnershipControls(context.Context, *s3.GetBucketOwnershipControlsInput, ...func(*s3.Options)) (*s3.GetBucketOwnershipControlsOutput, error)
	PutBucketOwnershipControls(context.Context, *s3.PutBucketOwnershipControlsInput, ...func(*s3.Options)) (*s3.PutBucketOwnershipControlsOutput, error)
	GetBucketLifecycleConfiguration(context.Context, *s3.GetBucketLifecycleConfigurationInput, ...func(*s3.Options)) (*s3.GetBucketLifecycleConfigurationOutput, error)
	PutBucketLifecycleConfiguration(context.Context, *s3.PutBucketLifecycleConfigurationInput, ...func(*s3.Options)) (*s3.PutBucketLifecycleConfigurationOutput, error)
}

// Bucket is the shape of the data bucket: versions, AES256, no public access,
// one owner of all objects, and the lifecycle of the seeds.
type Bucket struct {
	Name      string
	Region    string
	Lifecycle Lifecycle
}

// BucketOf settles the bucket and its settings, each by itself.
func BucketOf(ctx context.Context, client BucketAPI, create bool, bucket Bucket) ([]Finding, error) {
	p := bucketParts{client, bucket}
	name := "bucket " + bucket.Name
	findings, err := settleAll(ctx, create, part{name, p.read, p.create})
	if err != nil || findings[0].State == Missing {
		return findings, err
	}
	more, err := settleAll(ctx, create,
		part{name + " ownership", p.readOwnership, p.createOwnership},
		part{name + " public access block", p.readPublicAccess, p.createPublicAccess},
		part{name + " versioning", p.readVersioning, p.createVersioning},
		part{name + " encryption", p.readEncryption, p.createEncryption},
		part{name + " lifecycle", p.readLifecycle, p.createLifecycle},
	)
	return append(findings, more...), err
}

type bucketParts struct {
	client BucketAPI
	bucket Bucket
}

func (p bucketParts) read(ctx context.Context) (string, bool, error) {
	_, err := p.client.HeadBucket(ctx, &s3.HeadBucketInput{Bucket: &p.bucket.Name})
	var response *awshttp.ResponseError
	if errors.As(err, &response) && response.HTTPStatusCode() == http.StatusNotFound {
		return "", false, nil
	}
	return "", err == nil, err
}

// firstRegion is the region that S3 wants left out of a bucket's place.
const firstRegion = "us-east-1"

func (p bucketParts) create(ctx context.Context) error {
	in := &s3.CreateBucketInput{Bucket: &p.bucket.Name, ObjectOwnership: types.ObjectOwnershipBucketOwnerEnforced}
	if p.bucket.Region != "" && p.bucket.Region != firstRegion {
		in.CreateBucketConfiguration = &types.CreateBucketConfiguration{LocationConstraint: types.BucketLocationConstraint(p.bucket.Region)}
	}
	_, err := p.client.CreateBucket(ctx, in)
	if _, ours := errors.AsType[*types.BucketAlreadyOwnedByYou](err); ours {
		return nil
	}
	return err
}

func (p bucketParts) readOwnership(ctx context.Context) (string, bool, error) {
	out, err := p.client.GetBucketOwnershipControls(ctx, &s3.GetBucketOwnershipControlsInput{Bucket: &p.bucket.Name})
	if err != nil {
		return absent(err, "OwnershipControlsNotFoundError")
	}
	if out.OwnershipControls == nil || len(out.OwnershipControls.Rules) == 0 {
		return "", false, nil
	}
	if got := out.OwnershipControls.Rules[0].ObjectOwnership; got != types.ObjectOwnershipBucketOwnerEnforced {
		return fmt.Sprintf("is %s, not %s", got, types.ObjectOwnershipBucketOwnerEnforced), true, nil
	}
	return "", true, nil
}

func (p bucketParts) createOwnership(ctx context.Context) error {
	_, err := p.client.PutBucketOwnershipControls(ctx, &s3.PutBucketOwnershipControlsInput{
		Bucket: &p.bucket.Name,
		OwnershipControls: &types.OwnershipControls{
			Rules: []types.OwnershipControlsRule{{ObjectOwnership: types.ObjectOwnershipBucketOwnerEnforced}},
		},
	})
	return err
}

func (p bucketParts) readPublicAccess(ctx context.Context) (string, bool, error) {
	out, err := p.client.GetPublicAccessBlock(ctx, &s3.GetPublicAccessBlockInput{Bucket: &p.bucket.Name})
	if err != nil {
		return absent(err, "NoSuchPublicAccessBlockConfiguration")
	}
	block := out.PublicAccessBlockConfiguration
	if block == nil {
		return "", false, nil
	}
	for _, on := range []*bool{block.BlockPublicAcls, block.BlockPublicPolicy, block.IgnorePublicAcls, block.RestrictPublicBuckets} {
		if !aws.ToBool(on) {
			return "lets some public access through", true, nil
		}
	}
	return "", true, nil
}

func (p bucketParts) createPublicAccess(ctx context.Context) error {
	on := aws.Bool(true)
	_, err := p.client.PutPublicAccessBlock(ctx, &s3.PutPublicAccessBlockInput{
		Bucket: &p.bucket.Name,
		PublicAccessBlockConfiguration: &types.PublicAccessBlockConfiguration{
			BlockPublicAcls: on, BlockPublicPolicy: on, IgnorePublicAcls: on, RestrictPublicBuckets: on,
		},
	})
	return err
}

func (p bucketParts) readVersioning(ctx context.Context) (string, bool, error) {
	out, err := p.client.GetBucketVersioning(ctx, &s3.GetBucketVersioningInput{Bucket: &p.bucket.Name})
	if err != nil {
		return "", false, err
	}
	switch out.Status {
	case types.BucketVersioningStatusEnabled:
		return "", true, nil
	case types.BucketVersioningStatusSuspended:
		return "is suspended", true, nil
	}
	return "", false, nil
}

func (p bucketParts) createVersioning(ctx context.Context) error {
	_, err := p.client.PutBucketVersioning(ctx, &s3.PutBucketVersioningInput{
		Bucket:                  &p.bucket.Name,
		VersioningConfiguration: &types.VersioningConfiguration{Status: types.BucketVersioningStatusEnabled},
	})
	return err
}

func (p bucketParts) readEncryption(ctx context.Context) (string, bool, error) {
	out, err := p.client.GetBucketEncryption(ctx, &s3.GetBucketEncryptionInput{Bucket: &p.bucket.Name})
	if err != nil {
		return absent(err, "ServerSideEncryptionConfigurationNotFoundError")
	}
	if out.ServerSideEncryptionConfiguration == nil || len(out.ServerSideEncryptionConfiguration.Rules) == 0 {
		return "", false, nil
	}
	byDefault := out.ServerSideEncryptionConfiguration.Rules[0].ApplyServerSideEncryptionByDefault
	if byDefault == nil || byDefault.SSEAlgorithm != types.ServerSideEncryptionAes256 {
		return "is not AES256", true, nil
	}
	return "", true, nil
}

func (p bucketParts) createEncryption(ctx context.Context) error {
	_, err := p.client.PutBucketEncryption(ctx, &s3.PutBucketEncryptionInput{
		Bucket: &p.bucket.Name,
		ServerSideEncryptionConfiguration: &types.ServerSideEncryptionConfiguration{Rules: []types.ServerSideEncryptionRule{{
			ApplyServerSideEncryptionByDefault: &types.ServerSideEncryptionByDefault{SSEAlgorithm: types.ServerSideEncryptionAes256},
		}}},
	})
	return err
}

func (p bucketParts) readLifecycle(ctx context.Context) (string, bool, error) {
	out, err := p.client.GetBucketLifecycleConfiguration(ctx, &s3.GetBucketLifecycleConfigurationInput{Bucket: &p.bucket.Name})
	if err != nil {
		return absent(err, "NoSuchLifecycleConfiguration")
	}
	return strings.Join(p.bucket.Lifecycle.differences(out.Rules), "; "), true, nil
}

func (p bucketParts) createLifecycle(ctx context.Context) error {
	_, err := p.client.PutBucketLifecycleConfiguration(ctx, &s3.PutBucketLifecycleConfigurationInput{
		Bucket: &p.bucket.Name,
		// The default, said aloud: small objects stay unless a rule names a size.
		TransitionDefaultMinimumObjectSize: types.TransitionDefaultMinimumObjectSizeAllStorageClasses128k,
		LifecycleConfiguration:             &types.BucketLifecycleConfiguration{Rules: p.bucket.Lifecycle.rules()},
	})
	return err
}

// absent turns the error by which S3 says that a setting was never made into
// what a part's read answers.
func absent(err error, code string) (string, bool, error) {
	if codeOf(err) == code {
		return "", false, nil
	}
	return "", false, err
}
