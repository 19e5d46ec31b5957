package stack

import (
	"os"
	"path/filepath"
	"time"

	"millrace/deploy/local/supervise"
)

// This file has every command line of our own programs, and nothing else.

// Names of the programs' binaries.
const (
	binWorker  = "worker"
	binStarter = "starter"
	binGateway = "gateway"
	binEdge    = "edge"
)

// Pages of the gateway that people and probes ask for.
const (
	gatewayHealth    = "/healthz"
	gatewayFactories = "/v1/factories"
	gatewaySlack     = "/dev/slack"
)

var binaries = []string{binWorker, binStarter, binGateway, binEdge}

// provision makes tables, bucket and queues, as on AWS, but for the stream of the
// status table: nothing reads it, and dynoxide reads all of a stream's records at
// every write, so that each is slower than the one before.
func (s *Stack) provision() supervise.Part {
	return s.once("provision", binStarter, "provision", "--create", "--no-streams")
}

// schedules makes or updates the schedules.
func (s *Stack) schedules() supervise.Part {
	return s.once("schedules", binStarter, "schedules", "apply")
}

// workflows starts the workflows that run for ever.
func (s *Stack) workflows() supervise.Part {
	return s.once("up", binStarter, "up")
}

// programs are the parts that serve: the worker and the gateway.
func (s *Stack) programs() []supervise.Part {
	metrics := addr(s.Ports.Worker)
	gateway := addr(s.Ports.Gateway)
	return []supervise.Part{
		{
			Name: binWorker, Stage: stagePrograms, Command: []string{s.bin(binWorker)},
			Env:   s.environ(append(slackVars(gateway), "MILLRACE_METRICS_ADDRESS="+metrics, "MILLRACE_WORKER_STOP_TIMEOUT=10s")...),
			Ready: supervise.HTTPProbe("http://" + metrics + "/metrics"), Grace: 15 * time.Second,
		},
		{
			// Scripts run in a process of their own, as everywhere.
			Name: "worker-scripts", Stage: stagePrograms, Command: []string{s.bin(binWorker), "--queues", "scripts"},
			Env: s.environ("MILLRACE_WORKER_STOP_TIMEOUT=10s"), Grace: 15 * time.Second,
		},
		{
			Name: binGateway, Stage: stagePrograms, Command: []string{s.bin(binGateway)},
			Env:   s.environ("MILLRACE_GATEWAY_ADDRESS="+gateway, "MILLRACE_SLACK_SINK_FILE="+s.path("slack.jsonl")),
			Ready: supervise.HTTPProbe("http://" + gateway + gatewayHealth), Grace: 10 * time.Second,
		},
	}
}

// slackVars have alerts posted to the gateway's sink, unless the person named a webhook of Slack's
// own.
func slackVars(gateway string) []string {
	const webhook = "MILLRACE_SLACK_WEBHOOK"
	if os.Getenv(webhook) != "" {
		return nil
	}
	return []string{webhook + "=env:MILLRACE_LOCAL_SLACK_URL", "MILLRACE_LOCAL_SLACK_URL=http://" + gateway + gatewaySlack + "/{scope}"}
}

// edges are the simulated factories: each generates messages into its outbox and publishes them
// with its own certificate.
func (s *Stack) edges() []supervise.Part {
	parts := make([]supervise.Part, 0, len(Factories))
	for _, id := range Factories {
		env := append(factoryVars(s.authority.Files(id)), "MILLRACE_OUTBOX_DIR="+s.path(filepath.Join("outbox", id)))
		parts = append(parts, supervise.Part{
			Name: "edge-" + id, Stage: stageEdge, Env: s.environ(env...),
			Command: []string{s.bin(binEdge), "simulate", "--factory", id, "--publish"},
		})
	}
	return parts
}

func (s *Stack) once(name, binary string, args ...string) supervise.Part {
	return supervise.Part{Name: name, Command: append([]string{s.bin(binary)}, args...), Env: s.environ()}
}

func (s *Stack) bin(name string) string { return filepath.Join(s.BinDir, name) }
