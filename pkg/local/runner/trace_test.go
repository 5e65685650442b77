package runner

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"io"
	"log/slog"
	"math"
	"net/http"
	"net/http/httptest"
	"os"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/go-json-experiment/json"

	"github.com/commerce-integration/service/pkg/base/value"
	"github.com/commerce-integration/service/pkg/local/apiclient"
	"github.com/commerce-integration/service/pkg/local/tableserver"
	"github.com/commerce-integration/service/pkg/testkit/cputime"
)

// BenchmarkRecordToReceipt measures how long a record takes from its message on the queue to the receiver of its event,
// and where the time goes: each figure is the median of one hop in milliseconds, seen on the wire, and the last ones
// are those of the whole way.
func BenchmarkRecordToReceipt(b *testing.B) {
	t := startTraced(b, false)
	b.Run("one at a time", func(b *testing.B) { t.measure(b, func(send func()) { t.oneByOne(b, send) }) })
	b.Run("100 per second", func(b *testing.B) { t.measure(b, func(send func()) { t.paced(b, send) }) })
	b.Run("bulk", func(b *testing.B) { t.bulk(b) })
}

// BenchmarkRecordToReceiptWithProcesses is the same where functions are processes, of which the wire shows nothing.
func BenchmarkRecordToReceiptWithProcesses(b *testing.B) {
	t := startTraced(b, true)
	b.Run("one at a time", func(b *testing.B) { t.measure(b, func(send func()) { t.oneByOne(b, send) }) })
	b.Run("100 per second", func(b *testing.B) { t.measure(b, func(send func()) { t.paced(b, send) }) })
	b.Run("bulk", func(b *testing.B) { t.bulk(b) })
}

// BenchmarkIdle measures the processor time of a service that nobody uses.
func BenchmarkIdle(b *testing.B) {
	startTraced(b, false)
	time.Sleep(3 * time.Second) // what the start has left to do
	for b.Loop() {
		used := cputime.Used()
		time.Sleep(2 * time.Second)
		b.ReportMetric(float64(cputime.Used()-used)/float64(2*time.Second)*100, "%cpu")
	}
}

// A call is one request to table or queue.
type call struct {
	operation  string
	start, end time.Time
	sent, got  []byte
}

// wire counts the calls of all clients, and records what they say while it is on.
type wire struct {
	inner aws.HTTPClient
	on    atomic.Bool

	mu    sync.Mutex
	calls []*call
}

func (w *wire) Do(r *http.Request) (*http.Response, error) {
	_, operation, _ := strings.Cut(r.Header.Get("X-Amz-Target"), ".")
	c := &call{operation: operation, start: time.Now()}
	if !w.on.Load() {
		w.mu.Lock()
		w.calls = append(w.calls, c)
		w.mu.Unlock()
		return w.inner.Do(r)
	}
	var err error
	if r.Body != nil {
		if c.sent, err = io.ReadAll(r.Body); err != nil {
			return nil, err
		}
		r.Body = io.NopCloser(bytes.NewReader(c.sent))
	}
	resp, err := w.inner.Do(r)
	if err != nil {
		return resp, err
	}
	c.got, err = io.ReadAll(resp.Body)
	resp.Body.Close()
	c.end = time.Now()
	resp.Body = io.NopCloser(bytes.NewReader(c.got))
	w.mu.Lock()
	defer w.mu.Unlock()
	w.calls = append(w.calls, c)
	return resp, err
}

// find returns the first call of an operation with the text in what was sent or got.
func (w *wire) find(text string, after time.Time, operations ...string) *call {
	for _, c := range w.calls {
		if slices.Contains(operations, c.operation) && !c.end.Before(after) && (bytes.Contains(c.sent, []byte(text)) || bytes.Contains(c.got, []byte(text))) {
			return c
		}
	}
	return nil
}

// traced is a service with one endpoint, whose traffic is seen.
type traced struct {
	info  *Info
	wire  *wire
	queue *sqs.Client

	mu       sync.Mutex
	sent     map[string]time.Time // by the record's id
	received map[string]receipt
	arrived  chan struct{}
	twice    int
}

type receipt struct {
	at    time.Time
	event string
}

func startTraced(b *testing.B, processes bool) *traced {
	b.Helper()
	cache, err := tableserver.CacheDir()
	if err != nil {
		b.Fatal(err)
	}
	t := &traced{wire: &wire{}, sent: map[string]time.Time{}, received: map[string]receipt{}, arrived: make(chan struct{}, 1<<20)}
	ready, ended := make(chan *Info, 1), make(chan error, 1)
	ctx, cancel := context.WithCancel(context.Background())
	go func() {
		ended <- Run(ctx, Config{
			Addr: "127.0.0.1:0", DataDir: b.TempDir(), BinDir: cache,
			Template: "../../../template.yaml", NoDemo: true, PrivateTargets: true, Processes: processes,
			Logger: slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelWarn})),
			AWS:    func(cfg *aws.Config) { t.wire.inner, cfg.HTTPClient = cfg.HTTPClient, t.wire },
			Ready:  func(info *Info) { ready <- info },
		})
	}()
	select {
	case t.info = <-ready:
	case err := <-ended:
		b.Fatal(err)
	}
	receiver := httptest.NewServer(t)
	b.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			b.Error(err)
		}
		receiver.Close()
	})
	t.queue = sqs.NewFromConfig(AWSConfig(), func(o *sqs.Options) { o.BaseEndpoint = &t.info.SQSEndpoint })
	body := map[string]any{"url": receiver.URL, "events": []string{"order.created"}}
	if err := apiclient.New(t.info.BaseURL, t.info.JWT).Create(ctx, "/developers/webhooks/endpoints?applicationId="+t.info.ApplicationID, body, nil); err != nil {
		b.Fatal(err)
	}
	return t
}

// ServeHTTP is the receiver.
func (t *traced) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	at := time.Now()
	var event struct {
		ID   string `json:"id"`
		Data struct {
			Object struct {
				ID string `json:"id"`
			} `json:"object"`
		} `json:"data"`
	}
	if err := json.UnmarshalRead(r.Body, &event); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if _, again := t.received[event.Data.Object.ID]; again {
		t.twice++
		return
	}
	t.received[event.Data.Object.ID] = receipt{at, event.ID}
	t.arrived <- struct{}{}
}

func (t *traced) order() (id, body string) {
	id = value.NewID().String()
	return id, fmt.Sprintf(`{"organizationId":%q,"kind":"order","op":"put","record":{"id":%q,"orderNumber":"A-1","currency":"EUR","status":"PENDING","notes":%q,
		"items":[{"name":"Tea","quantity":2,"unitPrice":9.9}]}}`, t.info.OrganizationID, id, strings.Repeat("It is to be a present. ", 25))
}

// send sends one record.
func (t *traced) send(b *testing.B) {
	id, body := t.order()
	t.mu.Lock()
	t.sent[id] = time.Now()
	t.mu.Unlock()
	_, err := t.queue.SendMessage(b.Context(), &sqs.SendMessageInput{QueueUrl: &t.info.RecordsQueueURL, MessageBody: &body, MessageGroupId: &t.info.OrganizationID})
	if err != nil {
		b.Error(err)
	}
}

func (t *traced) await(b *testing.B, n int) {
	b.Helper()
	patience := time.After(30*time.Second + time.Duration(n)*10*time.Millisecond)
	for range n {
		select {
		case <-t.arrived:
		case <-patience:
			b.Fatalf("waited in vain for %d events", n)
		}
	}
}

func (t *traced) oneByOne(b *testing.B, send func()) {
	for i := range b.N {
		send()
		t.await(b, 1)
		time.Sleep(time.Duration(30+i*7%20) * time.Millisecond) // at different moments of what goes by the clock
	}
}

// paced sends 100 a second, whatever becomes of them.
func (t *traced) paced(b *testing.B, send func()) {
	ticks := time.NewTicker(10 * time.Millisecond)
	defer ticks.Stop()
	var sending sync.WaitGroup
	for range b.N {
		<-ticks.C
		sending.Go(send)
	}
	sending.Wait()
	t.await(b, b.N)
}

func (t *traced) measure(b *testing.B, drive func(send func())) {
	t.begin()
	t.wire.on.Store(true)
	used := cputime.Used()
	drive(func() { t.send(b) })
	time.Sleep(300 * time.Millisecond)
	used = cputime.Used() - used
	t.wire.on.Store(false)
	t.report(b, used)
}

func (t *traced) bulk(b *testing.B) {
	t.begin()
	used := cputime.Used()
	started := time.Now()
	var sending sync.WaitGroup
	for range 4 {
		sending.Go(func() {
			for range b.N / 4 {
				t.send(b)
			}
		})
	}
	t.await(b, b.N/4*4)
	took := time.Since(started)
	sending.Wait()
	time.Sleep(500 * time.Millisecond)
	b.ReportMetric(float64(b.N/4*4)/took.Seconds(), "events/s")
	b.ReportMetric((cputime.Used()-used).Seconds()*1000/float64(max(1, b.N/4*4)), "cpu-ms/event")
	b.ReportMetric(float64(t.twice), "duplicates")
	b.ReportMetric(0, "ns/op")
	t.wire.mu.Lock()
	defer t.wire.mu.Unlock()
	b.Logf("calls per event: %v", t.wire.perEvent(b.N/4*4))
}

func (t *traced) begin() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.sent, t.received, t.twice = map[string]time.Time{}, map[string]receipt{}, 0
	for len(t.arrived) > 0 {
		<-t.arrived
	}
	t.wire.mu.Lock()
	defer t.wire.mu.Unlock()
	t.wire.calls = nil
}

// report prints the median of each hop.
func (t *traced) report(b *testing.B, used time.Duration) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.wire.mu.Lock()
	defer t.wire.mu.Unlock()
	slices.SortFunc(t.wire.calls, func(x, y *call) int { return cmp.Compare(x.end.UnixNano(), y.end.UnixNano()) })
	hops := map[string][]time.Duration{}
	var whole []time.Duration
	ways := map[time.Duration]string{}
	for id, sent := range t.sent {
		got := t.received[id]
		took := got.at.Sub(sent)
		way := fmt.Sprintf("%v:", took.Round(100*time.Microsecond))
		t.hops(id, sent, got, func(name string, from, to time.Time) {
			hops[name] = append(hops[name], to.Sub(from))
			way += fmt.Sprintf(" %s %.1f", name, to.Sub(from).Seconds()*1000)
		})
		whole, ways[took] = append(whole, took), way
	}
	for name, all := range hops {
		b.ReportMetric(quantile(all, 0.5), name+"-ms")
	}
	b.ReportMetric(quantile(whole, 0.5), "p50-ms")
	b.ReportMetric(quantile(whole, 0.99), "p99-ms")
	b.ReportMetric(used.Seconds()*1000/float64(b.N), "cpu-ms/event")
	b.ReportMetric(0, "ns/op")
	b.Logf("calls per event: %v", t.wire.perEvent(b.N))
	for _, took := range whole[max(0, len(whole)-5):] {
		b.Logf("among the slowest, with its hops in ms: %s", ways[took])
	}
}

// perEvent is how often each operation was called.
func (w *wire) perEvent(n int) map[string]string {
	counts, per := map[string]int{}, map[string]string{}
	for _, c := range w.calls {
		counts[c.operation]++
		per[c.operation] = fmt.Sprintf("%.3f", float64(counts[c.operation])/float64(max(1, n)))
	}
	return per
}

// hops walks the way of one event.
func (t *traced) hops(id string, sent time.Time, got receipt, hop func(name string, from, to time.Time)) {
	at := sent
	for _, step := range []struct {
		name, text string
		operations []string
	}{
		{"1queue", id, []string{"ReceiveMessage"}},
		{"2ingest", id, []string{"PutItem", "TransactWriteItems", "BatchExecuteStatement"}},
		{"3stream", id, []string{"GetRecords"}},
		{"4dispatch", got.event, []string{"SendMessageBatch", "SendMessage"}},
		{"5queue", got.event, []string{"ReceiveMessage"}},
	} {
		c := t.wire.find(step.text, at, step.operations...)
		if c == nil {
			return
		}
		end := c.end
		if step.name == "4dispatch" {
			hop("3wait", at, c.start)
		}
		hop(step.name, at, end)
		at = end
	}
	hop("6attempt", at, got.at)
}

func quantile(all []time.Duration, q float64) float64 {
	slices.Sort(all)
	if len(all) == 0 {
		return math.NaN()
	}
	return all[min(len(all)-1, int(q*float64(len(all))))].Seconds() * 1000
}
