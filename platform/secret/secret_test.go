package secret

import (
	"context"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/secretsmanager"
	"github.com/stretchr/testify/require"
)

// manager speaks the wire protocol of Secrets Manager: one secret, "alerts".
func manager(t *testing.T, value *string, calls *int) *secretsmanager.Client {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		*calls++
		require.Equal(t, "secretsmanager.GetSecretValue", r.Header.Get("X-Amz-Target"))
		var in struct {
			SecretID string `json:"SecretId"`
		}
		require.NoError(t, json.NewDecoder(r.Body).Decode(&in))
		w.Header().Set("Content-Type", "application/x-amz-json-1.1")
		if in.SecretID != "alerts" {
			w.WriteHeader(http.StatusBadRequest)
			_, _ = w.Write([]byte(`{"__type":"ResourceNotFoundException","Message":"no such secret"}`))
			return
		}
		_ = json.NewEncoder(w).Encode(map[string]string{"Name": "alerts", "SecretString": *value})
	}))
	t.Cleanup(server.Close)
	return secretsmanager.New(secretsmanager.Options{
		BaseEndpoint: &server.URL, Region: "ap-northeast-2", RetryMaxAttempts: 1,
		Credentials: aws.NewCredentialsCache(credentials.NewStaticCredentialsProvider("id", "key", "")),
	})
}

func TestSecretsAreReadByReference(t *testing.T) {
	value, calls := "from aws", 0
	now := time.Unix(0, 0)
	r := &Reader{AWS: manager(t, &value, &calls), Keep: time.Minute, Now: func() time.Time { return now }}
	t.Setenv("A_SECRET", "from env\n")
	file := filepath.Join(t.TempDir(), "secret")
	require.NoError(t, os.WriteFile(file, []byte("from file\n"), 0o600))
	for ref, want := range map[Reference]string{"env:A_SECRET": "from env", Reference("file:" + file): "from file", "aws-secret:alerts": "from aws"} {
		got, err := r.Read(t.Context(), ref)
		require.NoError(t, err)
		require.Equal(t, want, got)
	}
	read := func() string {
		got, err := r.Read(context.Background(), "aws-secret:alerts")
		require.NoError(t, err)
		return got
	}
	value = "rotated"
	require.Equal(t, "from aws", read())
	require.Equal(t, 1, calls, "a remembered secret costs no call")
	r.Forget("aws-secret:alerts")
	require.Equal(t, "rotated", read())
	value = "rotated again"
	now = now.Add(time.Minute)
	require.Equal(t, "rotated again", read(), "nothing is remembered for ever")
}

func TestMissingSecretsAreErrorsThatNameTheReference(t *testing.T) {
	value, calls := "", 0
	r := &Reader{AWS: manager(t, &value, &calls), Now: time.Now}
	t.Setenv("EMPTY", " \n")
	for _, ref := range []Reference{"env:EMPTY", "env:UNSET_SECRET", "file:/no/such/file", "aws-secret:missing", "aws-secret:alerts"} {
		_, err := r.Read(t.Context(), ref)
		require.ErrorContains(t, err, string(ref))
	}
	_, err := (&Reader{Now: time.Now}).Read(t.Context(), "aws-secret:alerts")
	require.ErrorContains(t, err, "not set up")
}

func TestASecretGivenInsteadOfAReferenceIsNotRepeated(t *testing.T) {
	for _, text := range []Reference{"https://hooks.slack.com/services/T/B/X", "", "env:", "env:A B", "file:", "aws-secret:"} {
		err := text.Check()
		require.ErrorContains(t, err, "env:NAME")
		require.NotContains(t, err.Error(), "hooks")
	}
}
