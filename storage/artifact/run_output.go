package artifact

import (
	"context"
	"io"
)

// KeepOutput stores what a run left below executions/{run_id}/ and notes the
// hashes on the run, which output.json describes as it stands then. The same
// again writes the same again.
func (s Store) KeepOutput(ctx context.Context, run *Run, stdout, stderr io.ReadSeeker) error {
	run.ContentHashes = map[string]string{}
	for name, body := range map[string]io.ReadSeeker{StdoutFile: stdout, StderrFile: stderr} {
		stored, err := s.Put(ctx, RunKey(run.RunID, name), "text/plain; charset=utf-8", body)
		if err != nil {
			return err
		}
		run.ContentHashes[name] = stored.ContentHash
	}
	stored, err := s.PutJSON(ctx, RunKey(run.RunID, OutputFile), run)
	if err != nil {
		return err
	}
	run.ContentHashes[OutputFile] = stored.ContentHash
	return nil
}
