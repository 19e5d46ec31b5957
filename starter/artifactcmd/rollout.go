package artifactcmd

import (
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"time"

	"millrace/domain/artifact"
	"millrace/domain/exact"
)

// RolloutFlags say which factories get a job of the kind iot-job, in which waves,
// and what each must look like afterwards.
type RolloutFlags struct {
	Target   []string      `help:"Factories that get the job, in order; only for iot-job." placeholder:"FACTORY"`
	Wave     []string      `help:"How many factories each wave has, such as 1,2,rest; by default 1,rest." placeholder:"N|rest"`
	Pause    time.Duration `help:"Pause between two waves."`
	MinScore string        `help:"Least risk score that a factory may have after its job." placeholder:"50"`
	MaxDrop  string        `help:"By how many points a factory's score may fall." placeholder:"10"`
	Within   time.Duration `help:"How long to wait for data of a factory that is newer than its job." placeholder:"10m"`
}

func (f RolloutFlags) given() bool {
	return len(f.Target)+len(f.Wave) > 0 || f.Pause != 0 || f.MinScore != "" || f.MaxDrop != "" || f.Within != 0
}

// args are the args of the artifact: those of the flags, or else those given as
// JSON.
func (f RolloutFlags) args(kind artifact.Kind, given string) (json.RawMessage, error) {
	switch {
	case !f.given():
		return json.RawMessage(given), nil
	case kind != artifact.IoTJob:
		return nil, fmt.Errorf("--target, --wave, --pause, --min-score, --max-drop, --within: are for --kind %s only", artifact.IoTJob)
	case given != "{}":
		return nil, errors.New("--args: must not be given together with --target, --wave, --pause, --min-score, --max-drop or --within")
	}
	waves, err := f.waves()
	if err != nil {
		return nil, err
	}
	gate := map[string]any{}
	for name, text := range map[string]string{"min_score": f.MinScore, "max_drop": f.MaxDrop} {
		if text == "" {
			continue
		}
		if gate[name], err = exact.Parse(text); err != nil {
			return nil, fmt.Errorf("gate.%s: must be a number", name)
		}
	}
	if f.Within != 0 {
		gate["within"] = artifact.Duration(f.Within)
	}
	body, err := json.Marshal(map[string]any{"targets": f.Target, "waves": waves, "pause": artifact.Duration(f.Pause), "gate": gate})
	if err != nil {
		return nil, fmt.Errorf("args: %w", err)
	}
	return body, nil
}

func (f RolloutFlags) waves() ([]artifact.Wave, error) {
	given := f.Wave
	if len(given) == 0 {
		given = []string{"1", "rest"}[:min(2, len(f.Target))]
	}
	var waves []artifact.Wave
	for _, text := range given {
		if text == "rest" {
			waves = append(waves, artifact.Rest)
			continue
		}
		size, err := strconv.Atoi(text)
		if err != nil || size < 1 {
			return nil, fmt.Errorf("--wave: must be whole numbers from 1 on, or rest for all that are left, not %q", text)
		}
		waves = append(waves, artifact.Wave(size))
	}
	return waves, nil
}
