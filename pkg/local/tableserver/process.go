package tableserver

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"sync"
	"syscall"
	"time"

	"github.com/commerce-integration/service/pkg/local/child"
)

// stopGrace is how long a child may take to end by itself before it is killed.
const stopGrace = 3 * time.Second

// A process is one running server.
type process struct {
	process *os.Process
	ended   chan struct{} // closed when the process is gone
	err     error         // how it ended; read it after ended
	said    *lastWords
}

// startProcess runs the binary in the caller's process group, as package child does, and spared the interrupts of a
// terminal: the tables must answer until the caller has finished and closes them. It does not wait for the disk, which
// it would at each write: that a kill loses nothing does not need it.
func startProcess(binary string, args ...string) (*process, error) {
	launcher, err := child.NewLauncher(child.Block(syscall.SIGINT), child.SkipSync)
	if err != nil {
		return nil, err
	}
	c := &process{ended: make(chan struct{}), said: &lastWords{}}
	cmd := exec.Command(binary, args...)
	cmd.Stderr = c.said
	if err := launcher.Start(cmd); err != nil {
		launcher.Close()
		return nil, fmt.Errorf("starting %s: %w", binary, err)
	}
	c.process = cmd.Process
	go func() {
		c.err = cmd.Wait()
		launcher.Close()
		close(c.ended)
	}()
	return c, nil
}

// stop ends the child and returns when it is gone.
func (c *process) stop() error {
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
func (c *process) failure() error {
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
