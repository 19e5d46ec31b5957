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

// newGroup starts a process group of its own that dies with its parent, inside a
// cgroup if there is one.
func newGroup(inside *fence) *syscall.SysProcAttr {
	sys := &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
	if inside != nil {
		sys.UseCgroupFD, sys.CgroupFD = true, int(inside.dir.Fd())
	}
	return sys
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

// prSetNoNewPrivs is PR_SET_NO_NEW_PRIVS (prctl(2)).
const prSetNoNewPrivs = 38

// renounce has no program that is started from now on by this thread gain privileges,
// as one with a setuid bit does.
func renounce() error {
	if _, _, errno := syscall.RawSyscall6(syscall.SYS_PRCTL, prSetNoNewPrivs, 1, 0, 0, 0, 0); errno != 0 {
		return fmt.Errorf("give privileges up: %w", errno)
	}
	return nil
}

// children are the processes whose parent this one is, the youngest last where the
// kernel lists them (proc_pid_task_tid_children(5)); else all processes are looked at.
func children() []int {
	threads, _ := filepath.Glob("/proc/self/task/[0-9]*/children") // the pattern is well formed
	if len(threads) == 0 {
		return scan()
	}
	var own []int
	for _, path := range threads {
		list, _ := os.ReadFile(path) // a thread that has ended has left its children to another
		for field := range bytes.FieldsSeq(list) {
			if pid, err := strconv.Atoi(string(field)); err == nil {
				own = append(own, pid)
			}
		}
	}
	return own
}

// scan finds the children of this process among all.
func scan() []int {
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
