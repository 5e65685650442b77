// Package processes runs functions as Lambda does: each instance is a process of its own from the function's real
// binary, behind the Lambda Runtime API. A function meets what it meets in Lambda: cold starts, one invocation at a time in
// an instance, several instances at once, a kill at the deadline, a crash that fails only its invocation, and no environment
// but the function's own. No process outlives the caller's. Memory, CPU and network are not limited.
//
// The Runtime API is that of 2018-06-01: https://docs.aws.amazon.com/lambda/latest/dg/runtimes-api.html.
package processes

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"sync"
	"time"
)

// Config holds the optional settings of a fleet.
type Config struct {
	Region string
	Idle   time.Duration // after which an instance without work ends, default 1 min
	Init   time.Duration // what a process may take until it asks for work, default 10 s, as Lambda's
	Logs   io.Writer     // gets the functions' output; nil drops it
	Logger *slog.Logger  // of starts and ends; default: nothing is logged
}

// MaxPayload bounds an event and an answer in bytes, as Lambda does.
const MaxPayload = 6291556

// A Fleet is all instances of all functions. It is safe for concurrent use.
type Fleet struct {
	cfg     Config
	pools   map[string]*pool
	running sync.WaitGroup // instances

	mu     sync.Mutex // held to close the fleet, and to start an instance
	closed context.Context
	end    func() // ends closed
}

// New makes a fleet without instances. It fails when a binary is missing.
func New(functions []Function, cfg Config) (*Fleet, error) {
	cfg.Idle = cmp.Or(cfg.Idle, time.Minute)
	cfg.Init = cmp.Or(cfg.Init, 10*time.Second)
	if cfg.Logger == nil {
		cfg.Logger = slog.New(slog.DiscardHandler)
	}
	f := &Fleet{cfg: cfg, pools: map[string]*pool{}}
	f.closed, f.end = context.WithCancel(context.Background())
	for _, function := range functions {
		if _, err := os.Stat(function.Binary); err != nil {
			return nil, fmt.Errorf("binary of the function %s: %w", function.Name, err)
		}
		f.pools[function.Name] = newPool(f, function)
	}
	return f, nil
}

// Invoke runs a function with an event, both event and answer as Lambda's invoke JSON, in an idle instance, in a new one
// or, when the function has its most, in the first that becomes free. A [*FunctionError] says that the
// function failed, crashed or took too long. When ctx ends, Invoke does too; an invocation that has begun goes on to
// its own deadline.
func (f *Fleet) Invoke(ctx context.Context, function string, event []byte) ([]byte, error) {
	p := f.pools[function]
	if p == nil {
		return nil, fmt.Errorf("unknown function %q", function)
	}
	if len(event) > MaxPayload {
		return nil, fmt.Errorf("event for %s of %d bytes, more than %d", function, len(event), MaxPayload)
	}
	return p.invoke(ctx, event)
}

// errClosed fails invocations once the fleet is closed.
var errClosed = errors.New("the functions are being stopped")

// start runs an instance, unless the fleet is closed.
func (f *Fleet) start(instance func()) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.closed.Err() != nil {
		return errClosed
	}
	f.running.Go(instance)
	return nil
}

// Close kills all instances, which fails their invocations, and returns when they are gone. Closing again does nothing.
func (f *Fleet) Close() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.end()
	f.running.Wait()
	return nil
}
