package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/signal"
	"syscall"

	"millrace/deploy/local/bedrock"
	"millrace/deploy/local/bridge"
	"millrace/deploy/local/iot"
	"millrace/deploy/local/loopback"
	"millrace/deploy/local/s3"
	"millrace/deploy/local/sqs"
	"millrace/deploy/local/stack"
	"millrace/deploy/local/toolchain"
)

type runCmd struct {
	Dir          string `default:".local" env:"MILLRACE_LOCAL_DIR" help:"Directory that keeps the stack's data, certificates and logs."`
	StandInsOnly bool   `help:"Start the stand-ins only, none of our own programs."`
	stack.Ports
}

func (r *runCmd) Run(ctx context.Context, c *cli) error {
	slog.SetDefault(slog.New(slog.NewTextHandler(os.Stderr, nil)))
	return stack.Run(ctx, stack.RunOptions{
		Dir: r.Dir, BinDir: c.BinDir, Ports: r.Ports, StandInsOnly: r.StandInsOnly, Say: say,
	})
}

type execCmd struct {
	Durable bool     `help:"Keep tables, queues and workflows in files, so that parts may be killed."`
	Keep    bool     `help:"Leave the stack's directory, with its logs, behind."`
	Command []string `arg:"" passthrough:"" help:"The command and its arguments, after --."`
}

func (e *execCmd) Run(ctx context.Context, c *cli, exit *code) error {
	if len(e.Command) > 0 && e.Command[0] == "--" {
		e.Command = e.Command[1:]
	}
	if len(e.Command) == 0 {
		return errors.New("name the command to run, after --")
	}
	// What the supervisor has to say is shown by the failing part's log.
	slog.SetDefault(slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelWarn})))
	value, err := stack.Exec(ctx, stack.ExecOptions{
		Command: e.Command, BinDir: c.BinDir, Durable: e.Durable, Keep: e.Keep, Say: say,
	})
	exit.value = value
	return err
}

type toolsCmd struct{}

func (toolsCmd) Run(ctx context.Context, c *cli) error {
	ctx, stop := signal.NotifyContext(ctx, os.Interrupt, syscall.SIGTERM)
	defer stop()
	return toolchain.Installer{BinDir: c.BinDir, Say: say}.Install(ctx)
}

type s3Cmd struct {
	Addr string `default:"127.0.0.1:7070" help:"Loopback address to listen on."`
	Dir  string `required:"" help:"Directory of the objects."`
}

func (s *s3Cmd) Run(ctx context.Context) error {
	cfg := s3.Config{Addr: s.Addr, Dir: s.Dir, AccessKey: os.Getenv("AWS_ACCESS_KEY_ID"), SecretKey: os.Getenv("AWS_SECRET_ACCESS_KEY"), Region: os.Getenv("AWS_REGION")}
	if cfg.AccessKey == "" || cfg.SecretKey == "" || cfg.Region == "" {
		return errors.New("AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY and AWS_REGION must be set: requests are checked against them")
	}
	return serve(ctx, s.Addr, func(ctx context.Context) error { return s3.Serve(ctx, cfg) })
}

type sqsCmd struct {
	Addr string `default:"127.0.0.1:4566" help:"Loopback address to listen on."`
	Dir  string `help:"Directory of the queues; in memory when not given."`
}

func (s *sqsCmd) Run(ctx context.Context) error {
	cfg := sqs.Config{Addr: s.Addr, Dir: s.Dir}
	if ok, err := cfg.CheckEnv(); err != nil || !ok {
		return errors.Join(err, restart(cfg))
	}
	return serve(ctx, s.Addr, func(ctx context.Context) error { return sqs.Serve(ctx, cfg) })
}

type bedrockCmd struct {
	Addr string `default:"127.0.0.1:4567" help:"Loopback address to listen on."`
	Mode string `env:"MILLRACE_LOCAL_BEDROCK_MODE" placeholder:"MODE[:COUNT]" help:"How requests are answered at first, and how many of them; see the README."`
}

func (b *bedrockCmd) Run(ctx context.Context) error {
	cfg := bedrock.Config{Addr: b.Addr, Mode: b.Mode}
	return serve(ctx, b.Addr, func(ctx context.Context) error { return bedrock.Serve(ctx, cfg) })
}

// restart replaces this process by the same program with the variables that kumo needs from its
// start. It returns only when that fails.
func restart(cfg sqs.Config) error {
	self, err := stack.Self()
	if err != nil {
		return err
	}
	if err := os.Unsetenv(sqs.DataDirEnv); err != nil {
		return fmt.Errorf("clear %s: %w", sqs.DataDirEnv, err)
	}
	env, err := cfg.Env()
	if err != nil {
		return err
	}
	return fmt.Errorf("start again: %w", syscall.Exec(self, os.Args, append(os.Environ(), env...)))
}

type iotCmd struct {
	Addr       string `default:"127.0.0.1:8883" help:"Loopback address for MQTT over TLS."`
	AdminAddr  string `default:"127.0.0.1:9883" help:"Loopback address for metrics."`
	Certs      string `required:"" help:"Directory of the certificates; made when missing."`
	RoutesFile string `help:"File that keeps changes of the rules' destinations."`

	Bucket     string `env:"MILLRACE_DATA_BUCKET" default:"millrace-data" help:"Bucket for the bodies."`
	Telemetry  string `name:"telemetry-queue-url" env:"MILLRACE_TELEMETRY_QUEUE_URL" required:"" help:"Queue for telemetry."`
	RuleErrors string `name:"rule-errors-queue-url" env:"MILLRACE_RULE_ERRORS_QUEUE_URL" required:"" help:"Queue for what the rules could not do."`
	JobResults string `name:"job-results-queue-url" env:"MILLRACE_JOB_RESULTS_QUEUE_URL" required:"" help:"Queue for job results."`
}

func (i *iotCmd) Run(ctx context.Context) error {
	if err := loopback.CheckAddr(i.AdminAddr); err != nil {
		return err
	}
	cfg := iot.Config{
		Addr: i.Addr, AdminAddr: i.AdminAddr, Certs: i.Certs, RoutesFile: i.RoutesFile,
		To: bridge.Destinations{
			Bucket: i.Bucket, TelemetryQueueURL: i.Telemetry, RuleErrorsQueueURL: i.RuleErrors, JobResultsQueueURL: i.JobResults,
		},
	}
	return serve(ctx, i.Addr, func(ctx context.Context) error { return iot.Serve(ctx, cfg) })
}

// serve runs a stand-in on a loopback address until it is asked to stop.
func serve(ctx context.Context, addr string, run func(context.Context) error) error {
	if err := loopback.CheckAddr(addr); err != nil {
		return err
	}
	slog.SetDefault(slog.New(slog.NewTextHandler(os.Stderr, nil)))
	ctx, stop := signal.NotifyContext(ctx, os.Interrupt, syscall.SIGTERM)
	defer stop()
	return run(ctx)
}
