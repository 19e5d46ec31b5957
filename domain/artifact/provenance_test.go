package artifact_test

import (
	"encoding/json"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"millrace/domain/artifact"
)

func chain(t *testing.T) ([]artifact.Record, artifact.Chain) {
	t.Helper()
	var end artifact.Chain
	var records []artifact.Record
	for i, name := range []string{"submitted", "approved", "executed"} {
		r, next, err := end.Extend(2, name, "user:a", noon.Add(time.Duration(i)*time.Second), bundle, artifact.Event{Reason: strconv.Itoa(i)})
		require.NoError(t, err)
		records, end = append(records, r), next
	}
	return records, end
}

func TestAWholeChainVerifies(t *testing.T) {
	records, end := chain(t)
	require.Equal(t, "v0002-0003-executed", records[2].Step)
	got, err := artifact.VerifyChain(2, records)
	require.NoError(t, err)
	require.Equal(t, end, got)
	body, err := json.Marshal(records)
	require.NoError(t, err)
	var read []artifact.Record
	require.NoError(t, json.Unmarshal(body, &read))
	_, err = artifact.VerifyChain(2, read)
	require.NoError(t, err, "a chain survives its JSON form")
}

func TestEveryTamperingBreaksTheChain(t *testing.T) {
	for name, tamper := range map[string]func([]artifact.Record) []artifact.Record{
		"actor":     func(r []artifact.Record) []artifact.Record { r[1].Actor = "user:b"; return r },
		"time":      func(r []artifact.Record) []artifact.Record { r[1].At = r[1].At.Add(time.Nanosecond); return r },
		"subject":   func(r []artifact.Record) []artifact.Record { r[0].Subject = other; return r },
		"payload":   func(r []artifact.Record) []artifact.Record { r[2].PayloadHash = other; return r },
		"removed":   func(r []artifact.Record) []artifact.Record { return append(r[:1], r[2]) },
		"reordered": func(r []artifact.Record) []artifact.Record { r[0], r[1] = r[1], r[0]; return r },
		"step":      func(r []artifact.Record) []artifact.Record { r[0].Step = "x"; return r },
		"renamed":   func(r []artifact.Record) []artifact.Record { r[0].Step = "v0002-0001-rejected"; return r },
	} {
		records, _ := chain(t)
		_, err := artifact.VerifyChain(2, tamper(records))
		var broken *artifact.ChainError
		require.ErrorAs(t, err, &broken, name)
	}
	records, _ := chain(t)
	_, err := artifact.VerifyChain(3, records)
	require.Error(t, err, "a chain belongs to its version")
	cut, err := artifact.VerifyChain(2, records[:2])
	require.NoError(t, err)
	require.Equal(t, 2, cut.Length, "who knows the end sees that something is missing")
}

func TestARecordIsAnInTotoStatement(t *testing.T) {
	records, _ := chain(t)
	body, err := json.Marshal(records[0].Statement("fix", request().Files))
	require.NoError(t, err)
	var statement map[string]any
	require.NoError(t, json.Unmarshal(body, &statement))
	require.Equal(t, "https://in-toto.io/Statement/v1", statement["_type"])
	subject := statement["subject"].([]any)[1].(map[string]any)
	require.Equal(t, "fix/rollback-run.sh", subject["name"])
	require.Equal(t, other[len("sha256:"):], subject["digest"].(map[string]any)["sha256"])
	require.Contains(t, statement["predicate"], "payload_hash")
}
