package artifact

import (
	"encoding/base64"
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"millrace/domain/factory"
)

const aRun = "01900000-0000-7000-8000-000000000001"

var jobTime = time.Date(2026, 5, 20, 8, 30, 0, 0, time.UTC)

func aJob() JobDocument {
	content := []byte(`{"operation":"reset"}`)
	return JobDocument{
		RunID: aRun, ArtifactID: "fix", Version: 1, Role: Primary, FactoryID: "factory-a", Filename: "job.json",
		ContentHash: HashOf(content), ContentBase64: base64.StdEncoding.EncodeToString(content), TimeoutSeconds: 60, IssuedAt: jobTime,
	}
}

func TestTopicsOfJobsAreReadBack(t *testing.T) {
	factoryID, run, err := ParseJobTopic(JobTopic("factory-a", aRun))
	require.NoError(t, err)
	require.Equal(t, []string{"factory-a", aRun}, []string{factoryID, run})
	factoryID, run, err = ParseJobResultTopic(JobResultTopic("factory-a", aRun))
	require.NoError(t, err)
	require.Equal(t, []string{"factory-a", aRun}, []string{factoryID, run})
	require.Equal(t, "aegis/factory-a/jobs/+", JobFilter("factory-a"))
}

func TestTopicsThatNameNoJobAreRefused(t *testing.T) {
	for _, topic := range []string{
		"", "aegis/factory-a", "aegis/factory-a/factory_state", "aegis/factory-a/jobs", "other/factory-a/jobs/" + aRun,
		"aegis/factory-a/jobs/run-1", "aegis/../jobs/" + aRun, "aegis/Factory/jobs/" + aRun, "aegis/artifacts/jobs/" + aRun,
		"aegis/factory-a/jobs/" + aRun + "/x/result",
	} {
		_, _, err := ParseJobTopic(topic)
		require.Error(t, err, topic)
		_, _, err = ParseJobResultTopic(topic + "/result")
		require.Error(t, err, topic)
	}
	_, _, err := ParseJobResultTopic(JobTopic("factory-a", aRun))
	require.ErrorContains(t, err, "/result")
}

func TestAJobSurvivesTheWire(t *testing.T) {
	body, err := aJob().Encode()
	require.NoError(t, err)
	got, err := ParseJobDocument(JobTopic("factory-a", aRun), body)
	require.NoError(t, err)
	require.Equal(t, aJob(), got)
	content, err := got.Content()
	require.NoError(t, err)
	require.JSONEq(t, `{"operation":"reset"}`, string(content))
}

func TestTheGreatestJobFitsTheBroker(t *testing.T) {
	job := aJob()
	content := make([]byte, MaxJobContent)
	job.ContentHash, job.ContentBase64 = HashOf(content), base64.StdEncoding.EncodeToString(content)
	job.ArtifactID, job.Filename = strings.Repeat("a", 64), strings.Repeat("f", 128)
	body, err := job.Encode()
	require.NoError(t, err)
	require.Less(t, len(body), factory.MaxBody)
	_, err = job.Content()
	require.NoError(t, err)
	job.ContentBase64 = base64.StdEncoding.EncodeToString(make([]byte, factory.MaxBody))
	_, err = job.Encode()
	require.ErrorIs(t, err, ErrJobTooLarge)
}

func TestJobsThatADeviceRefuses(t *testing.T) {
	for field, change := range map[string]func(*JobDocument){
		"run_id":          func(d *JobDocument) { d.RunID = "01900000-0000-7000-8000-000000000002" },
		"factory_id":      func(d *JobDocument) { d.FactoryID = "factory-b" },
		"role":            func(d *JobDocument) { d.Role = "other" },
		"timeout_seconds": func(d *JobDocument) { d.TimeoutSeconds = 0 },
		"issued_at":       func(d *JobDocument) { d.IssuedAt = time.Time{} },
		"content_hash":    func(d *JobDocument) { d.ContentHash = "md5:1" },
		"filename":        func(d *JobDocument) { d.Filename = "../x" },
	} {
		t.Run(field, func(t *testing.T) {
			job := aJob()
			change(&job)
			body, err := job.Encode()
			require.NoError(t, err)
			_, err = ParseJobDocument(JobTopic("factory-a", aRun), body)
			names(t, err, field)
		})
	}
	_, err := ParseJobDocument(JobTopic("factory-a", aRun), []byte("[]"))
	names(t, err, "body")
}

// names asserts that an error names one field.
func names(t *testing.T, err error, field string) {
	t.Helper()
	var invalid *InvalidError
	require.ErrorAs(t, err, &invalid)
	require.Equal(t, field, invalid.Field, invalid.Rule)
	require.NotEmpty(t, invalid.Rule)
}

func TestContentOfAJobIsCompared(t *testing.T) {
	for field, change := range map[string]func(*JobDocument){
		"content_hash":   func(d *JobDocument) { d.ContentHash = HashOf([]byte("other")) },
		"content_base64": func(d *JobDocument) { d.ContentBase64 = "%" },
	} {
		job := aJob()
		change(&job)
		_, err := job.Content()
		names(t, err, field)
	}
	job := aJob()
	job.ContentBase64 = base64.StdEncoding.EncodeToString(make([]byte, MaxJobContent+1))
	_, err := job.Content()
	names(t, err, "content_base64")
}

func aReply(change ...func(map[string]any)) []byte {
	reply := map[string]any{
		"run_id": aRun, "factory_id": "factory-a", "status": "failed", "exit_code": 3, "detail": "no\tway", "stdout": "out", "stderr": "err",
		"started_at": "2026-05-20T17:29:58.5+09:00", "finished_at": "2026-05-20T08:29:59Z", "firmware": "7",
	}
	for _, c := range change {
		c(reply)
	}
	body, _ := json.Marshal(reply)
	return body
}

func TestARepliesFieldsAreRead(t *testing.T) {
	reply, err := ParseJobReply(JobResultTopic("factory-a", aRun), aReply(), jobTime)
	require.NoError(t, err)
	require.Equal(t, JobReply{
		RunID: aRun, FactoryID: "factory-a", Status: JobFailed, ExitCode: 3, Detail: "no way", Stdout: "out", Stderr: "err",
		StartedAt: jobTime.Add(-1500 * time.Millisecond), FinishedAt: jobTime.Add(-time.Second),
	}, reply)
	body, err := reply.Encode()
	require.NoError(t, err)
	again, err := ParseJobReply(JobResultTopic("factory-a", aRun), body, jobTime)
	require.NoError(t, err)
	require.Equal(t, reply, again)
}

func TestRepliesThatBreakARuleNameIt(t *testing.T) {
	set := func(field string, value any) func(map[string]any) {
		return func(m map[string]any) { m[field] = value }
	}
	without := func(field string) func(map[string]any) { return func(m map[string]any) { delete(m, field) } }
	for name, c := range map[string]struct {
		change func(map[string]any)
		field  string
	}{
		"no run":            {without("run_id"), "run_id"},
		"another run":       {set("run_id", "01900000-0000-7000-8000-000000000002"), "run_id"},
		"no factory":        {without("factory_id"), "factory_id"},
		"another factory":   {set("factory_id", "factory-b"), "factory_id"},
		"no status":         {without("status"), "status"},
		"unknown status":    {set("status", "maybe"), "status"},
		"status a number":   {set("status", 1), "status"},
		"no exit code":      {without("exit_code"), "exit_code"},
		"fraction":          {set("exit_code", 1.5), "exit_code"},
		"beyond 32 bits":    {set("exit_code", 1<<40), "exit_code"},
		"succeeded with 3":  {set("status", "succeeded"), "exit_code"},
		"detail":            {set("detail", strings.Repeat("x", MaxJobDetail+1)), "detail"},
		"stdout":            {set("stdout", strings.Repeat("x", MaxJobOutput+1)), "stdout"},
		"stderr":            {set("stderr", strings.Repeat("x", MaxJobOutput+1)), "stderr"},
		"oversize":          {set("other", strings.Repeat("x", factory.MaxBody)), "body"},
		"no begin":          {without("started_at"), "started_at"},
		"begin in 1970":     {set("started_at", "1970-01-01T00:00:00Z"), "started_at"},
		"no end":            {without("finished_at"), "finished_at"},
		"end without zone":  {set("finished_at", "2026-05-20T08:29:59"), "finished_at"},
		"end in the future": {set("finished_at", "2026-05-20T08:35:01Z"), "finished_at"},
		"end before begin":  {set("finished_at", "2026-05-20T08:29:58Z"), "finished_at"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := ParseJobReply(JobResultTopic("factory-a", aRun), aReply(c.change), jobTime)
			names(t, err, c.field)
		})
	}
	_, err := ParseJobReply("aegis/factory-a/jobs/1/result", aReply(), jobTime)
	names(t, err, "run_id")
	_, err = ParseJobReply(JobResultTopic("factory-a", aRun), []byte(`{} {}`), jobTime)
	names(t, err, "body")
}

func TestEveryReplyThatADeviceEncodesIsTaken(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		reply := JobReply{
			RunID: aRun, FactoryID: "factory-a", Status: JobFailed, ExitCode: int(rapid.Int32().Draw(t, "exit")),
			Detail: rapid.String().Draw(t, "detail"), StartedAt: jobTime, FinishedAt: jobTime,
			Stdout: strings.Repeat(rapid.SampledFrom([]string{"x", "\x00", "\xff", "世", "\n"}).Draw(t, "unit"), rapid.IntRange(0, 60_000).Draw(t, "length")),
		}
		reply.Stderr = reply.Stdout
		body, err := reply.Encode()
		if err != nil || len(body) > factory.MaxBody {
			t.Fatalf("%d bytes: %v", len(body), err)
		}
		got, err := ParseJobReply(JobResultTopic("factory-a", aRun), body, jobTime)
		if err != nil {
			t.Fatal(err)
		}
		if !got.Truncated && got.Stdout != strings.ToValidUTF8(reply.Stdout, "\uFFFD") {
			t.Fatal("cut without saying so")
		}
	})
}

func FuzzReplies(f *testing.F) {
	f.Add(JobResultTopic("factory-a", aRun), aReply())
	f.Add("", []byte("{"))
	f.Fuzz(func(t *testing.T, topic string, body []byte) {
		reply, err := ParseJobReply(topic, body, jobTime)
		if err != nil {
			require.IsType(t, &InvalidError{}, err)
			return
		}
		require.Equal(t, topic, JobResultTopic(reply.FactoryID, reply.RunID))
	})
}
