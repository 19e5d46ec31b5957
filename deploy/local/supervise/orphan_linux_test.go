package supervise

import (
	"os"
	"os/exec"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

const supervisorEnv = "MILLRACE_TEST_SUPERVISOR_DIR"

func TestMain(m *testing.M) {
	if dir := os.Getenv(supervisorEnv); dir != "" {
		superviseUntilKilled(dir)
	}
	os.Exit(m.Run())
}

// superviseUntilKilled is what the process to be killed does.
func superviseUntilKilled(dir string) {
	b := bench{Supervisor: New(dir, DefaultPolicy, discard), dir: dir}
	if err := b.Start(background, b.part("orphan", forever)); err != nil {
		panic(err)
	}
	select {}
}

func TestChildrenDieWithAKilledSupervisor(t *testing.T) {
	b := bench{t: t, dir: t.TempDir()}
	supervisor := exec.Command(os.Args[0])
	supervisor.Env = append(os.Environ(), supervisorEnv+"="+b.dir)
	require.NoError(t, supervisor.Start())
	probe := FileProbe(b.dir + "/orphan.pid")
	require.Eventually(t, func() bool { return probe(t.Context()) == nil }, 10*time.Second, 5*time.Millisecond)
	orphan := b.pid("orphan")
	require.True(t, alive(orphan))
	require.NoError(t, supervisor.Process.Kill())
	require.Error(t, supervisor.Wait())
	require.Eventually(t, gone(orphan), 5*time.Second, 5*time.Millisecond)
}
