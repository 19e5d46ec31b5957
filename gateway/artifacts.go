package main

import (
	"context"
	"crypto/ed25519"
	"fmt"
	"log/slog"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/secretsmanager"
	"github.com/prometheus/client_golang/prometheus"
	"golang.org/x/crypto/ssh"

	"millrace/domain/artifact"
	"millrace/gateway/server"
	"millrace/platform/awsconf"
	"millrace/platform/secret"
	"millrace/platform/temporalconf"
	artifactstore "millrace/storage/artifact"
)

// newArtifacts is what the routes of artifacts are made of. The gateway comes up
// without Temporal too: only what drives a lifecycle needs it.
func newArtifacts(ctx context.Context, cfg settings, aws aws.Config, client *dynamodb.Client, registry prometheus.Registerer, logger *slog.Logger) (server.ArtifactConfig, error) {
	secrets := &secret.Reader{AWS: secretsmanager.NewFromConfig(aws), Now: time.Now}
	signer, err := signingKey(ctx, cfg, secrets)
	if err != nil {
		return server.ArtifactConfig{}, err
	}
	sealing, err := sealingKey(ctx, cfg, secrets)
	if err != nil {
		return server.ArtifactConfig{}, err
	}
	if signer == nil {
		logger.WarnContext(ctx, "no signing key: commands to artifacts are vouched for by nobody, and taken only where that is allowed")
	}
	temporal, err := temporalconf.Lazy(logger, registry)
	if err != nil {
		return server.ArtifactConfig{}, err
	}
	bucket := cfg.DataBucket
	if cfg.ArtifactBucket != "" {
		bucket = cfg.ArtifactBucket
	}
	objects := awsconf.NewS3(aws)
	return server.ArtifactConfig{
		Store: artifactstore.New(client, cfg.GovernanceTable, objects, bucket), Workflows: temporal, Signer: signer, SealingKey: sealing,
		UploadFolder: cfg.UploadFolder, Now: time.Now,
	}, nil
}

// signingKey is the key by which the gateway vouches; nil without one.
func signingKey(ctx context.Context, cfg settings, secrets *secret.Reader) (ssh.Signer, error) {
	if cfg.SigningKey == "" {
		return nil, nil //nolint:nilnil // no key is a setting, not an error
	}
	text, err := secrets.Read(ctx, secret.Reference(cfg.SigningKey))
	if err != nil {
		return nil, err
	}
	signer, err := ssh.ParsePrivateKey([]byte(text + "\n"))
	if err != nil {
		return nil, fmt.Errorf("MILLRACE_GATEWAY_SIGNING_KEY: must refer to an OpenSSH private key: %w", err)
	}
	return signer, nil
}

// sealingKey is the key that signs exported provenance; nil without one.
func sealingKey(ctx context.Context, cfg settings, secrets *secret.Reader) (ed25519.PrivateKey, error) {
	if cfg.ProvenanceKey == "" {
		return nil, nil
	}
	text, err := secrets.Read(ctx, secret.Reference(cfg.ProvenanceKey))
	if err != nil {
		return nil, err
	}
	key, err := artifact.ParseSealingKey([]byte(text + "\n"))
	if err != nil {
		return nil, fmt.Errorf("MILLRACE_PROVENANCE_SIGNING_KEY: %w", err)
	}
	return key, nil
}
