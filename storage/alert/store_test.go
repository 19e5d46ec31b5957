package alert

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sync/errgroup"

	"millrace/domain/alert"
	"millrace/domain/exact"
	"millrace/domain/factory"
	"millrace/storage/storagetest"
	"millrace/storage/table"
)

var start = time.Date(2026, 6, 2, 2, 0, 0, 0, time.UTC)

func newStore(t testing.TB) Store {
	return Store{
		Status:     storagetest.Table(t, storagetest.Factory),
		Governance: storagetest.Table(t, storagetest.Schema{PartitionKey: "PK", SortKey: "SK"}),
	}
}

func danger(at time.Time) alert.Alert {
	score := exact.MustParse("49.5")
	return alert.Alert{
		Scope: "factory-a", SourceType: alert.SourceFactory, Severity: alert.Danger, Reason: "nodes_all_not_ready", Status: "normal",
		FingerprintStatus: "state_snapshot", SourceUpdatedAt: factory.MillisOf(at), SourceKey: "processed/x.json", Score: &score,
	}
}

func ofApp(at time.Time) alert.Alert {
	return alert.Alert{
		Scope: "app.shop", SourceType: alert.SourceApp, Severity: alert.Warning, Reason: "cost", Status: "80",
		StateSK: "ALERTSTATE#cost#80#2026-06-02", SourceUpdatedAt: factory.MillisOf(at), CooldownSeconds: 86400,
	}
}

const cooldown = 300 * time.Second

func reserveAt(t *testing.T, s Store, a alert.Alert, at time.Time) Reservation {
	t.Helper()
	r, err := s.Reserve(t.Context(), a, at, cooldown)
	require.NoError(t, err)
	return r
}

func TestAReservationIsKeptInTheKeysOfTheDesign(t *testing.T) {
	s := newStore(t)
	require.True(t, reserveAt(t, s, danger(start), start.Add(time.Second)).Reserved)
	var item map[string]any
	found, err := s.Status.Get(t.Context(), table.Key{Partition: "ALERT#factory-a", Sort: "danger#nodes_all_not_ready#state_snapshot"}, &item)
	require.NoError(t, err)
	require.True(t, found)
	at := float64(start.Add(time.Second).Unix())
	require.Equal(t, map[string]any{
		"pk": "ALERT#factory-a", "sk": "danger#nodes_all_not_ready#state_snapshot", "scope": "factory-a", "source_type": "factory_state_snapshot",
		"severity": "danger", "reason": "nodes_all_not_ready", "status": "normal", "last_sent_at": at, "last_observed_at": at,
		"cooldown_until": at + 300, "last_score": 49.5, "last_source_key": "processed/x.json", "last_source_updated_at": "2026-06-02T02:00:00.000Z",
		"last_slack_status": "pending", "reservation_id": danger(start).ReservationID(), "ttl": at + 604800,
	}, item)
}

func TestAnApplicationsStateLiesBesideItsRules(t *testing.T) {
	s := newStore(t)
	require.True(t, reserveAt(t, s, ofApp(start), start).Reserved)
	var item map[string]any
	found, err := s.Governance.Get(t.Context(), table.Key{Partition: "APP#shop", Sort: "ALERTSTATE#cost#80#2026-06-02"}, &item)
	require.NoError(t, err)
	require.True(t, found)
	require.EqualValues(t, start.Unix()+604800, item["expires_at"])
	require.NotContains(t, item, "ttl")
	require.Equal(t, alert.WhyCooldown, reserveAt(t, s, ofApp(start.Add(time.Minute)), start.Add(time.Minute)).Why)
}

// Each step of the story of one key, in order: a snapshot's offset, when it is
// reserved, and what is expected.
func TestCooldownDuplicatesAndOrder(t *testing.T) {
	s := newStore(t)
	sent := func(a alert.Alert, at time.Time, outcome alert.Outcome) {
		require.NoError(t, s.Settle(t.Context(), a, Settlement{Outcome: outcome, At: at, Cooldown: cooldown}))
	}
	first := danger(start)
	require.True(t, reserveAt(t, s, first, start).Reserved)
	require.True(t, reserveAt(t, s, first, start.Add(time.Second)).Reserved, "a retry continues while the sending is pending")
	sent(first, start.Add(2*time.Second), alert.Sent)
	require.Equal(t, alert.WhyDuplicate, reserveAt(t, s, first, start.Add(3*time.Second)).Why, "the same snapshot again")
	r := reserveAt(t, s, danger(start.Add(time.Minute)), start.Add(time.Minute))
	require.Equal(t, alert.WhyCooldown, r.Why)
	require.Equal(t, "cooldown until 2026-06-02T02:05:02Z", r.Detail, "the cooldown counts from the sending")
	r = reserveAt(t, s, danger(start.Add(-time.Minute)), start.Add(time.Hour))
	require.Equal(t, alert.WhyCooldown, r.Why, "an older snapshot, however long after")
	require.Contains(t, r.Detail, "2026-06-02T02:00:00.000Z")
	again := danger(start.Add(302 * time.Second))
	require.False(t, reserveAt(t, s, danger(start.Add(301*time.Second)), start.Add(301*time.Second)).Reserved)
	require.True(t, reserveAt(t, s, again, start.Add(302*time.Second)).Reserved, "on the second the cooldown ends")
	sent(again, start.Add(303*time.Second), alert.Failed)
	require.Equal(t, alert.WhyDuplicate, reserveAt(t, s, again, start.Add(304*time.Second)).Why)
	next := danger(start.Add(310 * time.Second))
	require.True(t, reserveAt(t, s, next, start.Add(310*time.Second)).Reserved, "a failed send releases the cooldown")
	sent(next, start.Add(311*time.Second), alert.Ambiguous)
	require.False(t, reserveAt(t, s, danger(start.Add(320*time.Second)), start.Add(320*time.Second)).Reserved, "an ambiguous one does not")
}

func TestASettlementOfAReplacedReservationIsIgnored(t *testing.T) {
	s := newStore(t)
	old, newer := danger(start), danger(start.Add(time.Hour))
	require.True(t, reserveAt(t, s, old, start).Reserved)
	require.True(t, reserveAt(t, s, newer, start.Add(time.Hour)).Reserved)
	require.NoError(t, s.Settle(t.Context(), old, Settlement{Outcome: alert.Failed, At: start.Add(time.Hour), Cooldown: cooldown}))
	require.False(t, reserveAt(t, s, danger(start.Add(61*time.Minute)), start.Add(61*time.Minute)).Reserved, "the newer cooldown stands")
}

func TestAnIncidentsMessageIsRememberedForItsTime(t *testing.T) {
	s := newStore(t)
	first := danger(start)
	require.Zero(t, reserveAt(t, s, first, start).Incident)
	message := Incident{Channel: "C1", TS: "1.2"}
	settle := Settlement{Outcome: alert.Sent, At: start, Cooldown: cooldown, Incident: message, IncidentFor: time.Hour}
	require.NoError(t, s.Settle(t.Context(), first, settle))
	require.Equal(t, message, reserveAt(t, s, danger(start.Add(10*time.Minute)), start.Add(10*time.Minute)).Incident)
	require.Zero(t, reserveAt(t, s, danger(start.Add(2*time.Hour)), start.Add(2*time.Hour)).Incident, "an old incident is over")
	require.NoError(t, s.Settle(t.Context(), danger(start.Add(2*time.Hour)), Settlement{Outcome: alert.Sent, At: start.Add(2 * time.Hour), Incident: message, IncidentFor: 4 * time.Hour}))
	require.NoError(t, s.Close(t.Context(), first))
	require.Zero(t, reserveAt(t, s, danger(start.Add(3*time.Hour)), start.Add(3*time.Hour)).Incident, "a closed incident too")
	require.NoError(t, s.Close(t.Context(), ofApp(start)), "closing what is not there is no error")
}

func TestAClockFarAheadDoesNotSilenceTheOthers(t *testing.T) {
	s := newStore(t)
	ahead := danger(start.Add(2 * time.Hour))
	require.True(t, reserveAt(t, s, ahead, start).Reserved)
	require.NoError(t, s.Settle(t.Context(), ahead, Settlement{Outcome: alert.Sent, At: start, Cooldown: cooldown}))
	require.True(t, reserveAt(t, s, danger(start.Add(6*time.Minute)), start.Add(6*time.Minute)).Reserved)
}

func TestConsecutiveObservations(t *testing.T) {
	const window = 90 * time.Second
	s := newStore(t)
	token := 0
	observe := func(source, at time.Duration) (int64, error) {
		token++
		return s.Observe(t.Context(), danger(start.Add(source)), fmt.Sprint(token), start.Add(at), window)
	}
	for i, step := range []struct {
		source, at time.Duration
		want       int64
		stale      bool
	}{
		{source: 0, at: time.Second, want: 1},
		{source: 0, at: 2 * time.Second, stale: true},
		{source: -time.Minute, at: 3 * time.Second, stale: true},
		{source: time.Minute, at: 61 * time.Second, want: 2},
		{source: 2 * time.Minute, at: 61*time.Second + window, want: 3},
		{source: 10 * time.Minute, at: 10 * time.Minute, want: 1},
		{source: 9 * time.Minute, at: 10*time.Minute + time.Second, stale: true},
		{source: 11 * time.Minute, at: 11 * time.Minute, want: 2},
	} {
		count, err := observe(step.source, step.at)
		if step.stale {
			require.ErrorIs(t, err, ErrStale, "step %d", i)
			continue
		}
		require.NoError(t, err, "step %d", i)
		require.Equal(t, step.want, count, "step %d", i)
	}
	again, err := s.Observe(t.Context(), danger(start.Add(11*time.Minute)), fmt.Sprint(token), start.Add(11*time.Minute), window)
	require.NoError(t, err)
	require.EqualValues(t, 2, again, "a retry of the same delivery counts once")
	var item map[string]any
	found, err := s.Status.Get(t.Context(), table.Key{Partition: "ALERT#factory-a", Sort: "OBSERVATION#danger#nodes_all_not_ready#state_snapshot"}, &item)
	require.NoError(t, err)
	require.True(t, found)
	require.EqualValues(t, start.Add(11*time.Minute).Unix(), item["last_observed_at"])
	require.EqualValues(t, start.Add(11*time.Minute).Unix()+604800, item["ttl"])
}

const actors = 50

// everyone runs f for 50 actors at once, half of them on another worker's store.
func everyone(t *testing.T, s Store, f func(ctx context.Context, s Store, actor int) error) {
	t.Helper()
	second := New(s.Status.Client, s.Status.Name, s.Governance.Name)
	gate := make(chan struct{})
	work, ctx := errgroup.WithContext(t.Context())
	for actor := range actors {
		store := s
		if actor%2 == 1 {
			store = second
		}
		work.Go(func() error {
			<-gate
			return f(ctx, store, actor)
		})
	}
	close(gate)
	require.NoError(t, work.Wait())
}

func TestFiftyActorsReserveOnce(t *testing.T) {
	s := newStore(t)
	var mu sync.Mutex
	reserved := 0
	everyone(t, s, func(ctx context.Context, s Store, actor int) error {
		a := danger(start.Add(time.Duration(actor) * time.Millisecond))
		r, err := s.Reserve(ctx, a, start.Add(time.Second), cooldown)
		mu.Lock()
		defer mu.Unlock()
		if r.Reserved {
			reserved++
		} else if err == nil && r.Why != alert.WhyCooldown {
			return fmt.Errorf("refused for %q", r.Why)
		}
		return err
	})
	require.Equal(t, 1, reserved)
}

func TestFiftyActorsSettledSnapshotIsADuplicateForAll(t *testing.T) {
	s := newStore(t)
	a := danger(start)
	require.True(t, reserveAt(t, s, a, start).Reserved)
	require.NoError(t, s.Settle(t.Context(), a, Settlement{Outcome: alert.Sent, At: start, Cooldown: cooldown}))
	everyone(t, s, func(ctx context.Context, s Store, _ int) error {
		r, err := s.Reserve(ctx, a, start.Add(time.Hour), cooldown)
		if r.Why != alert.WhyDuplicate {
			return fmt.Errorf("reserved=%v, refused for %q", r.Reserved, r.Why)
		}
		return err
	})
}

func TestFiftyActorsCountEachObservationOnce(t *testing.T) {
	s := newStore(t)
	var mu sync.Mutex
	counts := map[int64]int{}
	everyone(t, s, func(ctx context.Context, s Store, actor int) error {
		count, err := s.Observe(ctx, danger(start), fmt.Sprintf("delivery-%d", actor), start, time.Minute)
		mu.Lock()
		defer mu.Unlock()
		if err == nil {
			counts[count]++
			return nil
		}
		require.ErrorIs(t, err, ErrStale)
		return nil
	})
	require.Equal(t, map[int64]int{1: 1}, counts, "fifty deliveries of one snapshot are one observation")
}

func TestRacingObservationsNeverSkipACount(t *testing.T) {
	s := newStore(t)
	var mu sync.Mutex
	seen := map[int64]bool{}
	everyone(t, s, func(ctx context.Context, s Store, actor int) error {
		count, err := s.Observe(ctx, danger(start.Add(time.Duration(actor)*time.Second)), fmt.Sprint(actor), start, time.Minute)
		if err != nil {
			return nil //nolint:nilerr // a newer snapshot was faster
		}
		mu.Lock()
		defer mu.Unlock()
		if seen[count] {
			return fmt.Errorf("count %d was handed out twice", count)
		}
		seen[count] = true
		return nil
	})
	for count := int64(1); count <= int64(len(seen)); count++ {
		require.True(t, seen[count], "count %d is missing of %d", count, len(seen))
	}
	require.NotEmpty(t, seen)
}
