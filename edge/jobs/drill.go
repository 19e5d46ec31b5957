package jobs

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"
)

// Kind is a way in which jobs go wrong.
type Kind string

// The drills of jobs.
const (
	// DrillFail has jobs fail without being done.
	DrillFail Kind = "fail"
	// DrillSilent has jobs done and not answered.
	DrillSilent Kind = "silent"
	// DrillSlow has jobs take a while.
	DrillSlow Kind = "slow"
	// DrillDuplicate has each answer sent twice.
	DrillDuplicate Kind = "duplicate"
)

// Drill is how jobs go wrong; its zero value is not at all.
type Drill struct {
	Kind Kind
	// Delay is how long a slow job takes.
	Delay time.Duration
}

// noDrill is the name of the usual operation.
const noDrill = "none"

var errDrill = errors.New("job drill: must be fail, silent, duplicate, slow=DURATION such as slow=30s, or none")

// ParseDrill reads a drill; empty text is none.
func ParseDrill(text string) (Drill, error) {
	name, value, timed := strings.Cut(strings.TrimSpace(text), "=")
	switch d := (Drill{Kind: Kind(name)}); {
	case (name == "" || name == noDrill) && !timed:
		return Drill{}, nil
	case (d.Kind == DrillFail || d.Kind == DrillSilent || d.Kind == DrillDuplicate) && !timed:
		return d, nil
	case d.Kind == DrillSlow:
		var err error
		if d.Delay, err = time.ParseDuration(value); err == nil && d.Delay > 0 {
			return d, nil
		}
	}
	return Drill{}, errDrill
}

// DrillFile is the switch between drills, also while the simulator runs: a file
// .job-drill in the outbox that holds the drill. Without the file there is none.
type DrillFile struct {
	path string
}

// NewDrillFile is the switch in the given directory.
func NewDrillFile(dir string) DrillFile {
	return DrillFile{path: filepath.Join(dir, ".job-drill")}
}

// Drill is the drill that goes on. A file that can't be read or understood is an
// error, and none.
func (f DrillFile) Drill() (Drill, error) {
	content, err := os.ReadFile(f.path)
	if errors.Is(err, fs.ErrNotExist) {
		return Drill{}, nil
	}
	if err != nil {
		return Drill{}, fmt.Errorf("read job drill: %w", err)
	}
	return ParseDrill(string(content))
}

const drillMode = 0o660

// Set begins a drill as ParseDrill reads it; none ends the one that goes on.
func (f DrillFile) Set(text string) error {
	d, err := ParseDrill(text)
	switch {
	case err != nil:
		return err
	case d.Kind == "":
		err = os.Remove(f.path)
		if errors.Is(err, fs.ErrNotExist) {
			err = nil
		}
	default:
		err = os.WriteFile(f.path, []byte(text+"\n"), drillMode)
	}
	if err != nil {
		return fmt.Errorf("set job drill: %w", err)
	}
	return nil
}
