package signalcmd

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"time"
)

// GenerateCommand prints signals of a made-up application. The same seed and time
// give the same signals.
type GenerateCommand struct {
	App   string        `help:"Application that the signals are of." default:"load-test"`
	Apps  int           `help:"Number of applications; above 1 their ids end in -0, -1…" default:"1"`
	Count int           `help:"Number of signals." default:"1000"`
	Over  time.Duration `help:"How long ago the first signal was; the last one is now." default:"1h"`
	Seed  uint64        `help:"Seed of what is random." default:"1"`
	At    string        `help:"Time of the last signal (RFC 3339); by default now." placeholder:"TIME"`
}

const (
	maxGenerated = 100_000_000
	maxApps      = 100_000
	// perRequest is the number of signals of one request: one call of a model, its
	// tools and the answer.
	perRequest = 4
)

// Validate refuses what can't be meant.
func (c *GenerateCommand) Validate() error {
	switch {
	case c.Count < 1 || c.Count > maxGenerated:
		return fmt.Errorf("--count: must be 1 to %d", maxGenerated)
	case c.Apps < 1 || c.Apps > maxApps:
		return fmt.Errorf("--apps: must be 1 to %d", maxApps)
	case c.Over < 0 || c.Over > 47*time.Hour:
		return fmt.Errorf("--over: must be at most 47h: older signals are refused")
	}
	return nil
}

// Run prints the signals, one a line.
func (c *GenerateCommand) Run(ctx context.Context) error {
	last := time.Now()
	if c.At != "" {
		var err error
		if last, err = time.Parse(time.RFC3339Nano, c.At); err != nil {
			return fmt.Errorf("--at: must be an RFC 3339 instant with a zone")
		}
	}
	return c.generate(ctx, last.UTC(), os.Stdout)
}

func (c *GenerateCommand) generate(ctx context.Context, last time.Time, out io.Writer) error {
	buffered := bufio.NewWriter(out)
	random := rand.New(rand.NewPCG(c.Seed, c.Seed)) //nolint:gosec // made-up signals are no secret
	encoder := json.NewEncoder(buffered)
	for n := range c.Count {
		if ctx.Err() != nil {
			return ctx.Err()
		}
		at := last.Add(-c.Over / time.Duration(c.Count) * time.Duration(c.Count-1-n))
		if err := encoder.Encode(c.signal(random, n, at)); err != nil {
			return fmt.Errorf("print signals: %w", err)
		}
	}
	if err := buffered.Flush(); err != nil {
		return fmt.Errorf("print signals: %w", err)
	}
	return nil
}

func (c *GenerateCommand) signal(random *rand.Rand, n int, at time.Time) map[string]any {
	request := n / perRequest
	app := c.App
	if c.Apps > 1 {
		app = fmt.Sprintf("%s-%d", c.App, request%c.Apps)
	}
	s := map[string]any{
		"signal_id": fmt.Sprintf("gen-%d-%d", c.Seed, n), "app_id": app, "request_id": fmt.Sprintf("gen-%d-req-%d", c.Seed, request),
		"timestamp": at.Format(time.RFC3339Nano), "protocol": "aigp", "status": "ok",
		"duration_ms": random.IntN(3000) + 1,
	}
	if random.IntN(50) == 0 {
		s["status"] = "error"
	}
	switch n % perRequest {
	case 0:
		input, cached, output := 200+random.IntN(3000), random.IntN(200), 20+random.IntN(800)
		s["type"], s["name"], s["model"] = "request", "chat", "model-large"
		s["input_tokens"], s["cached_input_tokens"], s["output_tokens"] = input, cached, output
		s["cost_usd"] = json.Number(fmt.Sprintf("0.%06d", input*3+output*15))
	case perRequest - 1:
		s["type"], s["name"] = "response", "answer"
	default:
		s["type"], s["name"], s["protocol"] = "tool_call", "search", "acp"
	}
	if n%perRequest > 0 {
		s["parent_signal_id"] = fmt.Sprintf("gen-%d-%d", c.Seed, request*perRequest)
	}
	return s
}
