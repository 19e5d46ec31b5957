package tokens

import (
	"bytes"
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/alecthomas/kong"
	"github.com/stretchr/testify/require"
	"go.temporal.io/api/serviceerror"
	"go.temporal.io/sdk/client"

	"millrace/domain/monitoring"
	storage "millrace/storage/monitoring"
	"millrace/storage/storagetest"
	workflows "millrace/workflows/monitoring"
)

func parse(t *testing.T, args ...string) (*Command, error) {
	t.Helper()
	var cli struct {
		Token Command `cmd:""`
	}
	parser, err := kong.New(&cli)
	require.NoError(t, err)
	_, err = parser.Parse(append([]string{"token"}, args...))
	return &cli.Token, err
}

func TestCreatePrintsThePlaintextAlone(t *testing.T) {
	store := storage.Store{Table: storagetest.Table(t, storagetest.Monitoring)}
	file := filepath.Join(t.TempDir(), "keys.json")
	require.NoError(t, storage.InitKeyRing(file, "k1"))
	ring, err := storage.LoadKeyRing(file)
	require.NoError(t, err)

	var out, info bytes.Buffer
	request := monitoring.Request{Owner: "user:kim", Name: "laptop", Scopes: []string{"read", "admin"}}
	require.NoError(t, create(t.Context(), store, ring, request, &out, &info))
	plaintext := strings.TrimSpace(out.String())
	secret, err := monitoring.ParseSecret(plaintext)
	require.NoError(t, err)
	require.NotContains(t, info.String(), plaintext)
	require.Contains(t, info.String(), "scopes admin,read")

	grant, found, err := store.Grant(t.Context(), secret.Hash())
	require.NoError(t, err)
	require.True(t, found)
	require.Equal(t, "user:kim", grant.Owner)

	var listed bytes.Buffer
	require.NoError(t, list(t.Context(), store, "user:kim", &listed))
	require.Contains(t, listed.String(), grant.TokenID)
	require.Contains(t, listed.String(), "active, copy under k1")
	require.NotContains(t, listed.String(), plaintext)
	require.NotContains(t, listed.String(), secret.Hash())

	var revealed bytes.Buffer
	require.NoError(t, reveal(t.Context(), store, ring, "user:kim", grant.TokenID, &revealed))
	require.Equal(t, out.String(), revealed.String(), "the operator may reveal an admin token")

	_, err = store.RevokeToken(t.Context(), "user:kim", grant.TokenID, time.Now())
	require.NoError(t, err)
	require.ErrorContains(t, reveal(t.Context(), store, ring, "user:kim", grant.TokenID, &revealed), "revoked")
	listed.Reset()
	require.NoError(t, list(t.Context(), store, "user:kim", &listed))
	require.Contains(t, listed.String(), "revoked since")
}

func TestCreateWithoutKeysSaysThatNothingCanShowTheTokenAgain(t *testing.T) {
	store := storage.Store{Table: storagetest.Table(t, storagetest.Monitoring)}
	var out, info bytes.Buffer
	require.NoError(t, create(t.Context(), store, monitoring.KeyRing{}, monitoring.Request{Owner: "app:shop", Name: "x", Scopes: []string{"signals:write"}}, &out, &info))
	require.Contains(t, info.String(), "no saved copy")
}

func TestScopesAllStandsForEveryScope(t *testing.T) {
	c, err := parse(t, "create", "--owner=user:kim", "--name=x", "--scopes=all")
	require.NoError(t, err)
	scopes, err := monitoring.ParseScopes(c.Create.scopes())
	require.NoError(t, err)
	require.Equal(t, monitoring.AllScopes("factory-a", "factory-b", "factory-c"), scopes)
	c, err = parse(t, "create", "--owner=user:kim", "--name=x", "--scopes=read,image:upload/factory-a")
	require.NoError(t, err)
	require.Equal(t, []string{"read", "image:upload/factory-a"}, c.Create.scopes())
}

func TestBadArgumentsAreRefused(t *testing.T) {
	for name, args := range map[string][]string{
		"no owner":    {"list"},
		"bad owner":   {"list", "--owner=kim"},
		"no id":       {"revoke", "--owner=user:kim"},
		"no scopes":   {"create", "--owner=user:kim", "--name=x"},
		"bad key":     {"rekey", "--from=a#b"},
		"no key file": {"keys", "init"},
	} {
		_, err := parse(t, args...)
		require.Error(t, err, name)
	}
}

func TestKeyCommandsNameKeysAndNeverShowThem(t *testing.T) {
	file := filepath.Join(t.TempDir(), "keys.json")
	require.NoError(t, InitKeysCommand{File: file}.Run())
	require.NoError(t, RotateKeysCommand{File: file, KeyID: "k2"}.Run())
	var out bytes.Buffer
	require.NoError(t, printRing(file, &out))
	require.Equal(t, file+": key ring of 2 keys, current \"k2\"\n", out.String())
	text, err := os.ReadFile(file)
	require.NoError(t, err)
	require.Contains(t, string(text), `"k2"`)
	require.Equal(t, "k20261130-120000", keyID("", time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC)))
}

// fakeTemporal starts and finds workflows as a test wants.
type fakeTemporal struct {
	client.Client
	startErr error
	result   workflows.RekeyReport
	options  client.StartWorkflowOptions
}

func (f *fakeTemporal) ExecuteWorkflow(_ context.Context, options client.StartWorkflowOptions, _ any, _ ...any) (client.WorkflowRun, error) {
	f.options = options
	return nil, f.startErr
}

func (f *fakeTemporal) GetWorkflow(context.Context, string, string) client.WorkflowRun {
	return fakeRun{result: f.result}
}

type fakeRun struct {
	client.WorkflowRun
	result workflows.RekeyReport
}

func (r fakeRun) Get(_ context.Context, into any) error {
	*into.(*workflows.RekeyReport) = r.result
	return nil
}

func TestRekeyStartsOrJoinsAndReports(t *testing.T) {
	clean := workflows.RekeyReport{KeyID: "k1", Clean: true, Done: true}
	for name, c := range map[string]struct {
		temporal *fakeTemporal
		want     string
		wantErr  string
	}{
		"starts":      {&fakeTemporal{result: clean}, "rekey-tokens/k1 started\n", ""},
		"joins":       {&fakeTemporal{result: clean, startErr: &serviceerror.WorkflowExecutionAlreadyStarted{}}, "rekey-tokens/k1 runs already\n", ""},
		"not clean":   {&fakeTemporal{result: workflows.RekeyReport{KeyID: "k1", Done: true}}, "rekey-tokens/k1 started\n", "run this again"},
		"no Temporal": {&fakeTemporal{startErr: errors.New("refused")}, "", "start rekey-tokens/k1: refused"},
	} {
		t.Run(name, func(t *testing.T) {
			var out bytes.Buffer
			err := RekeyCommand{From: "k1", Wait: true}.rekey(t.Context(), c.temporal, &out)
			if c.wantErr == "" {
				require.NoError(t, err)
			} else {
				require.ErrorContains(t, err, c.wantErr)
			}
			require.True(t, strings.HasPrefix(out.String(), c.want), out.String())
			require.Equal(t, "scheduled", c.temporal.options.TaskQueue)
		})
	}
}
