package processes

import (
	"errors"
	"os/exec"
	"runtime"
)

// launcher starts processes from one thread that lives as long as they may:
// Linux ties a child's death by its parent's to the thread that started it.
type launcher struct {
	commands chan *exec.Cmd
	started  chan error
	closed   chan struct{}
}

func newLauncher() (*launcher, error) {
	l := &launcher{commands: make(chan *exec.Cmd), started: make(chan error), closed: make(chan struct{})}
	ready := make(chan error, 1)
	go l.run(ready)
	return l, <-ready
}

// run never gives its thread back, whose signals are no longer everybody's:
// the thread ends with it.
func (l *launcher) run(ready chan<- error) {
	runtime.LockOSThread()
	err := shieldFromSignals()
	ready <- err
	if err != nil {
		return
	}
	for {
		select {
		case cmd := <-l.commands:
			cmd.SysProcAttr = dieWithParent()
			l.started <- cmd.Start()
		case <-l.closed:
			return
		}
	}
}

// start starts one process. Calls may overlap.
func (l *launcher) start(cmd *exec.Cmd) error {
	select {
	case l.commands <- cmd:
		return <-l.started
	case <-l.closed:
		return errors.New("the launcher is closed")
	}
}

func (l *launcher) close() { close(l.closed) }
