package monitoring_test

import (
	"crypto/rand"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	domain "millrace/domain/monitoring"
	"millrace/storage/monitoring"
	"millrace/storage/storagetest"
	"millrace/storage/table"
)

// actors is how many goroutines race in the race tests.
const actors = 50

var now = time.Date(2026, 11, 30, 12, 0, 30, 0, time.UTC)

func newStore(t testing.TB) monitoring.Store {
	t.Helper()
	return monitoring.Store{Table: storagetest.Table(t, storagetest.Monitoring)}
}

func newRing(t testing.TB, ids ...string) domain.KeyRing {
	t.Helper()
	var ring domain.KeyRing
	for _, id := range ids {
		next, err := ring.With(id, rand.Reader)
		require.NoError(t, err)
		ring = next
	}
	return ring
}

func issue(t testing.TB, ring domain.KeyRing, owner string, at time.Time) (domain.Token, domain.Secret) {
	t.Helper()
	token, secret, err := domain.Issue(domain.Request{Owner: owner, Name: "test", Scopes: []string{"read", "write"}}, ring, rand.Reader, at)
	require.NoError(t, err)
	return token, secret
}

func create(t testing.TB, store monitoring.Store, ring domain.KeyRing, owner string) (domain.Token, domain.Secret) {
	t.Helper()
	token, secret := issue(t, ring, owner, now)
	require.NoError(t, store.CreateToken(t.Context(), token))
	return token, secret
}

// rows reads both rows of a token as they are.
func rows(t testing.TB, store monitoring.Store, token domain.Token) (meta, grant map[string]any) {
	t.Helper()
	_, err := store.Table.Get(t.Context(), table.Key{Partition: "OWNER#" + token.Owner, Sort: "TOKEN#" + token.ID}, &meta)
	require.NoError(t, err)
	_, err = store.Table.Get(t.Context(), table.Key{Partition: "KEY#" + token.Hash, Sort: "TOKEN"}, &grant)
	require.NoError(t, err)
	return meta, grant
}

// race runs f in many goroutines at once and counts how it ended in each.
func race(t testing.TB, f func(int) error) map[string]int {
	t.Helper()
	var wg sync.WaitGroup
	var lock sync.Mutex
	start := make(chan struct{})
	ends := map[string]int{}
	for i := range actors {
		wg.Go(func() {
			<-start
			err := f(i)
			lock.Lock()
			defer lock.Unlock()
			ends[fmt.Sprint(err)]++
		})
	}
	close(start)
	wg.Wait()
	return ends
}

func TestCreatedTokenHasItsTwoRows(t *testing.T) {
	store := newStore(t)
	token, secret := create(t, store, newRing(t, "k1"), "user:kim")

	stored, err := store.Token(t.Context(), "user:kim", token.ID)
	require.NoError(t, err)
	require.Equal(t, token, stored)

	grant, found, err := store.Grant(t.Context(), secret.Hash())
	require.NoError(t, err)
	require.True(t, found)
	require.Equal(t, token.Grant(), grant)
	require.True(t, grant.Active(secret.Hash()))

	meta, lookup := rows(t, store, token)
	require.Equal(t, "RECOVERY#k1", meta["GSI1PK"])
	require.Equal(t, "k1", lookup["recovery_key_id"])
	require.NotContains(t, lookup, "recovery", "the lookup only records the key's id")
	require.NotContains(t, fmt.Sprint(meta, lookup), secret.Plaintext())
}

func TestUnknownTokens(t *testing.T) {
	store := newStore(t)
	token, secret := create(t, store, domain.KeyRing{}, "user:kim")
	_, err := store.Token(t.Context(), "user:lee", token.ID)
	require.ErrorIs(t, err, monitoring.ErrTokenNotFound, "another owner's token")
	_, found, err := store.Grant(t.Context(), secret.Hash()[1:]+"0")
	require.NoError(t, err)
	require.False(t, found)
	_, err = store.RevokeToken(t.Context(), "user:kim", "tok_none", now)
	require.ErrorIs(t, err, monitoring.ErrTokenNotFound)
	require.ErrorIs(t, store.DeleteToken(t.Context(), "user:lee", token.ID), monitoring.ErrTokenNotFound)
}

func TestCreateNeverReplacesAToken(t *testing.T) {
	store := newStore(t)
	token, _ := issue(t, domain.KeyRing{}, "user:kim", now)
	ends := race(t, func(int) error { return store.CreateToken(t.Context(), token) })
	require.Equal(t, 1, ends["<nil>"])
}

func TestTokensAreListedNewestFirstInPages(t *testing.T) {
	store := newStore(t)
	var want []string
	for i := range 7 {
		token, _ := issue(t, domain.KeyRing{}, "user:kim", now.Add(time.Duration(i)*time.Second))
		require.NoError(t, store.CreateToken(t.Context(), token))
		want = append(want, token.ID)
	}
	slices.Reverse(want)
	other, _ := create(t, store, domain.KeyRing{}, "user:lee")

	var got []string
	cursor := ""
	for pages := 1; ; pages++ {
		tokens, next, err := store.Tokens(t.Context(), "user:kim", cursor, 3)
		require.NoError(t, err)
		for _, token := range tokens {
			got = append(got, token.ID)
		}
		if cursor = next; cursor == "" {
			require.Equal(t, 3, pages)
			break
		}
	}
	require.Equal(t, want, got)
	require.NotContains(t, got, other.ID)
}

func TestCursorsOfAnotherListAreRefused(t *testing.T) {
	store := newStore(t)
	for range 2 {
		create(t, store, domain.KeyRing{}, "user:lee")
	}
	_, cursor, err := store.Tokens(t.Context(), "user:lee", "", 1)
	require.NoError(t, err)
	for name, c := range map[string]string{"another owner's": cursor, "no base64": "%%", "no cursor": "e30"} {
		_, _, err := store.Tokens(t.Context(), "user:kim", c, 1)
		require.ErrorIs(t, err, table.ErrBadCursor, name)
	}
}

func TestRevocationEndsAccessAndRemovesTheCopy(t *testing.T) {
	store := newStore(t)
	token, secret := create(t, store, newRing(t, "k1"), "user:kim")

	revoked, err := store.RevokeToken(t.Context(), "user:kim", token.ID, now)
	require.NoError(t, err)
	require.Equal(t, now, *revoked.RevokedAt)
	require.False(t, revoked.CanReveal())

	meta, lookup := rows(t, store, token)
	require.NotContains(t, meta, "recovery")
	require.Equal(t, "RECOVERY#none", meta["GSI1PK"])
	require.NotContains(t, lookup, "recovery_key_id")
	grant, _, err := store.Grant(t.Context(), secret.Hash())
	require.NoError(t, err)
	require.False(t, grant.Active(secret.Hash()))

	again, err := store.RevokeToken(t.Context(), "user:kim", token.ID, now.Add(time.Hour))
	require.NoError(t, err)
	require.Equal(t, now, *again.RevokedAt, "the first time stays")
}

func TestManyRevocationsHaveOneTime(t *testing.T) {
	store := newStore(t)
	token, _ := create(t, store, newRing(t, "k1"), "user:kim")
	var times sync.Map
	ends := race(t, func(i int) error {
		revoked, err := store.RevokeToken(t.Context(), "user:kim", token.ID, now.Add(time.Duration(i)*time.Second))
		if err == nil {
			times.Store(revoked.RevokedAt.String(), true)
		}
		return err
	})
	require.Equal(t, map[string]int{"<nil>": actors}, ends)
	count := 0
	times.Range(func(any, any) bool { count++; return true })
	require.Equal(t, 1, count)
}

func TestManyDeletionsHaveOneWinner(t *testing.T) {
	store := newStore(t)
	token, secret := create(t, store, newRing(t, "k1"), "user:kim")
	ends := race(t, func(int) error { return store.DeleteToken(t.Context(), "user:kim", token.ID) })
	require.Equal(t, map[string]int{"<nil>": 1, monitoring.ErrTokenNotFound.Error(): actors - 1}, ends)
	requireGone(t, store, token, secret)
}

func requireGone(t *testing.T, store monitoring.Store, token domain.Token, secret domain.Secret) {
	t.Helper()
	meta, lookup := rows(t, store, token)
	require.Empty(t, meta)
	require.Empty(t, lookup)
	_, found, err := store.Grant(t.Context(), secret.Hash())
	require.NoError(t, err)
	require.False(t, found)
}

func TestHashOnlyTokenGetsOneCopyHoweverManyTry(t *testing.T) {
	store, ring := newStore(t), newRing(t, "k1")
	token, secret := create(t, store, domain.KeyRing{}, "user:kim")
	ends := race(t, func(int) error {
		envelope, err := ring.Seal(secret, token.Owner, token.ID, rand.Reader)
		if err != nil {
			return err
		}
		return store.SaveRecovery(t.Context(), token.Grant(), envelope)
	})
	require.Equal(t, map[string]int{"<nil>": 1, monitoring.ErrTokenChanged.Error(): actors - 1}, ends)

	stored, err := store.Token(t.Context(), token.Owner, token.ID)
	require.NoError(t, err)
	opened, err := ring.Open(*stored.Recovery, token.Owner, token.ID)
	require.NoError(t, err)
	require.Equal(t, secret, opened)
	meta, lookup := rows(t, store, token)
	require.Equal(t, "RECOVERY#k1", meta["GSI1PK"])
	require.Equal(t, "k1", lookup["recovery_key_id"])
}

func TestHashOnlyTokenWithoutIndexKeysIsIndexedWithItsCopy(t *testing.T) {
	store, ring := newStore(t), newRing(t, "k1")
	token, secret := create(t, store, domain.KeyRing{}, "user:kim")
	key := table.Key{Partition: "OWNER#user:kim", Sort: "TOKEN#" + token.ID}
	require.NoError(t, store.Table.Update(t.Context(), table.Change{Key: key, Remove: []string{"GSI1PK", "GSI1SK"}}, nil))
	envelope, err := ring.Seal(secret, token.Owner, token.ID, rand.Reader)
	require.NoError(t, err)
	require.NoError(t, store.SaveRecovery(t.Context(), token.Grant(), envelope))

	found, _, err := store.TokensUnderKey(t.Context(), "k1", "", 10)
	require.NoError(t, err)
	require.Len(t, found, 1)
	require.Equal(t, token.ID, found[0].ID)
}

func TestRevocationOfARowWithoutItsOtherHalfGivesUp(t *testing.T) {
	store := newStore(t)
	token, _ := create(t, store, newRing(t, "k1"), "user:kim")
	require.NoError(t, store.Table.Delete(t.Context(), table.Key{Partition: "KEY#" + token.Hash, Sort: "TOKEN"}, nil))
	_, err := store.RevokeToken(t.Context(), "user:kim", token.ID, time.Now())
	require.ErrorIs(t, err, monitoring.ErrContended)
}

func TestCopyMovesToANewerKeyOnlyFromTheKeyThatWasRead(t *testing.T) {
	store, ring := newStore(t), newRing(t, "k1", "k2")
	old := domain.KeyRing{Current: "k1", Keys: ring.Keys}
	token, secret := create(t, store, old, "user:kim")
	envelope, err := ring.Seal(secret, token.Owner, token.ID, rand.Reader)
	require.NoError(t, err)

	stale := token.Grant()
	stale.RecoveryKeyID = "k0"
	require.ErrorIs(t, store.SaveRecovery(t.Context(), stale, envelope), monitoring.ErrTokenChanged)
	require.NoError(t, store.SaveRecovery(t.Context(), token.Grant(), envelope))
	require.ErrorIs(t, store.SaveRecovery(t.Context(), token.Grant(), envelope), monitoring.ErrTokenChanged, "k1 is no longer its key")
}

func TestCopyNeverBringsBackARevokedOrDeletedToken(t *testing.T) {
	ring := newRing(t, "k1")
	for name, end := range map[string]func(monitoring.Store, domain.Token) error{
		"revoked": func(s monitoring.Store, token domain.Token) error {
			_, err := s.RevokeToken(t.Context(), token.Owner, token.ID, now)
			return err
		},
		"deleted": func(s monitoring.Store, token domain.Token) error {
			return s.DeleteToken(t.Context(), token.Owner, token.ID)
		},
	} {
		t.Run(name, func(t *testing.T) {
			store := newStore(t)
			for range 5 {
				token, secret := create(t, store, domain.KeyRing{}, "user:kim")
				var ended atomic.Int64
				race(t, func(i int) error {
					if i == actors/2 {
						err := end(store, token)
						if err == nil {
							ended.Add(1)
						}
						return err
					}
					envelope, err := ring.Seal(secret, token.Owner, token.ID, rand.Reader)
					if err != nil {
						return err
					}
					return store.SaveRecovery(t.Context(), token.Grant(), envelope)
				})
				require.Equal(t, int64(1), ended.Load())
				grant, found, err := store.Grant(t.Context(), secret.Hash())
				require.NoError(t, err)
				require.False(t, found && grant.Active(secret.Hash()))
				stored, err := store.Token(t.Context(), token.Owner, token.ID)
				if !errors.Is(err, monitoring.ErrTokenNotFound) {
					require.NoError(t, err)
					require.Nil(t, stored.Recovery)
				}
			}
		})
	}
}

func TestUseIsRecordedOnceAMinute(t *testing.T) {
	store := newStore(t)
	token, _ := create(t, store, newRing(t, "k1"), "user:kim")
	for minute := range 2 {
		at := now.Add(time.Duration(minute) * time.Minute)
		var wrote atomic.Int64
		ends := race(t, func(int) error {
			did, err := store.RecordUse(t.Context(), token.Owner, token.ID, at)
			if did {
				wrote.Add(1)
			}
			return err
		})
		require.Equal(t, map[string]int{"<nil>": actors}, ends)
		require.Equal(t, int64(1), wrote.Load())
		stored, err := store.Token(t.Context(), token.Owner, token.ID)
		require.NoError(t, err)
		require.Equal(t, at.Truncate(time.Minute), *stored.LastUsedAt)
	}
	require.NoError(t, store.DeleteToken(t.Context(), token.Owner, token.ID))
	did, err := store.RecordUse(t.Context(), token.Owner, token.ID, now.Add(time.Hour))
	require.NoError(t, err)
	require.False(t, did, "a deleted token is not brought back")
	_, err = store.Token(t.Context(), token.Owner, token.ID)
	require.ErrorIs(t, err, monitoring.ErrTokenNotFound)
}

func TestTokensUnderAKey(t *testing.T) {
	store, ring := newStore(t), newRing(t, "k1", "k2")
	old := domain.KeyRing{Current: "k1", Keys: ring.Keys}
	want := map[string]bool{}
	for range 5 {
		token, _ := create(t, store, old, "user:kim")
		want[token.ID] = true
	}
	create(t, store, ring, "user:kim")
	revoked, _ := create(t, store, old, "user:kim")
	_, err := store.RevokeToken(t.Context(), revoked.Owner, revoked.ID, now)
	require.NoError(t, err)

	got := map[string]bool{}
	cursor := ""
	for {
		tokens, next, err := store.TokensUnderKey(t.Context(), "k1", cursor, 2)
		require.NoError(t, err)
		for _, token := range tokens {
			got[token.ID] = true
		}
		if cursor = next; cursor == "" {
			break
		}
	}
	require.Equal(t, want, got)
}

func TestTokensThatTheIndexStillListsUnderAnOlderKeyAreLeftOut(t *testing.T) {
	store := newStore(t)
	token, _ := create(t, store, newRing(t, "k2"), "user:kim")
	// The index lags: it shows the item as it was under k1.
	require.NoError(t, store.Table.Update(t.Context(), table.Change{
		Key: table.Key{Partition: "OWNER#user:kim", Sort: "TOKEN#" + token.ID}, Set: map[string]any{"GSI1PK": "RECOVERY#k1"},
	}, nil))
	tokens, _, err := store.TokensUnderKey(t.Context(), "k1", "", 10)
	require.NoError(t, err)
	require.Empty(t, tokens)
}
