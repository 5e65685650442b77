// Package child starts processes that must not outlive this one. On Linux the kernel kills them when this process ends,
// however it ends, and they can ignore a terminal's interrupt, because this process may need them until it has finished.
// Elsewhere they only end with its process group. The caller ends them in time.
package child

import (
	"fmt"
	"os/exec"
	"runtime"
)

// Start starts a process and returns a channel that is closed when it has ended; cmd.ProcessState says how. The caller
// must not call cmd.Wait. The process is started from a thread of its own, which lives as long as the process: Linux kills
// a child when the thread that started it ends. The process inherits what prepare does to the thread, such as [Block].
func Start(cmd *exec.Cmd, prepare ...func() error) (ended <-chan struct{}, err error) {
	started, over := make(chan error, 1), make(chan struct{})
	go func() {
		runtime.LockOSThread() // until the goroutine ends, and the thread with it: no other may run on it
		err := start(cmd, prepare)
		started <- err
		if err == nil {
			_ = cmd.Wait() // its state says how it ended
			close(over)
		}
	}()
	return over, <-started
}

func start(cmd *exec.Cmd, prepare []func() error) error {
	for _, f := range prepare {
		if err := f(); err != nil {
			return fmt.Errorf("preparing the thread of a process: %w", err)
		}
	}
	tie(cmd)
	return cmd.Start()
}
