package bridge

import (
	"encoding/base64"
	"strings"
	"time"

	"millrace/domain/factory"
)

// Names of the rules, as they are deployed to AWS IoT Core; they appear in error records.
const (
	RuleRaw        = "millrace_raw"
	RuleTelemetry  = "millrace_telemetry"
	RuleJobResults = "millrace_job_results"
)

// Actions as AWS IoT Core names them in error records.
const (
	actionS3  = "S3Action"
	actionSQS = "SqsAction"
)

const (
	topicRoot   = "aegis"
	levelJobs   = "jobs"
	levelResult = "result"
)

// topic is the meaning of a topic name: which factory sent it and which rules match it.
type topic struct {
	factory    string
	sourceType string
	jobResult  bool
}

// parseTopic reads a topic as the rules' filters do: aegis/+/+ is telemetry and
// aegis/+/jobs/+/result the result of a job. Other topics match no rule.
func parseTopic(name string) (topic, bool) {
	levels := strings.Split(name, "/")
	switch {
	case len(levels) < 3 || levels[0] != topicRoot:
		return topic{}, false
	case len(levels) == 3:
		return topic{factory: levels[1], sourceType: levels[2]}, true
	case len(levels) == 5 && levels[2] == levelJobs && levels[4] == levelResult:
		return topic{factory: levels[1], jobResult: true}, true
	}
	return topic{}, false
}

// rawKey is where the first rule stores a body.
func rawKey(t topic, body []byte, traceID string, receivedAt time.Time) string {
	return factory.RawKey(t.factory, t.sourceType, receivedAt, factory.RawLeaf(factory.PeekMessageID(body), traceID))
}

// Envelope is the queue message made by the rules' SQL:
// SELECT encode(*, 'base64') AS body, topic() AS topic, timestamp() AS received_at, traceid() AS trace_id.
type Envelope struct {
	// Body is the message, byte for byte.
	Body []byte `json:"body"`
	// Topic is what it was published to.
	Topic string `json:"topic"`
	// ReceivedAt is the time of receipt in epoch milliseconds.
	ReceivedAt int64 `json:"received_at"`
	// TraceID is the rule engine's id of the message, the same in all rules.
	TraceID string `json:"trace_id"`
}

// ErrorRecord is what an error action receives (AWS IoT Core developer guide, "Error handling").
type ErrorRecord struct {
	RuleName              string    `json:"ruleName"`
	Topic                 string    `json:"topic"`
	CloudWatchTraceID     string    `json:"cloudwatchTraceId"`
	ClientID              string    `json:"clientId"`
	Base64OriginalPayload string    `json:"base64OriginalPayload"`
	Failures              []Failure `json:"failures"`
}

// Failure is one failed action of an ErrorRecord.
type Failure struct {
	FailedAction   string `json:"failedAction"`
	FailedResource string `json:"failedResource"`
	ErrorMessage   string `json:"errorMessage"`
}

func encode(body []byte) string { return base64.StdEncoding.EncodeToString(body) }
