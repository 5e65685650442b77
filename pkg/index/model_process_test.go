package index_test

import (
	"context"
	"errors"
	"slices"
	"sync"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/smithy-go/middleware"
)

// process is one process of a trial, which can be stopped between two requests
// to the table or die after some writes. The SDK's retries are requests too.
type process struct {
	mu     sync.Mutex
	dies   bool // after so many more writes:
	writes int
	held   *held
}

// held is a process that stops before one of its requests, like one to which
// the system gives no processor.
type held struct {
	requests int           // that pass before it stops; guarded by the process
	reached  chan struct{} // closed when it has stopped
	freed    chan struct{}
	once     sync.Once
}

// release lets the process go on. It may be called more than once.
func (h *held) release() { h.once.Do(func() { close(h.freed) }) }

// hold lets so many more requests pass and stops at the next until release.
func (p *process) hold(requests int) *held {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.held = &held{requests: requests, reached: make(chan struct{}), freed: make(chan struct{})}
	return p.held
}

// crashAfter lets so many more writes pass and then fails every request, reads
// included, until restart.
func (p *process) crashAfter(writes int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.dies, p.writes = true, writes
}

func (p *process) restart() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.dies = false
}

var errDead = errors.New("the process is dead")

// install puts the process before each request of a client.
func (p *process) install(o *dynamodb.Options) {
	o.APIOptions = append(o.APIOptions, func(stack *middleware.Stack) error {
		return stack.Finalize.Insert(middleware.FinalizeMiddlewareFunc("Process", func(ctx context.Context, in middleware.FinalizeInput, next middleware.FinalizeHandler) (
			middleware.FinalizeOutput, middleware.Metadata, error,
		) {
			p.wait(ctx)
			if !p.alive(middleware.GetOperationName(ctx)) {
				return middleware.FinalizeOutput{}, middleware.Metadata{}, errDead
			}
			return next.HandleFinalize(ctx, in)
		}), "Retry", middleware.After)
	})
}

func (p *process) wait(ctx context.Context) {
	p.mu.Lock()
	h := p.held
	if h != nil {
		if h.requests--; h.requests == -1 {
			close(h.reached)
		}
		if h.requests >= 0 {
			h = nil
		}
	}
	p.mu.Unlock()
	if h == nil {
		return
	}
	select {
	case <-h.freed:
	case <-ctx.Done():
	}
}

func (p *process) alive(operation string) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.dies {
		return true
	}
	if p.writes <= 0 {
		return false
	}
	if !slices.Contains([]string{"GetItem", "BatchGetItem", "Query", "Scan"}, operation) {
		p.writes--
	}
	return true
}
