package artifactcmd

import (
	"bytes"
	"context"
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"millrace/domain/artifact"
	"millrace/domain/exact"
	workflows "millrace/workflows/artifact"
)

func TestRolloutFlagsBecomeArgs(t *testing.T) {
	for name, c := range map[string]struct {
		flags RolloutFlags
		want  string
	}{
		"all of them": {
			RolloutFlags{Target: []string{"b", "a", "c"}, Wave: []string{"1", "rest"}, Pause: time.Minute, MinScore: "84.50", MaxDrop: "0", Within: 30 * time.Second},
			`{"targets":["b","a","c"],"waves":[1,"rest"],"pause":"1m0s","gate":{"min_score":84.5,"max_drop":0,"within":"30s"}}`,
		},
		"the first alone by default": {
			RolloutFlags{Target: []string{"a", "b"}},
			`{"targets":["a","b"],"waves":[1,"rest"],"pause":"0s","gate":{"min_score":50,"max_drop":10,"within":"10m0s"}}`,
		},
		"one has one wave": {
			RolloutFlags{Target: []string{"a"}},
			`{"targets":["a"],"waves":[1],"pause":"0s","gate":{"min_score":50,"max_drop":10,"within":"10m0s"}}`,
		},
	} {
		body, err := c.flags.args(artifact.IoTJob, "{}")
		require.NoError(t, err, name)
		args, err := artifact.Spec{Kind: artifact.IoTJob, Args: body}.JobArgs()
		require.NoError(t, err, name)
		got, err := json.Marshal(args)
		require.NoError(t, err, name)
		require.JSONEq(t, c.want, string(got), name)
	}
	body, err := RolloutFlags{}.args(artifact.Script, `{"args":["x"]}`)
	require.NoError(t, err)
	require.JSONEq(t, `{"args":["x"]}`, string(body))
}

func TestBadRolloutFlagsAreNamed(t *testing.T) {
	one := RolloutFlags{Target: []string{"a"}}
	for want, try := range map[string]func() error{
		"--target":       func() error { _, err := one.args(artifact.Script, "{}"); return err },
		"--args":         func() error { _, err := one.args(artifact.IoTJob, `{"targets":["a"]}`); return err },
		"--wave":         func() error { _, err := RolloutFlags{Wave: []string{"all"}}.args(artifact.IoTJob, "{}"); return err },
		"gate.min_score": func() error { _, err := RolloutFlags{MinScore: "good"}.args(artifact.IoTJob, "{}"); return err },
		"gate.max_drop":  func() error { _, err := RolloutFlags{MaxDrop: "NaN"}.args(artifact.IoTJob, "{}"); return err },
	} {
		require.ErrorContains(t, try(), want)
	}
}

func TestAJobIsSubmittedWithItsWaves(t *testing.T) {
	s := newShop(t)
	submit := SubmitCommand{
		ID: "tune", File: s.file("tune.sh", "#!/bin/sh\n"), Kind: "iot-job", Args: "{}", Policy: "{}", Approver: []string{"user:kim"},
		Actor: Actor{Actor: "user:lee"}, Timeout: time.Minute, RolloutFlags: RolloutFlags{Target: []string{"plant-1", "plant-2"}},
	}
	r, err := submit.request(t.Context(), s.store)
	require.NoError(t, err)
	args, err := r.Spec.JobArgs()
	require.NoError(t, err)
	require.Equal(t, [][]string{{"plant-1"}, {"plant-2"}}, args.Plan())

	submit.Wave = []string{"3"}
	_, err = submit.request(t.Context(), s.store)
	require.ErrorContains(t, err, "spec.args.waves have 3 factories, but there are 2 targets")
	submit.Wave, submit.File = nil, s.file("big.sh", strings.Repeat("#", artifact.MaxJobContent+1))
	_, err = submit.request(t.Context(), s.store)
	require.ErrorContains(t, err, "must be at most 64 KiB")
}

func TestWatchingTellsWhatIsNewOfEachFactory(t *testing.T) {
	rollout := &workflows.Rollout{Waves: 2, Factories: []*workflows.FactoryRun{
		{FactoryID: "plant-1", Wave: 1, State: workflows.FactoryJudging},
		{FactoryID: "plant-2", Wave: 2, State: workflows.FactoryWaiting},
	}}
	var seen bytes.Buffer
	w := watcher{out: &seen, told: map[string]string{}, rollout: func(context.Context) *workflows.Rollout { return rollout }}
	require.NoError(t, w.progress(t.Context()))
	require.NoError(t, w.progress(t.Context()))
	first := rollout.Factories[0]
	first.State, first.After, first.Detail = workflows.FactoryFailed, new(exact.FromInt(40)), "the score is 40, below 50"
	require.NoError(t, w.progress(t.Context()))
	first.Undo = &workflows.FactoryUndo{State: "running", Attempts: 1}
	require.NoError(t, w.progress(t.Context()))
	require.Equal(t, []string{
		"wave 1 of 2  plant-1                  judging",
		"wave 1 of 2  plant-1                  failed: the score is 40, below 50",
		"wave 1 of 2  plant-1                  failed: the score is 40, below 50; undo running, attempt 1",
	}, strings.Split(strings.TrimSpace(seen.String()), "\n"))
}
