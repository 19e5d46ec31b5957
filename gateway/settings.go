package main

import (
	"errors"
	"fmt"
	"net/url"
	"time"

	"millrace/domain/monitoring"
	"millrace/platform/config"
	"millrace/platform/secret"
)

// settings are those of the gateway.
type settings struct {
	config.Logging
	config.Metrics
	config.Stores
	config.Factories
	config.ReportPlace
	Address         string        `help:"Address to listen on." default:"127.0.0.1:8080" env:"MILLRACE_GATEWAY_ADDRESS" placeholder:"HOST:PORT"`
	CORSOrigins     []string      `name:"cors-origins" help:"Origins whose pages may call the API, such as https://dash.example.org." env:"MILLRACE_CORS_ORIGINS" placeholder:"ORIGIN"`
	TokenKeysFile   string        `help:"Key ring of the saved copies of tokens (JSON); empty reads MILLRACE_TOKEN_KEYS, and without either tokens have no saved copy." env:"MILLRACE_TOKEN_KEYS_FILE" placeholder:"FILE"`
	ArtifactBucket  string        `help:"Bucket of artifacts; empty takes the bucket of all objects." env:"MILLRACE_ARTIFACT_BUCKET"`
	UploadFolder    string        `help:"Folder for uploads while they arrive, up to 800 MiB; empty takes that of temporary files." env:"MILLRACE_UPLOAD_FOLDER" type:"existingdir" placeholder:"FOLDER"`
	SigningKey      string        `help:"Reference (env:NAME, file:PATH or aws-secret:ID) of the OpenSSH private key by which the gateway vouches for who acts on artifacts." env:"MILLRACE_GATEWAY_SIGNING_KEY" placeholder:"REFERENCE"`
	ProvenanceKey   string        `name:"provenance-signing-key" help:"Reference (env:NAME, file:PATH or aws-secret:ID) of the Ed25519 private key, OpenSSH or PEM, that signs exported provenance as DSSE envelopes." env:"MILLRACE_PROVENANCE_SIGNING_KEY" placeholder:"REFERENCE"`
	MinuteRetention time.Duration `help:"How long minute summaries of sources are kept." default:"336h" env:"MILLRACE_MINUTE_RETENTION"`
	PriceTableFile  string        `help:"Price table of models (JSON), for signals that come without a cost; without one they stay without." env:"MILLRACE_PRICE_TABLE_FILE" placeholder:"FILE"`
	SlackSinkFile   string        `help:"Stand in for Slack: keep what is posted to /dev/slack/{scope} in this file and show it there, to this machine only. For trying Millrace out." env:"MILLRACE_SLACK_SINK_FILE" placeholder:"FILE"`
	Budgets         budgets       `embed:"" prefix:"budget-"`
}

type budgets struct {
	Read        int64 `help:"Reads an owner may make in a minute." default:"600" env:"MILLRACE_BUDGET_READ"`
	Write       int64 `help:"Writes an owner may make in a minute." default:"600" env:"MILLRACE_BUDGET_WRITE"`
	TokenCreate int64 `help:"Tokens an owner may make in a minute." default:"10" env:"MILLRACE_BUDGET_TOKEN_CREATE"`
}

func (b budgets) limits() monitoring.Limits {
	return monitoring.Limits{Read: b.Read, Write: b.Write, TokenCreate: b.TokenCreate}
}

// minMinuteRetention keeps an hour of minutes readable to its end.
const minMinuteRetention = 2 * time.Hour

// Validate refuses settings that can't work, all of them in one error.
func (s settings) Validate() error {
	problems := []error{s.Stores.Validate(), s.Factories.Validate(), s.ReportPlace.Validate()}
	for variable, reference := range map[string]string{"MILLRACE_GATEWAY_SIGNING_KEY": s.SigningKey, "MILLRACE_PROVENANCE_SIGNING_KEY": s.ProvenanceKey} {
		if reference == "" {
			continue
		}
		if err := secret.Reference(reference).Check(); err != nil {
			problems = append(problems, fmt.Errorf("%s: %w", variable, err))
		}
	}
	for _, origin := range s.CORSOrigins {
		u, err := url.Parse(origin)
		if err != nil || u.Host == "" || (u.Scheme != "http" && u.Scheme != "https") || origin != u.Scheme+"://"+u.Host {
			problems = append(problems, fmt.Errorf("MILLRACE_CORS_ORIGINS: %q must be a scheme and a host, such as https://dash.example.org", origin))
		}
	}
	if s.MinuteRetention < minMinuteRetention {
		problems = append(problems, fmt.Errorf("MILLRACE_MINUTE_RETENTION: must be at least %s", minMinuteRetention))
	}
	for variable, limit := range map[string]int64{
		"MILLRACE_BUDGET_READ": s.Budgets.Read, "MILLRACE_BUDGET_WRITE": s.Budgets.Write, "MILLRACE_BUDGET_TOKEN_CREATE": s.Budgets.TokenCreate,
	} {
		if limit < 1 {
			problems = append(problems, fmt.Errorf("%s: must be at least 1", variable))
		}
	}
	return errors.Join(problems...)
}
