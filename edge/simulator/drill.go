package simulator

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// Drill is an outage that is practised.
type Drill string

// The outage drills.
const (
	// DrillNone is the usual operation.
	DrillNone Drill = "none"
	// DrillDrop stops generating: the factory falls silent and the data is lost.
	DrillDrop Drill = "drop"
	// DrillBacklog keeps generating and stops publishing: the outbox fills.
	DrillBacklog Drill = "backlog"
)

// ParseDrill reads a drill; empty text is none.
func ParseDrill(text string) (Drill, error) {
	switch d := Drill(strings.TrimSpace(text)); d {
	case "":
		return DrillNone, nil
	case DrillNone, DrillDrop, DrillBacklog:
		return d, nil
	}
	return DrillNone, fmt.Errorf("drill: must be %s, %s or %s", DrillNone, DrillDrop, DrillBacklog)
}

// DrillFile is the switch between drills, also while the simulator runs: a file
// .drill in the outbox that holds the drill's name. Without the file there is
// no drill.
type DrillFile struct {
	path string
}

// NewDrillFile is the switch in the given directory.
func NewDrillFile(dir string) DrillFile { return DrillFile{path: filepath.Join(dir, ".drill")} }

// Drill is the drill that goes on. A file that can't be read or understood is
// an error, and none.
func (f DrillFile) Drill() (Drill, error) {
	content, err := os.ReadFile(f.path)
	if errors.Is(err, fs.ErrNotExist) {
		return DrillNone, nil
	}
	if err != nil {
		return DrillNone, fmt.Errorf("read drill: %w", err)
	}
	return ParseDrill(string(content))
}

const drillMode = 0o660

// Set begins a drill; DrillNone ends the one that goes on.
func (f DrillFile) Set(d Drill) error {
	if d == DrillNone {
		if err := os.Remove(f.path); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("end drill: %w", err)
		}
		return nil
	}
	if err := os.WriteFile(f.path, []byte(d+"\n"), drillMode); err != nil {
		return fmt.Errorf("begin drill: %w", err)
	}
	return nil
}
