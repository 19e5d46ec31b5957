package toolchain

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"time"
)

// sayEvery is how often a long step says that it still runs.
const sayEvery = 15 * time.Second

// Installer puts missing tools into a directory.
type Installer struct {
	// BinDir gets the tools.
	BinDir string
	// Say shows a line of progress.
	Say func(format string, args ...any)
}

// Install builds or fetches what Find does not find, and nothing else.
func (i Installer) Install(ctx context.Context) error {
	if err := os.MkdirAll(i.BinDir, 0o755); err != nil {
		return fmt.Errorf("create %s: %w", i.BinDir, err)
	}
	steps := []struct {
		name    string
		oldest  version
		install func(ctx context.Context, tmp string) (string, error)
	}{
		{"temporal", oldestTemporal, i.buildTemporal},
		{"dynoxide", oldestDynoxide, i.fetchDynoxide},
	}
	for _, step := range steps {
		if path, err := find(i.BinDir, step.name, step.oldest); err == nil {
			i.Say("%s: using %s", step.name, path)
			continue
		}
		if err := i.step(ctx, step.name, step.install); err != nil {
			return fmt.Errorf("install %s: %w", step.name, err)
		}
	}
	return nil
}

// step installs one tool in a temporary directory beside its place and moves it there last, so
// that an interrupted step leaves nothing that looks complete.
func (i Installer) step(ctx context.Context, name string, install func(context.Context, string) (string, error)) error {
	tmp, err := os.MkdirTemp(i.BinDir, "."+name+"-")
	if err != nil {
		return fmt.Errorf("create a temporary directory: %w", err)
	}
	defer func() { _ = os.RemoveAll(tmp) }() // what is left has a name that nothing looks for
	began := time.Now()
	stop := i.keepSaying(name, began)
	made, err := install(ctx, tmp)
	stop()
	if err != nil {
		return err
	}
	if err := os.Chmod(made, 0o755); err != nil {
		return fmt.Errorf("make it executable: %w", err)
	}
	if err := os.Rename(made, filepath.Join(i.BinDir, name)); err != nil {
		return fmt.Errorf("put it in place: %w", err)
	}
	i.Say("%s: done after %s", name, time.Since(began).Round(time.Second))
	return nil
}

func (i Installer) keepSaying(name string, began time.Time) (stop func()) {
	done := make(chan struct{})
	go func() {
		ticker := time.NewTicker(sayEvery)
		defer ticker.Stop()
		for {
			select {
			case <-done:
				return
			case <-ticker.C:
				i.Say("%s: still at it, %s so far", name, time.Since(began).Round(time.Second))
			}
		}
	}()
	return func() { close(done) }
}

func (i Installer) buildTemporal(ctx context.Context, tmp string) (string, error) {
	i.Say("temporal: building %s %s, once, about five minutes on two cores", TemporalModule, TemporalVersion)
	cmd := exec.CommandContext(ctx, "go", "install", "-trimpath", "-ldflags=-s -w", TemporalModule+"@"+TemporalVersion)
	cmd.Dir = tmp
	cmd.Env = append(os.Environ(), "GOBIN="+tmp, "GOFLAGS=", "GOWORK=off")
	if err := run(cmd); err != nil {
		return "", err
	}
	return filepath.Join(tmp, "temporal"), nil
}

// run runs a command and puts the end of what it wrote into the error.
func run(cmd *exec.Cmd) error {
	out, err := cmd.CombinedOutput()
	if err == nil {
		return nil
	}
	const most = 4 << 10
	if len(out) > most {
		out = out[len(out)-most:]
	}
	return fmt.Errorf("run %s: %w\n%s", cmd.Path, err, out)
}
