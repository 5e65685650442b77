package processes

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/google/uuid"
)

// A pool is the instances of one function.
type pool struct {
	fleet    *Fleet
	function Function

	mu      sync.Mutex // guards what follows, and the state of the instances
	alive   map[*instance]bool
	idle    []*instance   // the last to become so is the first to get work, so that the others can end
	waiting []*invocation // for an instance to become free, first come first served
	closed  bool
}

func (p *pool) invoke(ctx context.Context, event []byte) ([]byte, error) {
	i := newInvocation(event)
	if err := p.submit(i); err != nil {
		return nil, fmt.Errorf("invoke %s: %w", p.function.Name, err)
	}
	select {
	case o := <-i.done:
		if o.err != nil {
			return nil, fmt.Errorf("invoke %s: %w", p.function.Name, o.err)
		}
		return o.answer, nil
	case <-ctx.Done():
		p.withdraw(i)
		return nil, fmt.Errorf("invoke %s: %w", p.function.Name, context.Cause(ctx))
	}
}

// submit gives the invocation to an instance or queues it.
func (p *pool) submit(i *invocation) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	switch {
	case p.closed:
		return errClosed
	case len(p.idle) > 0:
		n := p.idle[len(p.idle)-1]
		p.idle = p.idle[:len(p.idle)-1]
		n.begin(i)
		n.work <- i
	case len(p.alive) < p.function.Instances:
		p.grow(i)
	default:
		p.waiting = append(p.waiting, i)
	}
	return nil
}

// withdraw removes an invocation from the queue. One that has an instance goes on, as in Lambda.
func (p *pool) withdraw(i *invocation) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if at := slices.Index(p.waiting, i); at >= 0 {
		p.waiting = slices.Delete(p.waiting, at, at+1)
	}
}

// grow starts an instance for an invocation. The caller holds the lock.
func (p *pool) grow(first *invocation) {
	n := &instance{pool: p, current: first, work: make(chan *invocation, 1)}
	p.alive[n] = true
	p.fleet.running.Go(n.run)
}

// next returns the next invocation of an instance that asks for work: its first, or one that waits. When it returns nil,
// the instance is idle and gets its work by channel. The caller holds the lock.
func (p *pool) next(n *instance) *invocation {
	if n.current == nil && len(p.waiting) > 0 {
		n.current, p.waiting = p.waiting[0], p.waiting[1:]
	}
	if n.current != nil {
		n.begin(n.current)
		return n.current
	}
	p.idle = append(p.idle, n)
	n.timer = time.AfterFunc(p.fleet.cfg.Idle, n.retire)
	return nil
}

// remove drops an instance whose process has ended and starts another if invocations wait.
func (p *pool) remove(n *instance) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.alive, n)
	p.forget(n)
	if !p.closed && len(p.waiting) > 0 {
		first := p.waiting[0]
		p.waiting = p.waiting[1:]
		p.grow(first)
	}
}

// forget takes an instance out of the idle ones and reports whether it was one. The caller holds the lock.
func (p *pool) forget(n *instance) bool {
	at := slices.Index(p.idle, n)
	if at < 0 {
		return false
	}
	p.idle = slices.Delete(p.idle, at, at+1)
	return true
}

func (p *pool) close() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.closed = true
	for _, i := range p.waiting {
		i.done <- outcome{err: errClosed}
	}
	p.waiting = nil
	for n := range p.alive {
		n.end(errClosed)
	}
}

// A FunctionError is Lambda's answer to an invocation that failed: what the function reported, or how its process ended.
type FunctionError struct {
	Type    string `json:"errorType"`
	Message string `json:"errorMessage"`
}

func (e *FunctionError) Error() string {
	if e.Type == "" {
		return e.Message
	}
	return e.Type + ": " + e.Message
}

// An invocation waits for an instance or is in one.
type invocation struct {
	id    string
	event []byte
	done  chan outcome // takes the only one, whether or not somebody still waits

	deadline time.Time // once an instance has it
}

type outcome struct {
	answer []byte
	err    error
}

func newInvocation(event []byte) *invocation {
	return &invocation{id: uuid.NewString(), event: event, done: make(chan outcome, 1)}
}

// timedOut is how Lambda fails an invocation past its deadline.
func (i *invocation) timedOut(limit time.Duration) *FunctionError {
	return &FunctionError{
		Type: "Sandbox.Timedout", Message: fmt.Sprintf("RequestId: %s Error: Task timed out after %.2f seconds", i.id, limit.Seconds()),
	}
}

// exited is how Lambda fails an invocation whose process ended.
func (i *invocation) exited(how error) *FunctionError {
	return &FunctionError{Type: "Runtime.ExitError", Message: fmt.Sprintf("RequestId: %s Error: Runtime exited: %v", i.id, how)}
}
