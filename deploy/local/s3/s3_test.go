package s3

import (
	"context"
	"errors"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/aws-sdk-go-v2/service/s3/types"
	"github.com/aws/smithy-go"
	"github.com/stretchr/testify/require"

	"millrace/deploy/local/internal/tooltest"
)

const region = "ap-south-2"

func client(addr, secret string) *s3.Client {
	return s3.New(s3.Options{
		BaseEndpoint: aws.String("http://" + addr), Region: region,
		Credentials:                credentials.NewStaticCredentialsProvider("key", secret, ""),
		RequestChecksumCalculation: aws.RequestChecksumCalculationWhenSupported,
		RetryMaxAttempts:           1,
	})
}

func requireCode(t *testing.T, err error, code string) {
	t.Helper()
	var api smithy.APIError
	require.True(t, errors.As(err, &api), "%v", err)
	require.Equal(t, code, api.ErrorCode())
}

// The one instance that a process may have serves all the checks.
func TestObjectStore(t *testing.T) {
	addr, dir := tooltest.FreeAddr(t), t.TempDir()
	wd, err := os.Getwd()
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() {
		done <- Serve(ctx, Config{Addr: addr, Dir: dir, AccessKey: "key", SecretKey: "secret", Region: region})
	}()
	t.Cleanup(func() {
		cancel()
		require.NoError(t, <-done)
		require.NoError(t, os.Chdir(wd)) // the library moved
	})
	tooltest.AwaitTCP(t, addr)
	c, bucket, key := client(addr, "secret"), aws.String("millrace-data"), aws.String("raw/factory-a/a:b.json")
	put := func(body string, ifNoneMatch *string) error {
		_, err := c.PutObject(t.Context(), &s3.PutObjectInput{Bucket: bucket, Key: key, Body: strings.NewReader(body), IfNoneMatch: ifNoneMatch})
		return err
	}

	t.Run("answers the health check unsigned", func(t *testing.T) {
		response, err := http.Get("http://" + addr + HealthPath)
		require.NoError(t, err)
		require.NoError(t, response.Body.Close())
		require.Equal(t, http.StatusOK, response.StatusCode)
	})
	t.Run("is addressed by path", func(t *testing.T) {
		_, err := c.CreateBucket(t.Context(), &s3.CreateBucketInput{
			Bucket:                    bucket,
			CreateBucketConfiguration: &types.CreateBucketConfiguration{LocationConstraint: region},
		})
		require.NoError(t, err)
	})
	t.Run("refuses a wrong signature", func(t *testing.T) {
		_, err := client(addr, "wrong").ListBuckets(t.Context(), &s3.ListBucketsInput{})
		requireCode(t, err, "SignatureDoesNotMatch")
	})
	t.Run("writes once when asked to", func(t *testing.T) {
		require.NoError(t, put("one", aws.String("*")))
		requireCode(t, put("two", aws.String("*")), "PreconditionFailed")
		out, err := c.GetObject(t.Context(), &s3.GetObjectInput{Bucket: bucket, Key: key})
		require.NoError(t, err)
		body, err := io.ReadAll(out.Body)
		require.NoError(t, err)
		require.NoError(t, out.Body.Close())
		require.Equal(t, "one", string(body))
	})
	t.Run("keeps versions", func(t *testing.T) {
		_, err := c.PutBucketVersioning(t.Context(), &s3.PutBucketVersioningInput{
			Bucket: bucket, VersioningConfiguration: &types.VersioningConfiguration{Status: types.BucketVersioningStatusEnabled},
		})
		require.NoError(t, err)
		require.NoError(t, put("two", nil))
		out, err := c.ListObjectVersions(t.Context(), &s3.ListObjectVersionsInput{Bucket: bucket})
		require.NoError(t, err)
		require.Len(t, out.Versions, 2)
	})
	t.Run("copies", func(t *testing.T) {
		_, err := c.CopyObject(t.Context(), &s3.CopyObjectInput{
			Bucket: bucket, Key: aws.String("copy.json"), CopySource: aws.String("millrace-data/raw/factory-a/a%3Ab.json"),
		})
		require.NoError(t, err)
	})
	t.Run("has no lifecycle rules", func(t *testing.T) {
		_, err := c.GetBucketLifecycleConfiguration(t.Context(), &s3.GetBucketLifecycleConfigurationInput{Bucket: bucket})
		require.Error(t, err)
	})
	t.Run("keeps objects from others on the machine", func(t *testing.T) {
		info, err := os.Stat(filepath.Join(dir, "data", "millrace-data", "copy.json"))
		require.NoError(t, err)
		require.Equal(t, os.FileMode(0o600), info.Mode().Perm())
	})
	t.Run("stops within a second", func(t *testing.T) {
		began := time.Now()
		cancel()
		require.NoError(t, <-done)
		require.Less(t, time.Since(began), 5*time.Second)
		done <- nil
	})
}
