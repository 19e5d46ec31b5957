package alertcmd

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"millrace/domain/alert"
)

// TestCommand runs the rules on a snapshot. It reads a file and nothing else.
type TestCommand struct {
	Snapshot string `arg:"" help:"File with a state_snapshot of a factory or a snapshot of the cloud infrastructure; - reads standard input." placeholder:"SNAPSHOT.json"`
	Source   string `help:"What the snapshot is: ${enum}; auto looks into it, and judges both halves of a whole cloud snapshot." enum:"auto,factory,fast,slow" default:"auto"`
	Language string `help:"Language of the texts." enum:"ko,en" default:"ko" env:"MILLRACE_ALERT_LANGUAGE"`
}

// maxSnapshot bounds what is read of a file.
const maxSnapshot = 8 << 20

// Run prints the decision.
func (c TestCommand) Run() error { return c.test(os.Stdin, os.Stdout) }

func (c TestCommand) test(stdin io.Reader, stdout io.Writer) error {
	body, err := c.read(stdin)
	if err != nil {
		return err
	}
	decision, err := decide(body, c.Source)
	if err != nil {
		return err
	}
	out := json.NewEncoder(stdout)
	out.SetIndent("", "  ")
	out.SetEscapeHTML(false)
	if err := out.Encode(verdictOf(decision, alert.Language(c.Language))); err != nil {
		return fmt.Errorf("print decision: %w", err)
	}
	return nil
}

func (c TestCommand) read(stdin io.Reader) ([]byte, error) {
	from := stdin
	if c.Snapshot != "-" {
		file, err := os.Open(c.Snapshot)
		if err != nil {
			return nil, fmt.Errorf("open snapshot: %w", err)
		}
		defer file.Close() //nolint:errcheck // only read
		from = file
	}
	body, err := io.ReadAll(io.LimitReader(from, maxSnapshot+1))
	switch {
	case err != nil:
		return nil, fmt.Errorf("read snapshot: %w", err)
	case len(body) > maxSnapshot:
		return nil, fmt.Errorf("read snapshot: it is longer than %d bytes", maxSnapshot)
	}
	return body, nil
}

// shape is what tells the kinds of snapshots apart.
type shape struct {
	FactoryID json.RawMessage `json:"factory_id"`
	Fast      json.RawMessage `json:"fast"`
	Slow      json.RawMessage `json:"slow"`
}

// check refuses a source that the snapshot plainly is not of. A half that is
// missing altogether is not refused: it is unknown.
func (s shape) check(source string) error {
	cloud := s.Fast != nil || s.Slow != nil
	switch {
	case source == "factory" && s.FactoryID == nil && cloud:
		return errors.New("--source: must be fast or slow, the snapshot is of the cloud infrastructure")
	case source != "factory" && s.FactoryID != nil && !cloud:
		return errors.New("--source: must be factory, the snapshot has a factory_id")
	case source == "fast" && s.Fast == nil && cloud:
		return errors.New("--source: must be slow, the snapshot has no fast half")
	case source == "slow" && s.Slow == nil && cloud:
		return errors.New("--source: must be fast, the snapshot has no slow half")
	}
	return nil
}

// decide runs the rules of a source.
func decide(body []byte, source string) (alert.Decision, error) {
	var s shape
	if err := json.Unmarshal(body, &s); err != nil {
		if _, ok := errors.AsType[*json.UnmarshalTypeError](err); ok {
			err = errors.New("it must be a JSON object")
		}
		return alert.Decision{}, fmt.Errorf("read snapshot: %w", err)
	}
	if source != "auto" {
		if err := s.check(source); err != nil {
			return alert.Decision{}, err
		}
	}
	switch source {
	case "factory":
		return alert.ParseFactory(body)
	case "fast":
		return alert.Fast(body, "")
	case "slow":
		return alert.Slow(body, "")
	}
	return s.decide(body)
}

// decide looks into the snapshot for what it is.
func (s shape) decide(body []byte) (alert.Decision, error) {
	switch {
	case s.FactoryID != nil:
		return alert.ParseFactory(body)
	case s.Fast == nil && s.Slow == nil:
		return alert.Decision{}, errors.New("read snapshot: it has none of factory_id, fast and slow: say what it is with --source")
	}
	var both alert.Decision
	for _, half := range []struct {
		given  bool
		decide func([]byte, string) (alert.Decision, error)
	}{{s.Fast != nil, alert.Fast}, {s.Slow != nil, alert.Slow}} {
		if !half.given {
			continue
		}
		d, err := half.decide(body, "")
		if err != nil {
			return alert.Decision{}, err
		}
		both.Alerts, both.Suppressed = append(both.Alerts, d.Alerts...), append(both.Suppressed, d.Suppressed...)
	}
	return both, nil
}

// verdict is what is printed.
type verdict struct {
	Alerts     []raised     `json:"alerts"`
	Suppressed []suppressed `json:"suppressed"`
}

// raised is an alert that would be sent, after its confirmation where it needs
// one, unless it is silenced or cooling down.
type raised struct {
	alert.Key
	Severity     alert.Severity `json:"severity"`
	Reason       string         `json:"reason"`
	Because      string         `json:"because"`
	Confirmation *confirmation  `json:"confirmation,omitempty"`
	Text         string         `json:"text"`
}

// confirmation is how often an alert must be seen, and within which time.
type confirmation struct {
	Observations  int64 `json:"observations"`
	WithinSeconds int64 `json:"within_seconds"`
}

// suppressed is a candidate that is not sent.
type suppressed struct {
	alert.Key
	Severity alert.Severity `json:"severity"`
	Reason   string         `json:"reason"`
	Because  string         `json:"because"`
	Why      string         `json:"why"`
}

func verdictOf(d alert.Decision, language alert.Language) verdict {
	v := verdict{Alerts: []raised{}, Suppressed: []suppressed{}}
	for _, a := range d.Alerts {
		r := raised{Key: a.Key(), Severity: a.Severity, Reason: a.Reason, Because: a.Because, Text: alert.Text(a.Trimmed(), language)}
		if c, needed := a.Confirmation(); needed {
			r.Confirmation = &confirmation{Observations: c.Required, WithinSeconds: int64(c.Window / time.Second)}
		}
		v.Alerts = append(v.Alerts, r)
	}
	for _, s := range d.Suppressed {
		v.Suppressed = append(v.Suppressed, suppressed{Key: s.Alert.Key(), Severity: s.Alert.Severity, Reason: s.Alert.Reason, Because: s.Alert.Because, Why: s.Why})
	}
	return v
}
