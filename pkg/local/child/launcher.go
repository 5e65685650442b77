// Package child starts processes that must not outlive this one. It promises, on Linux, that the kernel kills them when
// this process is gone, however that happens, and that what a terminal sends to interrupt this process can be kept from
// them, whom it may still need until it has finished; elsewhere they share the fate of its process group. What they
// are, and ending them in time, is left to the caller.
package child

import (
	"errors"
	"fmt"
	"os/exec"
	"runtime"
	"syscall"
)

// A Launcher starts processes from one thread that lives as long as they may: Linux ties a child's death by its
// parent's to the thread that started it, and a child begins with the blocked signals of that thread.
type Launcher struct {
	commands chan *exec.Cmd
	started  chan error
	closed   chan struct{}
}

// NewLauncher makes a launcher whose processes begin with the signals blocked. Programs in Go do not keep them so;
// those are kept from signals of the terminal by [Apart].
func NewLauncher(blocked ...syscall.Signal) (*Launcher, error) {
	l := &Launcher{commands: make(chan *exec.Cmd), started: make(chan error), closed: make(chan struct{})}
	ready := make(chan error, 1)
	go offMainThread(func() { l.run(blocked, ready) })
	return l, <-ready
}

// offMainThread calls f locked to a thread that ends with f. The main thread does not do: Go never ends it before the
// process.
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

// run never gives its thread back, whose signals are no longer everybody's: the thread ends with it.
func (l *Launcher) run(blocked []syscall.Signal, ready chan<- error) {
	if err := block(blocked); err != nil {
		ready <- fmt.Errorf("blocking signals: %w", err)
		return
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

// Close lets the thread end, and with it, on Linux, what it has started and still runs. It must be called once.
func (l *Launcher) Close() { close(l.closed) }
