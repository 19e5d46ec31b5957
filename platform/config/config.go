// Package config has the settings that several programs share and the one
// loader that every program uses: flags first, then environment variables, then
// defaults, all shown by --help.
package config

import (
	"errors"
	"fmt"
	"os"
	"regexp"
	"slices"

	"github.com/alecthomas/kong"

	"millrace/domain/factory"
)

// Load parses the command line of a program into settings, a pointer to a
// struct with kong tags. A problem ends the program with a message that names
// the flag and its variable.
func Load(program, description string, settings any) *kong.Context {
	parser := kong.Must(settings, options(program, description)...)
	ctx, err := parser.Parse(os.Args[1:])
	parser.FatalIfErrorf(err)
	return ctx
}

func options(program, description string) []kong.Option {
	return []kong.Option{
		kong.Name(program),
		kong.Description(description),
		kong.ShortUsageOnError(),
		kong.ConfigureHelp(kong.HelpOptions{Compact: true, FlagsLast: true}),
	}
}

// Logging says how a program logs.
type Logging struct {
	LogLevel  string `help:"Lowest level that is logged." enum:"debug,info,warn,error" default:"info" env:"MILLRACE_LOG_LEVEL"`
	LogFormat string `help:"Form of the log lines." enum:"text,json" default:"text" env:"MILLRACE_LOG_FORMAT"`
}

// Metrics says where a program serves its Prometheus metrics.
type Metrics struct {
	MetricsAddress string `help:"Address of GET /metrics; empty serves none." default:"" env:"MILLRACE_METRICS_ADDRESS" placeholder:"HOST:PORT"`
}

// Stores names the tables and the bucket.
type Stores struct {
	GovernanceTable    string `help:"Table of artifacts and signals." default:"millrace-governance" env:"MILLRACE_GOVERNANCE_TABLE"`
	MonitoringTable    string `help:"Table of the monitoring API." default:"millrace-monitoring" env:"MILLRACE_MONITORING_TABLE"`
	FactoryStatusTable string `help:"Table of the factory read models." default:"millrace-factory-status" env:"MILLRACE_FACTORY_STATUS_TABLE"`
	DataBucket         string `help:"Bucket of all objects." default:"millrace-data" env:"MILLRACE_DATA_BUCKET"`
}

// Queues are the URLs of the SQS queues.
type Queues struct {
	TelemetryQueueURL    string `help:"Queue of telemetry messages." env:"MILLRACE_TELEMETRY_QUEUE_URL" placeholder:"URL"`
	TelemetryDLQQueueURL string `name:"telemetry-dlq-queue-url" help:"Dead letters of the telemetry queue." env:"MILLRACE_TELEMETRY_DLQ_QUEUE_URL" placeholder:"URL"`
	RuleErrorsQueueURL   string `help:"Queue of messages whose IoT rule failed." env:"MILLRACE_RULE_ERRORS_QUEUE_URL" placeholder:"URL"`
	JobResultsQueueURL   string `help:"Queue of device job results." env:"MILLRACE_JOB_RESULTS_QUEUE_URL" placeholder:"URL"`
}

// Factories lists the factories that are watched.
type Factories struct {
	FactoryIDs []string `name:"factory-ids" help:"Factories that are refreshed, aggregated and listed." default:"factory-a,factory-b,factory-c" env:"MILLRACE_FACTORY_IDS"`
}

// Validate refuses ids that can't name a factory, all of them in one error.
func (f Factories) Validate() error {
	var problems []error
	for i, id := range f.FactoryIDs {
		if err := factory.CheckFactoryID(id); err != nil {
			problems = append(problems, fmt.Errorf("MILLRACE_FACTORY_IDS: %q: %w", id, err))
		}
		if slices.Contains(f.FactoryIDs[:i], id) {
			problems = append(problems, fmt.Errorf("MILLRACE_FACTORY_IDS: %q is listed twice", id))
		}
	}
	return errors.Join(problems...)
}

var (
	tableName  = regexp.MustCompile(`^[A-Za-z0-9_.-]{3,255}$`)
	bucketName = regexp.MustCompile(`^[a-z0-9][a-z0-9.-]{1,61}[a-z0-9]$`)
)

// Validate refuses names that AWS would refuse, all of them in one error.
func (s Stores) Validate() error {
	var problems []error
	for variable, name := range map[string]string{
		"MILLRACE_GOVERNANCE_TABLE": s.GovernanceTable, "MILLRACE_MONITORING_TABLE": s.MonitoringTable, "MILLRACE_FACTORY_STATUS_TABLE": s.FactoryStatusTable,
	} {
		if !tableName.MatchString(name) {
			problems = append(problems, fmt.Errorf("%s: %q is no table name", variable, name))
		}
	}
	if !bucketName.MatchString(s.DataBucket) {
		problems = append(problems, fmt.Errorf("MILLRACE_DATA_BUCKET: %q is no bucket name", s.DataBucket))
	}
	return errors.Join(problems...)
}
