package artifact

import (
	"encoding/base64"
	"encoding/json"
	"errors"
	"strings"
	"time"
	"unicode"

	"millrace/domain/factory"
)

// JobFilter is the MQTT filter of all jobs of a factory.
func JobFilter(factoryID string) string { return "aegis/" + factoryID + "/jobs/+" }

// JobTopic is where a factory is told to do a job.
func JobTopic(factoryID, runID string) string { return "aegis/" + factoryID + "/jobs/" + runID }

// JobResultTopic is where a factory answers a job.
func JobResultTopic(factoryID, runID string) string { return JobTopic(factoryID, runID) + "/result" }

const (
	jobLevels   = 4
	resultLevel = "result"
)

// ParseJobTopic reads the factory and the run of a topic aegis/{factory_id}/jobs/{run_id}.
func ParseJobTopic(topic string) (factoryID, runID string, err error) {
	levels := strings.Split(topic, "/")
	if len(levels) != jobLevels || levels[0] != "aegis" || levels[2] != "jobs" {
		return "", "", invalid("topic", "must be aegis/{factory_id}/jobs/{run_id}")
	}
	return levels[1], levels[3], errors.Join(checkFactory(levels[1]), CheckRunID(levels[3]))
}

// ParseJobResultTopic reads the factory and the run of a topic
// aegis/{factory_id}/jobs/{run_id}/result.
func ParseJobResultTopic(topic string) (factoryID, runID string, err error) {
	job, ok := strings.CutSuffix(topic, "/"+resultLevel)
	if !ok || strings.Count(job, "/") != jobLevels-1 {
		return "", "", invalid("topic", "must be aegis/{factory_id}/jobs/{run_id}/result")
	}
	return ParseJobTopic(job)
}

// checkFactory is factory.CheckFactoryID with this package's error.
func checkFactory(id string) error {
	err := factory.CheckFactoryID(id)
	if broken, ok := errors.AsType[*factory.InvalidError](err); ok {
		return invalid(broken.Field, broken.Rule)
	}
	return err
}

// Bounds of a job and its reply.
const (
	// MaxJobContent bounds the content of a job, so that its document stays below
	// the 128 KiB that AWS IoT Core takes.
	MaxJobContent = 64 << 10
	// MaxJobOutput bounds stdout and stderr of a reply each, in bytes.
	MaxJobOutput = 40 << 10
	// MaxJobDetail bounds the detail of a reply, in bytes.
	MaxJobDetail = 1024
)

// JobDocument tells a factory to do a job. A device does a run_id at most once,
// and answers again with the same reply when it is told again.
type JobDocument struct {
	RunID          string    `json:"run_id"`
	ArtifactID     string    `json:"artifact_id"`
	Version        int       `json:"version"`
	Role           Role      `json:"role"`
	FactoryID      string    `json:"factory_id"`
	Filename       string    `json:"filename"`
	ContentHash    string    `json:"content_hash"`
	ContentBase64  string    `json:"content_base64"`
	TimeoutSeconds int64     `json:"timeout_seconds"`
	IssuedAt       time.Time `json:"issued_at"`
}

// ErrJobTooLarge marks a job whose document exceeds what AWS IoT Core takes.
var ErrJobTooLarge = errors.New("job document exceeds 128 KiB")

// Encode is the document as it is published.
func (d JobDocument) Encode() ([]byte, error) {
	body, err := factory.EncodeJSON(d)
	if err == nil && len(body) > factory.MaxBody {
		return nil, ErrJobTooLarge
	}
	return body, err
}

// Content is the file to work with, decoded and compared with its hash.
func (d JobDocument) Content() ([]byte, error) {
	body, err := base64.StdEncoding.DecodeString(d.ContentBase64)
	switch {
	case err != nil:
		return nil, invalid("content_base64", "must be standard base64")
	case len(body) > MaxJobContent:
		return nil, invalid("content_base64", "must be at most 64 KiB decoded")
	case HashOf(body) != d.ContentHash:
		return nil, invalid("content_hash", "must be that of the content")
	}
	return body, nil
}

// ParseJobDocument reads and checks a document that came on a topic; its content
// is checked by Content. Unknown fields are ignored. Every error is an
// *InvalidError.
func ParseJobDocument(topic string, body []byte) (JobDocument, error) {
	var d JobDocument
	if err := decodeObject(body, &d); err != nil {
		return JobDocument{}, err
	}
	factoryID, runID, err := ParseJobTopic(topic)
	switch {
	case err != nil:
		return JobDocument{}, firstInvalid(err)
	case d.RunID != runID:
		return JobDocument{}, invalid("run_id", "must agree with the topic")
	case d.FactoryID != factoryID:
		return JobDocument{}, invalid("factory_id", "must agree with the topic")
	case d.Role != Primary && d.Role != Rollback:
		return JobDocument{}, invalid("role", "must be primary or rollback")
	case d.TimeoutSeconds < 1 || d.TimeoutSeconds > int64(maxTimeout/time.Second):
		return JobDocument{}, invalid("timeout_seconds", "must be 1 to 86400")
	case d.IssuedAt.IsZero():
		return JobDocument{}, invalid("issued_at", "is required")
	}
	return d, firstInvalid(errors.Join(CheckHash("content_hash", d.ContentHash), CheckFilename(d.Filename)))
}

// JobStatus says how a device ended a job.
type JobStatus string

// The statuses of jobs.
const (
	JobSucceeded JobStatus = "succeeded"
	JobFailed    JobStatus = "failed"
)

// JobReply is a device's answer to a job; its times are the device's.
type JobReply struct {
	RunID     string    `json:"run_id"`
	FactoryID string    `json:"factory_id"`
	Status    JobStatus `json:"status"`
	// ExitCode is 0 for what succeeded.
	ExitCode int    `json:"exit_code"`
	Detail   string `json:"detail,omitempty"`
	Stdout   string `json:"stdout,omitempty"`
	Stderr   string `json:"stderr,omitempty"`
	// Truncated tells that stdout or stderr was cut.
	Truncated  bool      `json:"truncated,omitempty"`
	StartedAt  time.Time `json:"started_at"`
	FinishedAt time.Time `json:"finished_at"`
}

// Encode is the reply as it is published; a text over its bound is cut, and so
// are stdout and stderr of a reply that is too large in JSON.
func (r JobReply) Encode() ([]byte, error) {
	r.Detail, r.Stdout, r.Stderr = cutText(validText(r.Detail), MaxJobDetail), validText(r.Stdout), validText(r.Stderr)
	for limit := MaxJobOutput; ; limit /= 2 {
		r.Truncated = r.Truncated || len(r.Stdout) > limit || len(r.Stderr) > limit
		r.Stdout, r.Stderr = cutText(r.Stdout, limit), cutText(r.Stderr, limit)
		body, err := factory.EncodeJSON(r)
		if err != nil || len(body) <= factory.MaxBody {
			return body, err
		}
	}
}

func validText(text string) string {
	return strings.ToValidUTF8(text, string(unicode.ReplacementChar))
}

// cutText is valid text of at most limit bytes, whole runes.
func cutText(text string, limit int) string {
	if len(text) <= limit {
		return text
	}
	return strings.ToValidUTF8(text[:limit], "")
}

// replyShape tells what a reply lacks from what is empty.
type replyShape struct {
	RunID      *string    `json:"run_id"`
	FactoryID  *string    `json:"factory_id"`
	Status     *JobStatus `json:"status"`
	ExitCode   *int32     `json:"exit_code"`
	Detail     string     `json:"detail"`
	Stdout     string     `json:"stdout"`
	Stderr     string     `json:"stderr"`
	Truncated  bool       `json:"truncated"`
	StartedAt  *string    `json:"started_at"`
	FinishedAt *string    `json:"finished_at"`
}

// ParseJobReply reads and checks a reply that came on a topic at now. Unknown
// fields are ignored. Every error is an *InvalidError.
func ParseJobReply(topic string, body []byte, now time.Time) (JobReply, error) {
	factoryID, runID, err := ParseJobResultTopic(topic)
	if err != nil {
		return JobReply{}, firstInvalid(err)
	}
	var shape replyShape
	if err := decodeObject(body, &shape); err != nil {
		return JobReply{}, err
	}
	if err := shape.check(); err != nil {
		return JobReply{}, err
	}
	r := JobReply{
		RunID: *shape.RunID, FactoryID: *shape.FactoryID, Status: *shape.Status, ExitCode: int(*shape.ExitCode),
		Detail: printable(shape.Detail), Stdout: shape.Stdout, Stderr: shape.Stderr, Truncated: shape.Truncated,
	}
	switch {
	case r.RunID != runID:
		return JobReply{}, invalid("run_id", "must agree with the topic")
	case r.FactoryID != factoryID:
		return JobReply{}, invalid("factory_id", "must agree with the topic")
	}
	if r.StartedAt, err = deviceTime("started_at", *shape.StartedAt, now); err != nil {
		return JobReply{}, err
	}
	if r.FinishedAt, err = deviceTime("finished_at", *shape.FinishedAt, now); err != nil {
		return JobReply{}, err
	}
	if r.FinishedAt.Before(r.StartedAt) {
		return JobReply{}, invalid("finished_at", "must not be before started_at")
	}
	return r, nil
}

func (s replyShape) check() error {
	for _, required := range []struct {
		field  string
		absent bool
	}{
		{"run_id", s.RunID == nil},
		{"factory_id", s.FactoryID == nil},
		{"status", s.Status == nil},
		{"exit_code", s.ExitCode == nil},
		{"started_at", s.StartedAt == nil},
		{"finished_at", s.FinishedAt == nil},
	} {
		if required.absent {
			return invalid(required.field, "is required")
		}
	}
	switch {
	case *s.Status != JobSucceeded && *s.Status != JobFailed:
		return invalid("status", "must be succeeded or failed")
	case *s.Status == JobSucceeded && *s.ExitCode != 0:
		return invalid("exit_code", "must be 0 for what succeeded")
	case len(s.Detail) > MaxJobDetail:
		return invalidf("detail", "must be at most %d bytes", MaxJobDetail)
	case len(s.Stdout) > MaxJobOutput:
		return invalidf("stdout", "must be at most %d bytes", MaxJobOutput)
	case len(s.Stderr) > MaxJobOutput:
		return invalidf("stderr", "must be at most %d bytes", MaxJobOutput)
	}
	return nil
}

// earliestJob is before any device of ours was built.
var earliestJob = time.Date(2020, 1, 1, 0, 0, 0, 0, time.UTC)

func deviceTime(field, text string, now time.Time) (time.Time, error) {
	at, err := factory.ParseInstant(text)
	switch {
	case err != nil:
		return time.Time{}, invalid(field, "must be an RFC 3339 instant with a zone")
	case at.Before(earliestJob):
		return time.Time{}, invalid(field, "must not be before 2020-01-01")
	case at.After(now.Add(factory.MaxClockAhead)):
		return time.Time{}, invalid(field, "must not be more than 5 minutes ahead")
	}
	return at, nil
}

// printable is text for people: control characters are spaces.
func printable(text string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsControl(r) {
			return ' '
		}
		return r
	}, text)
}

// decodeObject reads one JSON object that came from a device.
func decodeObject(body []byte, into any) error {
	if len(body) > factory.MaxBody {
		return invalid("body", "must be at most 128 KiB")
	}
	err := json.Unmarshal(body, into)
	if mismatch, ok := errors.AsType[*json.UnmarshalTypeError](err); ok && mismatch.Field != "" {
		return invalidf(mismatch.Field, "must not be a JSON %s", mismatch.Value)
	}
	if err != nil {
		return invalid("body", "must be one JSON object")
	}
	return nil
}

// firstInvalid is the first of joined errors, which names one field.
func firstInvalid(err error) error {
	if first, ok := errors.AsType[*InvalidError](err); ok {
		return first
	}
	return err
}
