package processes

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"os"
	"os/exec"
	"strings"
	"time"

	"github.com/google/uuid"

	"github.com/commerce-integration/service/pkg/local/child"
)

// An instance is a process of a function with a Runtime API of its own. The pool's lock guards its state while the process
// runs.
type instance struct {
	pool *pool
	work chan *invocation // to a process that waits for it

	process *os.Process // nil until it has started
	ready   bool        // it has asked for work
	current *invocation // nil between invocations
	begun   bool        // current was handed to the process
	outcome *outcome    // of current, until the process has asked for more or is gone
	timer   *time.Timer // of initialization, deadline or idleness
	cause   error       // why the process was killed, nil when it ended by itself
	failed  error       // what it reported of its initialization
}

// run starts the process and returns when it has ended, and with it its invocation.
func (n *instance) run() {
	how := n.serve()
	n.pool.remove(n)
	n.pool.mu.Lock()
	defer n.pool.mu.Unlock()
	level := slog.LevelWarn
	if errors.Is(n.cause, errIdle) || errors.Is(n.cause, errClosed) {
		level = slog.LevelDebug
	}
	n.pool.fleet.cfg.Logger.Log(context.Background(), level, "instance ended", "function", n.pool.function.Name, "how", how, "cause", n.cause)
	if n.current != nil {
		n.current.done <- n.last(how)
	}
}

// last is the outcome of the invocation whose process has ended. The caller holds the lock.
func (n *instance) last(how error) outcome {
	switch {
	case n.outcome != nil:
		return *n.outcome
	case n.cause != nil:
		return outcome{err: n.cause}
	case n.failed != nil:
		return outcome{err: n.failed}
	}
	return outcome{err: n.current.exited(how)}
}

// serve runs the process with its Runtime API and returns how it ended.
func (n *instance) serve() error {
	listener, err := (&net.ListenConfig{}).Listen(context.Background(), "tcp", "127.0.0.1:0")
	if err != nil {
		return fmt.Errorf("listen for the runtime API: %w", err)
	}
	api := &http.Server{Handler: n.handler(), ReadHeaderTimeout: 10 * time.Second}
	go api.Serve(listener) //nolint:errcheck // it ends by Close
	defer api.Close()
	cmd, err := n.start(listener.Addr().String())
	if err != nil {
		return err
	}
	err = cmd.Wait()
	n.pool.mu.Lock()
	defer n.pool.mu.Unlock()
	n.process = nil
	if n.timer != nil {
		n.timer.Stop()
	}
	if err == nil {
		err = errors.New("exit status 0")
	}
	return err
}

func (n *instance) start(runtimeAPI string) (*exec.Cmd, error) {
	fleet, function := n.pool.fleet, n.pool.function
	stream := time.Now().UTC().Format("2006/01/02") + "/[" + version + "]" + strings.ReplaceAll(uuid.NewString(), "-", "")
	cmd := exec.Command(function.Binary) //nolint:gosec // it is the function's
	cmd.Env = function.environment(fleet.cfg.Region, runtimeAPI, stream)
	out := fleet.logs.of(function.Name)
	defer out.named(cmd)
	cmd.Stdout, cmd.Stderr = out, out
	// A terminal's interrupt must reach only the caller, which lets functions finish and then kills them.
	child.Apart(cmd)
	// A process that the function started must not keep Wait by holding the output open.
	cmd.WaitDelay = time.Second
	n.pool.mu.Lock()
	defer n.pool.mu.Unlock()
	if n.pool.closed {
		return nil, errClosed
	}
	if err := fleet.launcher.Start(cmd); err != nil {
		return nil, fmt.Errorf("start %s: %w", function.Binary, err)
	}
	n.process = cmd.Process
	n.timer = time.AfterFunc(fleet.cfg.Init, n.tooSlow)
	return cmd, nil
}

// begin gives the instance an invocation. Its timeout runs from here and does not include the initialization of a new
// process. The caller holds the lock.
func (n *instance) begin(i *invocation) {
	n.timer.Stop()
	n.current, n.begun, n.outcome = i, true, nil
	i.deadline = time.Now().Add(n.pool.function.Timeout)
	n.timer = time.AfterFunc(n.pool.function.Timeout, func() { n.expire(i) })
}

// rest ends the instance's invocation when it asks for the next. As in Lambda an invocation is over only then, so that
// sequential invocations get the same instance. The caller holds the lock.
func (n *instance) rest() {
	n.timer.Stop()
	n.ready = true
	if !n.begun {
		return
	}
	if n.outcome == nil {
		n.outcome = &outcome{err: &FunctionError{Type: "Runtime.InvalidStateTransition", Message: "RequestId: " + n.current.id + " Error: the runtime asked for work before it answered"}}
	}
	n.current.done <- *n.outcome
	n.current, n.begun, n.outcome = nil, false, nil
}

// expire ends an instance whose invocation is past its deadline.
func (n *instance) expire(i *invocation) {
	n.pool.mu.Lock()
	defer n.pool.mu.Unlock()
	if n.current == i {
		n.end(i.timedOut(n.pool.function.Timeout))
	}
}

// tooSlow ends an instance that has not asked for work in time.
func (n *instance) tooSlow() {
	n.pool.mu.Lock()
	defer n.pool.mu.Unlock()
	if !n.ready {
		n.end(&FunctionError{Type: "Sandbox.Timedout", Message: fmt.Sprintf("initialization timed out after %.2f seconds", n.pool.fleet.cfg.Init.Seconds())})
	}
}

// errIdle ends an instance that was idle for Config.Idle.
var errIdle = errors.New("it was idle")

// retire ends an instance that is idle.
func (n *instance) retire() {
	n.pool.mu.Lock()
	defer n.pool.mu.Unlock()
	if n.pool.forget(n) {
		n.end(errIdle)
	}
}

// errHungUp ends an instance that gave up waiting for work.
var errHungUp = errors.New("it hung up on the runtime API")

// hungUp ends a process that closed its connection, so that it gets no work: nearly always it is dying.
func (n *instance) hungUp() {
	n.pool.mu.Lock()
	defer n.pool.mu.Unlock()
	if n.pool.forget(n) {
		n.end(errHungUp)
	}
}

// end kills the process without a warning, as Lambda does to a function without extensions. The first cause counts. The
// caller holds the lock.
func (n *instance) end(cause error) {
	if n.cause == nil {
		n.cause = cause
	}
	if n.process != nil {
		_ = n.process.Kill() // it may just have ended
	}
}
