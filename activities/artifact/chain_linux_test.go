package artifact

import (
	"encoding/binary"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
	"unsafe"

	"github.com/stretchr/testify/require"

	"millrace/domain/artifact"
	storage "millrace/storage/artifact"
)

const (
	chainName = "millrace-fork-chain"
	// links is how many forks a chain that nobody stops makes: it ends by itself.
	links = 4000
)

func init() { // this program is the script of TestChainsOfForksAreOutrun
	if len(os.Args) == 3 && os.Args[1] == chainName {
		forkChain(os.Args[2])
		os.Exit(0)
	}
}

// forkChain forks and exits, and its child does the same in a session of its own,
// so that no process and no group lasts. How far it came is in the file.
func forkChain(path string) {
	file, err := os.OpenFile(path, os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		os.Exit(1)
	}
	fd, buffer := file.Fd(), make([]byte, 8)
	for n := range uint64(links) {
		// What is forked has but one thread: nothing here may need another.
		child, _, failed := syscall.RawSyscall6(syscall.SYS_CLONE, uintptr(syscall.SIGCHLD), 0, 0, 0, 0, 0)
		if child > 0 {
			_, _, _ = syscall.RawSyscall(syscall.SYS_EXIT_GROUP, 0, 0, 0)
		}
		_, _, _ = syscall.RawSyscall(syscall.SYS_SETSID, 0, 0, 0)
		binary.NativeEndian.PutUint64(buffer, n+1)
		if failed != 0 { // there are too many already
			binary.NativeEndian.PutUint64(buffer, links)
		}
		_, _, _ = syscall.RawSyscall6(syscall.SYS_PWRITE64, fd, uintptr(unsafe.Pointer(&buffer[0])), 8, 0, 0, 0)
		if failed != 0 {
			break
		}
	}
	_, _, _ = syscall.RawSyscall(syscall.SYS_EXIT_GROUP, 0, 0, 0)
}

// scriptJob is a script in a directory of its own, beside this program.
func scriptJob(t *testing.T, body string) Job {
	t.Helper()
	dir := t.TempDir()
	require.NoError(t, os.Chmod(filepath.Dir(dir), 0o755), "scripts of other users come by")
	program, err := os.Open("/proc/self/exe")
	require.NoError(t, err)
	defer program.Close() //nolint:errcheck // only read
	own, err := os.OpenFile(filepath.Join(dir, "program"), os.O_CREATE|os.O_WRONLY, 0o755)
	require.NoError(t, err)
	_, err = io.Copy(own, program)
	require.NoError(t, err)
	require.NoError(t, own.Close())
	file := filepath.Join(dir, "run.sh")
	require.NoError(t, os.WriteFile(file, []byte("#!/bin/sh\n"+body), 0o700))
	stdout, err := newOutput(1 << 20)
	require.NoError(t, err)
	t.Cleanup(stdout.remove)
	return Job{
		RunID: runID(1), Role: artifact.Primary, Dir: dir, File: file, Stdout: stdout, Stderr: stdout,
		Spec: artifact.Spec{Kind: artifact.Script, Limits: artifact.Limits{MemoryBytes: 8 << 30}},
	}
}

func (j Job) said(t *testing.T) string {
	t.Helper()
	out := j.Stdout.(*output)
	reader, err := out.rewind()
	require.NoError(t, err)
	body, err := io.ReadAll(reader)
	require.NoError(t, err)
	return string(body)
}

// bounded are scripts under a user who may have few processes, where the tests may
// change users: whatever a chain does stays small.
func bounded(s Scripts) Scripts {
	if os.Geteuid() == 0 {
		const nobody = 65534
		s.User, s.Group, s.Processes = nobody, nobody, 1000
	}
	return s
}

// TestChainsOfForksAreOutrun has eight chains whose processes live for some hundred
// microseconds each.
func TestChainsOfForksAreOutrun(t *testing.T) {
	const chains = 8
	for name, cgroup := range map[string]string{"with a cgroup, where there may be one": "", "one by one": noCgroup} {
		t.Run(name, func(t *testing.T) {
			job := scriptJob(t, fmt.Sprintf("for n in $(seq %d); do ./program %s $n & done\nwhile [ $(cat [0-9]* 2>/dev/null | wc -c) -lt %d ]; do :; done\n", chains, chainName, 8*chains))
			outcome, err := bounded(Scripts{Cgroup: cgroup}).Run(t.Context(), job)
			require.NoError(t, err)
			require.Equal(t, storage.Succeeded, outcome.Status, outcome.Detail+job.said(t))
			before := reached(t, job, chains)
			t.Log("forks of each chain:", before)
			for _, n := range before {
				require.Less(t, n, uint64(links), "nobody stopped it before it had come to its end, or there were too many")
			}
			time.Sleep(20 * time.Millisecond)
			require.Equal(t, before, reached(t, job, chains), "it lives on")
		})
	}
}

// reached is how far each chain came.
func reached(t *testing.T, job Job, chains int) []uint64 {
	t.Helper()
	var all []uint64
	for n := range chains {
		body, err := os.ReadFile(filepath.Join(job.Dir, strconv.Itoa(n+1)))
		require.NoError(t, err)
		all = append(all, binary.NativeEndian.Uint64(body))
	}
	return all
}

func TestProcessesAndFilesOfAScriptAreBounded(t *testing.T) {
	job := scriptJob(t, `ulimit -f; ulimit -p 2>/dev/null || ulimit -u; nice; head -c 1074000000 /dev/zero > big; echo "$?"; stat -c %s big; rm big`)
	outcome, err := Scripts{User: 65534, Group: 65534, Processes: 77, Cgroup: noCgroup}.Run(t.Context(), job)
	require.NoError(t, err)
	if os.Geteuid() != 0 {
		require.Equal(t, storage.RunFailed, outcome.Status)
		return
	}
	said := strings.Fields(job.said(t))
	require.Equal(t, strconv.Itoa(maxFile/512), said[0])
	require.Equal(t, "77", said[1])
	require.Equal(t, "5", said[2])
	require.Equal(t, strconv.Itoa(maxFile), said[len(said)-1], said)
}

func TestTheOwnCgroupIsFound(t *testing.T) {
	const mounts = "30 1 0:2 / /sys/fs/cgroup/pids rw - cgroup cgroup rw,pids\n31 1 0:3 / /sys/fs/cgroup rw,relatime shared:9 - cgroup2 cgroup2 rw\n"
	for groups, want := range map[string]string{
		"0::/system.slice/millrace.service\n":   "/sys/fs/cgroup/system.slice/millrace.service",
		"4:pids:/x\n0::/\n":                     "/sys/fs/cgroup",
		"4:pids:/x\n":                           "",
		"0::/../elsewhere\n":                    "",
		"1:name=systemd:/a\n0::/kubepods/b/c\n": "/sys/fs/cgroup/kubepods/b/c",
	} {
		got, err := cgroupOf([]byte(mounts), []byte(groups))
		require.Equal(t, want, got)
		if want == "" {
			require.ErrorIs(t, err, errFence)
		}
	}
	inside, err := cgroupOf([]byte("31 1 0:3 /pod/a /cg rw - cgroup2 cgroup2 rw\n"), []byte("0::/pod/a/b\n"))
	require.NoError(t, err)
	require.Equal(t, "/cg/b", inside)
	_, err = cgroupOf([]byte("31 1 0:3 / /cg rw - cgroup cgroup rw\n"), []byte("0::/pod/a/b\n"))
	require.ErrorIs(t, err, errFence)
}

func TestACgroupThatWasAskedForMustBound(t *testing.T) {
	job := scriptJob(t, "echo ran\n")
	outcome, err := Scripts{Cgroup: t.TempDir()}.Run(t.Context(), job)
	require.NoError(t, err)
	require.Equal(t, 126, outcome.ExitCode)
	require.Contains(t, job.said(t), errFence.Error())
	require.NotContains(t, job.said(t), "ran")
}

// TestACgroupEndsWithItsScript needs a cgroup2 in which the tests may make one;
// elsewhere it sees that the script runs all the same.
func TestACgroupEndsWithItsScript(t *testing.T) {
	job := scriptJob(t, "cat /proc/self/cgroup\nsetsid sleep 300 &\n")
	outcome, err := Scripts{}.Run(t.Context(), job)
	require.NoError(t, err)
	require.Equal(t, storage.Succeeded, outcome.Status, job.said(t))
	own, err := ownCgroup()
	if err == nil {
		left, err := filepath.Glob(filepath.Join(own, "millrace-script-*"))
		require.NoError(t, err)
		for _, path := range left {
			require.NotContains(t, job.said(t), filepath.Base(path)+"\n", "it is left")
		}
	}
}

func BenchmarkChildren(b *testing.B) {
	b.Run("listed by the kernel", func(b *testing.B) {
		for b.Loop() {
			children()
		}
	})
	b.Run("looked for in /proc", func(b *testing.B) {
		for b.Loop() {
			scan()
		}
	})
}
