package artifactcmd

import (
	"context"
	"fmt"
	"io"
	"os"
	"slices"

	storage "millrace/storage/artifact"
)

// OutputCommand prints what a run left behind.
type OutputCommand struct {
	Stores
	Target

	RunID string `name:"run" help:"Id of the run; by default the last one of the version." placeholder:"RUN-ID"`
	File  string `help:"Which of its files." enum:"stdout,stderr,output" default:"stdout"`
}

var outputFiles = map[string]string{"stdout": storage.StdoutFile, "stderr": storage.StderrFile, "output": storage.OutputFile}

// Run prints the file; where its hash does not fit, the command fails.
func (c OutputCommand) Run(ctx context.Context) error {
	store, err := c.store(ctx)
	if err != nil {
		return err
	}
	target, err := c.resolve(ctx, store)
	if err != nil {
		return err
	}
	return output(ctx, store, target, c.RunID, outputFiles[c.File], os.Stdout)
}

func output(ctx context.Context, store storage.Store, t Target, runID, name string, out io.Writer) error {
	run, err := runOf(ctx, store, t, runID)
	if err != nil {
		return err
	}
	hash, stored := run.ContentHashes[name]
	if !stored {
		return fmt.Errorf("run %s is %s and left no %s: %w", run.RunID, run.Status, name, storage.ErrNotFound)
	}
	body, err := store.Open(ctx, storage.StoredFile{Key: storage.RunKey(run.RunID, name), ContentHash: hash})
	if err != nil {
		return err
	}
	defer body.Close() //nolint:errcheck // only read
	_, err = io.Copy(out, body)
	return err
}

// runOf is a run of a version, the last one where none is named.
func runOf(ctx context.Context, store storage.Store, t Target, runID string) (storage.Execution, error) {
	runs, err := store.Runs(ctx, t.ID, t.Version)
	if err != nil {
		return storage.Execution{}, err
	}
	for _, run := range slices.Backward(runs) {
		if runID == "" || run.RunID == runID {
			return run, nil
		}
	}
	return storage.Execution{}, fmt.Errorf("run %s of %s v%d: %w", runID, t.ID, t.Version, storage.ErrNotFound)
}
