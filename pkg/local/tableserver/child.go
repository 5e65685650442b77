package tableserver

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"sync"
	"syscall"
	"time"
)

// stopGrace is how long a child may take to end by itself before it is killed.
const stopGrace = 3 * time.Second

// A child is one running server process.
type child struct {
	process *os.Process
	ended   chan struct{} // closed when the process is gone
	err     error         // how it ended; read it after ended
	said    *lastWords
}

// startChild runs the binary in the caller's process group. Where the system can, the child is killed when the caller
// dies and spared the interrupts of a terminal. Linux ties both to the thread that starts it, so one goroutine keeps a
// thread of its own until the child is gone; the thread ends with it, since its signal mask is no longer everybody's.
func startChild(binary string, args ...string) (*child, error) {
	c := &child{ended: make(chan struct{}), said: &lastWords{}}
	started := make(chan error, 1)
	go func() {
		runtime.LockOSThread()
		if err := shieldFromInterrupt(); err != nil {
			started <- err
			return
		}
		cmd := exec.Command(binary, args...)
		cmd.Stderr = c.said
		cmd.SysProcAttr = dieWithParent()
		if err := cmd.Start(); err != nil {
			started <- fmt.Errorf("starting %s: %w", binary, err)
			return
		}
		c.process = cmd.Process
		started <- nil
		c.err = cmd.Wait()
		close(c.ended)
	}()
	if err := <-started; err != nil {
		return nil, err
	}
	return c, nil
}

// stop ends the child and returns when it is gone.
func (c *child) stop() error {
	if err := c.process.Signal(syscall.SIGTERM); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return fmt.Errorf("asking the table server to end: %w", err)
	}
	patience := time.NewTimer(stopGrace)
	defer patience.Stop()
	select {
	case <-c.ended:
		return nil
	case <-patience.C:
	}
	if err := c.process.Kill(); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return fmt.Errorf("killing the table server: %w", err)
	}
	<-c.ended
	return nil
}

// failure says how an ended child ended, with what it said.
func (c *child) failure() error {
	cause := c.err
	if cause == nil {
		cause = errors.New("exit status 0")
	}
	return fmt.Errorf("the table server ended: %w: %s", cause, tail(c.said.String(), 1000))
}

// lastWords keeps the end of what a child writes, at most 8 KiB of it.
type lastWords struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (w *lastWords) Write(p []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.text.Write(p)
	if over := w.text.Len() - 8<<10; over > 0 {
		w.text.Next(over)
	}
	return len(p), nil
}

func (w *lastWords) String() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.text.String()
}
