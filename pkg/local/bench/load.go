package bench

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"
)

// Load says what a load generator asks and for how long. Each connection has
// one request under way at a time and stays open.
type Load struct {
	Address     string        // host:port
	Targets     []string      // paths with queries, asked in turn
	Header      http.Header   // of every request
	Connections int           // at least 1
	Warmup      time.Duration // before what is counted
	Duration    time.Duration // of what is counted
	// Check judges an answer's body; nil takes any. An answer other than 200
	// is a failure before that.
	Check func(header http.Header, body []byte) error
}

// Outcome is what a load came to.
type Outcome struct {
	Requests int           // answered within the duration
	Bytes    int64         // of their bodies
	Duration time.Duration // in which they were
	Failures int           // answers that were not what they had to be
	Failure  error         // the first of them
	CPU      processorTime // of all processes, the client's included, from the first request to the last
	All      int           // requests in that time

	latencies []time.Duration // of every request, ascending
}

// PerSecond is the rate of requests.
func (o *Outcome) PerSecond() float64 { return float64(o.Requests) / o.Duration.Seconds() }

// Percentile is the latency within which p percent of the requests were
// answered: exact, of all requests, not of a sample or of classes.
func (o *Outcome) Percentile(p float64) time.Duration {
	if len(o.latencies) == 0 {
		return 0
	}
	rank := int(p/100*float64(len(o.latencies))+0.999999) - 1
	return o.latencies[max(0, min(rank, len(o.latencies)-1))]
}

// Run makes the load. It fails when a connection breaks; an answer that is
// not what it has to be is counted and the load goes on.
func (l *Load) Run(ctx context.Context) (*Outcome, error) {
	requests := make([][]byte, len(l.Targets))
	for i, target := range l.Targets {
		requests[i] = l.request(target)
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	begin := time.Now().Add(l.Warmup)
	workers := make([]worker, l.Connections)
	used := processorNow()
	var group sync.WaitGroup
	for i := range workers {
		w := &workers[i]
		*w = worker{load: l, begin: begin, end: begin.Add(l.Duration), next: i * len(requests) / len(workers)}
		group.Go(func() {
			if w.err = w.run(ctx, requests); w.err != nil {
				cancel() // the others would only measure a smaller load
			}
		})
	}
	group.Wait()
	return l.outcome(workers, processorNow().since(used))
}

// request renders a request once, as it is sent again and again.
func (l *Load) request(target string) []byte {
	var b bytes.Buffer
	fmt.Fprintf(&b, "GET %s HTTP/1.1\r\nHost: %s\r\n", target, l.Address)
	_ = l.Header.Write(&b) // memory takes everything
	b.WriteString("\r\n")
	return b.Bytes()
}

func (l *Load) outcome(workers []worker, used processorTime) (*Outcome, error) {
	o := &Outcome{Duration: l.Duration, CPU: used}
	var errs []error
	for i := range workers {
		w := &workers[i]
		o.Requests += len(w.latencies)
		o.Bytes += w.bytes
		o.All += w.all
		o.Failures += w.failures
		if o.Failure == nil {
			o.Failure = w.failure
		}
		o.latencies = append(o.latencies, w.latencies...)
		if w.err != nil && !errors.Is(w.err, context.Canceled) {
			errs = append(errs, w.err)
		}
	}
	slices.Sort(o.latencies)
	return o, errors.Join(errs...)
}

// worker is one connection.
type worker struct {
	load       *Load
	begin, end time.Time
	next       int // target

	latencies []time.Duration
	bytes     int64
	all       int
	failures  int
	failure   error
	err       error
}

func (w *worker) run(ctx context.Context, requests [][]byte) error {
	conn, err := (&net.Dialer{}).DialContext(ctx, "tcp", w.load.Address)
	if err != nil {
		return fmt.Errorf("connect: %w", err)
	}
	defer conn.Close()
	stop := context.AfterFunc(ctx, func() { _ = conn.Close() })
	defer stop()
	in := bufio.NewReaderSize(conn, 64<<10)
	var body bytes.Buffer
	for {
		started := time.Now()
		if !started.Before(w.end) {
			return nil
		}
		if _, err := conn.Write(requests[w.next]); err != nil {
			return errors.Join(ctx.Err(), fmt.Errorf("send a request: %w", err))
		}
		status, header, err := readAnswer(in, &body)
		if err != nil {
			return errors.Join(ctx.Err(), fmt.Errorf("read an answer: %w", err))
		}
		w.count(started, time.Now(), body.Len())
		w.judge(w.load.Targets[w.next], status, header, body.Bytes())
		w.next = (w.next + 1) % len(requests)
	}
}

// count keeps what was asked after the warm-up and answered in time.
func (w *worker) count(started, ended time.Time, size int) {
	w.all++
	if started.Before(w.begin) || ended.After(w.end) {
		return
	}
	w.latencies = append(w.latencies, ended.Sub(started))
	w.bytes += int64(size)
}

func (w *worker) judge(target string, status int, header http.Header, body []byte) {
	var err error
	switch {
	case status != http.StatusOK:
		err = fmt.Errorf("status %d: %.200s", status, body)
	case w.load.Check != nil:
		err = w.load.Check(header, body)
	}
	if err == nil {
		return
	}
	if w.failures++; w.failure == nil {
		w.failure = fmt.Errorf("GET %s: %w", target, err)
	}
}

func readAnswer(in *bufio.Reader, body *bytes.Buffer) (int, http.Header, error) {
	answer, err := http.ReadResponse(in, nil)
	if err != nil {
		return 0, nil, err
	}
	defer answer.Body.Close()
	body.Reset()
	if _, err := body.ReadFrom(answer.Body); err != nil {
		return 0, nil, err
	}
	if answer.Close {
		return 0, nil, fmt.Errorf("the connection was closed after status %d: %w", answer.StatusCode, io.ErrUnexpectedEOF)
	}
	return answer.StatusCode, answer.Header, nil
}

// checkPage takes a page that has entries and says how many there are.
func checkPage(header http.Header, body []byte) error {
	if mediaType := header.Get("Content-Type"); mediaType != "application/json" {
		return fmt.Errorf("content type %q", mediaType)
	}
	if header.Get("Content-Encoding") != "" {
		return nil // what it holds is checked without compression
	}
	if !bytes.HasPrefix(body, []byte(`{"data":[{"id":"`)) {
		return fmt.Errorf("a page without entries: %.200s", body)
	}
	if _, after, found := bytes.Cut(body[max(0, len(body)-100):], []byte(`"total":`)); !found || after[0] < '1' || after[0] > '9' {
		return fmt.Errorf("a page without a total: …%s", body[max(0, len(body)-100):])
	}
	return nil
}

// checkItem takes a record.
func checkItem(_ http.Header, body []byte) error {
	if !bytes.HasPrefix(body, []byte(`{"id":"`)) || !bytes.HasSuffix(body, []byte("}")) {
		return fmt.Errorf("no record: %.200s", body)
	}
	return nil
}

// hostOf is the host:port of a base URL.
func hostOf(base string) string { return strings.TrimPrefix(base, "http://") }
