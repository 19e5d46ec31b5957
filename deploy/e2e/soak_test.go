//go:build soak

package e2e

import (
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// TestSoak floods the broker from many factories while worker, broker, stand-ins
// and Temporal are killed one after the other. Afterwards every message that was
// acknowledged is there: published = stored + quarantined, duplicates aside.
func TestSoak(t *testing.T) {
	s := newStack(t)
	devices := make([]*device, 10)
	for n := range devices {
		devices[n] = newDevice(t, factoryID(n))
	}
	var killing sync.WaitGroup
	killing.Go(func() { s.killEverything() })
	published := s.floodFor(devices, 60, 3*time.Minute)
	killing.Wait()

	acked := acknowledged(devices)
	t.Logf("published %d, acknowledged %d", published, len(acked))
	require.Greater(t, len(acked), published/2, "the flood went through")
	s.reconcileUntilComplete(devices, acked)

	for _, d := range devices {
		latest, err := s.store.Latest(t.Context(), d.factory)
		require.NoError(t, err)
		newest := slices.Max(slices.Collect(maps.Keys(d.acked)))
		require.GreaterOrEqual(t, latest.FactoryState.MessageID, newest, "nothing older replaced anything newer")
	}
}

// killEverything is kill -9 of one part after the other.
func (s *stack) killEverything() {
	for round := range 2 {
		for _, part := range []string{"worker", "iot", "dynamodb", "s3", "sqs", "temporal"} {
			time.Sleep(12 * time.Second)
			s.t.Logf("round %d: kill -9 %s", round, part)
			if part == "worker" {
				s.worker.stop(syscall.SIGKILL)
				s.worker.start()
				continue
			}
			control(s.t, "/kill/"+part, nil)
		}
	}
}

// floodFor publishes like flood, plus one body in fifty that is no message: these
// must all be quarantined.
func (s *stack) floodFor(devices []*device, perSecond int, duration time.Duration) int {
	var acks sync.WaitGroup
	published := 0
	tick := time.NewTicker(time.Second / time.Duration(perSecond))
	defer tick.Stop()
	for end := time.Now().Add(duration); time.Now().Before(end); published++ {
		d := devices[published%len(devices)]
		id, body := d.message(time.Now())
		if published%50 == 49 {
			body = strings.Replace(body, `"schema_version":"0.1.0"`, `"schema_version":7`, 1)
		}
		d.publish(id, body, &acks)
		<-tick.C
	}
	acks.Wait()
	return published
}

func acknowledged(devices []*device) map[string]bool {
	acked := make(map[string]bool)
	for _, d := range devices {
		maps.Copy(acked, d.acked)
	}
	return acked
}

// reconcileUntilComplete has the reconciler run until every acknowledged message
// is stored or quarantined.
func (s *stack) reconcileUntilComplete(devices []*device, acked map[string]bool) {
	s.t.Helper()
	deadline := time.Now().Add(15 * time.Minute)
	for {
		stored, quarantined := s.leaves(devices, "processed/%s/factory_state/"), s.leaves(devices, "quarantine/%s/factory_state/")
		var missing []string
		for id := range acked {
			if !stored[id] && !quarantined[id] {
				missing = append(missing, id)
			}
		}
		s.t.Logf("stored %d, quarantined %d, missing %d", len(stored), len(quarantined), len(missing))
		if len(missing) == 0 {
			require.NotEmpty(s.t, quarantined)
			s.requireOriginals(devices, acked)
			return
		}
		require.True(s.t, time.Now().Before(deadline), "missing: %v", missing[:min(5, len(missing))])
		s.awaitEmptyQueue(deadline)
		s.reconcile()
		time.Sleep(5 * time.Second)
	}
}

// requireOriginals: every acknowledged message has its original in raw/.
func (s *stack) requireOriginals(devices []*device, acked map[string]bool) {
	s.t.Helper()
	raw := s.leaves(devices, "raw/%s/factory_state/")
	for id := range acked {
		require.True(s.t, raw[id], "no original of %s", id)
	}
}

// awaitEmptyQueue waits until the consumer has worked off what it was given.
func (s *stack) awaitEmptyQueue(deadline time.Time) {
	s.t.Helper()
	require.Eventually(s.t, func() bool {
		depth, err := s.queue.Depth(s.t.Context())
		return err == nil && depth.Visible+depth.InFlight == 0
	}, time.Until(deadline), time.Second, "the queue is never empty")
}

// reconcile runs RawReconcile as an operator would, and waits for it.
func (s *stack) reconcile() {
	s.t.Helper()
	out := run(s.t, "temporal", "workflow", "execute", "--type", "RawReconcile", "--task-queue", "scheduled",
		"--workflow-id", "raw-reconcile/soak", "--input", `{"window_hours":2,"complete":true,"settle_seconds":5}`)
	s.t.Log(strings.TrimSpace(out))
}

func (s *stack) leaves(devices []*device, prefix string) map[string]bool {
	s.t.Helper()
	leaves := make(map[string]bool)
	for _, d := range devices {
		for object, err := range s.store.Bucket.List(s.t.Context(), fmt.Sprintf(prefix, d.factory), "") {
			require.NoError(s.t, err)
			leaves[strings.TrimSuffix(filepath.Base(object.Key), ".json")] = true
		}
	}
	return leaves
}
