package webhooks_test

import (
	"bytes"
	"context"
	"encoding/json"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/commerce-integration/service/pkg/api"
	"github.com/commerce-integration/service/pkg/api/idempotency"
	"github.com/commerce-integration/service/pkg/api/webhooks"
	"github.com/commerce-integration/service/pkg/auth"
	"github.com/commerce-integration/service/pkg/auth/ratelimit"
	"github.com/commerce-integration/service/pkg/base/value"
	"github.com/commerce-integration/service/pkg/delivery/outbound"
	"github.com/commerce-integration/service/pkg/delivery/sweeper"
	"github.com/commerce-integration/service/pkg/dynamo"
	"github.com/commerce-integration/service/pkg/lists"
	"github.com/commerce-integration/service/pkg/lists/columnar"
	"github.com/commerce-integration/service/pkg/ops"
	"github.com/commerce-integration/service/pkg/testkit/servicetest"
	"github.com/commerce-integration/service/pkg/webhook"
)

const base = "https://x.test/prod"

// harness serves the operations over the shared fixture, to users of any
// organization.
type harness struct {
	*servicetest.Service
	history *history
	limiter *counting
	server  *api.Server
}

// counting admits every request, and counts what they weigh.
type counting struct {
	servicetest.Unlimited
	weight atomic.Int64
}

func (c *counting) Admit(ctx context.Context, weight int, of ...ratelimit.Subject) (ratelimit.Decision, error) {
	c.weight.Add(int64(weight))
	return c.Unlimited.Admit(ctx, weight, of...)
}

// history fills a view with every delivery of the organization.
type history struct {
	table *dynamo.Table
	late  *columnar.View // answers instead, as one that knows of no later change; nil: none
	units int            // that a list takes
}

func (h *history) Query(ctx context.Context, org value.ID, q columnar.Query, _ bool) (lists.Answer, error) {
	if h.late != nil {
		return lists.Answer{Result: h.late.Query(q)}, nil
	}
	var documents []columnar.Document
	err := ops.EachDelivery(ctx, h.table, org, func(r *webhook.Delivery) error {
		documents = append(documents, webhook.DeliveryDocument(r, r.UpdatedAt))
		return nil
	})
	v := columnar.NewView(webhook.DeliveryList().Schema)
	v.Apply(documents)
	return lists.Answer{Result: v.Query(q)}, err
}

func (h *history) QueryWeighed(ctx context.Context, org value.ID, q columnar.Query, now bool, admit func(units int) error) (lists.Answer, error) {
	if err := admit(h.units); err != nil {
		return lists.Answer{}, err
	}
	return h.Query(ctx, org, q, now)
}

func newHarness(t *testing.T) *harness {
	t.Helper()
	s := servicetest.New(t)
	deliveries, history := s.Queues().Deliveries(), &history{table: s.Table}
	operations := webhooks.Operations(s.Table, webhooks.Config{
		Clock: s.Time, History: history, Sender: deliveries, Seal: s.Box.Seal,
		Backlog: sweeper.NewBacklog(s.Table, deliveries, s.Time), Rules: webhook.Rules{Refusal: outbound.Config{}.Refusal, ARNs: webhook.ARNRules{Permitted: true}},
	})
	limiter := &counting{}
	return &harness{s, history, limiter, api.NewServer(operations, api.Config{
		Caller: caller, Limiter: limiter, Idempotency: idempotency.New(s.Table, s.Box, s.Time),
		Clock: s.Time, Logger: s.Leaks.Logger(),
	})}
}

// person is the user of every request.
var person = value.MustID("01938f5a-0f00-7000-8000-000000000021")

// caller is what the headers name: a user of an organization with every scope, or
// an application with some.
func caller(r *http.Request) api.Caller {
	p := auth.Principal{Kind: auth.KindUser, OrganizationID: value.MustID(r.Header.Get("Organization")), UserID: person, Scopes: auth.AllScopes(), RateLimit: 600}
	if app := r.Header.Get("Application"); app != "" {
		p.Kind, p.UserID, p.ApplicationID = auth.KindApplication, value.ID{}, value.MustID(app)
		p.Scopes = auth.ParseScopes(r.Header.Get("Scopes"))
		if events := r.Header.Get("Event-Scopes"); events != "" {
			p.EventScopes = auth.ParseScopes(events)
		}
	}
	return api.Caller{RequestID: "request", BaseURL: base, Principal: p}
}

// asMachine makes a request with a token of the application.
func (h *harness) asMachine(t *testing.T, app value.ID, scopes auth.Scopes, method, path, body string) answer {
	t.Helper()
	return h.as(t, h.Org, method, path, body, "Application", app.String(), "Scopes", scopes.String())
}

func machineScopes() auth.Scopes {
	return auth.Scopes{auth.OrdersRead, auth.WebhooksRead, auth.WebhooksWrite}
}

type answer struct{ servicetest.Answer }

// field reads a member of the answer by its path, such as meta.total.
func (a answer) field(path string) any {
	var v any
	if err := json.Unmarshal([]byte(a.Body), &v); err != nil {
		return err.Error()
	}
	for name := range strings.SplitSeq(path, ".") {
		object, ok := v.(map[string]any)
		if !ok {
			return nil
		}
		v = object[name]
	}
	return v
}

func (a answer) text(path string) string {
	s, _ := a.field(path).(string)
	return s
}

// data is the ids of a list's entries.
func (a answer) ids() []string {
	list, _ := a.field("data").([]any)
	ids := make([]string, len(list))
	for i, e := range list {
		ids[i], _ = e.(map[string]any)["id"].(string)
	}
	return ids
}

func (h *harness) as(t *testing.T, org value.ID, method, path, body string, headers ...string) answer {
	t.Helper()
	return answer{h.AskJSON(h.server, method, path, body, append([]string{"Organization", org.String()}, headers...)...)}
}

func (h *harness) do(t *testing.T, method, path, body string, headers ...string) answer {
	t.Helper()
	return h.as(t, h.Org, method, path, body, headers...)
}

// must fails the test unless the answer has the status.
func (h *harness) must(t *testing.T, status int, method, path, body string, headers ...string) answer {
	t.Helper()
	a := h.do(t, method, path, body, headers...)
	if a.Status != status {
		t.Fatalf("%s %s %s: %d %s, want %d", method, path, body, a.Status, a.Body, status)
	}
	return a
}

// endpoint creates an endpoint and returns its path.
func (h *harness) endpoint(t *testing.T, body string) string {
	t.Helper()
	a := h.must(t, http.StatusCreated, http.MethodPost, "/developers/webhooks/endpoints?applicationId="+h.App.String(), body)
	return "/developers/webhooks/endpoints/" + a.text("id")
}

const minimal = `{"url":"https://example.com/hook","events":["order.created"]}`

func compact(t *testing.T, s string) string {
	t.Helper()
	var out bytes.Buffer
	if err := json.Compact(&out, []byte(s)); err != nil {
		t.Fatal(err)
	}
	return out.String()
}
