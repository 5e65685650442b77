package bench

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// child is a process of what is measured, apart from the one that makes the
// load and receives. It is told what to do by lines on its standard input,
// answers by lines on its standard output, and ends with its input.
type child struct {
	cmd   *exec.Cmd
	in    io.WriteCloser
	out   *jsontext.Decoder
	log   *childLog
	ended chan error
}

// childLog passes on what a child says, until it is silenced.
type childLog struct {
	io.Writer
	silent atomic.Bool
}

func (l *childLog) Write(p []byte) (int, error) {
	if l.silent.Load() {
		return len(p), nil
	}
	return l.Writer.Write(p)
}

// childPatience bounds the end of a child, which may have requests under way.
const childPatience = 30 * time.Second

// startChild starts the command line, which has to call [Child], and gives it
// its first order.
func startChild(command []string, log io.Writer, first childOrder) (*child, error) {
	cmd := exec.Command(command[0], command[1:]...) //nolint:gosec,noctx // the bench itself; it ends with its input
	said := &childLog{Writer: log}
	cmd.Stderr = said
	in, err := cmd.StdinPipe()
	if err != nil {
		return nil, fmt.Errorf("start a process of the bench: %w", err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		return nil, fmt.Errorf("start a process of the bench: %w", err)
	}
	if err := cmd.Start(); err != nil {
		return nil, fmt.Errorf("start a process of the bench: %w", err)
	}
	c := &child{cmd: cmd, in: in, out: jsontext.NewDecoder(out), log: said, ended: make(chan error, 1)}
	if err := c.tell(first); err != nil {
		return nil, errors.Join(err, c.close())
	}
	return c, nil
}

// tell gives the child an order.
func (c *child) tell(order any) error {
	text, err := json.Marshal(order)
	if err == nil {
		_, err = c.in.Write(append(text, '\n')) // a number ends with its line
	}
	if err != nil {
		return fmt.Errorf("tell a process of the bench: %w", err)
	}
	return nil
}

// hear waits for the child's answer to an order. When ctx ends first, or the
// child does, there is none.
func (c *child) hear(ctx context.Context, answer any) error {
	heard := make(chan error, 1)
	go func() { heard <- json.UnmarshalDecode(c.out, answer) }()
	select {
	case err := <-heard:
		if err != nil {
			return fmt.Errorf("hear from a process of the bench: %w", err)
		}
		return nil
	case <-ctx.Done():
		// Its end ends the reading, before answer is anybody else's again.
		return errors.Join(ctx.Err(), c.close(), <-heard)
	}
}

// processor is what the child and, apart, its own children have used.
func (c *child) processor() processorTime {
	pid := strconv.Itoa(c.cmd.Process.Pid)
	return processorTime{own: processTime(pid), table: childrenTime(pid)}
}

// close ends the child and waits for that. A second call does nothing.
func (c *child) close() error {
	if c.in == nil {
		return nil
	}
	_ = c.in.Close() // it is gone when that fails
	c.in = nil
	go func() { c.ended <- c.cmd.Wait() }()
	patience := time.NewTimer(childPatience)
	defer patience.Stop()
	select {
	case err := <-c.ended:
		if err != nil {
			return fmt.Errorf("a process of the bench ended: %w", err)
		}
		return nil
	case <-patience.C:
		return errors.Join(fmt.Errorf("a process of the bench did not end within %s", childPatience), c.cmd.Process.Kill(), <-c.ended)
	}
}
