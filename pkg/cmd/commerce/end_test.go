//go:build unix

package main

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/sqs"

	"github.com/commerce-integration/service/pkg/base/value"
	"github.com/commerce-integration/service/pkg/cmd/commerce/listener"
)

// load is clients that read, write and wait until the service is gone.
type load struct {
	ctx     context.Context
	service *ownService
	clients sync.WaitGroup

	mu             sync.Mutex
	acknowledged   int // records
	answered, late int // requests answered 200, and otherwise
}

func startLoad(t *testing.T, s *ownService) *load {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	l := &load{ctx: ctx, service: s}
	t.Cleanup(func() {
		cancel()
		l.clients.Wait()
	})
	client := s.sqs(t)
	for range 3 {
		l.clients.Go(l.read)
		l.clients.Go(func() { l.write(client) })
	}
	// Somebody waits for messages that never come.
	l.clients.Go(func() {
		queue := strings.Replace(s.RecordsQueueURL, "RecordsQueue", "RecordsDLQ", 1)
		_, _ = client.ReceiveMessage(ctx, &sqs.ReceiveMessageInput{QueueUrl: &queue, WaitTimeSeconds: 20})
	})
	s.hang(t)
	return l
}

func (l *load) read() {
	for l.ctx.Err() == nil {
		req, err := http.NewRequestWithContext(l.ctx, http.MethodGet, l.service.BaseURL+"/api/products?search=tea", nil)
		if err != nil {
			panic(err)
		}
		req.Header.Set("X-API-Key", l.service.APIKey)
		resp, err := http.DefaultClient.Do(req)
		if err != nil {
			return // the service is gone
		}
		resp.Body.Close()
		l.mu.Lock()
		if resp.StatusCode == http.StatusOK {
			l.answered++
		} else {
			l.late++
		}
		l.mu.Unlock()
	}
}

func (l *load) write(client *sqs.Client) {
	const records, pause = 5, 300 * time.Millisecond
	for l.ctx.Err() == nil {
		body := l.service.products(records)
		if _, err := client.SendMessage(l.ctx, &sqs.SendMessageInput{QueueUrl: &l.service.RecordsQueueURL, MessageBody: &body}); err != nil {
			return
		}
		l.mu.Lock()
		l.acknowledged += records
		l.mu.Unlock()
		time.Sleep(pause)
	}
}

// products is a message with n new products.
func (s *service) products(n int) string {
	records := make([]string, n)
	for i := range records {
		records[i] = fmt.Sprintf(`{"kind":"product","op":"put","record":{"id":%q,"name":"Tea"}}`, value.NewID())
	}
	return fmt.Sprintf(`{"organizationId":%q,"records":[%s]}`, s.OrganizationID, strings.Join(records, ","))
}

// hang lets the receiver answer nothing until it is released, at the latest
// at the end of the test, and counts what waits for an answer.
func (r *receiver) hang(t *testing.T) (waiting *atomic.Int64, release func()) {
	t.Helper()
	good, released := r.Config.Handler, make(chan struct{})
	release = sync.OnceFunc(func() { close(released) })
	t.Cleanup(release)
	waiting = &atomic.Int64{}
	r.Config.Handler = http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		waiting.Add(1)
		<-released
		good.ServeHTTP(w, req)
	})
	return waiting, release
}

func TestAnEndUnderLoadIsInTimeAndLosesNothing(t *testing.T) {
	t.Parallel()
	for name, end := range map[string]func(*ownService){
		"interrupt":   func(s *ownService) { s.interrupt(t) },
		"termination": func(s *ownService) { s.signal(t, syscall.SIGTERM) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newOwnService(t)
			s.start(t)
			s.commerce(t, "application", "set", s.ApplicationID, "--rate-limit", "1000000")
			fast, slow := s.subscribe(t, "product.created"), s.subscribe(t, "product.created")
			hanging, release := slow.hang(t)
			l := startLoad(t, s)
			await(t, "deliveries that hang and others", func() bool { return hanging.Load() > 20 && len(fast.Events()) > 20 })
			start := time.Now()
			end(s)
			code, took := s.exit(t), time.Since(start)
			l.clients.Wait()
			t.Logf("ended after %s; %d records, %d reads, %d of them not answered by 200", took.Round(time.Millisecond), l.acknowledged, l.answered+l.late, l.late)
			if code != 0 {
				t.Fatalf("exit code %d, want 0\n%s", code, &s.output)
			}
			if l.answered == 0 || l.acknowledged == 0 {
				t.Fatalf("there was no load: %d reads, %d records", l.answered, l.acknowledged)
			}

			release()
			s.start(t)
			await(t, "every record that was acknowledged", func() bool { return s.total(t, "/api/products") == l.acknowledged })
			for _, r := range []*receiver{fast, slow} {
				await(t, "every event at its receiver", func() bool { return len(unique(r)) == l.acknowledged })
			}
			var endpoint map[string]any
			s.history(t, "/developers/webhooks/endpoints/"+slow.endpoint, &endpoint)
			if endpoint["failureCount"] != 0.0 {
				t.Errorf("the endpoint that hung at the end: got %v failures for the reason %v, want none: the service ended, not the receiver", endpoint["failureCount"], endpoint["lastFailureReason"])
			}
			s.stop(t)
		})
	}
}

// unique are the objects of the verified events that came, however often.
func unique(r *receiver) map[string]bool {
	ids := map[string]bool{}
	for _, e := range r.Events() {
		if e.Signature == listener.Verified {
			ids[e.ObjectID] = true
		}
	}
	return ids
}
