package processes

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync/atomic"
	"time"

	"github.com/google/uuid"
)

// handOver is more than an instance needs from the outcome of an invocation until it takes the next one.
const handOver = 20 * time.Millisecond

// A pool is the instances of one function.
type pool struct {
	fleet    *Fleet
	function Function
	slots    chan struct{}    // holds one for each instance
	work     chan *invocation // taken by an idle instance
	idle     atomic.Int64     // instances that take work, or are about to
}

func newPool(fleet *Fleet, function Function) *pool {
	return &pool{fleet: fleet, function: function, slots: make(chan struct{}, function.Instances), work: make(chan *invocation)}
}

func (p *pool) invoke(ctx context.Context, event []byte) ([]byte, error) {
	i := &invocation{id: uuid.NewString(), event: event, done: make(chan outcome, 1)}
	if err := p.submit(ctx, i); err != nil {
		return nil, fmt.Errorf("invoke %s: %w", p.function.Name, err)
	}
	select {
	case o := <-i.done:
		if o.err != nil {
			return nil, fmt.Errorf("invoke %s: %w", p.function.Name, o.err)
		}
		return o.answer, nil
	case <-ctx.Done(): // the instance goes on, as in Lambda
		return nil, fmt.Errorf("invoke %s: %w", p.function.Name, context.Cause(ctx))
	}
}

// submit gives the invocation to an idle instance, to a new one or, when there are as many as may be, to the first that
// becomes free. Those that wait come in their order.
func (p *pool) submit(ctx context.Context, i *invocation) error {
	if p.idle.Load() > 0 {
		select {
		case p.work <- i:
			return nil
		case <-time.After(handOver): // other invocations were faster
		}
	}
	select {
	case p.work <- i:
		return nil
	case p.slots <- struct{}{}:
		return p.fleet.start(func() { p.run(i) })
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-p.fleet.closed.Done():
		return errClosed
	}
}

// run serves invocations by one process, from the first on, until it ends. When the last invocation has its
// outcome, the process is gone and its slot free.
func (p *pool) run(first *invocation) {
	n, err := p.start()
	if err != nil {
		<-p.slots
		first.done <- outcome{err: err}
		return
	}
	last, o := n.serve(first)
	n.stop()
	<-p.slots
	level := slog.LevelDebug
	if last != nil {
		last.done <- o
		if !errors.Is(o.err, errClosed) {
			level = slog.LevelWarn
		}
	}
	p.fleet.cfg.Logger.Log(context.Background(), level, "instance ended", "function", p.function.Name, "how", n.cmd.ProcessState, "cause", o.err)
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

// failed is how Lambda fails an invocation by a fault of the function's process.
func (i *invocation) failed(kind, format string, args ...any) *FunctionError {
	return &FunctionError{Type: kind, Message: fmt.Sprintf("RequestId: %s Error: "+format, append([]any{i.id}, args...)...)}
}
