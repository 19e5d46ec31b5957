package jobs

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"millrace/domain/artifact"
	"millrace/edge/simulator"
)

const adjust = `{"operation":"adjust","temperature_offset_c":"12.5"}`

func runID(n int) string { return fmt.Sprintf("01900000-0000-7000-8000-%012d", n) }

// broker keeps replies; it fails as long as it is told to.
type broker struct {
	mu      sync.Mutex
	down    bool
	replies []artifact.JobReply
}

func (b *broker) Publish(_ context.Context, topic string, body []byte) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.down {
		return errors.New("no route to the broker")
	}
	reply, err := artifact.ParseJobReply(topic, body, time.Now())
	if err == nil {
		b.replies = append(b.replies, reply)
	}
	return err
}

func (b *broker) set(down bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.down = down
}

// bench is a device in a bubble of virtual time, with its file.
type bench struct {
	*testing.T
	*broker
	path  string
	drill Drill
}

func newBench(t *testing.T) *bench {
	return &bench{T: t, broker: &broker{}, path: filepath.Join(t.TempDir(), "factory-a-jobs.json")}
}

// start switches the device on, as after a restart; stop switches it off.
func (b *bench) start() (d *Device, stop func()) {
	b.Helper()
	memory, err := OpenMemory(b.path)
	require.NoError(b, err)
	d = NewDevice("factory-a", memory, b.broker, slog.New(slog.DiscardHandler))
	d.Drill = func() Drill { return b.drill }
	ctx, cancel := context.WithCancel(b.Context())
	ended := make(chan struct{})
	go func() { defer close(ended); d.Run(ctx) }()
	return d, func() { cancel(); <-ended }
}

func job(n int, content string, change ...func(*artifact.JobDocument)) artifact.JobDocument {
	j := artifact.JobDocument{
		RunID: runID(n), ArtifactID: "fix", Version: 1, Role: artifact.Primary, FactoryID: "factory-a", Filename: "job.json",
		ContentHash: artifact.HashOf([]byte(content)), ContentBase64: base64.StdEncoding.EncodeToString([]byte(content)),
		TimeoutSeconds: 60, IssuedAt: time.Now().UTC(),
	}
	for _, c := range change {
		c(&j)
	}
	return j
}

func (b *bench) tell(d *Device, j artifact.JobDocument) {
	b.Helper()
	body, err := j.Encode()
	require.NoError(b, err)
	require.NoError(b, d.Take(artifact.JobTopic(d.FactoryID, j.RunID), body))
}

// after lets the device work for a while and gives what it answered so far.
func (b *bench) after(d time.Duration) []artifact.JobReply {
	time.Sleep(d)
	synctest.Wait()
	b.mu.Lock()
	defer b.mu.Unlock()
	return append([]artifact.JobReply(nil), b.replies...)
}

// bubble runs a test in virtual time.
func bubble(t *testing.T, test func(b *bench)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		// A bubble begins in 2000, before there was any device.
		time.Sleep(time.Until(time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC)))
		test(newBench(t))
	})
}

func TestAJobIsDoneOnceAndAnsweredAsOftenAsItComes(t *testing.T) {
	bubble(t, func(b *bench) {
		d, stop := b.start()
		b.tell(d, job(1, adjust))
		replies := b.after(0)
		require.Len(t, replies, 1)
		require.Equal(t, artifact.JobSucceeded, replies[0].Status)
		require.Contains(t, replies[0].Detail, "12.50")
		require.Equal(t, simulator.Adjustment{Temperature: 12_50}, d.Memory.Adjustment())

		b.tell(d, job(2, `{"operation":"reset"}`))
		require.Len(t, b.after(0), 2)
		require.Zero(t, d.Memory.Adjustment())

		time.Sleep(time.Second)
		b.tell(d, job(1, adjust))
		replies = b.after(0)
		require.Len(t, replies, 3)
		require.Equal(t, replies[0], replies[2], "the same reply")
		require.Zero(t, d.Memory.Adjustment(), "not done again")
		stop()

		d, stop = b.start()
		defer stop()
		b.tell(d, job(1, adjust))
		replies = b.after(0)
		require.Len(t, replies, 4)
		require.Equal(t, replies[0], replies[3], "nor after a restart")
		require.Zero(t, d.Memory.Adjustment())
	})
}

func TestWhatAJobDoes(t *testing.T) {
	for name, c := range map[string]struct {
		content  string
		status   artifact.JobStatus
		detail   string
		stdout   string
		adjusted simulator.Adjustment
	}{
		"adjust one":         {adjust, artifact.JobSucceeded, "12.50", "temperature 12.50 °C, humidity 1.00 %, pressure 0.00 hPa\n", simulator.Adjustment{Temperature: 12_50, Humidity: 1_00}},
		"adjust all":         {`{"operation":"adjust","temperature_offset_c":0,"humidity_offset_percent":"-2","pressure_offset_hpa":30.25}`, artifact.JobSucceeded, "30.25", "temperature 0.00 °C, humidity -2.00 %, pressure 30.25 hPa\n", simulator.Adjustment{Humidity: -2_00, Pressure: 30_25}},
		"reset":              {`{"operation":"reset"}`, artifact.JobSucceeded, "0.00", "temperature 0.00 °C, humidity 0.00 %, pressure 0.00 hPa\n", simulator.Adjustment{}},
		"echo":               {`{"operation":"echo","text":"hello"}`, artifact.JobSucceeded, "", "hello", simulator.Adjustment{Humidity: 1_00}},
		"fail":               {`{"operation":"fail"}`, artifact.JobFailed, "told to fail", "", simulator.Adjustment{Humidity: 1_00}},
		"unknown operation":  {`{"operation":"explode"}`, artifact.JobFailed, `operation "explode" must be adjust`, "", simulator.Adjustment{Humidity: 1_00}},
		"unknown field":      {`{"operation":"reset","now":true}`, artifact.JobFailed, `unknown field "now"`, "", simulator.Adjustment{Humidity: 1_00}},
		"no offset":          {`{"operation":"adjust"}`, artifact.JobFailed, "adjust needs", "", simulator.Adjustment{Humidity: 1_00}},
		"offset too great":   {`{"operation":"adjust","temperature_offset_c":"100.01"}`, artifact.JobFailed, "-100 to 100", "", simulator.Adjustment{Humidity: 1_00}},
		"offset no number":   {`{"operation":"adjust","temperature_offset_c":"hot"}`, artifact.JobFailed, "content", "", simulator.Adjustment{Humidity: 1_00}},
		"reset with more":    {`{"operation":"reset","text":"x"}`, artifact.JobFailed, "reset takes nothing", "", simulator.Adjustment{Humidity: 1_00}},
		"echo with offset":   {`{"operation":"echo","pressure_offset_hpa":1}`, artifact.JobFailed, "echo takes text only", "", simulator.Adjustment{Humidity: 1_00}},
		"adjust with a text": {`{"operation":"adjust","temperature_offset_c":1,"text":"x"}`, artifact.JobFailed, "nothing else", "", simulator.Adjustment{Humidity: 1_00}},
		"no JSON":            {`#!/bin/sh`, artifact.JobFailed, "must be a JSON object", "", simulator.Adjustment{Humidity: 1_00}},
		"two objects":        {`{"operation":"reset"}{}`, artifact.JobFailed, "one JSON object", "", simulator.Adjustment{Humidity: 1_00}},
		"nothing":            {``, artifact.JobFailed, "content", "", simulator.Adjustment{Humidity: 1_00}},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(b *bench) {
				d, stop := b.start()
				defer stop()
				b.tell(d, job(1, `{"operation":"adjust","humidity_offset_percent":"1"}`))
				b.after(0)
				b.tell(d, job(2, c.content))
				replies := b.after(0)
				require.Len(t, replies, 2)
				require.Equal(t, c.status, replies[1].Status)
				require.Contains(t, replies[1].Detail, c.detail)
				require.Equal(t, c.stdout, replies[1].Stdout)
				require.Equal(t, c.status == artifact.JobSucceeded, replies[1].ExitCode == 0)
				require.Equal(t, c.adjusted, d.Memory.Adjustment())
			})
		})
	}
}

func TestJobsThatAreNotDone(t *testing.T) {
	for name, c := range map[string]struct {
		change func(*artifact.JobDocument)
		detail string
	}{
		"other content":   {func(j *artifact.JobDocument) { j.ContentHash = artifact.HashOf([]byte("other")) }, "content_hash"},
		"late":            {func(j *artifact.JobDocument) { j.IssuedAt = j.IssuedAt.Add(-time.Minute) }, "after its time"},
		"no timeout":      {func(j *artifact.JobDocument) { j.TimeoutSeconds = 0 }, "timeout_seconds"},
		"another factory": {func(j *artifact.JobDocument) { j.FactoryID = "factory-b" }, "factory_id"},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(b *bench) {
				d, stop := b.start()
				defer stop()
				b.tell(d, job(1, adjust, c.change))
				replies := b.after(0)
				require.Len(t, replies, 1)
				require.Equal(t, artifact.JobFailed, replies[0].Status)
				require.Contains(t, replies[0].Detail, c.detail)
				require.Zero(t, d.Memory.Adjustment())
			})
		})
	}
}

func TestWhatIsNoJobOfOursIsIgnored(t *testing.T) {
	bubble(t, func(b *bench) {
		d, stop := b.start()
		defer stop()
		for _, topic := range []string{"aegis/factory-b/jobs/" + runID(1), "aegis/factory-a/jobs/1", "other"} {
			require.NoError(t, d.Take(topic, []byte("{}")))
		}
		require.Empty(t, b.after(time.Minute))
	})
}

func TestAReplyWaitsForTheBrokerOverARestart(t *testing.T) {
	bubble(t, func(b *bench) {
		b.set(true)
		d, stop := b.start()
		b.tell(d, job(1, adjust))
		require.Empty(t, b.after(time.Minute))
		stop()
		_, stop = b.start()
		defer stop()
		require.Empty(t, b.after(time.Minute))
		b.set(false)
		replies := b.after(2 * time.Second)
		require.Len(t, replies, 1)
		require.Equal(t, artifact.JobSucceeded, replies[0].Status)
		require.Len(t, b.after(time.Hour), 1)
	})
}

func TestARestartDuringAJobDoesNotDoItAgain(t *testing.T) {
	bubble(t, func(b *bench) {
		b.drill = Drill{Kind: DrillSlow, Delay: 30 * time.Second}
		d, stop := b.start()
		b.tell(d, job(1, adjust))
		b.tell(d, job(2, `{"operation":"echo","text":"x"}`))
		require.Empty(t, b.after(10*time.Second))
		stop()
		b.drill = Drill{}
		d, stop = b.start()
		defer stop()
		replies := b.after(time.Second)
		require.Len(t, replies, 2)
		require.Equal(t, artifact.JobFailed, replies[0].Status)
		require.Equal(t, -1, replies[0].ExitCode)
		require.Contains(t, replies[0].Detail, "not known")
		require.Zero(t, d.Memory.Adjustment())
		require.Equal(t, artifact.JobSucceeded, replies[1].Status, "what was only taken is done now")
		b.tell(d, job(1, adjust))
		require.Len(t, b.after(time.Second), 3)
		require.Zero(t, d.Memory.Adjustment())
	})
}

func TestDrillsHaveJobsGoWrong(t *testing.T) {
	for name, c := range map[string]struct {
		drill    string
		within   time.Duration
		replies  int
		status   artifact.JobStatus
		adjusted bool
	}{
		"fail":            {"fail", 0, 1, artifact.JobFailed, false},
		"silent":          {"silent", time.Hour, 0, "", true},
		"duplicate":       {"duplicate", time.Hour, 2, artifact.JobSucceeded, true},
		"slow":            {"slow=30s", 31 * time.Second, 1, artifact.JobSucceeded, true},
		"slower":          {"slow=30s", 29 * time.Second, 0, "", false},
		"beyond its time": {"slow=2m", 61 * time.Second, 1, artifact.JobFailed, false},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(b *bench) {
				var err error
				b.drill, err = ParseDrill(c.drill)
				require.NoError(t, err)
				d, stop := b.start()
				defer stop()
				b.tell(d, job(1, adjust))
				replies := b.after(c.within)
				require.Len(t, replies, c.replies)
				for _, r := range replies {
					require.Equal(t, c.status, r.Status)
					require.Equal(t, replies[0], r)
				}
				require.Equal(t, c.adjusted, d.Memory.Adjustment() != simulator.Adjustment{})
			})
		})
	}
}

func TestAJobIsNotTakenThatCanNotBeRemembered(t *testing.T) {
	b := newBench(t)
	memory, err := OpenMemory(b.path)
	require.NoError(t, err)
	d := NewDevice("factory-a", memory, b.broker, slog.New(slog.DiscardHandler))
	require.NoError(t, os.Remove(filepath.Dir(b.path)))
	body, err := job(1, adjust).Encode()
	require.NoError(t, err)
	require.Error(t, d.Take(artifact.JobTopic("factory-a", runID(1)), body), "so that the broker sends it again")
	_, ok := memory.next(accepted)
	require.False(t, ok)
}

func TestOldRunsAreForgottenAndNotDoneAgain(t *testing.T) {
	bubble(t, func(b *bench) {
		d, stop := b.start()
		defer stop()
		d.Memory.limit = 3
		for n := 1; n <= 10; n++ {
			b.tell(d, job(n, `{"operation":"echo","text":"x"}`))
			require.Len(t, b.after(time.Second), n)
		}
		require.Len(t, d.Memory.book.Records, 3)
		b.tell(d, job(2, adjust))
		require.Len(t, b.after(time.Minute), 10, "it may have been done")
		require.Zero(t, d.Memory.Adjustment())
		content, err := os.ReadFile(b.path)
		require.NoError(t, err)
		require.Less(t, len(content), 4096)
	})
}

func TestWhatIsNotAnsweredIsNotForgotten(t *testing.T) {
	bubble(t, func(b *bench) {
		b.set(true)
		d, stop := b.start()
		defer stop()
		d.Memory.limit = 2
		for n := 1; n <= 5; n++ {
			b.tell(d, job(n, `{"operation":"echo","text":"x"}`))
		}
		b.after(time.Second)
		b.set(false)
		require.Len(t, b.after(10*time.Second), 5)
	})
}

func TestAMemoryThatCanNotBeReadIsAClearError(t *testing.T) {
	path := filepath.Join(t.TempDir(), "jobs.json")
	require.NoError(t, os.WriteFile(path, []byte("{"), 0o600))
	_, err := OpenMemory(path)
	require.ErrorContains(t, err, path)
	_, err = OpenMemory(t.TempDir())
	require.Error(t, err)
}

func TestDrillsAreSwitchedByAFile(t *testing.T) {
	dir := t.TempDir()
	f := NewDrillFile(dir)
	for text, want := range map[string]Drill{
		"fail": {Kind: DrillFail}, "silent": {Kind: DrillSilent}, "duplicate": {Kind: DrillDuplicate},
		"slow=1m30s": {Kind: DrillSlow, Delay: 90 * time.Second}, "none": {}, "": {},
	} {
		require.NoError(t, f.Set(text), text)
		got, err := f.Drill()
		require.NoError(t, err)
		require.Equal(t, want, got, text)
	}
	for _, text := range []string{"slow", "slow=", "slow=-1s", "slow=soon", "fail=1", "none=1", "explode"} {
		require.ErrorIs(t, f.Set(text), errDrill, text)
	}
	require.NoError(t, os.WriteFile(filepath.Join(dir, ".job-drill"), []byte("?"), 0o600))
	got, err := f.Drill()
	require.ErrorIs(t, err, errDrill)
	require.Zero(t, got)
	require.ErrorContains(t, NewDrillFile(filepath.Join(dir, "none")).Set("fail"), "job drill")
}

func FuzzContent(f *testing.F) {
	f.Add([]byte(adjust))
	f.Add([]byte(`{"operation":"echo","text":"` + strings.Repeat("x", 100) + `"}`))
	f.Fuzz(func(t *testing.T, content []byte) {
		op, err := parseOperation(content)
		if err != nil {
			return
		}
		a := op.apply(simulator.Adjustment{})
		for _, offset := range []simulator.Centi{a.Temperature, a.Humidity, a.Pressure} {
			require.LessOrEqual(t, max(offset, -offset), simulator.Centi(maxOffset))
		}
	})
}

func BenchmarkTake(b *testing.B) {
	memory, err := OpenMemory(filepath.Join(b.TempDir(), "jobs.json"))
	require.NoError(b, err)
	d := NewDevice("factory-a", memory, &broker{}, slog.New(slog.DiscardHandler))
	for n := 0; b.Loop(); n++ {
		body, err := job(n, adjust).Encode()
		require.NoError(b, err)
		require.NoError(b, d.Take(artifact.JobTopic("factory-a", runID(n)), body))
		require.NoError(b, memory.finish(d.failed(runID(n), time.Now(), ""), nil))
		require.NoError(b, memory.answered(runID(n)))
	}
}
