// Command local runs Millrace's local stack: stand-ins for Temporal and AWS on loopback, and the
// programs on top of them.
package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"

	"github.com/alecthomas/kong"
)

type cli struct {
	BinDir string `name:"bin-dir" env:"MILLRACE_LOCAL_BIN_DIR" placeholder:"DIR" help:"Where the programs and tools are (default: where this program is)."`

	Run   runCmd   `cmd:"" help:"Run the whole stack until interrupted; what make run does."`
	Exec  execCmd  `cmd:"" help:"Run a command on a fresh stack that is gone afterwards."`
	Tools toolsCmd `cmd:"" help:"Build or fetch the tools that are missing."`

	S3      s3Cmd      `cmd:"" name:"s3" help:"Serve the S3 stand-in alone."`
	SQS     sqsCmd     `cmd:"" name:"sqs" help:"Serve the stand-in for SQS and other AWS APIs alone."`
	Bedrock bedrockCmd `cmd:"" help:"Serve the stand-in for Amazon Bedrock's models alone."`
	IoT     iotCmd     `cmd:"" name:"iot" help:"Serve the stand-in for AWS IoT Core alone."`
}

// code is a command's exit code, where it is not the usual 0 or 1.
type code struct{ value int }

func main() {
	var c cli
	exit := &code{}
	parsed := kong.Parse(&c, kong.Name("local"), kong.UsageOnError(),
		kong.Description("The local stack: stand-ins for Temporal and AWS, and the programs on them."),
		kong.Bind(exit), kong.BindTo(context.Background(), (*context.Context)(nil)))
	if err := c.defaults(); err != nil {
		parsed.FatalIfErrorf(err)
	}
	parsed.FatalIfErrorf(parsed.Run(&c))
	os.Exit(exit.value)
}

func (c *cli) defaults() error {
	if c.BinDir != "" {
		return nil
	}
	self, err := os.Executable()
	if err != nil {
		return fmt.Errorf("find this program: %w", err)
	}
	c.BinDir = filepath.Dir(self)
	return nil
}

// say shows progress on standard error, which leaves standard output to commands.
func say(format string, args ...any) {
	fmt.Fprintf(os.Stderr, "local: "+format+"\n", args...)
}
