package stack

import (
	"context"
	"fmt"
	"path/filepath"
	"strconv"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"

	"millrace/deploy/local/bedrock"
	"millrace/deploy/local/s3"
	"millrace/deploy/local/sqs"
	"millrace/deploy/local/supervise"
	"millrace/workflows/names"
)

// Names of the parts that stand in for Temporal and AWS.
const (
	partTemporal = "temporal"
	partDynamoDB = "dynamodb"
	partS3       = "s3"
	partSQS      = "sqs"
	partIoT      = "iot"
	partBedrock  = "bedrock"
)

// Stages in which parts are stopped, the highest first: what produces before what consumes,
// programs before stores.
const (
	stageStores = iota
	stageTemporal
	stageBroker
	stagePrograms
	stageEdge
)

// temporalService is the name by which the server reports the health of its frontend.
const temporalService = "temporal.api.workflowservice.v1.WorkflowService"

func (s *Stack) standIns() ([]supervise.Part, error) {
	queues, err := s.sqsPart()
	if err != nil {
		return nil, err
	}
	return []supervise.Part{s.temporalPart(), s.dynamodbPart(), s.s3Part(), queues, s.bedrockPart(), s.iotPart()}, nil
}

func (s *Stack) temporalPart() supervise.Part {
	args := []string{
		s.Tools.Temporal, "server", "start-dev", "--ip", "127.0.0.1",
		"--port", strconv.Itoa(s.Ports.Temporal), "--log-level", "warn",
	}
	for _, attribute := range names.ArtifactAttributes() {
		args = append(args, "--search-attribute", attribute+"=Keyword")
	}
	if s.Headless {
		args = append(args, "--headless")
	} else {
		args = append(args, "--ui-ip", "127.0.0.1", "--ui-port", strconv.Itoa(s.Ports.TemporalUI))
	}
	if s.Durable {
		// Without these the server waits for the disk at each step: a quarter of the throughput.
		args = append(args, "--db-filename", s.path("temporal.db"),
			"--sqlite-pragma", "journal_mode=WAL", "--sqlite-pragma", "synchronous=1")
	}
	return supervise.Part{
		Name: partTemporal, Stage: stageTemporal, Command: args, Env: s.environ(),
		Ready: temporalProbe(addr(s.Ports.Temporal)), ReadyWithin: time.Minute, Grace: 8 * time.Second,
	}
}

func temporalProbe(target string) supervise.Probe {
	return func(ctx context.Context) error {
		conn, err := grpc.NewClient(target, grpc.WithTransportCredentials(insecure.NewCredentials()))
		if err != nil {
			return fmt.Errorf("probe Temporal: %w", err)
		}
		defer func() { _ = conn.Close() }() // nothing is in work on it
		answer, err := healthpb.NewHealthClient(conn).Check(ctx, &healthpb.HealthCheckRequest{Service: temporalService})
		if err != nil {
			return fmt.Errorf("probe Temporal: %w", err)
		}
		if answer.GetStatus() != healthpb.HealthCheckResponse_SERVING {
			return fmt.Errorf("probe Temporal: %s", answer.GetStatus())
		}
		return nil
	}
}

func (s *Stack) dynamodbPart() supervise.Part {
	args := []string{s.Tools.Dynoxide, "--host", "127.0.0.1", "--port", strconv.Itoa(s.Ports.DynamoDB)}
	if s.Durable {
		args = append(args, "--db-path", s.path("dynamodb.db"))
	}
	return supervise.Part{
		Name: partDynamoDB, Stage: stageStores, Command: args, Env: s.environ(),
		Ready: supervise.HTTPProbe("http://" + addr(s.Ports.DynamoDB) + "/"),
	}
}

func (s *Stack) s3Part() supervise.Part {
	return supervise.Part{
		Name: partS3, Stage: stageStores, Env: s.environ(),
		Command: []string{s.Self, "s3", "--addr", addr(s.Ports.S3), "--dir", s.path("s3")},
		Ready:   supervise.HTTPProbe("http://" + addr(s.Ports.S3) + s3.HealthPath),
	}
}

func (s *Stack) sqsPart() (supervise.Part, error) {
	command := []string{s.Self, "sqs", "--addr", addr(s.Ports.SQS)}
	var env []string
	if s.Durable {
		dir := s.path("sqs")
		command = append(command, "--dir", dir)
		var err error
		if env, err = (sqs.Config{Dir: dir}).Env(); err != nil {
			return supervise.Part{}, err
		}
	}
	return supervise.Part{
		Name: partSQS, Stage: stageStores, Command: command, Env: s.environ(env...),
		Ready: supervise.HTTPProbe("http://" + addr(s.Ports.SQS) + sqs.HealthPath),
	}, nil
}

// bedrockPart serves models. It remembers nothing, so that a kill loses nothing either.
func (s *Stack) bedrockPart() supervise.Part {
	return supervise.Part{
		Name: partBedrock, Stage: stageStores, Env: s.environ(),
		Command: []string{s.Self, "bedrock", "--addr", addr(s.Ports.Bedrock)},
		Ready:   supervise.HTTPProbe("http://" + addr(s.Ports.Bedrock) + bedrock.HealthPath),
	}
}

func (s *Stack) iotPart() supervise.Part {
	command := []string{
		s.Self, "iot", "--addr", addr(s.Ports.IoT), "--admin-addr", addr(s.Ports.IoTAdmin), "--certs", s.certs(),
	}
	if s.KeepRoutes {
		command = append(command, "--routes-file", s.path("routes.json"))
	}
	return supervise.Part{
		Name: partIoT, Stage: stageBroker, Command: command, Env: s.environ(),
		Ready: supervise.HTTPProbe("http://" + addr(s.Ports.IoTAdmin) + "/healthz"),
	}
}

func (s *Stack) path(name string) string { return filepath.Join(s.Dir, name) }

func (s *Stack) certs() string { return s.path("certs") }
