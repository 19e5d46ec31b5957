package main

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"millrace/deploy/local/internal/tooltest"
)

// childEnv makes the test binary behave as the program itself: as the command under test, and as
// the stand-ins that this starts.
const childEnv = "MILLRACE_LOCAL_TEST_CHILD"

// patience bounds every wait of these tests.
const patience = 60 * time.Second

func TestMain(m *testing.M) {
	switch program := filepath.Base(os.Args[0]); {
	case fakes[program] != nil:
		if err := fakes[program](); err != nil {
			fmt.Fprintln(os.Stderr, program+":", err)
			os.Exit(1)
		}
	case os.Getenv(childEnv) != "":
		main()
	default:
		os.Exit(m.Run())
	}
}

// session is one run of the program.
type session struct {
	t      testing.TB
	cmd    *exec.Cmd
	stdin  io.WriteCloser
	done   chan struct{}
	err    error
	mu     sync.Mutex
	output bytes.Buffer
}

func local(t testing.TB, args ...string) *session {
	t.Helper()
	tooltest.Tools(t)
	self, err := os.Executable()
	require.NoError(t, err)
	s := &session{t: t, cmd: exec.Command(self, append([]string{"--bin-dir", tooltest.BinDir(t)}, args...)...), done: make(chan struct{})}
	s.cmd.Env = append(os.Environ(), childEnv+"=1")
	s.stdin, err = s.cmd.StdinPipe()
	require.NoError(t, err)
	return s
}

func (s *session) start() *session {
	s.t.Helper()
	stderr, err := s.cmd.StderrPipe()
	require.NoError(s.t, err)
	require.NoError(s.t, s.cmd.Start())
	go func() {
		lines := bufio.NewScanner(stderr)
		for lines.Scan() {
			s.mu.Lock()
			s.output.WriteString(lines.Text() + "\n")
			s.mu.Unlock()
		}
		s.err = s.cmd.Wait()
		close(s.done)
	}()
	s.t.Cleanup(func() {
		_ = s.cmd.Process.Signal(syscall.SIGTERM) // has ended already in most tests
		_ = s.stdin.Close()
		<-s.done
		if s.t.Failed() {
			s.t.Log(s.said())
		}
	})
	return s
}

func (s *session) said() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.output.String()
}

func (s *session) awaitSaid(text string) {
	s.t.Helper()
	require.Eventually(s.t, func() bool { return strings.Contains(s.said(), text) || s.ended() }, patience, 10*time.Millisecond)
	require.Contains(s.t, s.said(), text)
}

func (s *session) ended() bool {
	select {
	case <-s.done:
		return true
	default:
		return false
	}
}

// wait waits for the end and returns the exit code.
func (s *session) wait() int {
	s.t.Helper()
	select {
	case <-s.done:
	case <-time.After(patience):
		s.t.Fatal("still running")
	}
	return s.cmd.ProcessState.ExitCode()
}

// environment is what a command sees on the stack.
type environment map[string]string

// onStack starts exec around a command that reports its environment and then waits.
func onStack(t testing.TB, flags ...string) (*session, environment) {
	t.Helper()
	report := filepath.Join(t.TempDir(), "env")
	script := fmt.Sprintf("env > %s.new && mv %[1]s.new %[1]s && cat > /dev/null", report)
	s := local(t, append(append([]string{"exec"}, flags...), "--", "/bin/sh", "-c", script)...).start()
	require.Eventually(t, func() bool {
		_, err := os.Stat(report)
		return err == nil || s.ended()
	}, patience, 5*time.Millisecond)
	return s, readEnv(t, report)
}

var exported = regexp.MustCompile(`(?m)^(?:export )?([A-Z0-9_]+)='?(.*?)'?$`)

func readEnv(t testing.TB, file string) environment {
	t.Helper()
	text, err := os.ReadFile(file)
	require.NoError(t, err)
	env := environment{}
	for _, match := range exported.FindAllStringSubmatch(string(text), -1) {
		env[match[1]] = match[2]
	}
	return env
}

// children returns the process ids of what the program has started and not yet stopped.
func (s *session) children() []string {
	// ps fails when there are none.
	out, _ := exec.Command("ps", "-o", "pid=", "--ppid", strconv.Itoa(s.cmd.Process.Pid)).Output()
	return strings.Fields(string(out))
}

func requireGone(t *testing.T, pids []string) {
	t.Helper()
	require.Eventually(t, func() bool {
		for _, pid := range pids {
			state, err := os.ReadFile("/proc/" + pid + "/stat")
			if err == nil && !bytes.Contains(state, []byte(") Z ")) {
				return false
			}
		}
		return true
	}, 10*time.Second, 10*time.Millisecond)
}
