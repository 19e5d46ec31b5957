package main

import (
	"context"
	"log/slog"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/cloudwatch"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/aws-sdk-go-v2/service/secretsmanager"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/prometheus/client_golang/prometheus"
	"go.temporal.io/sdk/client"

	"millrace/domain/monitoring"
	"millrace/platform/awsconf"
)

// clients are the AWS clients that capabilities share.
type clients struct {
	// config makes those that one capability alone needs.
	config     aws.Config
	dynamodb   *dynamodb.Client
	s3         *s3.Client
	sqs        *sqs.Client
	cloudwatch *cloudwatch.Client
	secrets    *secretsmanager.Client
}

func newClients(ctx context.Context) (clients, error) {
	cfg, err := awsconf.Load(ctx)
	if err != nil {
		return clients{}, err
	}
	return clients{
		config:   cfg,
		dynamodb: dynamodb.NewFromConfig(cfg), s3: awsconf.NewS3(cfg),
		sqs: sqs.NewFromConfig(cfg), cloudwatch: cloudwatch.NewFromConfig(cfg),
		secrets: secretsmanager.NewFromConfig(cfg),
	}, nil
}

// dependencies are what capabilities are made from.
type dependencies struct {
	settings settings
	clients  clients
	temporal client.Client
	keys     monitoring.KeyRing
	alerting alerting
	registry prometheus.Registerer
	logger   *slog.Logger
}

// capabilities add their workflows and activities to the host, one each.
var capabilities = []func(*host, dependencies){
	registerFactory,
	registerMonitoring,
	registerCloudInfra,
	registerObservability,
	registerAlerts,
	registerArtifact,
	registerArtifactJobs,
	registerReport,
}
