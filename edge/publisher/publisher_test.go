package publisher_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"millrace/edge/outbox"
	"millrace/edge/publisher"
)

func ids(n int) []string {
	list := make([]string, n)
	for i := range list {
		list[i] = fmt.Sprintf("m%04d", i)
	}
	return list
}

func TestMessagesAreStampedSentInOrderAndDeletedAfterTheirConfirmation(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSite(t)
		s.Now = func() time.Time { return time.Date(2026, 11, 30, 12, 0, 8, 700, time.UTC) }
		s.put("c", "a", "b")
		require.Equal(t, publisher.Result{Published: 3}, s.once())
		require.Equal(t, []string{"c", "a", "b"}, s.broker.messages())
		require.Equal(t, "aegis/factory-b/factory_state", s.broker.topics[0])
		require.Empty(t, s.waiting())

		var got map[string]any
		require.NoError(t, json.Unmarshal(s.broker.bodies["a"], &got))
		require.Equal(t, "2026-11-30T12:00:08Z", got["published_at"])
		require.Equal(t, "publisher-1", got["data_plane_instance_id"])
	})
}

func TestNoFileIsDeletedBeforeItsConfirmation(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSite(t)
		s.broker.latency = 5 * time.Second
		s.put(ids(3)...)
		done := make(chan publisher.Result)
		go func() { done <- s.once() }()
		time.Sleep(4 * time.Second)
		require.Len(t, s.waiting(), 3)
		require.Equal(t, 3, (<-done).Published)
	})
}

func TestAtMostAWindowOfMessagesIsUnconfirmed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSite(t)
		s.put(ids(100)...)
		start := time.Now()
		require.Equal(t, publisher.Result{Published: 100}, s.once())
		require.Equal(t, s.Config.Window, s.broker.widest)
		require.Equal(t, ids(100), s.broker.messages())
		require.Equal(t, 100/20*s.broker.latency, time.Since(start), "pipelined")
	})
}

func TestABacklogIsWalkedInChunks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSite(t)
		s.Config.Chunk = 7
		s.put(ids(100)...)
		require.Equal(t, publisher.Result{Published: 100}, s.once())
		require.Equal(t, ids(100), s.broker.messages())
	})
}

func TestTheRateIsBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSite(t)
		s.Config.Rate = 10
		s.Publisher = publisher.New(s.Config, s.dir, s.broker, s.Log)
		s.put(ids(31)...)
		start := time.Now()
		s.once()
		require.Equal(t, 3*time.Second+s.broker.latency, time.Since(start))
	})
}

func TestWhatCanNeverBePublishedIsQuarantinedAndTheRestGoesOn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSite(t)
		without := func(key string) []byte {
			message := envelope("x")
			delete(message, key)
			body, err := json.Marshal(message)
			require.NoError(t, err)
			return body
		}
		with := func(key string, value any) []byte {
			message := envelope("x")
			message[key] = value
			body, err := json.Marshal(message)
			require.NoError(t, err)
			return body
		}
		broken := map[string][]byte{
			"empty": nil, "no-json": []byte("{"), "a-list": []byte("[]"), "no-key": without("environment_type"),
			"no-source": with("source_type", "weather"), "no-factory": with("factory_id", ""), "no-id": with("message_id", ""),
			"no-payload": with("payload", "text"), "topic-escape": with("factory_id", "factory-a/jobs"),
			"huge": with("payload", map[string]any{"pad": strings.Repeat("x", 128*1024)}),
		}
		for name, body := range broken {
			s.putRaw(name+".json", body)
		}
		s.put("good")
		require.Equal(t, publisher.Result{Published: 1, Quarantined: len(broken)}, s.once())
		require.Len(t, s.quarantined(), len(broken))
		require.Equal(t, []string{"good"}, s.broker.messages())
		require.Empty(t, s.waiting())
	})
}

func TestABodyThatStampingMakesTooLongIsQuarantined(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSite(t)
		message := envelope("x")
		empty, err := json.Marshal(message)
		require.NoError(t, err)
		message["schema_version"] = strings.Repeat("0", 128*1024-len(empty))
		body, err := json.Marshal(message)
		require.NoError(t, err)
		s.putRaw("long.json", body)
		require.Equal(t, publisher.Result{Quarantined: 1}, s.once())
		require.Empty(t, s.broker.messages())
	})
}

func TestAnUnconfirmedMessageStaysAndTheNextGoOn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSite(t)
		s.broker.judge = func(id string) verdict {
			if id == "m0000" {
				return ignore
			}
			return confirm
		}
		s.put(ids(50)...)
		require.Equal(t, publisher.Result{Published: 49, Failed: 1}, s.once())
		require.Equal(t, []string{"m0000"}, s.waiting())
		require.Equal(t, 3, s.broker.connects, "a connection with an overdue confirmation is given up")
	})
}

func TestAMessageThatCostsTheConnectionBlocksNobody(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSite(t)
		s.broker.judge = func(id string) verdict {
			if id == "m0003" || id == "m0033" {
				return hangUp
			}
			return confirm
		}
		s.put(ids(60)...)
		require.Equal(t, publisher.Result{Published: 58, Failed: 2}, s.once())
		require.Equal(t, []string{"m0003", "m0033"}, s.waiting())

		connects := s.broker.connects
		require.Equal(t, publisher.Result{}, s.once(), "held back")
		require.Equal(t, connects, s.broker.connects)

		s.put("new")
		time.Sleep(s.Config.Backoff)
		require.Equal(t, publisher.Result{Published: 1, Failed: 1}, s.once(), "one hopeless message a pass")

		s.broker.judge = func(string) verdict { return confirm }
		time.Sleep(s.Config.MaxBackoff)
		require.Equal(t, publisher.Result{Published: 2}, s.once(), "the policy was repaired")
		require.Empty(t, s.waiting())
	})
}

// TestManyRefusedMessagesAtTheHeadOfTheQueueAreGotPast has more of them than
// attempts in a row that a pass makes.
func TestManyRefusedMessagesAtTheHeadOfTheQueueAreGotPast(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSite(t)
		s.broker.judge = func(id string) verdict {
			if id < "m0040" {
				return hangUp
			}
			return confirm
		}
		s.put(ids(50)...)
		ctx, stop := context.WithTimeout(t.Context(), 20*time.Minute)
		defer stop()
		s.Loop(ctx)
		require.Equal(t, ids(50)[:40], s.waiting())
	})
}

func TestABrokerThatRefusesEverythingEndsThePass(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSite(t)
		s.broker.judge = func(string) verdict { return hangUp }
		s.put(ids(50)...)
		result, err := s.Once(t.Context())
		require.ErrorContains(t, err, "3 messages in a row were not confirmed")
		require.Equal(t, publisher.Result{Failed: 20}, result)
		require.Len(t, s.waiting(), 50)
	})
}

func TestAfterAnOutageEverythingArrives(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSite(t)
		var healthy atomic.Bool
		s.broker.judge = func(string) verdict {
			if healthy.Load() {
				return confirm
			}
			return ignore
		}
		s.put(ids(200)...)
		ctx, stop := context.WithCancel(t.Context())
		done := make(chan struct{})
		go func() { s.Loop(ctx); close(done) }()
		time.Sleep(10 * time.Minute)
		s.broker.setOffline(true)
		time.Sleep(10 * time.Minute)
		require.Len(t, s.waiting(), 200)
		healthy.Store(true)
		s.broker.setOffline(false)
		time.Sleep(3 * time.Minute)
		require.Empty(t, s.waiting())
		stop()
		<-done
	})
}

func TestWithoutAConnectionThePassFailsAndNothingIsLost(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSite(t)
		s.broker.setOffline(true)
		s.put(ids(5)...)
		result, err := s.Once(t.Context())
		require.ErrorIs(t, err, errOffline)
		require.Equal(t, publisher.Result{Failed: 1}, result)
		require.Len(t, s.waiting(), 5)
	})
}

func TestAnEmptyOutboxNeedsNoConnection(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSite(t)
		s.broker.setOffline(true)
		require.Equal(t, publisher.Result{}, s.once())
	})
}

func TestLoopDelaysDoubleWhileNothingIsPublished(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSite(t)
		s.broker.latency = 0
		start := time.Now()
		var passes []time.Duration
		s.Observe = func(publisher.Result) {
			passes = append(passes, time.Since(start))
			if len(passes) == 6 {
				s.put("late")
			}
		}
		ctx, stop := context.WithTimeout(t.Context(), 260*time.Second)
		defer stop()
		s.Loop(ctx)
		seconds := func(list ...int) (d []time.Duration) {
			for _, n := range list {
				d = append(d, time.Duration(n)*time.Second)
			}
			return d
		}
		// 10, 20, 40, 60, 60, 60 s apart; the seventh pass publishes: 5 s, then 10 s.
		require.Equal(t, seconds(0, 10, 30, 70, 130, 190, 250, 255), passes)
	})
}

func TestFailedPassesDoubleTheDelayToo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSite(t)
		s.put("m")
		s.broker.setOffline(true)
		start := time.Now()
		var last time.Duration
		passes := 0
		s.Observe = func(publisher.Result) { passes++; last = time.Since(start) }
		ctx, stop := context.WithTimeout(t.Context(), 71*time.Second)
		defer stop()
		s.Loop(ctx)
		require.Equal(t, 4, passes)
		require.Equal(t, 70*time.Second, last)
	})
}

func TestStoppingFinishesWhatIsOnItsWay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSite(t)
		s.broker.latency = 2 * time.Second
		s.put(ids(100)...)
		ctx, stop := context.WithCancel(t.Context())
		done := make(chan struct{})
		go func() { s.Loop(ctx); close(done) }()
		time.Sleep(time.Second)
		stop()
		<-done
		sent := s.broker.messages()
		require.NotEmpty(t, sent)
		require.Less(t, len(sent), 30)
		require.Len(t, s.waiting(), 100-len(sent), "every message sent was confirmed and deleted")
		require.False(t, s.broker.up)
	})
}

func TestAPausedPublisherLeavesTheOutboxAlone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSite(t)
		var paused atomic.Bool
		paused.Store(true)
		s.Paused = paused.Load
		s.put(ids(3)...)
		ctx, stop := context.WithCancel(t.Context())
		done := make(chan struct{})
		go func() { s.Loop(ctx); close(done) }()
		time.Sleep(time.Hour)
		synctest.Wait()
		require.Empty(t, s.broker.messages())
		paused.Store(false)
		time.Sleep(2 * time.Second)
		require.Empty(t, s.waiting())
		stop()
		<-done
	})
}

// flaky is an outbox some of whose operations fail.
type flaky struct {
	*outbox.Dir

	readError, removeError error
}

func (f *flaky) Read(name string, limit int64) ([]byte, error) {
	if f.readError != nil {
		return nil, f.readError
	}
	return f.Dir.Read(name, limit)
}

func (f *flaky) Remove(name string) error {
	if f.removeError != nil {
		return f.removeError
	}
	return f.Dir.Remove(name)
}

func TestAMessageThatCannotBeDeletedIsNotSentAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSite(t)
		box := &flaky{Dir: s.dir, removeError: errors.New("read-only file system")}
		s.Outbox = box
		s.put("m")
		require.Equal(t, publisher.Result{Published: 1, Failed: 1}, s.once())
		time.Sleep(s.Config.Backoff)
		require.Equal(t, publisher.Result{Failed: 1}, s.once())
		box.removeError = nil
		time.Sleep(s.Config.MaxBackoff)
		require.Equal(t, publisher.Result{}, s.once())
		require.Empty(t, s.waiting())
		require.Equal(t, []string{"m"}, s.broker.messages())
	})
}

func TestUnreadableFilesAreQuarantinedUnlessTheMachineIsExhausted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSite(t)
		box := &flaky{Dir: s.dir, readError: &fs.PathError{Op: "open", Err: syscall.EMFILE}}
		s.Outbox = box
		s.put("m")
		require.Equal(t, publisher.Result{Failed: 1}, s.once())
		require.Equal(t, []string{"m"}, s.waiting())
		box.readError = &fs.PathError{Op: "open", Err: fs.ErrPermission}
		require.Equal(t, publisher.Result{Quarantined: 1}, s.once())
		require.Equal(t, []string{"m"}, s.quarantined())
		box.readError = &fs.PathError{Op: "open", Err: fs.ErrNotExist}
		s.put("gone")
		require.Equal(t, publisher.Result{}, s.once(), "someone else deleted it")
	})
}

func TestACrashBeforeTheDeletionSendsTheSameMessageIDAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSite(t)
		s.put("m")
		before, err := os.ReadFile(filepath.Join(s.dir.Root(), "m.json"))
		require.NoError(t, err)
		s.Outbox = &flaky{Dir: s.dir, removeError: errors.New("killed")}
		s.once()
		after, err := os.ReadFile(filepath.Join(s.dir.Root(), "m.json"))
		require.NoError(t, err)
		require.Equal(t, before, after, "the file is not rewritten")

		restarted := publisher.New(s.Config, s.dir, s.broker, s.Log)
		_, err = restarted.Once(t.Context())
		require.NoError(t, err)
		require.Equal(t, []string{"m", "m"}, s.broker.messages())
		require.Empty(t, s.waiting())
	})
}
