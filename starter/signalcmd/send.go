package signalcmd

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"sync"

	"golang.org/x/sync/errgroup"
)

// SendCommand sends signals.
type SendCommand struct {
	Gateway
	File     string `arg:"" help:"File with one signal a line, or - for standard input."`
	Parallel int    `help:"Batches on their way at once." default:"2"`
}

const (
	maxParallel = 64
	// batchSize and batchBytes keep a request within the gateway's limits of 500
	// signals and 1 MiB.
	batchSize  = 500
	batchBytes = 900 << 10
	maxLine    = 256 << 10
	// maxShown bounds the refusals that are printed.
	maxShown = 20
)

// Validate refuses what can't be meant.
func (c *SendCommand) Validate() error {
	if c.Parallel < 1 || c.Parallel > maxParallel {
		return fmt.Errorf("--parallel: must be 1 to %d", maxParallel)
	}
	return nil
}

// Run sends the signals and tells what became of them; it fails when one was
// refused. Running it again sends nothing twice, provided that signals have
// timestamps: what is there is a duplicate.
func (c *SendCommand) Run(ctx context.Context) error {
	in := io.Reader(os.Stdin)
	if c.File != "-" {
		file, err := os.Open(c.File)
		if err != nil {
			return fmt.Errorf("open signals: %w", err)
		}
		defer file.Close() //nolint:errcheck // only read
		in = file
	}
	return c.send(ctx, in, os.Stdout)
}

// outcome is what became of the signals of a run.
type outcome struct {
	lock                          sync.Mutex
	accepted, duplicate, rejected int
	refusals                      []string
}

type results struct {
	Accepted, Duplicate, Rejected int
	Results                       []struct{ Status, Field, Rule string }
}

func (c *SendCommand) send(ctx context.Context, in io.Reader, out io.Writer) error {
	var done outcome
	work, ctx := errgroup.WithContext(ctx)
	work.SetLimit(c.Parallel)
	readErr := batches(in, func(first int, batch [][]byte) bool {
		work.Go(func() error { return c.post(ctx, first, batch, &done) })
		return ctx.Err() == nil
	})
	err := work.Wait()
	fmt.Fprintf(out, "accepted %d, duplicate %d, rejected %d\n", done.accepted, done.duplicate, done.rejected) //nolint:errcheck // a closed terminal
	for _, refusal := range done.refusals {
		fmt.Fprintln(out, refusal) //nolint:errcheck // a closed terminal
	}
	switch {
	case err != nil:
		return err
	case readErr != nil:
		return readErr
	case done.rejected > 0:
		return fmt.Errorf("%d signals were rejected", done.rejected)
	}
	return nil
}

func (c *SendCommand) post(ctx context.Context, first int, batch [][]byte, done *outcome) error {
	body := append(append([]byte(`{"signals":[`), bytes.Join(batch, []byte(","))...), "]}"...)
	var answer results
	if err := c.call(ctx, http.MethodPost, "/v1/signals", body, &answer); err != nil {
		return fmt.Errorf("send lines %d to %d: %w", first, first+len(batch)-1, err)
	}
	done.lock.Lock()
	defer done.lock.Unlock()
	done.accepted += answer.Accepted
	done.duplicate += answer.Duplicate
	done.rejected += answer.Rejected
	for i, result := range answer.Results {
		if result.Status == "rejected" && len(done.refusals) < maxShown {
			done.refusals = append(done.refusals, fmt.Sprintf("line %d: %s %s", first+i, result.Field, result.Rule))
		}
	}
	return nil
}

// batches hands over the lines in batches, with the number of the first one. A
// line that is no JSON would sink its batch, so that it is an error here.
func batches(in io.Reader, hand func(first int, batch [][]byte) bool) error {
	lines := bufio.NewScanner(in)
	lines.Buffer(make([]byte, 0, 64<<10), maxLine)
	var batch [][]byte
	number, size := 0, 0
	flush := func() bool {
		if len(batch) == 0 {
			return true
		}
		ok := hand(number-len(batch)+1, batch)
		batch, size = nil, 0
		return ok
	}
	for lines.Scan() {
		line := bytes.TrimSpace(lines.Bytes())
		if len(line) == 0 {
			if !flush() {
				return nil
			}
			number++
			continue
		}
		if !json.Valid(line) {
			flush()
			return fmt.Errorf("line %d: must be JSON", number+1)
		}
		if (len(batch) == batchSize || size+len(line) > batchBytes) && !flush() {
			return nil
		}
		number++
		size += len(line) + 1
		batch = append(batch, bytes.Clone(line))
	}
	flush()
	if err := lines.Err(); err != nil {
		return fmt.Errorf("read line %d: %w", number+1, err)
	}
	return nil
}
