package artifact

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"syscall"
)

// self is this very program, also when another one lies at its path by now.
func self() (string, error) { return "/proc/self/exe", nil }

// newGroup starts a process group of its own that dies with its parent.
func newGroup() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
}

// prSetChildSubreaper is PR_SET_CHILD_SUBREAPER (prctl(2)).
const prSetChildSubreaper = 36

// adopt makes this process the parent of descendants whose own parent ends,
// instead of init.
func adopt() {
	if _, _, errno := syscall.RawSyscall(syscall.SYS_PRCTL, prSetChildSubreaper, 1, 0); errno != 0 {
		_, _ = fmt.Fprintln(os.Stderr, "orphans are not adopted:", errno) // kernels before 3.4
	}
}

// children are the processes whose parent this one is.
func children() []int {
	var own []int
	parent := []byte(strconv.Itoa(os.Getpid()))
	stats, _ := filepath.Glob("/proc/[0-9]*/stat") // the pattern is well formed
	for _, path := range stats {
		stat, err := os.ReadFile(path)
		if err != nil {
			continue // it has ended
		}
		// "pid (name) state ppid ...": the name may hold anything.
		fields := bytes.Fields(stat[bytes.LastIndexByte(stat, ')')+1:])
		if len(fields) < 2 || !bytes.Equal(fields[1], parent) {
			continue
		}
		if pid, err := strconv.Atoi(filepath.Base(filepath.Dir(path))); err == nil {
			own = append(own, pid)
		}
	}
	return own
}
