package monitoring_test

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/aws/smithy-go"
	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/testsuite"

	activities "millrace/activities/monitoring"
	"millrace/domain/monitoring"
	store "millrace/storage/monitoring"
	"millrace/storage/storagetest"
	workflows "millrace/workflows/monitoring"
)

var now = time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC)

// rings is a ring before and after a rotation.
func rings(t testing.TB) (before, after monitoring.KeyRing) {
	t.Helper()
	before, err := monitoring.KeyRing{}.With("k1", rand.Reader)
	require.NoError(t, err)
	after, err = before.With("k2", rand.Reader)
	require.NoError(t, err)
	return before, after
}

func create(t testing.TB, s store.Store, ring monitoring.KeyRing, n int) map[string]string {
	t.Helper()
	plaintexts := map[string]string{}
	for i := range n {
		token, secret, err := monitoring.Issue(monitoring.Request{
			Owner: fmt.Sprintf("user:%d", i%3), Name: "test", Scopes: []string{"read"},
		}, ring, rand.Reader, now.Add(time.Duration(i)*time.Millisecond))
		require.NoError(t, err)
		require.NoError(t, s.CreateToken(t.Context(), token))
		plaintexts[token.Owner+" "+token.ID] = secret.Plaintext()
	}
	return plaintexts
}

func environment(t testing.TB, rekeyer activities.Rekeyer) *testsuite.TestActivityEnvironment {
	t.Helper()
	var suite testsuite.WorkflowTestSuite
	env := suite.NewTestActivityEnvironment()
	env.RegisterActivityWithOptions(rekeyer.RekeyBatch, activity.RegisterOptions{Name: workflows.RekeyBatchActivity})
	return env
}

func run(t testing.TB, env *testsuite.TestActivityEnvironment, batch workflows.RekeyBatch) (workflows.RekeyBatchResult, error) {
	t.Helper()
	value, err := env.ExecuteActivity(workflows.RekeyBatchActivity, batch)
	if err != nil {
		return workflows.RekeyBatchResult{}, err
	}
	var result workflows.RekeyBatchResult
	require.NoError(t, value.Get(&result))
	return result, nil
}

func TestEverySavedCopyMovesToTheCurrentKey(t *testing.T) {
	s := store.Store{Table: storagetest.Table(t, storagetest.Monitoring)}
	before, after := rings(t)
	plaintexts := create(t, s, before, 250)
	create(t, s, monitoring.KeyRing{}, 3)
	env := environment(t, activities.Rekeyer{Store: s, Ring: after})

	first, err := run(t, env, workflows.RekeyBatch{KeyID: "k1", Pages: 1})
	require.NoError(t, err)
	require.Equal(t, workflows.RekeyCounts{Seen: 100, Sealed: 100}, first.Counts)
	require.NotEmpty(t, first.Cursor)
	require.Equal(t, "k2", first.CurrentKeyID)
	rest, err := run(t, env, workflows.RekeyBatch{KeyID: "k1", Cursor: first.Cursor, Pages: 10})
	require.NoError(t, err)
	require.Equal(t, workflows.RekeyCounts{Seen: 150, Sealed: 150}, rest.Counts)
	require.Empty(t, rest.Cursor)

	tokens, _, err := s.TokensUnderKey(t.Context(), "k1", "", 10)
	require.NoError(t, err)
	require.Empty(t, tokens)
	for key, plaintext := range plaintexts {
		var owner, id string
		_, err := fmt.Sscan(key, &owner, &id)
		require.NoError(t, err)
		token, err := s.Token(t.Context(), owner, id)
		require.NoError(t, err)
		require.Equal(t, "k2", token.RecoveryKeyID())
		secret, err := after.Open(*token.Recovery, owner, id)
		require.NoError(t, err)
		require.Equal(t, plaintext, secret.Plaintext())
	}

	again, err := run(t, env, workflows.RekeyBatch{KeyID: "k1", Pages: 10})
	require.NoError(t, err)
	require.Equal(t, workflows.RekeyCounts{}, again.Counts, "twice changes nothing")
}

func TestCopiesThatDoNotOpenAreReportedAndLeftAlone(t *testing.T) {
	s := store.Store{Table: storagetest.Table(t, storagetest.Monitoring)}
	_, after := rings(t)
	stranger, err := monitoring.KeyRing{}.With("k1", rand.Reader) // another key of the same name
	require.NoError(t, err)
	create(t, s, stranger, 2)
	result, err := run(t, environment(t, activities.Rekeyer{Store: s, Ring: after}), workflows.RekeyBatch{KeyID: "k1", Pages: 1})
	require.NoError(t, err)
	require.Equal(t, workflows.RekeyCounts{Seen: 2, Broken: 2}, result.Counts)
	require.Len(t, result.Broken, 2)
}

func TestBatchesThatCanNotWorkAreFinal(t *testing.T) {
	_, after := rings(t)
	for name, c := range map[string]struct {
		ring  monitoring.KeyRing
		batch workflows.RekeyBatch
	}{
		"no ring":     {monitoring.KeyRing{}, workflows.RekeyBatch{KeyID: "k1", Pages: 1}},
		"current key": {after, workflows.RekeyBatch{KeyID: "k2", Pages: 1}},
		"unknown key": {after, workflows.RekeyBatch{KeyID: "k3", Pages: 1}},
		"no pages":    {after, workflows.RekeyBatch{KeyID: "k1"}},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := run(t, environment(t, activities.Rekeyer{Ring: c.ring}), c.batch)
			requireFinal(t, err)
		})
	}
}

func requireFinal(t *testing.T, err error) {
	t.Helper()
	var application *temporal.ApplicationError
	require.ErrorAs(t, err, &application)
	require.True(t, application.NonRetryable())
	require.Equal(t, "InvalidInput", application.Type())
}

// scripted is a store whose pages and failures a test chooses.
type scripted struct {
	pages   map[string][]monitoring.Token
	next    map[string]string
	saveErr map[string]error
	readErr error
	saved   []string
}

func (s *scripted) TokensUnderKey(_ context.Context, _, cursor string, _ int32) ([]monitoring.Token, string, error) {
	return s.pages[cursor], s.next[cursor], s.readErr
}

func (s *scripted) SaveRecovery(_ context.Context, grant monitoring.Grant, _ *monitoring.Envelope) error {
	if err := s.saveErr[grant.TokenID]; err != nil {
		return err
	}
	s.saved = append(s.saved, grant.TokenID)
	return nil
}

func token(t testing.TB, ring monitoring.KeyRing, id string) monitoring.Token {
	t.Helper()
	secret, err := monitoring.NewSecret(rand.Reader)
	require.NoError(t, err)
	envelope, err := ring.Seal(secret, "user:kim", id, rand.Reader)
	require.NoError(t, err)
	return monitoring.Token{ID: id, Owner: "user:kim", Hash: secret.Hash(), Recovery: envelope}
}

func TestARetryGoesOnWhereTheLastHeartbeatWas(t *testing.T) {
	before, after := rings(t)
	s := &scripted{
		pages: map[string][]monitoring.Token{"": {token(t, before, "a")}, "two": {token(t, before, "b")}},
		next:  map[string]string{"": "two"},
	}
	env := environment(t, activities.Rekeyer{Store: s, Ring: after})
	env.SetHeartbeatDetails(map[string]any{
		"page":   1,
		"result": workflows.RekeyBatchResult{Cursor: "two", CurrentKeyID: "k2", Counts: workflows.RekeyCounts{Seen: 1, Sealed: 1}},
	})
	result, err := run(t, env, workflows.RekeyBatch{KeyID: "k1", Pages: 5})
	require.NoError(t, err)
	require.Equal(t, []string{"b"}, s.saved)
	require.Equal(t, workflows.RekeyCounts{Seen: 2, Sealed: 2}, result.Counts)
}

func TestTokensChangedMeanwhileAreOvertaken(t *testing.T) {
	before, after := rings(t)
	s := &scripted{
		pages:   map[string][]monitoring.Token{"": {token(t, before, "a"), token(t, before, "b")}},
		saveErr: map[string]error{"a": store.ErrTokenChanged},
	}
	result, err := run(t, environment(t, activities.Rekeyer{Store: s, Ring: after}), workflows.RekeyBatch{KeyID: "k1", Pages: 1})
	require.NoError(t, err)
	require.Equal(t, workflows.RekeyCounts{Seen: 2, Sealed: 1, Overtaken: 1}, result.Counts)
}

func TestOutagesAreTriedAgainAndWrongRequestsAreNot(t *testing.T) {
	before, after := rings(t)
	for name, c := range map[string]struct {
		store *scripted
		final bool
	}{
		"outage on read":  {&scripted{readErr: errors.New("connection refused")}, false},
		"outage on write": {&scripted{pages: map[string][]monitoring.Token{"": {token(t, before, "a")}}, saveErr: map[string]error{"a": errors.New("refused")}}, false},
		"wrong request":   {&scripted{readErr: &smithy.GenericAPIError{Code: "ValidationException"}}, true},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := run(t, environment(t, activities.Rekeyer{Store: c.store, Ring: after}), workflows.RekeyBatch{KeyID: "k1", Pages: 1})
			require.Error(t, err)
			var application *temporal.ApplicationError
			require.Equal(t, c.final, errors.As(err, &application) && application.NonRetryable())
		})
	}
}
