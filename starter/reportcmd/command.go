// Package reportcmd has the operator's commands for the daily report: make one by
// hand, see how far it is, and make those of days in the past.
package reportcmd

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"time"

	"go.temporal.io/sdk/client"

	"millrace/domain/report"
	"millrace/platform/awsconf"
	"millrace/platform/config"
	"millrace/storage/objects"
	storage "millrace/storage/report"
)

// Command has what can be done about reports.
type Command struct {
	Run      RunCommand      `cmd:"" help:"Make the reports on a local day now, and tell people."`
	Status   StatusCommand   `cmd:"" help:"Show the reports on a local day, and how far runs are."`
	Backfill BackfillCommand `cmd:"" help:"Make the reports on days in the past, a few at a time. Nobody is told."`
}

// Place says where reports lie and on what they are.
type Place struct {
	config.ReportPlace
	DataBucket string   `help:"Bucket of all objects." default:"millrace-data" env:"MILLRACE_DATA_BUCKET"`
	FactoryIDs []string `name:"report-factory-ids" help:"Factories that are reported on, besides the cloud infrastructure; by default those of MILLRACE_FACTORY_IDS." env:"MILLRACE_REPORT_FACTORY_IDS,MILLRACE_FACTORY_IDS" default:"factory-a,factory-b,factory-c" placeholder:"ID"`
}

// targets are all that are reported on.
func (p Place) targets() []string { return append(slices.Clone(p.FactoryIDs), report.CloudTarget) }

func (p Place) store(ctx context.Context) (storage.Store, error) {
	cfg, err := awsconf.Load(ctx)
	if err != nil {
		return storage.Store{}, err
	}
	return storage.Store{Bucket: objects.Bucket{Client: awsconf.NewS3(cfg), Name: p.DataBucket}, Prefix: p.OutputPrefix}, nil
}

// checkDay refuses what is no day.
func checkDay(flag, date string) error {
	if day, err := time.Parse(time.DateOnly, date); err != nil || day.Format(time.DateOnly) != date {
		return fmt.Errorf("%s: %q must be a day such as 2026-01-31", flag, date)
	}
	return nil
}

func checkTargets(flag string, targets []string) error {
	var problems []error
	for _, target := range targets {
		if err := report.CheckTarget(target); err != nil {
			problems = append(problems, fmt.Errorf("%s: %q: %w", flag, target, err))
		}
	}
	return errors.Join(problems...)
}

// FailedError tells that reports are missing that were asked for.
type FailedError struct {
	Failed int
}

// Error says how many.
func (e *FailedError) Error() string { return fmt.Sprintf("%d reports were not made", e.Failed) }

// ExitCode is 2: some of what was asked for failed.
func (*FailedError) ExitCode() int { return 2 }

func failed(n int) error {
	if n == 0 {
		return nil
	}
	return &FailedError{Failed: n}
}

// pollEvery is how often progress is asked for.
const pollEvery = 2 * time.Second

// follow waits for a run's result and prints its progress where it changed.
// Giving up leaves the run running.
func follow(ctx context.Context, temporal client.Client, run client.WorkflowRun, query string, progress func(converterValue) string, result any, out io.Writer) error {
	ended := make(chan error, 1)
	go func() { ended <- run.Get(ctx, result) }()
	tick := time.NewTicker(pollEvery)
	defer tick.Stop()
	last := ""
	for {
		select {
		case err := <-ended:
			if ctx.Err() != nil {
				return fmt.Errorf("stopped watching, %s goes on: %w", run.GetID(), ctx.Err())
			}
			if err != nil {
				return fmt.Errorf("%s: %w", run.GetID(), err)
			}
			return nil
		case <-tick.C:
			line := asked(ctx, temporal, run.GetID(), query, progress)
			if line == "" || line == last {
				continue
			}
			last = line
			fmt.Fprintln(out, line) //nolint:errcheck // a closed terminal
		}
	}
}

// converterValue is an encoded answer to a query.
type converterValue interface{ Get(valuePtr any) error }

func asked(ctx context.Context, temporal client.Client, id, query string, progress func(converterValue) string) string {
	ctx, stop := context.WithTimeout(ctx, pollEvery)
	defer stop()
	value, err := temporal.QueryWorkflow(ctx, id, "", query)
	if err != nil {
		return "waiting for a worker on task queue reports"
	}
	return progress(value)
}
