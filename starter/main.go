// Command starter is the operator's tool: it provisions tables, bucket and
// queues, starts the long-running workflows, repairs read models and explains
// states.
package main

import (
	"context"
	"os"
	"os/signal"
	"syscall"

	"millrace/platform/config"
	"millrace/platform/logging"
	"millrace/starter/alertcmd"
	"millrace/starter/artifactcmd"
	"millrace/starter/reportcmd"
	"millrace/starter/schedules"
	"millrace/starter/signalcmd"
	"millrace/starter/status"
	"millrace/starter/tokens"
)

// commands are the starter's commands; each reads only the settings it needs.
type commands struct {
	config.Logging

	Provision provisionCommand  `cmd:"" help:"Check the tables, the bucket and the queues; create what is missing with --create. Never deletes."`
	Up        upCommand         `cmd:"" help:"Start the long-running workflows and one reconciliation of raw/; what runs already is left alone."`
	Replay    replayCommand     `cmd:"" help:"Build the processed objects, the history and the current state of a factory again from raw/."`
	Schedules schedules.Command `cmd:"" help:"Manage the schedules."`
	Status    status.Command    `cmd:"" help:"Show schedules, last runs, the queues' lag and the freshness of each factory."`
	Token     tokens.Command    `cmd:"" help:"Make and look after access tokens."`
	Factory   factoryCommand    `cmd:"" help:"Look into factories."`

	Artifact artifactcmd.Command         `cmd:"" help:"Submit, approve, follow and verify artifacts."`
	Approver artifactcmd.ApproverCommand `cmd:"" help:"Manage the keys of approvers."`
	Group    artifactcmd.GroupCommand    `cmd:"" help:"Manage groups of approvers."`
	Alert    alertcmd.Command            `cmd:"" help:"Try rules on a snapshot, list what became of alerts, silence them."`
	Signals  signalcmd.Command           `cmd:"" help:"Send, generate, count and check the signals of applications; show their usage."`
	Report   reportcmd.Command           `cmd:"" help:"Make daily reports by hand, show them, make those of days in the past."`
}

const description = "The operator's tool of Millrace."

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	var cli commands
	parsed := config.Load("starter", description, &cli)
	parsed.BindTo(ctx, (*context.Context)(nil))
	parsed.FatalIfErrorf(parsed.Run(logging.New(os.Stderr, "starter", cli.Logging)))
}
