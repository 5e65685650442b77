//go:build emulate && unix

package main

import (
	"net/http"
	"strings"
	"testing"

	"github.com/commerce-integration/service/pkg/base/value"
	"github.com/commerce-integration/service/pkg/local/tableserver"
)

// TestSmoke asks on each table server what the README's tour asks, and again after a restart.
func TestSmoke(t *testing.T) {
	for _, kind := range []tableserver.Kind{tableserver.Dynoxide, tableserver.DynamoDBLocal} {
		t.Run(string(kind), func(t *testing.T) {
			s := newOwnService(t)
			if _, err := kind.Install(t.Context(), s.data+"/bin"); err != nil {
				t.Fatal(err)
			}
			s.start(t, "--no-demo=false", "--table-server", string(kind))
			key := map[string]string{"X-API-Key": s.APIKey}
			products := "/api/products?search=loose+india&orderBy=sellingPrice&orderDirection=asc&limit=1"
			if resp, body := s.do(t, http.MethodGet, products, "", key); resp.StatusCode != http.StatusOK || !strings.Contains(string(body), "TEA-ASSAM-250") {
				t.Errorf("%s: got %d %s, want the cheapest tea", products, resp.StatusCode, body)
			}
			if out, err := s.smoke(t, s.APIKey); err != nil {
				t.Errorf("%v: %s", err, out)
			}
			orders := s.total(t, "/api/orders")
			r := s.subscribe(t, "order.created")
			s.send(t, s.order(value.NewID(), "PENDING"))
			await(t, "the order in its list", func() bool { return s.total(t, "/api/orders") == orders+1 })
			await(t, "its event", func() bool { return len(r.Events()) == 1 })
			await(t, "its delivery in the history", func() bool {
				_, body := s.user(t, http.MethodGet, "/developers/webhooks/events?type=order.created", "")
				return strings.Contains(string(body), "DELIVERED")
			})
			s.stop(t)
			s.start(t, "--table-server", string(kind))
			if got := s.total(t, "/api/orders"); got != orders+1 {
				t.Errorf("orders after a restart: got %d, want %d", got, orders+1)
			}
			s.stop(t)
		})
	}
}
