// Package alertcmd has the operator's commands for alerts: what a snapshot would
// raise, what became of alerts, and silences.
package alertcmd

import (
	"context"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"millrace/platform/awsconf"
	storage "millrace/storage/alert"
)

// Command has what can be done about alerts.
type Command struct {
	Test    TestCommand    `cmd:"" help:"Print the alerts that a snapshot raises and the candidates that are suppressed, as JSON, offline."`
	List    ListCommand    `cmd:"" help:"List what became of alerts, newest first: sent, failed, ambiguous, suppressed, recovered."`
	Silence SilenceCommand `cmd:"" help:"Keep the alerts of a scope quiet for a time."`
}

// Table names the table of the alert log and the silences.
type Table struct {
	FactoryStatusTable string `help:"Table of the alert log and the silences." default:"millrace-factory-status" env:"MILLRACE_FACTORY_STATUS_TABLE"`
}

func (t Table) store(ctx context.Context) (storage.Store, error) {
	cfg, err := awsconf.Load(ctx)
	if err != nil {
		return storage.Store{}, err
	}
	return storage.New(dynamodb.NewFromConfig(cfg), t.FactoryStatusTable, ""), nil
}
