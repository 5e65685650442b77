package workload

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"sync"
	"time"

	"github.com/go-json-experiment/json"

	"github.com/commerce-integration/service/pkg/base/value"
)

// Serve serves HTTP on a free port of the loopback interface until the server
// is closed, and returns its URL.
func Serve(ctx context.Context, handler http.Handler) (*http.Server, string, error) {
	l, err := (&net.ListenConfig{}).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return nil, "", fmt.Errorf("listen for webhooks: %w", err)
	}
	server := &http.Server{Handler: handler, ReadHeaderTimeout: 10 * time.Second}
	go server.Serve(l) //nolint:errcheck // it ends by Close
	return server, "http://" + l.Addr().String(), nil
}

// Receiver takes the webhooks of endpoints that are well, each at a path of its
// own. It answers 200 at once and notes when each event arrived.
type Receiver struct {
	server *http.Server
	url    string

	mu      sync.Mutex
	inboxes map[string]*Inbox // by path
}

// NewReceiver starts a receiver.
func NewReceiver(ctx context.Context) (r *Receiver, err error) {
	r = &Receiver{inboxes: map[string]*Inbox{}}
	r.server, r.url, err = Serve(ctx, r)
	return r, err
}

// Close ends the receiver.
func (r *Receiver) Close() error { return r.server.Close() }

func (r *Receiver) inbox(path string) *Inbox {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.inboxes[path] == nil {
		b := &Inbox{url: r.url + path, changed: make(chan struct{}, 1)}
		b.clear()
		r.inboxes[path] = b
	}
	return r.inboxes[path]
}

// ServeHTTP takes an event.
func (r *Receiver) ServeHTTP(w http.ResponseWriter, q *http.Request) {
	at := time.Now()
	body, err := io.ReadAll(q.Body)
	if err != nil {
		panic(http.ErrAbortHandler) // the client is gone
	}
	if hanging := r.inbox(q.URL.Path).take(at, q.Header.Get("webhook-id"), body); hanging != nil {
		select {
		case <-hanging:
		case <-q.Context().Done():
		}
		panic(http.ErrAbortHandler)
	}
	w.WriteHeader(http.StatusOK)
}

// Inbox is what one endpoint has got.
type Inbox struct {
	url     string
	changed chan struct{} // something has arrived since it was read last

	mu       sync.Mutex
	hanging  chan struct{} // closed when the endpoint stops hanging; nil when it does not hang
	arrivals map[value.ID]time.Time
	events   map[string]bool // by webhook-id
	Mail
	wrong error // the first receipt that was no event of a record
}

// Mail sums what an endpoint has received.
type Mail struct {
	Receipts   int
	Duplicates int // receipts of an event that had been received
	Bytes      int64
	Last       time.Time // first receipt of the last record
}

// clear forgets what was received.
func (b *Inbox) clear() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.arrivals, b.events, b.Mail, b.wrong = map[value.ID]time.Time{}, map[string]bool{}, Mail{}, nil
}

// Hang has the endpoint take requests and not answer them, until end, which
// cuts their connections. It does not count what it does not answer.
func (b *Inbox) Hang() (end func()) {
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

// take notes a receipt. Where the endpoint hangs it notes none and returns what
// to wait for.
func (b *Inbox) take(at time.Time, event string, body []byte) (hanging <-chan struct{}) {
	var payload struct {
		Data struct {
			Object struct {
				ID value.ID `json:"id"`
			} `json:"object"`
		} `json:"data"`
	}
	err := json.Unmarshal(body, &payload)
	record := payload.Data.Object.ID
	if err == nil && record.IsZero() {
		err = errors.New("it has no record")
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.hanging != nil {
		return b.hanging
	}
	b.Receipts++
	b.Bytes += int64(len(body))
	if b.events[event] {
		b.Duplicates++
	}
	b.events[event] = true
	if err != nil && b.wrong == nil {
		b.wrong = fmt.Errorf("%s got %.200s: %w", b.url, body, err)
	}
	if _, again := b.arrivals[record]; err == nil && !again {
		b.arrivals[record], b.Last = at, at
	}
	select {
	case b.changed <- struct{}{}:
	default:
	}
	return nil
}

// Read returns what has been received since the last start of a load.
func (b *Inbox) Read() (Mail, map[value.ID]time.Time) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.Mail, maps.Clone(b.arrivals)
}

// standstill is how long nothing may arrive before no more is waited for.
const standstill = time.Minute

// Await waits for events of so many records, as long as some arrive.
func (b *Inbox) Await(ctx context.Context, records int) error {
	timeout := time.NewTimer(standstill)
	defer timeout.Stop()
	for before := -1; ; {
		b.mu.Lock()
		got, wrong := len(b.arrivals), b.wrong
		b.mu.Unlock()
		if wrong != nil || got >= records {
			return wrong
		}
		if got > before {
			timeout.Reset(standstill)
			before = got
		}
		select {
		case <-b.changed:
		case <-ctx.Done():
			return ctx.Err()
		case <-timeout.C:
			return fmt.Errorf("%s got the events of %d of %d records, and no more within %s", b.url, got, records, standstill)
		}
	}
}
