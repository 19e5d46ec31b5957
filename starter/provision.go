package main

import (
	"context"
	"fmt"
	"io"
	"net/url"
	"os"
	"path"
	"text/tabwriter"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/sqs"

	"millrace/platform/awsconf"
	"millrace/platform/config"
	"millrace/storage/provision"
)

// provisionCommand settles tables, bucket and queues. On AWS the foundation owns
// them, so that creating has to be asked for.
type provisionCommand struct {
	config.Stores
	config.Queues

	Create       bool `help:"Create what is missing; without it, only check."`
	Streams      bool `help:"Have the factory status table publish its changes. Nothing of Millrace reads them." negatable:"" default:"true" env:"MILLRACE_TABLE_STREAMS"`
	SmallObjects bool `help:"Move objects under 128 KiB to colder storage classes too; S3 bills 128 KiB for each there." env:"MILLRACE_LIFECYCLE_SMALL_OBJECTS"`
}

// Run settles everything and prints what was found; it fails when something is
// missing or drifted.
func (c *provisionCommand) Run(ctx context.Context) error {
	cfg, err := awsconf.Load(ctx)
	if err != nil {
		return err
	}
	findings, err := c.settle(ctx, cfg)
	if printErr := printFindings(os.Stdout, findings); printErr != nil {
		return printErr
	}
	if err != nil {
		return err
	}
	if wanting := provision.Wanting(findings); len(wanting) > 0 {
		return fmt.Errorf("%d of %d parts are missing or drifted", len(wanting), len(findings))
	}
	return nil
}

func (c *provisionCommand) settle(ctx context.Context, cfg aws.Config) ([]provision.Finding, error) {
	status := provision.FactoryStatusTable(c.FactoryStatusTable)
	status.Stream = status.Stream && c.Streams
	findings, err := provision.Tables(ctx, dynamodb.NewFromConfig(cfg), c.Create,
		provision.GovernanceTable(c.GovernanceTable), provision.MonitoringTable(c.MonitoringTable), status,
	)
	if err != nil {
		return findings, err
	}
	bucket, err := provision.BucketOf(ctx, awsconf.NewS3(cfg), c.Create, provision.Bucket{
		Name: c.DataBucket, Region: cfg.Region, Lifecycle: provision.Lifecycle{SmallObjects: c.SmallObjects},
	})
	findings = append(findings, bucket...)
	if err != nil {
		return findings, err
	}
	queues, err := provision.QueuesOf(ctx, sqs.NewFromConfig(cfg), c.Create, c.queueNames())
	return append(findings, queues...), err
}

// queueNames are those that the queue URLs end in, else the defaults.
func (c *provisionCommand) queueNames() provision.Queues {
	names := provision.DefaultQueues
	for queueURL, name := range map[string]*string{
		c.TelemetryQueueURL: &names.Telemetry, c.TelemetryDLQQueueURL: &names.TelemetryDLQ,
		c.RuleErrorsQueueURL: &names.RuleErrors, c.JobResultsQueueURL: &names.JobResults,
	} {
		if parsed, err := url.Parse(queueURL); err == nil && parsed.Path != "" {
			*name = path.Base(parsed.Path)
		}
	}
	return names
}

func printFindings(w io.Writer, findings []provision.Finding) error {
	table := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	for _, f := range findings {
		if _, err := fmt.Fprintf(table, "%s\t%s\t%s\n", f.State, f.Part, f.Detail); err != nil {
			return fmt.Errorf("print findings: %w", err)
		}
	}
	if err := table.Flush(); err != nil {
		return fmt.Errorf("print findings: %w", err)
	}
	return nil
}
