// Package child starts processes that must not outlive this one. On Linux the kernel kills them when this process ends,
// however it ends, and they can ignore a terminal's interrupt, because this process may need them until it has finished.
// Elsewhere they only end with its process group. The caller ends them in time.
package child

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
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

// Of are the ids of the processes that a process has started. It finds them on Linux only.
func Of(pid int) (pids []int) {
	// A child belongs to the thread that started it. The files of an ended thread are absent.
	threads, _ := filepath.Glob("/proc/" + strconv.Itoa(pid) + "/task/*/children")
	for _, path := range threads {
		text, _ := os.ReadFile(path)
		for field := range strings.FieldsSeq(string(text)) {
			id, _ := strconv.Atoi(field) // of digits, as the system writes it
			pids = append(pids, id)
		}
	}
	return pids
}
