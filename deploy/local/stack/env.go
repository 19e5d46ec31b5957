package stack

import (
	"fmt"
	"os"
	"strings"

	"millrace/deploy/local/bedrock"
	"millrace/deploy/local/pki"
	"millrace/deploy/local/sqs"
)

// Names that the programs use by default, and the variables that override them.
const (
	dataBucket      = "millrace-data"
	queueTelemetry  = "millrace-telemetry"
	queueDLQ        = "millrace-telemetry-dlq"
	queueRuleErrors = "millrace-rule-errors"
	queueJobResults = "millrace-job-results"
)

// Credentials of the stand-ins. The S3 stand-in checks the signatures made with them; they open
// nothing else. In the older regions version 1 of the aws command puts an address of its own over
// AWS_ENDPOINT_URL_SQS; in this one it does not.
const (
	accessKey = "millrace-local"
	secretKey = "millrace-local-only"
	region    = "ap-south-2"
)

// modelVariable names the model that words reports. Here it is the stand-in by its own name, so that
// no report says that a real model wrote it.
const modelVariable = "MILLRACE_BEDROCK_MODEL_ID"

// Var is one environment variable.
type Var struct{ Name, Value string }

// variables are all that the programs need to know about the stack.
func (s *Stack) variables() []Var {
	worker := s.authority.Files(workerIdentity)
	http := func(port int) string { return "http://" + addr(port) }
	queue := func(name string) string { return sqs.QueueURL(addr(s.Ports.SQS), name) }
	vars := []Var{
		{"AWS_ENDPOINT_URL", http(s.Ports.SQS)},
		{"AWS_ENDPOINT_URL_DYNAMODB", http(s.Ports.DynamoDB)},
		{"AWS_ENDPOINT_URL_S3", http(s.Ports.S3)},
		{"AWS_ENDPOINT_URL_SQS", http(s.Ports.SQS)},
		{"AWS_ENDPOINT_URL_BEDROCK_RUNTIME", http(s.Ports.Bedrock)},
		{"AWS_ACCESS_KEY_ID", accessKey},
		{"AWS_SECRET_ACCESS_KEY", secretKey},
		{"AWS_REGION", region},
		{"AWS_DEFAULT_REGION", region},
		{"AWS_EC2_METADATA_DISABLED", "true"},
		{"TEMPORAL_ADDRESS", addr(s.Ports.Temporal)},
		{"TEMPORAL_NAMESPACE", "default"},
		{"MILLRACE_IOT_ENDPOINT", addr(s.Ports.IoT)},
		{"MILLRACE_IOT_CERT_FILE", worker.Cert},
		{"MILLRACE_IOT_KEY_FILE", worker.Key},
		{"MILLRACE_IOT_CA_FILE", worker.CA},
		{"MILLRACE_TELEMETRY_QUEUE_URL", queue(queueTelemetry)},
		{"MILLRACE_TELEMETRY_DLQ_QUEUE_URL", queue(queueDLQ)},
		{"MILLRACE_RULE_ERRORS_QUEUE_URL", queue(queueRuleErrors)},
		{"MILLRACE_JOB_RESULTS_QUEUE_URL", queue(queueJobResults)},
		{"MILLRACE_ARTIFACT_ALLOW_UNVERIFIED", "true"},
		{"MILLRACE_ARTIFACT_SEARCH_ATTRIBUTES", "true"},
		{"MILLRACE_LOCAL_DIR", s.Dir},
		{"MILLRACE_LOCAL_CONTROL", http(s.Ports.Control)},
		{"MILLRACE_LOCAL_IOT_ADMIN", http(s.Ports.IoTAdmin)},
	}
	if os.Getenv(modelVariable) == "" {
		vars = append(vars, Var{modelVariable, bedrock.ModelID})
	}
	if s.readyToken != "" {
		vars = append(vars, Var{"MILLRACE_TOKEN_KEYS_FILE", s.tokenKeys()}, Var{"MILLRACE_TOKEN", s.readyToken})
	}
	return vars
}

// foreign are variables of the person's own AWS and Temporal accounts, which must not reach the
// programs: a stack on this machine never talks to either. Their MILLRACE_ settings do reach them.
func foreign(name string) bool {
	return strings.HasPrefix(name, "AWS_") || strings.HasPrefix(name, "TEMPORAL_") || strings.HasPrefix(name, "KUMO_")
}

// environ is the environment of a child: the person's own, without foreign variables, with the
// stack's, then extra.
func (s *Stack) environ(extra ...string) []string {
	var env []string
	for _, v := range os.Environ() {
		if name, _, _ := strings.Cut(v, "="); !foreign(name) {
			env = append(env, v)
		}
	}
	for _, v := range s.variables() {
		env = append(env, v.Name+"="+v.Value)
	}
	return append(env, extra...)
}

// factoryVars are the variables of one factory's edge process, which uses its own certificate.
func factoryVars(files pki.Files) []string {
	return []string{
		"MILLRACE_IOT_CERT_FILE=" + files.Cert,
		"MILLRACE_IOT_KEY_FILE=" + files.Key,
		"MILLRACE_IOT_CA_FILE=" + files.CA,
	}
}

// writeEnv writes the variables as a file to be sourced by a shell.
func (s *Stack) writeEnv(name string) error {
	var b strings.Builder
	b.WriteString("# Source this file: your aws and temporal commands then use the local stack.\n")
	b.WriteString("unset AWS_PROFILE AWS_DEFAULT_PROFILE AWS_SESSION_TOKEN TEMPORAL_API_KEY TEMPORAL_PROFILE TEMPORAL_TLS\n")
	for _, v := range s.variables() {
		fmt.Fprintf(&b, "export %s='%s'\n", v.Name, strings.ReplaceAll(v.Value, "'", `'\''`))
	}
	if err := os.WriteFile(name+".new", []byte(b.String()), 0o600); err != nil {
		return fmt.Errorf("write environment: %w", err)
	}
	if err := os.Rename(name+".new", name); err != nil {
		return fmt.Errorf("write environment: %w", err)
	}
	return nil
}
