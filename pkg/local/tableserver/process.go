package tableserver

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"syscall"
	"time"

	"github.com/commerce-integration/service/pkg/local/child"
)

// stopGrace is how long a child may take to end by itself before it is killed.
const stopGrace = 3 * time.Second

// A process is one running server.
type process struct {
	*exec.Cmd
	ended <-chan struct{} // closed when the process is gone
	said  lastWords
}

// startProcess runs the binary in the caller's process group, as package child does, and spared the interrupts of a
// terminal: the tables must answer until the caller has finished and closes them. It does not wait for the disk, which
// it would at each write: that a kill loses nothing does not need it.
func startProcess(binary string, args ...string) (c *process, err error) {
	c = &process{Cmd: exec.Command(binary, args...)}
	c.Stderr = &c.said
	if c.ended, err = child.Start(c.Cmd, child.Block(syscall.SIGINT), child.SkipSync); err != nil {
		return nil, fmt.Errorf("starting %s: %w", binary, err)
	}
	return c, nil
}

// stop ends the child, by force if it hangs, and returns when it is gone.
func (c *process) stop() error {
	for _, signal := range []os.Signal{syscall.SIGTERM, os.Kill} {
		if err := c.Process.Signal(signal); err != nil && !errors.Is(err, os.ErrProcessDone) {
			return fmt.Errorf("ending the table server: %w", err)
		}
		select {
		case <-c.ended:
			return nil
		case <-time.After(stopGrace):
		}
	}
	return errors.New("the table server does not end")
}

// failure says how an ended child ended, with what it said.
func (c *process) failure() error {
	return fmt.Errorf("the table server ended: %v: %s", c.ProcessState, tail(string(c.said), 1000))
}

// lastWords keeps the end of what a child writes, at most 8 KiB of it. It is read when the child has ended.
type lastWords []byte

func (w *lastWords) Write(p []byte) (int, error) {
	*w = append(*w, p...)
	if over := len(*w) - 8<<10; over > 0 {
		*w = (*w)[over:]
	}
	return len(p), nil
}
