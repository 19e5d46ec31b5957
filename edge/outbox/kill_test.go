package outbox

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

const writerVariable = "OUTBOX_TEST_WRITER"

// TestMain turns the test binary into a writer that never stops when it is
// asked to, so that a test can kill it.
func TestMain(m *testing.M) {
	if root := os.Getenv(writerVariable); root != "" {
		writeForever(root)
	}
	os.Exit(m.Run())
}

func writeForever(root string) {
	dir, err := Open(root)
	for i := 0; err == nil; i++ {
		body := fmt.Sprintf(`{"n":%d,"pad":%q}`, i, strings.Repeat("x", 4000))
		_, _, err = dir.Write(fmt.Sprintf("killed:%d:%d", os.Getpid(), i), []byte(body))
	}
	fmt.Fprintln(os.Stderr, err)
	os.Exit(1)
}

func TestAKilledWriterLeavesOnlyWholeMessages(t *testing.T) {
	root := filepath.Join(t.TempDir(), "outbox")
	dir, err := Open(root)
	require.NoError(t, err)
	for round := range 5 {
		writer := exec.Command(os.Args[0])
		writer.Env = append(os.Environ(), writerVariable+"="+root)
		require.NoError(t, writer.Start())
		before := len(names(t, root))
		require.Eventually(t, func() bool { return len(names(t, root)) > before+3 }, 20*time.Second, time.Millisecond)
		time.Sleep(time.Duration(round) * 300 * time.Microsecond)
		require.NoError(t, writer.Process.Kill())
		_ = writer.Wait() // It was killed, so it always reports that.
	}
	for _, name := range names(t, root) {
		content, err := os.ReadFile(filepath.Join(root, name))
		require.NoError(t, err)
		require.True(t, json.Valid(content), name)
	}
	_, err = dir.Sweep(time.Now().Add(time.Minute))
	require.NoError(t, err)
	require.Empty(t, names(t, dir.path(tmpName)))
}
