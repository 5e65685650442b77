package worker

import (
	"sync"
	"time"
)

// window is how long what has come waits for more of its batch. It delays
// bookkeeping, never an attempt, and only behind an attempt that takes
// longer.
const window = 20 * time.Millisecond

// gather hands on together what tasks of a batch have come to: all of it when
// no more can come, else what is there a window after the first. So a slow
// task does not hold back the others.
type gather struct {
	hand func([]*task)

	mu       sync.Mutex
	expected int // tasks that have not come yet
	waiting  []*task
	timer    *time.Timer // runs while some wait
	handing  sync.WaitGroup
}

// newGather returns the gathering of a batch of n tasks.
func newGather(n int, hand func([]*task)) *gather { return &gather{hand: hand, expected: n} }

// come tells that a task has come this far, and whether it joins the others.
// Every task comes once.
func (g *gather) come(t *task, joins bool) {
	g.mu.Lock()
	g.expected--
	if joins {
		g.waiting = append(g.waiting, t)
	}
	var ready []*task
	switch {
	case len(g.waiting) == 0:
	case g.expected == 0:
		ready = g.take()
	case g.timer == nil:
		g.timer = time.AfterFunc(window, g.expire)
	}
	g.mu.Unlock()
	g.pass(ready)
}

func (g *gather) expire() {
	g.mu.Lock()
	ready := g.take()
	g.mu.Unlock()
	g.pass(ready)
}

// take empties what waits.
func (g *gather) take() []*task {
	if g.timer != nil {
		g.timer.Stop()
		g.timer = nil
	}
	ready := g.waiting
	g.waiting = nil
	if len(ready) > 0 {
		g.handing.Add(1)
	}
	return ready
}

func (g *gather) pass(ready []*task) {
	if len(ready) > 0 {
		defer g.handing.Done()
		g.hand(ready)
	}
}

// wait returns when everything that came is handed on. All must have come.
func (g *gather) wait() { g.handing.Wait() }
