// Package awsconf makes the AWS clients of a program. Credentials, region and
// endpoints come from the SDK's own settings only, so that no code path differs
// between AWS and the local stack.
package awsconf

import (
	"context"
	"fmt"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/config"
)

// maxAttempts keeps the SDK's own retries short: Temporal does the retrying,
// and attempts would multiply.
const maxAttempts = 2

// Load reads the AWS settings of the process.
func Load(ctx context.Context) (aws.Config, error) {
	cfg, err := config.LoadDefaultConfig(ctx, config.WithRetryMaxAttempts(maxAttempts), config.WithHTTPClient(newHTTPClient()))
	if err != nil {
		return aws.Config{}, fmt.Errorf("load AWS settings: %w", err)
	}
	return cfg, nil
}
