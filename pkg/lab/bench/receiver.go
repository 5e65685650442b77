package bench

import (
	"bytes"
	"context"
	"fmt"
	"maps"
	"sync"
	"time"

	"github.com/commerce-integration/service/pkg/value"
)

// receiver is where the webhooks of all endpoints arrive, each at a path of
// its own. It answers 200 at once, and remembers what it got and when.
type receiver struct {
	*wire

	mu      sync.Mutex
	inboxes map[string]*inbox // by path
}

func newReceiver(ctx context.Context) (*receiver, error) {
	r := &receiver{inboxes: map[string]*inbox{}}
	accepted := ok("text/plain", nil)
	var err error
	r.wire, err = newWire(ctx, func(q *wireRequest) []byte {
		at := time.Now()
		if hanging := r.inbox(string(q.path)).take(at, q); hanging != nil {
			<-hanging
			return nil
		}
		return accepted
	})
	if err != nil {
		return nil, fmt.Errorf("start the receiver: %w", err)
	}
	return r, nil
}

// inbox is what arrives at a path.
func (r *receiver) inbox(path string) *inbox {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.inboxes[path] == nil {
		r.inboxes[path] = &inbox{url: r.url() + path, changed: make(chan struct{}, 1)}
		r.inboxes[path].clear()
	}
	return r.inboxes[path]
}

// inbox is what one endpoint has got.
type inbox struct {
	url     string
	changed chan struct{} // something has arrived since it was read last

	mu       sync.Mutex
	hanging  chan struct{}          // closed when the endpoint hangs no more; nil when it does not
	events   map[string]int         // receipts by webhook-id
	arrivals map[value.ID]time.Time // first receipt by record
	receipts int
	bytes    int64
	last     time.Time // of the first receipts
	wrong    error     // the first receipt that was no event of a record
}

// clear forgets what was received.
func (b *inbox) clear() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.events, b.arrivals, b.receipts, b.bytes, b.wrong = map[string]int{}, map[value.ID]time.Time{}, 0, 0, nil
}

// hang makes the endpoint one that takes requests and does not answer, until
// the end of that, which ends their connections. What it does not answer it
// has not received.
func (b *inbox) hang() (end func()) {
	b.mu.Lock()
	defer b.mu.Unlock()
	hanging := make(chan struct{})
	b.hanging = hanging
	return func() {
		b.mu.Lock()
		defer b.mu.Unlock()
		close(hanging)
		b.hanging = nil
	}
}

// take notes a receipt. Where the endpoint hangs it notes none and returns
// what to wait for.
func (b *inbox) take(at time.Time, q *wireRequest) (hanging <-chan struct{}) {
	record, err := recordOf(q.body)
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.hanging != nil {
		return b.hanging
	}
	b.receipts++
	b.bytes += int64(len(q.body))
	b.events[string(q.event)]++
	switch _, again := b.arrivals[record]; {
	case err != nil && b.wrong == nil:
		b.wrong = err
	case !again:
		b.arrivals[record], b.last = at, at
	}
	select {
	case b.changed <- struct{}{}:
	default:
	}
	return nil
}

// recordOf finds the record's id in a payload.
func recordOf(body []byte) (id value.ID, err error) {
	const before = `"object":{"id":"`
	at := bytes.Index(body, []byte(before))
	if at < 0 || len(body) < at+len(before)+36 {
		return id, fmt.Errorf("a payload without a record: %.200s", body)
	}
	return value.ParseID(string(body[at+len(before) : at+len(before)+36]))
}

// mail is what an endpoint has received.
type mail struct {
	arrivals   map[value.ID]time.Time
	receipts   int
	duplicates int // receipts of an event that had been received
	bytes      int64
	last       time.Time
}

// read returns what has been received so far.
func (b *inbox) read() mail {
	b.mu.Lock()
	defer b.mu.Unlock()
	return mail{
		arrivals: maps.Clone(b.arrivals), receipts: b.receipts, duplicates: b.receipts - len(b.events), bytes: b.bytes, last: b.last,
	}
}

// standstill is how long nothing may arrive before no more is waited for.
const standstill = time.Minute

// await waits for events of as many records, as long as some arrive.
func (b *inbox) await(ctx context.Context, records int) error {
	patience := time.NewTimer(standstill)
	defer patience.Stop()
	for before := -1; ; {
		b.mu.Lock()
		got, wrong := len(b.arrivals), b.wrong
		b.mu.Unlock()
		if wrong != nil {
			return wrong
		}
		if got >= records {
			return nil
		}
		if got > before {
			patience.Reset(standstill)
			before = got
		}
		select {
		case <-b.changed:
		case <-ctx.Done():
			return ctx.Err()
		case <-patience.C:
			return fmt.Errorf("%s got the events of %d of %d records, and no more within %s", b.url, got, records, standstill)
		}
	}
}
