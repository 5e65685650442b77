package processes

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os/exec"
	"strings"
	"sync"
	"time"

	"github.com/google/uuid"

	"github.com/commerce-integration/service/pkg/local/child"
)

// An instance is a process of a function with a Runtime API of its own.
type instance struct {
	pool *pool
	cmd  *exec.Cmd
	api  *http.Server
	asks chan chan<- *invocation // the process asks for work
	gone <-chan struct{}         // closed when the process has ended

	mu      sync.Mutex
	outcome *outcome // of the process's invocation, until it asks for more
}

// start starts a process with its Runtime API.
func (p *pool) start() (*instance, error) {
	listener, err := (&net.ListenConfig{}).Listen(context.Background(), "tcp", "127.0.0.1:0")
	if err != nil {
		return nil, fmt.Errorf("listen for the runtime API: %w", err)
	}
	n := &instance{pool: p, asks: make(chan chan<- *invocation)}
	n.api = &http.Server{Handler: n.handler(), ReadHeaderTimeout: 10 * time.Second}
	go n.api.Serve(listener) //nolint:errcheck // it ends by Close
	stream := time.Now().UTC().Format("2006/01/02") + "/[" + version + "]" + strings.ReplaceAll(uuid.NewString(), "-", "")
	n.cmd = exec.Command(p.function.Binary) //nolint:gosec // it is the function's
	n.cmd.Env = p.function.environment(p.fleet.cfg.Region, listener.Addr().String(), stream)
	n.cmd.Stdout, n.cmd.Stderr = p.fleet.cfg.Logs, p.fleet.cfg.Logs
	// A terminal's interrupt must reach only the caller, which lets functions finish and then kills them.
	child.Apart(n.cmd)
	// A process that the function started must not keep Wait by holding the output open.
	n.cmd.WaitDelay = time.Second
	if n.gone, err = child.Start(n.cmd); err != nil {
		return nil, errors.Join(fmt.Errorf("start %s: %w", p.function.Binary, err), n.api.Close())
	}
	return n, nil
}

// stop kills the process without a warning, as Lambda does to a function without extensions.
func (n *instance) stop() {
	_ = n.cmd.Process.Kill() // it may have ended
	<-n.gone
	_ = n.api.Close()
}

// serve hands invocations to the process, from i on, until it is idle for too long or its end fails one. It returns that
// one with its outcome.
func (n *instance) serve(i *invocation) (*invocation, outcome) {
	init, timeout := n.pool.fleet.cfg.Init, n.pool.function.Timeout
	tooSlow := &FunctionError{Type: "Sandbox.Timedout", Message: fmt.Sprintf("initialization timed out after %.2f seconds", init.Seconds())}
	ask, err := n.asked(i, init, tooSlow)
	if err != nil {
		return i, outcome{err: err}
	}
	for {
		i.deadline = time.Now().Add(timeout) // the initialization is not in it
		ask <- i
		// As in Lambda an invocation is over only when the process asks for the next.
		ask, err = n.asked(i, timeout, i.failed("Sandbox.Timedout", "Task timed out after %.2f seconds", timeout.Seconds()))
		o := n.end(i, err)
		if err != nil {
			return i, o
		}
		n.pool.idle.Add(1)
		i.done <- o
		i = n.idle()
		n.pool.idle.Add(-1)
		if i == nil {
			return nil, outcome{}
		}
	}
}

// asked waits until the process asks for work. The error is what fails i meanwhile: late after the limit.
func (n *instance) asked(i *invocation, limit time.Duration, late error) (chan<- *invocation, error) {
	timer := time.NewTimer(limit)
	defer timer.Stop()
	select {
	case ask := <-n.asks:
		return ask, nil
	case <-n.gone:
		return nil, i.failed("Runtime.ExitError", "Runtime exited: %v", n.cmd.ProcessState)
	case <-timer.C:
		return nil, late
	case <-n.pool.fleet.closed.Done():
		return nil, errClosed
	}
}

// end returns the outcome of the process's invocation: what it answered, or the error.
func (n *instance) end(i *invocation, err error) outcome {
	n.mu.Lock()
	defer n.mu.Unlock()
	o := n.outcome
	n.outcome = nil
	switch {
	case o != nil:
		return *o
	case err != nil:
		return outcome{err: err}
	}
	return outcome{err: i.failed("Runtime.InvalidStateTransition", "the runtime asked for work before it answered")}
}

// idle waits for another invocation, nil when the process is to end.
func (n *instance) idle() *invocation {
	timer := time.NewTimer(n.pool.fleet.cfg.Idle)
	defer timer.Stop()
	select {
	case i := <-n.pool.work:
		return i
	case <-n.gone:
	case <-timer.C:
	case <-n.pool.fleet.closed.Done():
	}
	return nil
}

// settle keeps the outcome of the process's invocation.
func (n *instance) settle(o outcome) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.outcome = &o
}
