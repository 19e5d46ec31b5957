package stack

import (
	"fmt"
	"path/filepath"
	"strings"
	"time"

	"millrace/deploy/local/bedrock"
)

// welcome tells the person what runs, where to look and what to try.
func (s *Stack) welcome(standInsOnly bool, took time.Duration) {
	var b strings.Builder
	row := func(what, where string) { fmt.Fprintf(&b, "  %-22s %s\n", what, where) }
	fmt.Fprintf(&b, "the local stack is up after %s\n\n", took.Round(100*time.Millisecond))
	if !standInsOnly {
		row("gateway", "http://"+addr(s.Ports.Gateway)+gatewayFactories)
		row("alerts (no Slack)", "http://"+addr(s.Ports.Gateway)+gatewaySlack)
		row("worker metrics", "http://"+addr(s.Ports.Worker)+"/metrics")
	}
	if s.readyToken != "" {
		row("token, all scopes", s.readyToken+" (of "+tokenOwner+")")
	}
	row("Temporal web UI", "http://"+addr(s.Ports.TemporalUI))
	row("Temporal", addr(s.Ports.Temporal))
	row("DynamoDB", "http://"+addr(s.Ports.DynamoDB))
	row("S3", "http://"+addr(s.Ports.S3))
	row("SQS, other AWS APIs", "http://"+addr(s.Ports.SQS))
	row("models", "http://"+addr(s.Ports.Bedrock)+" (a stand-in; PUT "+bedrock.ModePath+" has it fail)")
	row("message broker", addr(s.Ports.IoT)+" (MQTT over TLS, certificates in "+s.certs()+")")
	row("rules' metrics", "http://"+addr(s.Ports.IoTAdmin)+"/metrics")
	row("faults", "POST http://"+addr(s.Ports.Control)+"/kill/{part}")
	row("logs", filepath.Join(s.path("logs"), "*.log"))
	b.WriteString("\ntry, in another terminal:\n")
	for _, command := range s.tries(standInsOnly) {
		b.WriteString("  " + command + "\n")
	}
	b.WriteString("\nCtrl-C stops everything; the data stays")
	s.Say("%s", b.String())
}

func (s *Stack) tries(standInsOnly bool) []string {
	source := "source " + s.path("env")
	if standInsOnly {
		return []string{source, "aws dynamodb list-tables", "temporal operator namespace list"}
	}
	return []string{
		source + ` && curl -s -H "Authorization: Bearer $MILLRACE_TOKEN" http://` + addr(s.Ports.Gateway) + gatewayFactories,
		source + " && " + s.bin(binStarter) + " status",
		source + " && aws s3 ls --recursive s3://" + dataBucket + "/raw/ | tail",
	}
}
