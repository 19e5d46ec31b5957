// Package awsconf makes the AWS clients of a program. Credentials, region and
// endpoints come from the SDK's own settings only, so that no code path differs
// between AWS and the local stack.
package awsconf

import (
	"context"
	"fmt"
	"log/slog"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/config"
	"github.com/aws/smithy-go/logging"
)

// maxAttempts keeps the SDK's own retries short: Temporal does the retrying,
// and attempts would multiply.
const maxAttempts = 2

// Load reads the AWS settings of the process.
func Load(ctx context.Context) (aws.Config, error) {
	cfg, err := config.LoadDefaultConfig(ctx,
		config.WithRetryMaxAttempts(maxAttempts), config.WithHTTPClient(newHTTPClient()), config.WithLogger(logging.LoggerFunc(logSDK)))
	if err != nil {
		return aws.Config{}, fmt.Errorf("load AWS settings: %w", err)
	}
	return cfg, nil
}

// logSDK passes the SDK's own remarks on as debug lines: what matters comes back
// as an error.
func logSDK(classification logging.Classification, format string, args ...any) {
	slog.Debug("AWS SDK", "level", string(classification), "remark", fmt.Sprintf(format, args...))
}
