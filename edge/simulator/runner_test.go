package simulator

import (
	"context"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

// box keeps what a runner writes and when.
type box struct {
	ids  []string
	fail map[string]error
}

func (b *box) Write(id string, _ []byte) (string, bool, error) {
	if err := b.fail[id]; err != nil {
		return "", false, err
	}
	b.ids = append(b.ids, id)
	return id, true, nil
}

func newRunner(t *testing.T, factoryID string) (*Runner, *box) {
	t.Helper()
	g, err := NewGenerator(options(factoryID))
	require.NoError(t, err)
	b := &box{fail: map[string]error{}}
	return NewRunner(g, b, slog.New(slog.DiscardHandler)), b
}

func TestRunWritesMessagesAsTheirTimeComes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, b := newRunner(t, "factory-a")
		ctx, stop := context.WithTimeout(t.Context(), time.Minute-time.Second)
		defer stop()
		start := time.Now().UTC()
		r.Run(ctx)
		require.Equal(t, 20+3, r.Written())
		require.Equal(t, "factory-a:factory_state:worker2:"+start.Format(stampSeconds), b.ids[0])
		require.Equal(t, "factory-a:factory_state:worker2:"+start.Add(57*time.Second).Format(stampSeconds), b.ids[len(b.ids)-1])
	})
}

func TestRunAndFillWriteTheSame(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		live, liveBox := newRunner(t, "factory-c")
		start := time.Now()
		ctx, stop := context.WithTimeout(t.Context(), time.Hour-time.Second)
		defer stop()
		live.Run(ctx)
		filled, filledBox := newRunner(t, "factory-c")
		filled.Fill(t.Context(), start, time.Hour)
		require.Equal(t, liveBox.ids, filledBox.ids)
	})
}

func TestAMessageThatCannotBeWrittenEndsNothing(t *testing.T) {
	r, b := newRunner(t, "factory-a")
	b.fail["factory-a:factory_state:worker2:2026-11-30T00:00:03Z"] = errors.New("disk full")
	r.Fill(t.Context(), dayStart, 10*time.Second)
	require.Equal(t, 4-1+1, r.Written())
}

func TestADropLosesDataAndKeepsTheBeat(t *testing.T) {
	r, b := newRunner(t, "factory-a")
	produced := 0
	r.Dropping = func() bool { produced++; return produced == 2 || produced == 3 }
	r.Fill(t.Context(), dayStart, 13*time.Second)
	require.Equal(t, []string{
		"factory-a:factory_state:worker2:2026-11-30T00:00:00Z",
		"factory-a:infra_state:cluster:2026-11-30T00:00:00Z",
		"factory-a:factory_state:worker2:2026-11-30T00:00:09Z",
		"factory-a:factory_state:worker2:2026-11-30T00:00:12Z",
	}, b.ids)
}

func TestSequenceIsStoredBeforeItIsUsed(t *testing.T) {
	r, b := newRunner(t, "factory-b")
	file := NewSequenceFile(filepath.Join(t.TempDir(), "factory-b-publish-sequence"))
	r.Store = func(n int64) error {
		used := 0
		for _, id := range b.ids {
			if strings.Contains(id, ":infra_state:") {
				used++
			}
		}
		require.EqualValues(t, used+1, n)
		return file.Store(n)
	}
	r.Fill(t.Context(), dayStart, 41*time.Second)
	require.Len(t, b.ids, 14+3)
	n, err := file.Load()
	require.NoError(t, err)
	require.EqualValues(t, 3, n)
}

func TestSequenceFile(t *testing.T) {
	dir := t.TempDir()
	file := NewSequenceFile(filepath.Join(dir, "sequence"))
	n, err := file.Load()
	require.NoError(t, err)
	require.Zero(t, n)
	require.NoError(t, file.Store(12))
	require.NoError(t, file.Store(13))
	n, err = file.Load()
	require.NoError(t, err)
	require.EqualValues(t, 13, n)
	entries, err := os.ReadDir(dir)
	require.NoError(t, err)
	require.Len(t, entries, 1, "no temporary file is left")
	for _, broken := range []string{"", "x", "-1", "1.5"} {
		require.NoError(t, os.WriteFile(filepath.Join(dir, "sequence"), []byte(broken), 0o600))
		_, err := file.Load()
		require.ErrorContains(t, err, "must hold a whole number")
	}
}

func TestDrillFileSwitchesDrills(t *testing.T) {
	dir := t.TempDir()
	file := NewDrillFile(dir)
	for _, d := range []Drill{DrillNone, DrillDrop, DrillBacklog, DrillNone, DrillNone} {
		require.NoError(t, file.Set(d))
		got, err := file.Drill()
		require.NoError(t, err)
		require.Equal(t, d, got)
	}
	require.NoError(t, os.WriteFile(filepath.Join(dir, ".drill"), []byte(" backlog \n"), 0o600))
	got, err := file.Drill()
	require.NoError(t, err)
	require.Equal(t, DrillBacklog, got)
	require.NoError(t, os.WriteFile(filepath.Join(dir, ".drill"), []byte("earthquake"), 0o600))
	got, err = file.Drill()
	require.ErrorContains(t, err, "must be none, drop or backlog")
	require.Equal(t, DrillNone, got)
}

func TestTimestampsFollowTheSystemClockOnlyWhenItWasSet(t *testing.T) {
	wall := wallClock{start: dayStart}
	for _, step := range []struct {
		elapsed, system, want time.Duration
	}{
		{0, 0, 0},
		{10 * time.Second, 10*time.Second - 300*time.Millisecond, 10 * time.Second},
		{20 * time.Second, time.Hour, time.Hour},
		{30 * time.Second, time.Hour + 10*time.Second + 5*time.Millisecond, time.Hour + 10*time.Second},
		{40 * time.Second, 40 * time.Second, 40 * time.Second},
	} {
		got := wall.at(step.elapsed, dayStart.Add(step.system))
		require.Equal(t, step.want, got.Sub(dayStart), "elapsed %s", step.elapsed)
	}
}

func TestCentiReadsAtMostTwoDecimals(t *testing.T) {
	for text, want := range map[string]Centi{"24.5": 2450, "-0.05": -5, "0": 0, "1013.07": 101307, "1e2": 10000} {
		var c Centi
		require.NoError(t, c.UnmarshalText([]byte(text)))
		require.Equal(t, want, c)
	}
	for _, text := range []string{"", "x", "1.005", "1e300", "NaN"} {
		var c Centi
		require.Error(t, c.UnmarshalText([]byte(text)), text)
	}
}
