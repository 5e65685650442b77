package worker

import (
	"sync"
	"time"
)

// batchWindow is how long the first message of a batch waits for more. It
// delays bookkeeping, never an attempt, and only behind an attempt that takes
// longer.
const batchWindow = 20 * time.Millisecond

// batcher handles messages together: all that are waiting when the last one
// was added, or else when the first has waited for a window. So a slow
// message does not hold back the others.
type batcher struct {
	handle func([]*message)

	mu       sync.Mutex
	expected int // messages still to be added
	waiting  []*message
	timer    *time.Timer // runs while some wait
	handling sync.WaitGroup
}

// newBatcher returns a batcher of n messages.
func newBatcher(n int, handle func([]*message)) *batcher {
	return &batcher{handle: handle, expected: n}
}

// add adds a message, each once, and may handle what is waiting.
func (b *batcher) add(m *message) {
	b.mu.Lock()
	b.expected--
	b.waiting = append(b.waiting, m)
	var ready []*message
	switch {
	case b.expected == 0:
		ready = b.take()
	case b.timer == nil:
		b.timer = time.AfterFunc(batchWindow, func() {
			b.mu.Lock()
			ready := b.take()
			b.mu.Unlock()
			b.run(ready)
		})
	}
	b.mu.Unlock()
	b.run(ready)
}

// take empties what waits.
func (b *batcher) take() []*message {
	if b.timer != nil {
		b.timer.Stop()
		b.timer = nil
	}
	ready := b.waiting
	b.waiting = nil
	if len(ready) > 0 {
		b.handling.Add(1)
	}
	return ready
}

func (b *batcher) run(ready []*message) {
	if len(ready) > 0 {
		defer b.handling.Done()
		b.handle(ready)
	}
}

// wait returns when everything that was added has been handled. All messages
// must have been added.
func (b *batcher) wait() { b.handling.Wait() }
