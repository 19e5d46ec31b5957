package status

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/cloudwatch"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/prometheus/client_golang/prometheus"

	"millrace/platform/awsconf"
	"millrace/platform/config"
	"millrace/platform/queueage"
	"millrace/platform/temporalconf"
	"millrace/starter/schedules"
	storage "millrace/storage/factory"
	"millrace/workflows/names"
)

// Command shows how the product is doing. It changes nothing.
type Command struct {
	config.Stores    `embed:""`
	config.Queues    `embed:""`
	config.Factories `embed:""`

	JSON    bool          `name:"json" help:"Print one JSON document."`
	Timeout time.Duration `help:"How long to wait for answers." default:"15s"`
}

// Validate refuses settings that can't work.
func (c *Command) Validate() error { return errors.Join(c.Stores.Validate(), c.Factories.Validate()) }

// Run prints the report. It fails when a part could not be looked at, so that
// probes notice.
func (c *Command) Run(ctx context.Context, logger *slog.Logger) error {
	ctx, stop := context.WithTimeout(ctx, c.Timeout)
	defer stop()
	cfg, err := awsconf.Load(ctx)
	if err != nil {
		return err
	}
	temporal, err := temporalconf.Lazy(logger, prometheus.NewRegistry())
	if err != nil {
		return err
	}
	defer temporal.Close()
	metrics := cloudwatch.NewFromConfig(cfg)
	sources := Sources{
		Temporal: temporal, SQS: sqs.NewFromConfig(cfg),
		Store:     storage.Store{Table: storage.StatusTable(dynamodb.NewFromConfig(cfg), c.FactoryStatusTable)},
		QueueURLs: given(c.TelemetryQueueURL, c.TelemetryDLQQueueURL, c.RuleErrorsQueueURL, c.JobResultsQueueURL),
		DLQs:      given(c.TelemetryDLQQueueURL), Factories: c.FactoryIDs, Now: time.Now,
		OldestAge: func(ctx context.Context, url string) (time.Duration, bool, error) {
			return queueage.Source{Client: metrics, QueueURL: url, Now: time.Now}.Age(ctx)
		},
		ConsumerID: names.TelemetryIngestID, DrainIDs: []string{names.RuleErrorDrainID, names.JobResultDrainID},
	}
	for _, d := range schedules.Definitions(config.ReportTime{}) {
		sources.ScheduleIDs = append(sources.ScheduleIDs, d.ID)
	}
	report := sources.Gather(ctx)
	if err := c.print(report); err != nil {
		return err
	}
	if n := len(report.Problems); n > 0 {
		return fmt.Errorf("%d parts could not be looked at", n)
	}
	return nil
}

func (c *Command) print(report Report) error {
	if c.JSON {
		return report.JSON(os.Stdout)
	}
	return report.Text(os.Stdout)
}

// given are the URLs that are set.
func given(urls ...string) []string {
	var set []string
	for _, url := range urls {
		if url != "" {
			set = append(set, url)
		}
	}
	return set
}
