package faults

import (
	"context"
	"hash/fnv"
	"math/rand/v2"
	"sync"
)

// Client is one of the clients that the proxy tells apart, such as one
// process of several.
type Client struct {
	mu      sync.Mutex
	random  *rand.Rand
	crashes bool // after so many more writes:
	left    int
	spared  bool
	held    *Held // nil for none
}

func newClient(seed uint64, name string) *Client {
	h := fnv.New64a()
	h.Write([]byte(name))
	return &Client{random: rand.New(rand.NewPCG(seed, h.Sum64()))} //nolint:gosec // faults are to repeat
}

// CrashAfter lets this many more writes of the client through and then cuts
// the connection of every request, reads included, until Restart: as if the
// client had died between two writes.
func (c *Client) CrashAfter(writes int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.crashes, c.left = true, writes
}

// Restart ends a crash, also one that has not come yet.
func (c *Client) Restart() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.crashes = false
}

// Crashed reports whether the client has been cut off.
func (c *Client) Crashed() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.crashes && c.left <= 0
}

// Held is a client that stops before one of its requests, like a process to
// which the system gives no processor.
type Held struct {
	left    int // guarded by the client
	reached chan struct{}
	release chan struct{}
	once    sync.Once
}

// Hold lets this many more requests of the client through, and holds those
// that come then until Release.
func (c *Client) Hold(requests int) *Held {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.held = &Held{left: requests, reached: make(chan struct{}), release: make(chan struct{})}
	return c.held
}

// Reached is closed when the client has come to the request that is held.
func (h *Held) Reached() <-chan struct{} { return h.reached }

// Release lets the client go on. It may be called more than once.
func (h *Held) Release() { h.once.Do(func() { close(h.release) }) }

// pass waits while the client is held.
func (c *Client) pass(ctx context.Context, closing <-chan struct{}) {
	c.mu.Lock()
	h := c.held
	if h != nil {
		h.left--
		if h.left == -1 {
			close(h.reached)
		}
		if h.left >= 0 {
			h = nil
		}
	}
	c.mu.Unlock()
	if h == nil {
		return
	}
	select {
	case <-h.release:
	case <-ctx.Done():
	case <-closing:
	}
}

// Spare exempts the client from faults by chance, or no longer.
func (c *Client) Spare(spared bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.spared = spared
}

// admit reports whether the client still lives, and counts a write.
func (c *Client) admit(o operation) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.crashes {
		return true
	}
	if c.left <= 0 {
		return false
	}
	if o.writes {
		c.left--
	}
	return true
}

// plan is what befalls one request.
type plan struct {
	end             Fault // the fault that ends it, "" for none
	delayed, partly bool
	coin            *rand.Rand // for what the faults leave open
}

// plan draws. It takes the same numbers from the source whatever the rates
// and the operation are, so that one rate more does not change all the rest.
func (c *Client) plan(o operation, rates Rates) plan {
	c.mu.Lock()
	defer c.mu.Unlock()
	p := plan{coin: rand.New(rand.NewPCG(c.random.Uint64(), 0))} //nolint:gosec // as above
	for _, f := range All() {
		hit := c.random.Float64() < rates[f] && o.can(f) && !c.spared
		switch {
		case !hit:
		case f == Delay:
			p.delayed = true
		case f == Unprocessed:
			p.partly = true
		case p.end == "":
			p.end = f
		}
	}
	return p
}
