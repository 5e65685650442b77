package app_test

import (
	"context"
	"errors"
	"io"
	"net/http"
	"strings"
	"sync"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/commerce-integration/service/pkg/commerce"
	"github.com/commerce-integration/service/pkg/delivery/dispatcher"
)

var errDead = errors.New("the process is dead")

// deaths is what stands between a process and the table: a process may die
// between any two of its effects, which are its writes to the table and what it
// sends. A dead process gets no answer that it could go on with.
type deaths struct {
	client dynamodb.HTTPClient

	mu   sync.Mutex
	on   bool
	left int // effects until the process dies
	dead bool
}

// begin starts a process that dies after so many effects.
func (d *deaths) begin(effects int) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.left, d.dead = effects, false
}

// act reports whether the process lives to have an effect.
func (d *deaths) act() bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.on {
		d.dead = d.dead || d.left == 0
		d.left--
	}
	return !d.dead
}

func (d *deaths) lives() bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return !d.dead
}

// Do calls the table.
func (d *deaths) Do(r *http.Request) (*http.Response, error) {
	_, operation, _ := strings.Cut(r.Header.Get("X-Amz-Target"), ".")
	reads := operation == "GetItem" || operation == "BatchGetItem" || operation == "Query"
	if reads && d.lives() || !reads && d.act() {
		return d.client.Do(r)
	}
	return &http.Response{
		StatusCode: http.StatusBadRequest, Header: http.Header{"Content-Type": {"application/x-amz-json-1.0"}}, Request: r,
		Body: io.NopCloser(strings.NewReader(`{"__type":"com.amazon.coral.validate#ValidationException","message":"the process is dead"}`)),
	}, nil
}

// invoke runs a handler. Where processes die it does so again and again, and each
// process dies one effect later than the one before, until one comes to its end;
// or each dies after as many effects as given, and then one does not.
func (w *harness) invoke(handle func() error, cuts ...int) {
	w.t.Helper()
	for n := 0; ; n++ {
		effects := n
		if n < len(cuts) {
			effects = cuts[n]
		} else if len(cuts) > 0 {
			effects = -1
		}
		w.deaths.begin(effects)
		err := handle()
		switch {
		case !w.deaths.lives():
			w.boot()
		case err != nil:
			w.t.Fatalf("%s after the beginning: %v", w.Time().Sub(w.start), err)
		default:
			return
		}
	}
}

// mortalTopic is the topic of processes that die.
type mortalTopic struct {
	dispatcher.Topic
	deaths *deaths
}

func (m mortalTopic) Publish(ctx context.Context, alert *commerce.WebhookPayload) error {
	if !m.deaths.act() {
		return errDead
	}
	return m.Topic.Publish(ctx, alert)
}
