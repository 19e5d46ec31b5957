package artifact

import (
	"encoding/json"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"millrace/domain/artifact"
	storage "millrace/storage/artifact"
	workflows "millrace/workflows/artifact"
)

func TestADaemonDoesNotOutliveItsScript(t *testing.T) {
	for name, end := range map[string]string{"the script succeeds": "exit 0", "the script is killed": "exec sleep 300"} {
		t.Run(name, func(t *testing.T) {
			d := newDesk(t)
			pid := filepath.Join(t.TempDir(), "pid")
			// A session of its own, forked twice, with no file of its parent's.
			daemon := "setsid sh -c '(trap \"\" TERM HUP; sleep 300 & echo $! > " + pid + "; wait) < /dev/null > /dev/null 2>&1 &'\n"
			v := d.submit(script("#!/bin/sh\n"+daemon+"while [ ! -s "+pid+" ]; do sleep 0.01; done\n"+end+"\n", limits(time.Second)))
			result, err := d.executor(Scripts{Grace: 100 * time.Millisecond}).Execute(t.Context(), runRequest(v, 1, artifact.Primary))
			require.NoError(t, err)
			if end == "exit 0" {
				require.Equal(t, workflows.RunSucceeded, result.Status)
			} else {
				require.Equal(t, workflows.RunTimedOut, result.Status)
			}
			gone(t, pid)
		})
	}
}

func TestOrphansOfOrphansAreKilled(t *testing.T) {
	d := newDesk(t)
	dir := t.TempDir()
	spawn := `spawn() { if [ $1 -gt 0 ]; then setsid sh -c "$self" sh $(($1 - 1)) & fi; }` + "\n"
	body := "#!/bin/sh\nself='" + spawn + "spawn $1; echo $$ > " + dir + "/$1; exec sleep 300'\n" +
		"setsid sh -c \"$self\" sh 0 &\nexport self; setsid sh -c \"$self\" sh 3 &\nwhile [ $(ls " + dir + " | wc -l) -lt 4 ]; do sleep 0.01; done\n"
	v := d.submit(script(body, limits(10*time.Second)))
	result, err := d.executor(Scripts{}).Execute(t.Context(), runRequest(v, 1, artifact.Primary))
	require.NoError(t, err)
	require.Equal(t, workflows.RunSucceeded, result.Status)
	for n := range 4 {
		gone(t, filepath.Join(dir, strconv.Itoa(n)))
	}
}

func TestAGigabyteOfOutputTakesLittleDisk(t *testing.T) {
	d := newDesk(t)
	tmp := t.TempDir()
	t.Setenv("TMPDIR", tmp)
	v := d.submit(script("#!/bin/sh\nhead -c 1000000000 /dev/zero\nhead -c 1000000 /dev/zero >&2\necho end >&2\n", limits(5*time.Minute)))
	done, most := make(chan struct{}), make(chan int64, 1)
	go func() {
		var peak int64
		for {
			select {
			case <-done:
				most <- peak
				return
			case <-time.After(5 * time.Millisecond):
				peak = max(peak, size(tmp))
			}
		}
	}()
	result, err := d.executor(Scripts{}).Execute(t.Context(), runRequest(v, 1, artifact.Primary))
	close(done)
	require.NoError(t, err)
	require.Equal(t, workflows.RunSucceeded, result.Status, "it is not held up")
	peak := <-most
	require.Positive(t, peak)
	require.Less(t, peak, int64(250_000), "two outputs of at most 100 kB each, and the script")
	require.Zero(t, size(tmp), "and nothing stays")
	run, err := d.Store.Run(t.Context(), "fix", runID(1))
	require.NoError(t, err)
	require.True(t, run.Truncated)
	for _, name := range []string{storage.StdoutFile, storage.StderrFile} {
		stored, err := d.Store.Stat(t.Context(), storage.RunKey(runID(1), name), "")
		require.NoError(t, err)
		require.EqualValues(t, 100_000, stored.Size)
		require.Equal(t, run.ContentHashes[name], stored.ContentHash)
	}
}

// size is the size of all files below a directory.
func size(dir string) int64 {
	var sum int64
	_ = filepath.WalkDir(dir, func(_ string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return nil //nolint:nilerr // files come and go
		}
		if info, err := entry.Info(); err == nil {
			sum += info.Size()
		}
		return nil
	})
	return sum
}

// TestAScriptOfAnotherUserReachesNothingOfTheWorkers runs as nobody. Where the
// tests may not change users, a script must not run at all.
func TestAScriptOfAnotherUserReachesNothingOfTheWorkers(t *testing.T) {
	const nobody = 65534
	t.Setenv("AWS_SECRET_ACCESS_KEY", os.Getenv("AWS_SECRET_ACCESS_KEY")) // there is something to steal
	secret := filepath.Join(t.TempDir(), "credentials")
	require.NoError(t, os.WriteFile(secret, []byte("aws_secret_access_key = stolen\n"), 0o600))
	d := newDesk(t)
	body := `#!/bin/sh
echo "uid $(id -u) gid $(id -g) groups $(id -G)"
try() { if "$@" > /dev/null 2>&1; then echo "REACHED: $*"; else echo "refused: $1 $2"; fi; }
for pid in $1 $PPID; do
  try cat /proc/$pid/environ
  try ls /proc/$pid/fd
  try ls /proc/$pid/cwd/
  try cat /proc/$pid/mem
  try kill -9 $pid
done
try cat $2
try ls /root
try touch /etc/millrace-was-here
env | cut -d= -f1 | sort | tr '\n' ' '
echo mine > own && cat own
`
	args, err := json.Marshal(artifact.ScriptArgs{Args: []string{strconv.Itoa(os.Getpid()), secret}})
	require.NoError(t, err)
	v := d.submit(script(body, func(r *artifact.Request) { r.Spec.Args = args }))
	result, err := d.executor(Scripts{User: nobody, Group: nobody}).Execute(t.Context(), runRequest(v, 1, artifact.Primary))
	require.NoError(t, err)
	if os.Geteuid() != 0 {
		require.Equal(t, workflows.RunFailed, result.Status)
		require.Contains(t, result.Detail, "not permitted")
		return
	}
	require.Equal(t, workflows.RunSucceeded, result.Status, result.Detail)
	out := d.read(runID(1), storage.StdoutFile)
	require.Contains(t, out, fmt.Sprintf("uid %d gid %d groups %d\n", nobody, nobody, nobody))
	require.NotContains(t, out, "REACHED")
	require.Equal(t, 13, strings.Count(out, "refused"))
	require.Contains(t, out, "\nHOME LANG PATH PWD mine", "its environment has no more")
	require.NotContains(t, out, "stolen")
}

func TestAScriptThatKillsItsKeeperDiesWithIt(t *testing.T) {
	d := newDesk(t)
	pid := filepath.Join(t.TempDir(), "pid")
	v := d.submit(script("#!/bin/sh\necho $$ > "+pid+"\nkill -9 $PPID\nexec sleep 300\n", limits(time.Minute)))
	result, err := d.executor(Scripts{}).Execute(t.Context(), runRequest(v, 1, artifact.Primary))
	require.NoError(t, err)
	require.Equal(t, workflows.RunResult{Status: workflows.RunFailed, ExitCode: -1, Detail: errKeeper.Error()}, result)
	gone(t, pid)
}

func TestAScriptThatCanNotBeRunFails(t *testing.T) {
	d := newDesk(t)
	v := d.submit(script("#!/no/such/shell\n"))
	result, err := d.executor(Scripts{}).Execute(t.Context(), runRequest(v, 1, artifact.Primary))
	require.NoError(t, err)
	require.Equal(t, workflows.RunFailed, result.Status)
	require.Contains(t, []int{126, 127}, result.ExitCode)
	require.NotEmpty(t, d.read(runID(1), storage.StderrFile))
	for _, args := range [][]string{
		nil,
		{"x", "0", "", "9", "9", "/bin/true"},
		{"0", "x", "", "9", "9", "/bin/true"},
		{"0", "0", "", "x", "9", "/bin/true"},
		{"0", "0", "", "9", "x", "/bin/true"},
		{"0", "0", "", "9", "9", "/no/such/program"},
		{"0", "0", "/no/such/cgroup", "9", "9", "/bin/true"},
	} {
		_, _, err := launch(args)
		require.Error(t, err)
	}
}
