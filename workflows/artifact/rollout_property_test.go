package artifact

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"millrace/domain/artifact"
	"millrace/domain/exact"
)

// trouble is what can go wrong at a factory; most of the time nothing does.
var trouble = map[string]func(*plant){
	"refused": func(p *plant) { p.refused = true },
	"fails":   func(p *plant) { p.fails = true },
	"silent":  func(p *plant) { p.silent = true },
	"sick":    func(p *plant) { p.sick = "30" },
	"stale":   func(p *plant) { p.stale = true },
	"unknown": func(p *plant) { p.score = "" },
}

// ordeal is a rollout over factories of which some have troubles.
type ordeal struct {
	args    artifact.JobArgs
	trouble map[string]string
	undos   map[string][2]int
}

func drawOrdeal(t *rapid.T) ordeal {
	o := ordeal{trouble: map[string]string{}, undos: map[string][2]int{}}
	kinds := slices.Sorted(func(yield func(string) bool) {
		for kind := range trouble {
			if !yield(kind) {
				return
			}
		}
	})
	for n := range rapid.IntRange(1, 9).Draw(t, "factories") {
		id := fmt.Sprintf("plant-%d", n)
		o.args.Targets = append(o.args.Targets, id)
		if rapid.IntRange(0, 4).Draw(t, "lucky") == 0 {
			o.trouble[id] = rapid.SampledFrom(kinds).Draw(t, "trouble")
		}
		if rapid.IntRange(0, 2).Draw(t, "easy") == 0 {
			o.undos[id] = [2]int{rapid.IntRange(0, 6).Draw(t, "broken"), rapid.IntRange(0, 2).Draw(t, "quiet")}
		}
	}
	for left := len(o.args.Targets); left > 0; {
		size := rapid.IntRange(1, left).Draw(t, "size")
		o.args.Waves, left = append(o.args.Waves, artifact.Wave(size)), left-size
	}
	o.args.Gate = artifact.Gate{MinScore: exact.FromInt(50), MaxDrop: exact.FromInt(10), Within: artifact.Duration(time.Minute)}
	return o
}

// TestWhateverHappensEveryChangeIsUndoneOrNamed goes through random outcomes.
func TestWhateverHappensEveryChangeIsUndoneOrNamed(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		o := drawOrdeal(rt)
		s := newRolloutStory(t, o.args.Targets...)
		for id, kind := range o.trouble {
			trouble[kind](s.plants.byID[id])
		}
		for id, undos := range o.undos {
			s.plants.byID[id].brokenUndos, s.plants.byID[id].quietUndos = undos[0], undos[1]
		}
		var status Status
		s.at(20*24*time.Hour, func() { status = s.status() })
		require.NoError(rt, s.tell(jobRequest(o.args)))
		require.NotNil(rt, status.Rollout)
		o.check(rt, s, status)
	})
}

func (o ordeal) check(t *rapid.T, s *story, status Status) {
	changed, undone := o.order(t, s, status)
	failedIn := 0
	for _, f := range status.Rollout.Factories {
		begun := f.State != FactoryWaiting
		require.False(t, begun && failedIn != 0 && f.Wave > failedIn, "%s was begun in wave %d after a failure in wave %d", f.FactoryID, f.Wave, failedIn)
		if begun && f.State != FactoryPassed && failedIn == 0 {
			failedIn = f.Wave
		}
		require.Equal(t, o.trouble[f.FactoryID] == "" || !begun, f.State == FactoryPassed || !begun, "%s: %s", f.FactoryID, f.State)
		named := strings.Contains(s.reasonOf(artifact.CompensationFailed), f.FactoryID)
		switch wasUndone := f.Undo != nil && f.Undo.State == undoDone; {
		case f.Change == 0:
			require.False(t, slices.Contains(undone, f.FactoryID), "%s was never changed", f.FactoryID)
			require.False(t, named, "%s was never changed", f.FactoryID)
		case failedIn != 0 || status.State != artifact.Executed:
			require.True(t, wasUndone != named, "%s is undone, or else named", f.FactoryID)
		}
	}
	slices.Reverse(changed)
	switch {
	case failedIn == 0:
		require.Equal(t, artifact.Executed, status.State)
		require.Empty(t, undone)
	case len(changed) == 0:
		require.Equal(t, artifact.Failed, status.State)
	default:
		require.Contains(t, []artifact.State{artifact.Compensated, artifact.CompensationFailed}, status.State)
		require.Equal(t, changed, undone, "undone in reverse order")
	}
	require.Empty(t, s.plants.owners, "every lock is given free")
	require.LessOrEqual(t, s.plants.most, rolloutParallel)
}

// order are the factories in the order of their changes and of their first undos;
// what was sent is what the status tells.
func (o ordeal) order(t *rapid.T, s *story, status Status) (changed, undone []string) {
	factories := slices.Clone(status.Rollout.Factories)
	slices.SortFunc(factories, func(a, b *FactoryRun) int { return a.Change - b.Change })
	for _, f := range factories {
		require.Equal(t, f.Change > 0, slices.Contains(s.plants.jobs(), "primary "+f.FactoryID), f.FactoryID)
		if f.Change > 0 {
			changed = append(changed, f.FactoryID)
		}
	}
	for _, sent := range s.plants.jobs() {
		if id, ok := strings.CutPrefix(sent, "rollback "); ok && !slices.Contains(undone, id) {
			undone = append(undone, id)
		}
	}
	return changed, undone
}
