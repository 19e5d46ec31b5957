package artifact

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"time"

	"millrace/domain/exact"
	"millrace/domain/factory"
)

// JobArgs are the args of a job of devices: which factories get the primary file,
// in which order, and what each must look like afterwards.
type JobArgs struct {
	// Targets are 1 to 100 factories, in the order in which they are changed.
	Targets []string `json:"targets"`
	// Waves say how many factories are changed together before the next are begun.
	Waves []Wave `json:"waves"`
	// Pause is how long to wait between two waves; 0 to 24 h, by default 0.
	Pause Duration `json:"pause"`
	Gate  Gate     `json:"gate"`
}

// Wave is how many factories a wave has.
type Wave int

// Rest is a wave of all the factories that are left; it can only be the last.
const Rest Wave = -1

const rest = "rest"

// MarshalJSON writes the number, or "rest".
func (w Wave) MarshalJSON() ([]byte, error) {
	if w == Rest {
		return strconv.AppendQuote(nil, rest), nil
	}
	return strconv.AppendInt(nil, int64(w), 10), nil
}

// UnmarshalJSON reads the number, or "rest".
func (w *Wave) UnmarshalJSON(body []byte) error {
	if string(body) == strconv.Quote(rest) {
		*w = Rest
		return nil
	}
	size, err := strconv.Atoi(string(body))
	if err != nil || size < 1 {
		return errors.New(`must be a list of whole numbers from 1 on, with "rest" for all that are left`)
	}
	*w = Wave(size)
	return nil
}

// Gate is what a factory's latest state must be like after its job. What is not
// newer than the job's end when Within is over fails as well.
type Gate struct {
	// MinScore is the least risk score that passes; 0 to 100, by default 50, below
	// which a factory is in danger.
	MinScore exact.Decimal `json:"min_score"`
	// MaxDrop is by how many points the score may fall; 0 to 100, by default 10.
	MaxDrop exact.Decimal `json:"max_drop"`
	// Within is how long to wait for data that is newer than the job's end; 10 s to
	// 24 h, by default 10 minutes.
	Within Duration `json:"within"`
}

// Bounds and defaults of rollouts.
const (
	maxTargets    = 100
	maxPause      = 24 * time.Hour
	minWithin     = 10 * time.Second
	maxWithin     = 24 * time.Hour
	defaultWithin = 10 * time.Minute
)

var (
	worst          = exact.FromInt(0)
	best           = exact.FromInt(100)
	defaultMin     = exact.FromInt(50)
	defaultMaxDrop = exact.FromInt(10)
)

// JobArgs reads the args of a job of devices and fills in the defaults.
func (s Spec) JobArgs() (JobArgs, error) {
	a := JobArgs{Gate: Gate{MinScore: defaultMin, MaxDrop: defaultMaxDrop, Within: Duration(defaultWithin)}}
	var raw struct {
		Targets json.RawMessage `json:"targets"`
		Waves   json.RawMessage `json:"waves"`
		Pause   json.RawMessage `json:"pause"`
		Gate    json.RawMessage `json:"gate"`
	}
	if err := decodeStrict("spec.args", s.Args, &raw); err != nil {
		return JobArgs{}, err
	}
	var gate struct {
		MinScore json.RawMessage `json:"min_score"`
		MaxDrop  json.RawMessage `json:"max_drop"`
		Within   json.RawMessage `json:"within"`
	}
	if err := decodeStrict("spec.args.gate", raw.Gate, &gate); err != nil {
		return JobArgs{}, err
	}
	for _, f := range []argument{
		{"targets", raw.Targets, &a.Targets, "must be a list of factory ids"},
		{"waves", raw.Waves, &a.Waves, `must be a list of whole numbers from 1 on, with "rest" for all that are left`},
		{"pause", raw.Pause, &a.Pause, `must be text such as "5m"`},
		{"gate.min_score", gate.MinScore, &a.Gate.MinScore, "must be a number"},
		{"gate.max_drop", gate.MaxDrop, &a.Gate.MaxDrop, "must be a number"},
		{"gate.within", gate.Within, &a.Gate.Within, `must be text such as "10m"`},
	} {
		if err := f.read(); err != nil {
			return JobArgs{}, err
		}
	}
	return a, a.check()
}

// argument is one field of args.
type argument struct {
	name string
	body json.RawMessage
	into any
	rule string
}

// read reads the field where it is given. It is deterministic, which the checker
// can't see in encoding/json.
//
//workflowcheck:ignore
func (f argument) read() error {
	if len(f.body) == 0 {
		return nil
	}
	if bytes.Equal(f.body, []byte("null")) || json.Unmarshal(f.body, f.into) != nil {
		return invalid("spec.args."+f.name, f.rule)
	}
	return nil
}

func (a JobArgs) check() error {
	if err := a.checkTargets(); err != nil {
		return err
	}
	if err := a.checkWaves(); err != nil {
		return err
	}
	within := a.Gate.Within.Of()
	switch {
	case a.Pause < 0 || a.Pause.Of() > maxPause:
		return invalid("spec.args.pause", "must be 0s to 24h")
	case !isScore(a.Gate.MinScore):
		return invalid("spec.args.gate.min_score", "must be 0 to 100, with at most 6 digits")
	case !isScore(a.Gate.MaxDrop):
		return invalid("spec.args.gate.max_drop", "must be 0 to 100, with at most 6 digits")
	case within < minWithin || within > maxWithin:
		return invalid("spec.args.gate.within", "must be 10s to 24h")
	}
	return nil
}

// maxScoreDigits is more than a score has, which is rounded to two decimals.
const maxScoreDigits = 6

func isScore(d exact.Decimal) bool {
	return d.AtLeast(worst) && best.AtLeast(d) && d.Digits() <= maxScoreDigits
}

func (a JobArgs) checkTargets() error {
	if len(a.Targets) == 0 || len(a.Targets) > maxTargets {
		return invalidf("spec.args.targets", "must name 1 to %d factories", maxTargets)
	}
	for i, id := range a.Targets {
		if checkFactory(id) != nil {
			return invalidf("spec.args.targets", "names %q, which can be no factory: [a-z0-9][a-z0-9-]{0,63}", id)
		}
		if slices.Contains(a.Targets[:i], id) {
			return invalidf("spec.args.targets", "names %s twice", id)
		}
	}
	return nil
}

func (a JobArgs) checkWaves() error {
	sum, open := 0, false
	for i, w := range a.Waves {
		if w == Rest {
			if open = true; i != len(a.Waves)-1 {
				return invalid("spec.args.waves", `must have "rest" once and last`)
			}
			continue
		}
		sum += int(w)
	}
	targets := len(a.Targets)
	switch {
	case len(a.Waves) == 0:
		return invalid("spec.args.waves", `must say how many factories each wave has, such as [1, 2, "rest"]`)
	case open && sum >= targets:
		return invalidf("spec.args.waves", "leave none of %d targets for the rest", targets)
	case !open && sum != targets:
		return invalidf("spec.args.waves", "have %d factories, but there are %d targets", sum, targets)
	}
	return nil
}

// Plan is the factories of each wave.
func (a JobArgs) Plan() [][]string {
	left := a.Targets
	var waves [][]string
	for _, w := range a.Waves {
		size := int(w)
		if w == Rest {
			size = len(left)
		}
		waves, left = append(waves, left[:size]), left[size:]
	}
	return waves
}

// Health is how a factory is by its latest state. What is not known is absent.
type Health struct {
	// Score is the risk score: 100 is safest.
	Score *exact.Decimal `json:"score,omitempty"`
	// FactoryAt and InfraAt are the source times of the data that the score is of,
	// by the clock of the factory.
	FactoryAt time.Time `json:"factory_at,omitzero"`
	InfraAt   time.Time `json:"infra_at,omitzero"`
}

// Verdict is what a gate says.
type Verdict string

// The verdicts.
const (
	// Passed lets the rollout go on.
	Passed Verdict = "passed"
	// Stale means that there is no data yet that is newer than the job's end.
	Stale Verdict = "stale"
	// ScoreLow means that the score is below the bound.
	ScoreLow Verdict = "score_low"
	// ScoreFell means that the score fell by more than is allowed.
	ScoreFell Verdict = "score_fell"
)

// Judge judges a factory after a job that ended at a time by the factory's own
// clock, and says in words why. Both sources that there were before must have
// been heard again.
func (g Gate) Judge(before, after Health, ended time.Time) (Verdict, string) {
	newer := after.FactoryAt.After(ended) && after.FactoryAt.After(before.FactoryAt)
	infra := before.InfraAt.IsZero() || after.InfraAt.After(ended)
	switch {
	case after.Score == nil || !newer:
		return Stale, "no factory_state is newer than the job's end"
	case !infra:
		return Stale, "no infra_state is newer than the job's end"
	case after.Score.Less(g.MinScore):
		return ScoreLow, fmt.Sprintf("the score is %s, below %s", after.Score, g.MinScore)
	case before.Score != nil && g.MaxDrop.Less(before.Score.Sub(*after.Score)):
		return ScoreFell, fmt.Sprintf("the score fell from %s to %s, by more than %s", before.Score, after.Score, g.MaxDrop)
	}
	return Passed, fmt.Sprintf("the score is %s", after.Score)
}

// JudgeAgain judges a factory that has passed once more. Beyond Judge, it must
// have been heard since a look, by its own clock: a factory that fell silent is
// no better for what it said last.
func (g Gate) JudgeAgain(before, look, now Health, ended time.Time) (Verdict, string) {
	verdict, why := g.Judge(before, now, ended)
	if verdict == Passed && !now.FactoryAt.After(look.FactoryAt) {
		return Stale, "it was not heard again"
	}
	return verdict, why
}

// EndOfJob is when a job ended by its device's clock, which may be off by five
// minutes: not before the job was sent, by ours, so that old data can't pass for
// what came afterwards.
func EndOfJob(sent, finished time.Time) time.Time {
	if earliest := sent.Add(-factory.MaxClockAhead); finished.Before(earliest) {
		return earliest
	}
	return finished
}

// checkJobFiles refuses content that is too large for a job document, where its
// size is known.
func checkJobFiles(files []File) error {
	for _, f := range files {
		if f.Size > MaxJobContent {
			return invalidf("files", "of the kind %s must be at most 64 KiB each: %s has %d bytes", IoTJob, f.Filename, f.Size)
		}
	}
	return nil
}
