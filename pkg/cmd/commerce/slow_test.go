package main

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/commerce-integration/service/pkg/value"
)

// products is a message with n new products.
func (s *service) products(n int) string {
	records := make([]string, n)
	for i := range records {
		records[i] = fmt.Sprintf(`{"kind":"product","op":"put","record":{"id":%q,"name":"Tea"}}`, value.NewID())
	}
	return fmt.Sprintf(`{"organizationId":%q,"records":[%s]}`, s.OrganizationID, strings.Join(records, ","))
}

func TestAnEndpointThatHangsDoesNotHoldUpTheOthers(t *testing.T) {
	t.Parallel()
	s := newOrganization(t)
	slow, release := s.subscribe(t, "product.created"), make(chan struct{})
	good := slow.Config.Handler
	slow.Config.Handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		<-release
		good.ServeHTTP(w, r)
	})
	defer slow.CloseClientConnections()
	defer close(release)
	const events = 600
	s.send(t, s.products(events/2))
	s.send(t, s.products(events/2))
	other := s.newOrganization(t)
	fast := other.subscribe(t, "order.created")
	var slowest time.Duration
	for range 10 {
		sent, before := time.Now(), len(fast.Events())
		other.send(t, other.order(value.NewID(), "PENDING"))
		await(t, "an event of another endpoint", 10*time.Second, func() bool { return len(fast.Events()) > before })
		slowest = max(slowest, time.Since(sent))
		time.Sleep(200 * time.Millisecond)
	}
	t.Logf("the slowest event took %s beside %d that hang", slowest.Round(time.Millisecond), events)
}
