package supervise

import (
	"os/exec"
	"runtime"
	"sync"
)

// spawner starts processes from one operating system thread that lives as long as the program:
// Linux sends a child its parent-death signal when the thread that started it ends, and Go ends
// threads as it likes.
var spawner = sync.OnceValue(func() chan<- func() {
	requests := make(chan func())
	go func() {
		runtime.LockOSThread()
		for start := range requests {
			start()
		}
	}()
	return requests
})

// Start starts cmd so that it dies with this process where the system can do that. The process
// leads its own group unless sharesTerminal is set, so that Ctrl-C reaches the supervisor only.
func Start(cmd *exec.Cmd, sharesTerminal bool) error {
	isolate(cmd, sharesTerminal)
	done := make(chan error, 1)
	spawner() <- func() { done <- cmd.Start() }
	return <-done
}
