package main

import (
	"fmt"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/commerce-integration/service/pkg/base/value"
)

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

func TestAnEndpointThatHangsDoesNotHoldUpTheOthers(t *testing.T) {
	t.Parallel()
	s := newOrganization(t)
	slow := s.subscribe(t, "product.created")
	slow.hang(t)
	const events = 600
	s.send(t, s.products(events/2))
	s.send(t, s.products(events/2))
	other := s.newOrganization(t)
	fast := other.subscribe(t, "order.created")
	var slowest time.Duration
	for range 10 {
		sent, before := time.Now(), len(fast.Events())
		other.send(t, other.order(value.NewID(), "PENDING"))
		await(t, "an event of another endpoint", func() bool { return len(fast.Events()) > before })
		slowest = max(slowest, time.Since(sent))
		time.Sleep(200 * time.Millisecond)
	}
	t.Logf("the slowest event took %s beside %d that hang", slowest.Round(time.Millisecond), events)
}
