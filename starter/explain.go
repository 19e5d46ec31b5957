package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"millrace/domain/factory"
	"millrace/starter/printing"
)

// factoryCommand groups what looks into factories.
type factoryCommand struct {
	Explain explainCommand `cmd:"" help:"Print the state that raw messages lead to, offline: why is this factory red?"`
}

// explainCommand explains raw messages. It reads files only.
type explainCommand struct {
	FactoryState string `help:"File with a raw factory_state message; - reads standard input." placeholder:"FILE"`
	InfraState   string `help:"File with a raw infra_state message; - reads standard input." placeholder:"FILE"`
	At           string `help:"Instant (RFC 3339) at which the messages are judged; now by default." placeholder:"TIME"`
}

// Run prints the state as JSON in the shape of the LATEST item.
func (c *explainCommand) Run() error { return c.explain(os.Stdin, os.Stdout, time.Now()) }

func (c *explainCommand) explain(stdin io.Reader, stdout io.Writer, now time.Time) error {
	at, err := c.judgedAt(now)
	if err != nil {
		return err
	}
	bodies, err := c.read(stdin, at)
	if err != nil {
		return err
	}
	state, err := factory.Explain(bodies, at)
	if err != nil {
		return err
	}
	return printing.JSON(stdout, state)
}

func (c *explainCommand) judgedAt(now time.Time) (time.Time, error) {
	if c.At == "" {
		return now.UTC(), nil
	}
	return instant("--at", c.At)
}

// read reads the messages and refuses one that is given as another source type.
func (c *explainCommand) read(stdin io.Reader, at time.Time) ([][]byte, error) {
	if c.FactoryState == "" && c.InfraState == "" {
		return nil, errors.New("nothing to explain: give --factory-state FILE, --infra-state FILE or both")
	}
	if c.FactoryState == "-" && c.InfraState == "-" {
		return nil, errors.New("standard input can be only one of --factory-state and --infra-state")
	}
	var bodies [][]byte
	for _, given := range []struct {
		flag, file string
		source     factory.SourceType
	}{
		{"--factory-state", c.FactoryState, factory.SourceFactoryState},
		{"--infra-state", c.InfraState, factory.SourceInfraState},
	} {
		if given.file == "" {
			continue
		}
		body, err := readMessage(given.file, stdin)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", given.flag, err)
		}
		m, err := factory.ParseMessage(body, at)
		if err != nil {
			return nil, fmt.Errorf("%s %s: message would be quarantined: %w", given.flag, given.file, err)
		}
		if m.SourceType != given.source {
			return nil, fmt.Errorf("%s %s: source_type: must be %s, not %s", given.flag, given.file, given.source, m.SourceType)
		}
		bodies = append(bodies, body)
	}
	return bodies, nil
}

// readMessage reads one body; what is longer than any message can be is cut one
// byte after that, which is refused as too long.
func readMessage(file string, stdin io.Reader) ([]byte, error) {
	from := stdin
	if file != "-" {
		opened, err := os.Open(file) //nolint:gosec // the operator names the file
		if err != nil {
			return nil, fmt.Errorf("open message: %w", err)
		}
		defer opened.Close() //nolint:errcheck // only read
		from = opened
	}
	body, err := io.ReadAll(io.LimitReader(from, factory.MaxBody+1))
	if err != nil {
		return nil, fmt.Errorf("read message: %w", err)
	}
	return body, nil
}
