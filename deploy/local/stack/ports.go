package stack

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"strconv"
	"strings"
	"syscall"
)

// Ports are the loopback ports of the parts. A port 0 is replaced by a free one.
type Ports struct {
	Temporal   int `name:"temporal-port" env:"MILLRACE_LOCAL_TEMPORAL_PORT" default:"7233" help:"Port of the Temporal server."`
	TemporalUI int `name:"temporal-ui-port" env:"MILLRACE_LOCAL_TEMPORAL_UI_PORT" default:"8233" help:"Port of the Temporal web UI."`
	DynamoDB   int `name:"dynamodb-port" env:"MILLRACE_LOCAL_DYNAMODB_PORT" default:"8000" help:"Port of the DynamoDB stand-in."`
	S3         int `name:"s3-port" env:"MILLRACE_LOCAL_S3_PORT" default:"7070" help:"Port of the S3 stand-in."`
	SQS        int `name:"sqs-port" env:"MILLRACE_LOCAL_SQS_PORT" default:"4566" help:"Port of the stand-in for SQS and all other AWS APIs."`
	Bedrock    int `name:"bedrock-port" env:"MILLRACE_LOCAL_BEDROCK_PORT" default:"4567" help:"Port of the Bedrock stand-in."`
	IoT        int `name:"iot-port" env:"MILLRACE_LOCAL_IOT_PORT" default:"8883" help:"Port of the message broker."`
	IoTAdmin   int `name:"iot-admin-port" env:"MILLRACE_LOCAL_IOT_ADMIN_PORT" default:"9883" help:"Port of the message broker's metrics."`
	Gateway    int `name:"gateway-port" env:"MILLRACE_LOCAL_GATEWAY_PORT" default:"8080" help:"Port of the gateway."`
	Worker     int `name:"worker-port" env:"MILLRACE_LOCAL_WORKER_PORT" default:"9090" help:"Port of the worker's health and metrics."`
	Control    int `name:"control-port" env:"MILLRACE_LOCAL_CONTROL_PORT" default:"7290" help:"Port of the interface that kills, stops and starts parts."`
}

type port struct {
	part, flag, env string
	number          *int
}

func (p *Ports) all() []port {
	named := func(part, name string, number *int) port {
		env := "MILLRACE_LOCAL_" + strings.ToUpper(strings.ReplaceAll(name, "-", "_"))
		return port{part: part, flag: "--" + name, env: env, number: number}
	}
	return []port{
		named("Temporal", "temporal-port", &p.Temporal),
		named("Temporal web UI", "temporal-ui-port", &p.TemporalUI),
		named("DynamoDB", "dynamodb-port", &p.DynamoDB),
		named("S3", "s3-port", &p.S3),
		named("SQS", "sqs-port", &p.SQS),
		named("Bedrock", "bedrock-port", &p.Bedrock),
		named("message broker", "iot-port", &p.IoT),
		named("message broker metrics", "iot-admin-port", &p.IoTAdmin),
		named("gateway", "gateway-port", &p.Gateway),
		named("worker", "worker-port", &p.Worker),
		named("control", "control-port", &p.Control),
	}
}

// Resolve replaces zeros by free ports and refuses, all together, ports that are in use or named
// twice.
func (p *Ports) Resolve() error {
	var errs []error
	taken := make(map[int]string)
	for _, q := range p.all() {
		if *q.number == 0 {
			continue
		}
		if other, ok := taken[*q.number]; ok {
			errs = append(errs, fmt.Errorf("port %d is given to both %s and %s", *q.number, other, q.part))
			continue
		}
		taken[*q.number] = q.part
		if err := checkFree(*q.number); err != nil {
			errs = append(errs, fmt.Errorf("port %d (%s) %w: stop what uses it or choose another with %s or %s",
				*q.number, q.part, err, q.flag, q.env))
		}
	}
	for _, q := range p.all() {
		if *q.number != 0 {
			continue
		}
		free, err := freePort(taken)
		if err != nil {
			return err
		}
		*q.number, taken[free] = free, q.part
	}
	return errors.Join(errs...)
}

func checkFree(number int) error {
	listener, err := net.Listen("tcp", addr(number))
	switch {
	case errors.Is(err, syscall.EADDRINUSE):
		return errors.New("is in use")
	case err != nil:
		return fmt.Errorf("cannot be used (%w)", err)
	}
	return listener.Close()
}

const (
	// firstPort and lastPort lie below the range that systems take for outgoing connections, so
	// that none of those takes a port between choice and use.
	firstPort, lastPort = 20_000, 32_000
	portTries           = 1_000
)

// freePort draws a free port at random, so that stacks starting at the same time rarely meet.
func freePort(taken map[int]string) (int, error) {
	for range portTries {
		number := firstPort + rand.IntN(lastPort-firstPort)
		if taken[number] == "" && checkFree(number) == nil {
			return number, nil
		}
	}
	return 0, fmt.Errorf("no free port found between %d and %d", firstPort, lastPort)
}

func addr(number int) string { return net.JoinHostPort("127.0.0.1", strconv.Itoa(number)) }
