package stack

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"strings"
)

// tokenOwner owns the token that a person finds ready.
const tokenOwner = "user:local"

// tokenKeys is the key ring of the tokens' saved copies, made on first run.
func (s *Stack) tokenKeys() string { return s.path("token-keys.json") }

// token is the ready token: made on first run, and kept like the data that it opens. It is read
// from a file and handed over in the environment, so that no log has it.
func (s *Stack) token(ctx context.Context) (string, error) {
	name := s.path("token")
	kept, err := os.ReadFile(name)
	if err == nil {
		return strings.TrimSpace(string(kept)), nil
	}
	if !errors.Is(err, fs.ErrNotExist) {
		return "", fmt.Errorf("read token: %w", err)
	}
	// The ring is there already when a run ended between these two steps.
	if _, err := os.Stat(s.tokenKeys()); errors.Is(err, fs.ErrNotExist) {
		if _, err := s.ask(ctx, "token", "keys", "init", s.tokenKeys()); err != nil {
			return "", err
		}
	}
	token, err := s.ask(ctx, "token", "create", "--owner", tokenOwner, "--name", "local", "--scopes", "all")
	if err != nil {
		return "", err
	}
	if err := os.WriteFile(name, []byte(token+"\n"), 0o600); err != nil {
		return "", fmt.Errorf("write token: %w", err)
	}
	return token, nil
}

// ask runs the starter and returns what it prints.
func (s *Stack) ask(ctx context.Context, args ...string) (string, error) {
	cmd := exec.CommandContext(ctx, s.bin(binStarter), args...)
	cmd.Env = s.environ("MILLRACE_TOKEN_KEYS_FILE=" + s.tokenKeys())
	var stderr strings.Builder
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		return "", fmt.Errorf("starter %s: %w: %s", strings.Join(args[:2], " "), err, strings.TrimSpace(stderr.String()))
	}
	return strings.TrimSpace(string(out)), nil
}
