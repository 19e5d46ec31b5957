package alert

import (
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"millrace/domain/alert"
)

var keyOfA = danger("a").Key()

func raisedStill() CheckResult { return CheckResult{Raised: []alert.Key{keyOfA}, Readable: true} }

func TestTheEndOfAnAlertIsAnnouncedOnce(t *testing.T) {
	w := newWorld(t)
	w.watch = true
	w.onSend = func(int, SendRequest) (SendResult, error) { return SendResult{Incident: Incident{"C", "1"}}, nil }
	w.onCheck = func(look int) (CheckResult, error) {
		if look <= 3 {
			return raisedStill(), nil
		}
		return CheckResult{Readable: true}, nil
	}
	w.raise(0, danger("a"))
	w.runFor(time.Hour)
	require.Equal(t, []string{"reserve a", "send a at 0s", "settle a sent", "recover a at 5m0s", "log a condition_over x1"}, w.calls)
	require.Equal(t, 5, w.looks, "nothing is looked at once all is over")
	require.Equal(t, Incident{"C", "1"}, w.recovered[0].Incident)
	require.Equal(t, alert.Recovered, w.logged[0].Outcome)
	require.Empty(t, w.status().Open)
}

func TestAFlappingAlertIsNotAnnouncedAsOver(t *testing.T) {
	w := newWorld(t)
	w.watch = true
	w.onCheck = func(look int) (CheckResult, error) {
		if look%2 == 0 {
			return raisedStill(), nil
		}
		return CheckResult{Readable: true}, nil
	}
	w.raise(0, danger("a"))
	w.runFor(time.Hour)
	require.Empty(t, w.recovered)
	require.GreaterOrEqual(t, w.looks, 59)
}

func TestWhatCannotBeReadIsNoRecovery(t *testing.T) {
	w := newWorld(t)
	w.watch = true
	w.onCheck = func(look int) (CheckResult, error) {
		if look%2 == 0 {
			return CheckResult{}, nil
		}
		return CheckResult{}, errors.New("throttled")
	}
	w.raise(0, danger("a"))
	w.runFor(30 * time.Minute)
	require.Empty(t, w.recovered)
	require.Len(t, w.status().Open, 1)
}

func TestAFailedAlertIsNotWatched(t *testing.T) {
	w := newWorld(t)
	w.watch = true
	w.onSend = func(int, SendRequest) (SendResult, error) { return SendResult{}, ambiguous() }
	w.onReserve = func(req ReserveRequest) (ReserveResult, error) {
		return ReserveResult{Verdict: Verdict{Go: req.Alert.Reason == "a", Why: alert.WhyCooldown}}, nil
	}
	w.raise(0, danger("b"))
	w.runFor(10 * time.Minute)
	require.Zero(t, w.looks)
}
