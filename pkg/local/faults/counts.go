package faults

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
)

// Counts says what went through a proxy, by operation.
type Counts struct {
	Requests map[string]int           // those that work on items
	Injected map[Fault]map[string]int // faults that changed what the client saw
}

// Of sums a fault over all operations.
func (c Counts) Of(f Fault) (sum int) {
	for _, n := range c.Injected[f] {
		sum += n
	}
	return sum
}

// String lists the counts in one line per fault.
func (c Counts) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "requests: %v\n", c.Requests)
	for _, f := range slices.Sorted(maps.Keys(c.Injected)) {
		fmt.Fprintf(&b, "%s: %v\n", f, c.Injected[f])
	}
	return b.String()
}

// counter collects Counts.
type counter struct {
	mu     sync.Mutex
	counts Counts
}

func (c *counter) request(op string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.counts.Requests == nil {
		c.counts = Counts{Requests: map[string]int{}, Injected: map[Fault]map[string]int{}}
	}
	c.counts.Requests[op]++
}

func (c *counter) injected(f Fault, op string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.counts.Injected[f] == nil {
		c.counts.Injected[f] = map[string]int{}
	}
	c.counts.Injected[f][op]++
}

func (c *counter) read() Counts {
	c.mu.Lock()
	defer c.mu.Unlock()
	out := Counts{Requests: maps.Clone(c.counts.Requests), Injected: map[Fault]map[string]int{}}
	for f, by := range c.counts.Injected {
		out.Injected[f] = maps.Clone(by)
	}
	return out
}
