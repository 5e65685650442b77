// Package child starts processes that must not outlive this one. On Linux the kernel kills them when this process ends,
// however it ends, and they can ignore a terminal's interrupt, because this process may need them until it has finished.
// Elsewhere they only end with its process group. The caller ends them in time.
package child

import (
	"errors"
	"fmt"
	"os/exec"
	"runtime"
)

// A Launcher starts processes from one thread, which lives as long as they may: Linux kills a child when the thread that
// started it ends. The launcher prepares its thread, and the processes inherit that.
type Launcher struct {
	commands chan *exec.Cmd
	started  chan error
	closed   chan struct{}
}

// NewLauncher makes a launcher and prepares its thread, by [Block] for example.
func NewLauncher(prepare ...func() error) (*Launcher, error) {
	l := &Launcher{commands: make(chan *exec.Cmd), started: make(chan error), closed: make(chan struct{})}
	ready := make(chan error, 1)
	go offMainThread(func() { l.run(prepare, ready) })
	return l, <-ready
}

// offMainThread calls f locked to a thread that ends with f. The main thread is unsuitable: Go ends it only with the process.
func offMainThread(f func()) {
	runtime.LockOSThread()
	if !onMainThread() {
		f()
		return
	}
	left := make(chan struct{})
	go func() {
		runtime.LockOSThread()
		close(left)
		f()
	}()
	<-left // until then no other goroutine can be on this thread
	runtime.UnlockOSThread()
}

// run keeps its thread locked until it returns, so that the thread ends with it: no other goroutine may run on it.
func (l *Launcher) run(prepare []func() error, ready chan<- error) {
	for _, f := range prepare {
		if err := f(); err != nil {
			ready <- fmt.Errorf("preparing the thread of a launcher: %w", err)
			return
		}
	}
	ready <- nil
	for {
		select {
		case cmd := <-l.commands:
			tie(cmd)
			l.started <- cmd.Start()
		case <-l.closed:
			return
		}
	}
}

// Start starts a process, as cmd.Start does. Calls may overlap.
func (l *Launcher) Start(cmd *exec.Cmd) error {
	select {
	case l.commands <- cmd:
		return <-l.started
	case <-l.closed:
		return errors.New("the launcher is closed")
	}
}

// Close ends the thread and with it, on Linux, the processes that still run. It must be called once.
func (l *Launcher) Close() { close(l.closed) }
