package webhooks_test

import (
	"fmt"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/commerce-integration/service/pkg/base/value"
	"github.com/commerce-integration/service/pkg/commerce"
	"github.com/commerce-integration/service/pkg/lists/columnar"
	"github.com/commerce-integration/service/pkg/testkit/servicetest"
	"github.com/commerce-integration/service/pkg/webhook"
)

const endpoints = "/developers/webhooks/endpoints"

func TestCreatedEndpointShowsItsSecretOnce(t *testing.T) {
	h := newHarness(t)
	a := h.must(t, http.StatusCreated, http.MethodPost, endpoints+"?applicationId="+h.App.String(),
		`{"url":" https://example.com/hook ","description":null,"events":["order.created","payment.*"]}`)
	secret := a.text("secret")
	if !regexp.MustCompile(`^whsec_[A-Za-z0-9+/]{43}=$`).MatchString(secret) {
		t.Errorf("secret %q", secret)
	}
	at := h.Now()
	want := fmt.Sprintf(`{"id":%q,"applicationId":%q,"organizationId":%q,"url":"https://example.com/hook","description":null,"status":"ACTIVE",
		"subscribedEvents":["order.created","payment.*"],"retryCount":8,"timeoutSeconds":15,"successCount":0,"failureCount":0,"lastSuccessAt":null,
		"lastFailureAt":null,"lastFailureReason":null,"secret":%q,"createdAt":%q,"updatedAt":%q}`, a.text("id"), h.App, h.Org, secret, at, at)
	if diff := cmp.Diff(compact(t, want), a.Body); diff != "" {
		t.Error(diff)
	}
	if got, want := a.Header.Get("Location"), base+endpoints+"/"+a.text("id"); got != want {
		t.Errorf("Location %s, want %s", got, want)
	}
	masked := "whsec_****" + secret[len(secret)-4:]
	path := endpoints + "/" + a.text("id")
	for name, later := range map[string]answer{
		"read":   h.must(t, http.StatusOK, http.MethodGet, path, ""),
		"change": h.must(t, http.StatusOK, http.MethodPatch, path, `{"description":"x"}`),
	} {
		if got := later.text("secret"); got != masked {
			t.Errorf("%s: secret %q, want %q", name, got, masked)
		}
	}
	if list := h.must(t, http.StatusOK, http.MethodGet, endpoints, ""); strings.Contains(list.Body, secret) || !strings.Contains(list.Body, masked) {
		t.Errorf("list: %s", list.Body)
	}
	stored, err := h.Table.Endpoint(t.Context(), h.Org, value.MustID(a.text("id")))
	if err != nil || strings.Contains(stored.Secret.Sealed, secret) {
		t.Errorf("stored secret %+v, %v", stored.Secret, err)
	}
	if opened, err := h.Box.Open(stored.Secret.Sealed, webhook.SecretPurpose(stored.ID)); err != nil || string(opened) != secret {
		t.Errorf("opened %q, %v", opened, err)
	}
}

func TestBadInput(t *testing.T) {
	h := newHarness(t)
	create := endpoints + "?applicationId=" + h.App.String()
	item, absent := h.endpoint(t, minimal), endpoints+"/"+value.NewID().String()
	many := strings.Repeat(`"order.created",`, 51)
	for _, tt := range []struct{ method, path, body, want string }{
		{"POST", endpoints, minimal, "applicationId required"},
		{"POST", endpoints + "?applicationId=x", minimal, "applicationId invalid_format"},
		{"POST", create, `{"applicationId":"` + value.NewID().String() + `","url":"https://example.com","events":["*"]}`, "applicationId not_allowed"},
		{"POST", create, `{"applicationId":7,"url":"https://example.com","events":["*"]}`, "applicationId wrong_type"},
		{"POST", endpoints, `{"applicationId":"` + h.App.String() + `","url":"https://example.com","events":["*"]}`, "applicationId required"},
		{"POST", create, `{"events":["*"]}`, "url required"},
		{"POST", create, `{"url":null,"events":["*"]}`, "url required"},
		{"POST", create, `{"url":"https://example.com"}`, "events required"},
		{"POST", create, `{"url":"https://example.com","events":[]}`, "events out_of_range"},
		{"POST", create, `{"url":"https://example.com","events":[` + many[:len(many)-1] + `]}`, "events out_of_range"},
		{"POST", create, `{"url":"https://example.com","events":["*","*"]}`, "events[1] duplicate"},
		{"POST", create, `{"url":"https://example.com","events":["order.vanished"]}`, "events[0] unknown"},
		{"POST", create, `{"url":"http://example.com","events":["*"]}`, "url invalid_format"},
		{"POST", create, `{"url":"https://localhost/","events":["*"]}`, "url not_allowed"},
		{"POST", create, `{"url":"https://example.com/` + strings.Repeat("é", 2048) + `","events":["*"]}`, "url out_of_range"},
		{"POST", create, `{"url":"https://example.com","events":["*"],"description":"` + strings.Repeat("é", 2001) + `"}`, "description out_of_range"},
		{"POST", create, `{"url":"https://example.com","events":["*"],"retryCount":11}`, "retryCount out_of_range"},
		{"POST", create, `{"url":"https://example.com","events":["*"],"retryCount":1.5}`, "retryCount wrong_type"},
		{"POST", create, `{"url":"https://example.com","events":["*"],"timeoutSeconds":0}`, "timeoutSeconds out_of_range"},
		{"POST", create, `{"url":"https://example.com","events":["*"],"status":"PAUSED"}`, "status unknown"},
		{"PATCH", item, `{"url":null}`, "url not_allowed"},
		{"PATCH", item, `{"url":"https://10.0.0.1/hook"}`, "url not_allowed"},
		{"PATCH", item, `{"url":"https://example.com:6379/hook"}`, "url not_allowed"},
		{"PATCH", item, `{"events":null}`, "events not_allowed"},
		{"PATCH", item, `{"status":null}`, "status not_allowed"},
		{"PATCH", item, `{"status":"OFF"}`, "status invalid_format"},
		{"PATCH", item, `{"status":"DISABLED"}`, "status not_allowed"},
		{"PATCH", item, `{"retryCount":3}`, "retryCount not_allowed"},
		{"PATCH", item, `{"timeoutSeconds":3}`, "timeoutSeconds not_allowed"},
		{"PATCH", item, `{"secret":"x"}`, "secret unknown"},
		{"GET", item + "?applicationId=x", "", "applicationId invalid_format"},
		{"POST", item + "/test", `{"type":"order.vanished"}`, "type unknown"},
		{"POST", item + "/recover", `{"until":"2020-01-01"}`, "until out_of_range"},
		{"POST", item + "/recover", `{"since":"yesterday"}`, "since invalid_format"},
		{"POST", item + "/recover", `{"since":"2026-11-21","until":"2026-11-20"}`, "since out_of_range"},
		{"POST", item + "/recover", `{"since":"2999-11-21"}`, "since out_of_range"},
		{"GET", "/developers/webhooks/events?type=order.*,", "", "type invalid_format"},
		{"GET", "/developers/webhooks/events?objectKind=payment", "", "objectKind invalid_format"},
		{"GET", "/developers/webhooks/events/x", "", "id invalid_format"},
		{"GET", "/developers/webhooks/event-types?search=x", "", "search unknown"},
		{"POST", create, `{"url":7,"events":["*","*"],"retryCount":11,"secret":"x"}`, "url wrong_type, secret unknown, events[1] duplicate, retryCount out_of_range"},
		{"POST", create, `{"events":[7],"timeoutSeconds":"5"}`, "events[0] wrong_type, timeoutSeconds wrong_type, url required"},
		{"PATCH", absent, `{"status":1,"url":null,"retryCount":3}`, "status wrong_type, retryCount not_allowed, url not_allowed"},
		{"POST", absent + "/recover", `{"since":"x","until":1}`, "since invalid_format, until wrong_type"},
	} {
		t.Run(fmt.Sprintf("%v_%v_%v", tt.method, tt.path, tt.body), func(t *testing.T) {
			a := h.must(t, http.StatusBadRequest, tt.method, tt.path, tt.body)
			details, _ := a.field("details").([]any)
			var got []string
			for _, d := range details {
				got = append(got, fmt.Sprint(d.(map[string]any)["field"], " ", d.(map[string]any)["code"]))
			}
			if strings.Join(got, ", ") != tt.want {
				t.Errorf("got %s, want %s", strings.Join(got, ", "), tt.want)
			}
		})
	}
}

func TestEndpointIsChangedFieldByField(t *testing.T) {
	h := newHarness(t)
	item := h.endpoint(t, `{"url":"https://example.com/hook","description":"a","events":["order.created"]}`)
	created := h.must(t, http.StatusOK, "GET", item, "")
	if a := h.must(t, http.StatusOK, "PATCH", item, `{}`); a.Body != created.Body {
		t.Errorf("{} changes:\n%s\n%s", created.Body, a.Body)
	}
	if a := h.must(t, http.StatusOK, "PATCH", item, `{"status":"ACTIVE","description":"a"}`); a.text("updatedAt") != created.text("updatedAt") {
		t.Errorf("the same values move updatedAt: %s", a.Body)
	}
	a := h.must(t, http.StatusOK, "PATCH", item, `{"description":null,"events":["*"],"url":"https://example.com/other","status":"PAUSED"}`)
	if a.field("description") != nil || a.text("url") != "https://example.com/other" || a.text("status") != "PAUSED" || a.text("updatedAt") <= created.text("updatedAt") {
		t.Errorf("changed: %s", a.Body)
	}
	if list, _ := a.field("subscribedEvents").([]any); len(list) != 1 || list[0] != "*" {
		t.Errorf("subscribedEvents: %v", list)
	}
}

func TestDisabledEndpointIsActivatedByItsOwner(t *testing.T) {
	h := newHarness(t)
	item := h.endpoint(t, minimal)
	e := h.stored(t, item)
	h.SetStatus(t, e.ID, webhook.Disabled)
	if a := h.must(t, http.StatusOK, "PATCH", item, `{"status":"DISABLED","description":"d"}`); a.text("status") != "DISABLED" {
		t.Errorf("unchanged DISABLED: %s", a.Body)
	}
	if a := h.must(t, http.StatusOK, "PATCH", item, `{"status":"ACTIVE"}`); a.text("status") != "ACTIVE" {
		t.Errorf("activated: %s", a.Body)
	}
}

func TestPreconditionComparesTheConfigurationOnly(t *testing.T) {
	h := newHarness(t)
	item := h.endpoint(t, minimal)
	before := h.must(t, http.StatusOK, "GET", item, "").Header.Get("ETag")
	at := h.Now()
	h.Count(t, h.stored(t, item).ID, at, webhook.Attempt{At: at})
	counted := h.must(t, http.StatusOK, "GET", item, "")
	after := counted.Header.Get("ETag")
	if before == after || strings.Split(before, ".")[0] != strings.Split(after, ".")[0] || counted.field("successCount") != 1.0 {
		t.Errorf("ETag %s, after a delivery %s", before, after)
	}
	h.must(t, http.StatusNotModified, "GET", item, "", "If-None-Match", after)
	h.must(t, http.StatusOK, "GET", item, "", "If-None-Match", before)
	changed := h.must(t, http.StatusOK, "PATCH", item, `{"description":"x"}`, "If-Match", before)
	if got := h.must(t, http.StatusOK, "GET", item, "").Header.Get("ETag"); got != changed.Header.Get("ETag") {
		t.Errorf("ETag of the change %s, of the read %s", changed.Header.Get("ETag"), got)
	}
	h.must(t, http.StatusPreconditionFailed, "PATCH", item, `{"description":"y"}`, "If-Match", after)
	h.must(t, http.StatusPreconditionFailed, "DELETE", item, "", "If-Match", after)
	h.must(t, http.StatusNotFound, "PATCH", endpoints+"/"+value.NewID().String(), `{}`, "If-Match", after)
	h.must(t, http.StatusNoContent, "DELETE", item, "", "If-Match", "*")
	h.must(t, http.StatusNotFound, "GET", item, "")
}

func (h *harness) stored(t *testing.T, item string) *webhook.Endpoint {
	t.Helper()
	return h.StoredEndpoint(t, value.MustID(strings.TrimPrefix(item, endpoints+"/")))
}

// event stores a delivery of the endpoint, HELD for a reason unless that is "".
func (h *harness) event(t *testing.T, item string, hold webhook.HeldReason) *webhook.Delivery {
	t.Helper()
	d := webhook.NewDelivery(h.Event(t, `{"total":12.50,"name":"é"}`), h.stored(t, item), hold, h.Now())
	if _, err := h.Table.PutDelivery(t.Context(), d.StoredAt(0), d); err != nil {
		t.Fatal(err)
	}
	return d
}

func TestEndpointsAreListed(t *testing.T) {
	h := newHarness(t)
	var items []string
	for i := range 3 {
		items = append(items, strings.TrimPrefix(h.endpoint(t, fmt.Sprintf(`{"url":"https://example.com/%d","description":"Café %d","events":["*"]}`, i, i)), endpoints+"/"))
		h.Pass(time.Second)
	}
	h.must(t, http.StatusOK, "PATCH", endpoints+"/"+items[1], `{"status":"PAUSED"}`)
	newest := slices.Clone(items)
	slices.Reverse(newest)
	for query, want := range map[string][]string{
		"":                                      newest,
		"?orderDirection=asc":                   items,
		"?limit=2":                              newest[:2],
		"?limit=2&page=2":                       newest[2:],
		"?status=PAUSED":                        items[1:2],
		"?search=CAFE":                          newest,
		"?search=example.com/2":                 items[2:],
		"?applicationId=" + h.App.String():      newest,
		"?applicationId=" + value.ID{}.String(): {},
		"?createdFrom=" + h.At(-time.Second).String(): items[2:],
		"?afterId=" + items[0]:                        items[1:],
	} {
		t.Run(query, func(t *testing.T) {
			a := h.must(t, http.StatusOK, "GET", endpoints+query, "")
			if diff := cmp.Diff(want, a.ids()); diff != "" {
				t.Errorf("%s", diff)
			}
		})
	}
	if link := h.must(t, http.StatusOK, "GET", endpoints+"?limit=2", "").Header.Get("Link"); !strings.Contains(link, `<`+base+endpoints+`?limit=2&page=2>; rel="next"`) {
		t.Errorf("Link: %s", link)
	}
}

func TestHistoryIsListedAndRead(t *testing.T) {
	h := newHarness(t)
	item := h.endpoint(t, minimal)
	held := h.event(t, item, webhook.HeldPaused)
	h.Pass(time.Second)
	pending := h.event(t, item, "")
	x := webhook.Exchange{
		URL: "https://example.com/oops", Signature: "v1,oops", Status: 500, Header: http.Header{"Server": {"oops"}}, Body: []byte("oops"),
	}
	o := webhook.Outcome{Attempt: x.Keep(h.Now(), 12*time.Millisecond), Result: webhook.AttemptRefused}
	o.Attempt.Error = new("answered 500 Internal Server Error")
	failed := pending.Record(o, "m", 0, 0, h.Now())
	if _, err := h.Table.PutDelivery(t.Context(), pending, failed); err != nil {
		t.Fatal(err)
	}
	const events = "/developers/webhooks/events"
	for query, want := range map[string][]string{
		"":                                  {failed.ID.String(), held.ID.String()},
		"?status=HELD,PENDING":              {held.ID.String()},
		"?type=order.created,order.updated": {failed.ID.String(), held.ID.String()},
		"?type=order.updated":               {},
		"?type=order.*,product.created":     {failed.ID.String(), held.ID.String()},
		"?type=product.*,payment.*":         {},
		"?objectKind=order":                 {failed.ID.String(), held.ID.String()},
		"?objectKind=order&type=product.*":  {},
		"?objectKind=endpoint,product":      {},
		"?objectId=" + held.ObjectID.String() + "&objectKind=order,invoice": {held.ID.String()},
		"?objectId=" + strings.ToUpper(held.ObjectID.String()):              {held.ID.String()},
		"?objectId=" + held.EventID.String():                                {},
		"?eventId=" + held.EventID.String():                                 {held.ID.String()},
		"?endpointId=" + held.EndpointID.String():                           {failed.ID.String(), held.ID.String()},
		"?endpointId=" + h.App.String():                                     {},
		"?applicationId=" + h.App.String():                                  {failed.ID.String(), held.ID.String()},
		"?createdTo=" + h.Now().String():                                    {held.ID.String()},
		"?limit=1&page=2":                                                   {held.ID.String()},
	} {
		a := h.must(t, http.StatusOK, "GET", events+query, "")
		if diff := cmp.Diff(want, a.ids()); diff != "" {
			t.Errorf("%s: %s", query, diff)
		}
		if strings.Contains(a.Body, "oops") || strings.Contains(a.Body, `"object":`) {
			t.Errorf("%s shows bodies: %s", query, a.Body)
		}
	}
	if a := h.as(t, value.NewID(), "GET", events+"?objectId="+held.ObjectID.String(), ""); a.Status != http.StatusOK || len(a.ids()) > 0 {
		t.Errorf("another organization finds %d %s", a.Status, a.Body)
	}
	at := h.Now()
	want := fmt.Sprintf(`{"id":%q,"eventId":%q,"endpointId":%q,"applicationId":%q,"organizationId":%q,"siteId":null,"objectId":%q,"type":"order.created","status":"FAILED",
		"heldReason":null,"attemptCount":1,"nextAttemptAt":null,"lastAttemptAt":%q,"deliveredAt":null,
		"attempts":[{"at":%q,"durationMs":12,"request":{"url":"https://example.com/oops","headers":{"Content-Type":"application/json","User-Agent":"commerce-integration-webhooks/1","Webhook-Id":%q,"Webhook-Signature":"v1,oops","Webhook-Timestamp":"%d"}},
			"responseStatus":500,"responseHeaders":{"Server":"oops"},"responseBody":"oops","error":"answered 500 Internal Server Error"}],
		"payload":{"id":%q,"type":"order.created","apiVersion":"2026-11-01","timestamp":%q,"organizationId":%q,"siteId":null,"data":{"object":{"total":12.50,"name":"é"},"previousAttributes":null}},
		"createdAt":%q,"updatedAt":%q}`, failed.ID, failed.EventID, failed.EndpointID, h.App, h.Org, failed.ObjectID, at, at, failed.EventID, at.Std().Unix(),
		failed.EventID, at, h.Org, failed.CreatedAt, failed.UpdatedAt)
	if diff := cmp.Diff(compact(t, want), h.must(t, http.StatusOK, "GET", events+"/"+failed.ID.String(), "").Body); diff != "" {
		t.Error(diff)
	}
	if a := h.must(t, http.StatusOK, "GET", events+"/"+held.ID.String(), ""); a.text("heldReason") != "PAUSED" || a.text("status") != "HELD" {
		t.Errorf("held: %s", a.Body)
	}
}

// The page of a status stays full when some of its events have left it after the
// index knew them: to a client that reads page by page a shorter one is the end.
func TestAPageOfTheHistoryIsFullUnlessItIsTheLast(t *testing.T) {
	h := newHarness(t)
	item := h.endpoint(t, minimal)
	var all []*webhook.Delivery
	var documents []columnar.Document
	for range 6 {
		h.Pass(time.Second)
		d := h.event(t, item, webhook.HeldPaused)
		all, documents = append(all, d), append(documents, webhook.DeliveryDocument(d, d.UpdatedAt))
	}
	h.history.late = columnar.NewView(webhook.DeliveryList().Schema)
	h.history.late.Apply(documents)
	for _, d := range all[3:5] {
		if _, err := h.Table.PutDelivery(t.Context(), d, d.Requeue(h.Now())); err != nil {
			t.Fatal(err)
		}
	}
	for page, want := range map[string][]string{
		"page=1":     {all[5].ID.String(), all[2].ID.String(), all[1].ID.String()},
		"page=2":     {all[2].ID.String(), all[1].ID.String(), all[0].ID.String()},
		"page=3":     {},
		"orderBy=id": slices.Sorted(slices.Values([]string{all[0].ID.String(), all[1].ID.String(), all[2].ID.String(), all[5].ID.String()}))[:3],
	} {
		a := h.must(t, http.StatusOK, "GET", "/developers/webhooks/events?status=HELD&limit=3&"+page, "")
		if diff := cmp.Diff(want, a.ids()); diff != "" {
			t.Errorf("%s (-want +got):\n%s", page, diff)
		}
	}
}

// refs are the messages that were sent to the worker by the queue.
func (h *harness) refs(t *testing.T, queue string) []webhook.DeliveryRef {
	t.Helper()
	var refs []webhook.DeliveryRef
	for _, m := range h.Queues().Receive(t, queue) {
		ref, err := webhook.ParseDeliveryMessage(m.Body)
		if err != nil {
			t.Fatal(err)
		}
		refs = append(refs, ref.DeliveryRef)
		h.Queues().Delete(t, queue, m)
	}
	return refs
}

func TestTestSendsAnExampleOnce(t *testing.T) {
	h := newHarness(t)
	item := h.endpoint(t, minimal)
	h.must(t, http.StatusOK, "PATCH", item, `{"status":"PAUSED"}`)
	for _, tt := range []struct{ body, eventType, object string }{
		{``, "webhook.test", `"object":{"message":`},
		{`{}`, "webhook.test", `"object":{"message":`},
		{`{"type":null}`, "webhook.test", `"object":{"message":`},
		{`{"type":"invoice.paid"}`, "invoice.paid", `"status":"PAID"`},
		{`{"type":"endpoint.disabled"}`, "endpoint.disabled", `"status":"DISABLED"`},
	} {
		t.Run(tt.body, func(t *testing.T) {
			a := h.must(t, http.StatusAccepted, "POST", item+"/test", tt.body)
			if a.text("type") != tt.eventType || a.text("status") != "PENDING" || !strings.Contains(a.Body, tt.object) || a.text("payload.organizationId") != h.Org.String() ||
				a.text("payload.id") != a.text("eventId") {
				t.Errorf("%s", a.Body)
			}
			if got, want := a.Header.Get("Location"), base+"/developers/webhooks/events/"+a.text("id"); got != want {
				t.Errorf("Location %s, want %s", got, want)
			}
			delivery, err := h.Table.Delivery(t.Context(), h.Org, value.MustID(a.text("id")))
			if err != nil || !delivery.Test || delivery.DueAt == nil {
				t.Errorf("delivery %+v, %v", delivery, err)
			}
			if refs := h.refs(t, servicetest.MainQueue); len(refs) != 1 || refs[0] != delivery.Ref() {
				t.Errorf("sent %+v, want %+v", refs, delivery.Ref())
			}
		})
	}
	h.Suspend(t, h.App)
	h.must(t, http.StatusConflict, "POST", item+"/test", `{}`)
}

func TestRedeliveryStartsANewScheduleOfTheSameEvent(t *testing.T) {
	h := newHarness(t)
	item := h.endpoint(t, minimal)
	delivery := h.event(t, item, "")
	path := "/developers/webhooks/events/" + delivery.ID.String() + "/redeliver"
	h.must(t, http.StatusConflict, "POST", path, "")
	delivered := delivery.Record(webhook.Outcome{Attempt: webhook.Attempt{At: h.Now()}}, "m", 0, 0, h.Now())
	if _, err := h.Table.PutDelivery(t.Context(), delivery, delivered); err != nil {
		t.Fatal(err)
	}
	h.refs(t, servicetest.MainQueue)
	a := h.must(t, http.StatusAccepted, "POST", path, "")
	if a.text("id") != delivery.ID.String() || a.text("eventId") != delivery.EventID.String() || a.text("status") != "PENDING" || a.field("attemptCount") != 1.0 || a.field("deliveredAt") != nil {
		t.Errorf("redelivered: %s", a.Body)
	}
	again, err := h.Table.Delivery(t.Context(), h.Org, delivery.ID)
	if err != nil || again.ScheduleStart != 1 || again.DueAt == nil {
		t.Errorf("delivery %+v, %v", again, err)
	}
	if refs := h.refs(t, servicetest.MainQueue); len(refs) != 1 || refs[0] != delivery.Ref() {
		t.Errorf("sent %+v", refs)
	}
	h.must(t, http.StatusConflict, "POST", path, "")

	bare := webhook.NewDelivery(&commerce.WebhookPayload{ID: value.NewID(), Type: "order.created"}, h.stored(t, item), webhook.HeldPaused, h.Now())
	if _, err := h.Table.PutDelivery(t.Context(), bare.StoredAt(0), bare); err != nil {
		t.Fatal(err)
	}
	if a := h.must(t, http.StatusConflict, "POST", "/developers/webhooks/events/"+bare.ID.String()+"/redeliver", ""); !strings.Contains(a.Body, "payload has expired") {
		t.Errorf("a delivery without a payload: %s", a.Body)
	}

	for _, status := range []webhook.Status{webhook.Paused, webhook.Disabled} {
		h.SetStatus(t, h.stored(t, item).ID, status)
		held := h.event(t, item, webhook.HeldPaused)
		a := h.must(t, http.StatusConflict, "POST", "/developers/webhooks/events/"+held.ID.String()+"/redeliver", "")
		if !strings.Contains(a.text("message"), "is "+string(status)+": ") || !strings.Contains(a.text("message"), "recover") {
			t.Errorf("%s: %s, want it to say what to do", status, a.Body)
		}
	}
	held := h.event(t, item, webhook.HeldPaused)
	h.must(t, http.StatusNoContent, "DELETE", item, "")
	h.must(t, http.StatusConflict, "POST", "/developers/webhooks/events/"+held.ID.String()+"/redeliver", "")
}

func TestRecoverySendsWhatWasHeld(t *testing.T) {
	h := newHarness(t)
	item := h.endpoint(t, minimal)
	since := h.Now()
	h.Pass(time.Second)
	first := h.event(t, item, webhook.HeldPaused)
	h.Pass(time.Second)
	second := h.event(t, item, webhook.HeldPaused)
	h.Pass(time.Second)
	body := fmt.Sprintf(`{"since":%q,"until":%q}`, since, second.CreatedAt)
	a := h.must(t, http.StatusAccepted, "POST", item+"/recover", body)
	if a.text("status") != "COMPLETED" || a.field("matchedCount") != 1.0 || a.field("requeuedCount") != 1.0 || a.text("until") != second.CreatedAt.String() {
		t.Errorf("recovery: %s", a.Body)
	}
	location := strings.TrimPrefix(a.Header.Get("Location"), base)
	if got := h.must(t, http.StatusOK, "GET", location, ""); cmp.Diff(got.Body, a.Body) != "" {
		t.Errorf("read again: %s, want %s", got.Body, a.Body)
	}
	if refs := h.refs(t, servicetest.MainQueue); len(refs) != 1 || refs[0] != first.Ref() {
		t.Errorf("sent %+v, want %+v", refs, first.Ref())
	}
	if a := h.must(t, http.StatusAccepted, "POST", item+"/recover", fmt.Sprintf(`{"since":%q}`, since)); a.field("requeuedCount") != 1.0 || a.text("until") != h.Now().String() {
		t.Errorf("the rest: %s", a.Body)
	}
	h.must(t, http.StatusOK, "PATCH", item, `{"status":"PAUSED"}`)
	if a := h.must(t, http.StatusConflict, "POST", item+"/recover", body); a.text("message") != "the endpoint is PAUSED: set its status to ACTIVE first" {
		t.Errorf("while PAUSED: %s", a.Body)
	}
	h.must(t, http.StatusOK, "PATCH", item, `{"status":"ACTIVE"}`)
	e, now := h.stored(t, item), h.Now()
	running := &webhook.Recovery{ID: value.NewID(), EndpointID: e.ID, OrganizationID: h.Org, Status: webhook.RecoveryRunning, CreatedAt: now, UpdatedAt: now}
	if err := h.Table.CreateRecovery(t.Context(), running, now); err != nil {
		t.Fatal(err)
	}
	if a := h.must(t, http.StatusConflict, "POST", item+"/recover", body); a.text("message") != "the recovery "+running.ID.String()+" of the endpoint runs already: wait for it to end" {
		t.Errorf("while another runs: %s", a.Body)
	}
}

func TestARecoveryWithoutASpanSendsEverythingShown(t *testing.T) {
	for _, body := range []string{"", "{}", " \n", `{"since":null,"until":null}`} {
		t.Run(body, func(t *testing.T) {
			h := newHarness(t)
			item := h.endpoint(t, minimal)
			h.event(t, item, webhook.HeldPaused) // no longer shown at the recovery
			h.Pass(time.Hour)
			h.event(t, item, webhook.HeldPaused)
			h.Pass(webhook.Retention - time.Hour - time.Second)
			h.event(t, item, webhook.HeldPaused)
			h.Pass(time.Second)
			shown := h.must(t, http.StatusOK, "GET", "/developers/webhooks/events", "").field("meta.total")
			a := h.must(t, http.StatusAccepted, "POST", item+"/recover", body, "Content-Type", "application/json")
			if a.field("requeuedCount") != shown || shown != 2.0 {
				t.Errorf("recovered %s, want the %v events shown", a.Body, shown)
			}
		})
	}
}

func TestAnEndpointsApplicationIsNamedInTheQuery(t *testing.T) {
	h := newHarness(t)
	body := func(application string) string {
		return fmt.Sprintf(`{"applicationId":%s,"url":"https://example.com/hook","events":["*"]}`, application)
	}
	create := endpoints + "?applicationId=" + h.App.String()
	for _, same := range []string{`"` + h.App.String() + `"`, `"` + strings.ToUpper(h.App.String()) + `"`, "null"} {
		t.Run(same, func(t *testing.T) { h.must(t, http.StatusCreated, "POST", create, body(same)) })
	}
	if a := h.must(t, http.StatusBadRequest, "POST", endpoints, minimal); a.text("message") != "applicationId is required: send applicationId in the query" {
		t.Errorf("without one: %s", a.Body)
	}
	h.must(t, http.StatusNotFound, "POST", endpoints+"?applicationId="+value.NewID().String(), minimal)
	theirs := h.Service.Organization(t)
	h.must(t, http.StatusNotFound, "POST", endpoints+"?applicationId="+theirs.App.String(), minimal)
}

func TestDeletionCancelsWhatIsHeldAtOnce(t *testing.T) {
	h := newHarness(t)
	item := h.endpoint(t, minimal)
	held := h.event(t, item, webhook.HeldPaused)
	h.must(t, http.StatusNoContent, "DELETE", item, "")
	h.must(t, http.StatusNotFound, "DELETE", item, "")
	h.must(t, http.StatusNotFound, "GET", item+"/stats", "")
	if a := h.must(t, http.StatusOK, "GET", "/developers/webhooks/events/"+held.ID.String(), ""); a.text("status") != "CANCELLED" {
		t.Errorf("held event: %s", a.Body)
	}
}

func TestCatalogueHasEveryTypeWithItsSchemaAndExample(t *testing.T) {
	h := newHarness(t)
	const path = "/developers/webhooks/event-types"
	a := h.must(t, http.StatusOK, "GET", path+"?limit=100", "")
	list, _ := a.field("data").([]any)
	var names []string
	for _, e := range list {
		entry, _ := e.(map[string]any)
		name, _ := entry["type"].(string)
		names = append(names, name)
		schema, _ := entry["schema"].(map[string]any)
		example, _ := entry["example"].(map[string]any)
		if entry["description"] == "" || example["type"] != name {
			t.Errorf("%s: %v", name, entry)
		}
		compiler := jsonschema.NewCompiler()
		if err := compiler.AddResource(name, closed(schema)); err != nil {
			t.Fatal(err)
		}
		if err := compiler.MustCompile(name).Validate(example); err != nil {
			t.Errorf("%s: the example does not conform to its schema: %v", name, err)
		}
	}
	if want := slices.Sorted(slices.Values(commerce.EventNames())); cmp.Diff(want, names) != "" {
		t.Error(cmp.Diff(want, names))
	}
	second := h.must(t, http.StatusOK, "GET", path+"?limit=10&page=2&orderDirection=desc", "")
	if got, _ := second.field("data").([]any); len(got) != 10 || second.field("meta.total") != float64(len(names)) {
		t.Errorf("second page: %d entries, %v", len(got), second.field("meta"))
	}
}

// closed makes a schema refuse members that it does not name.
func closed(schema any) any {
	switch schema := schema.(type) {
	case map[string]any:
		for _, part := range schema {
			closed(part)
		}
		if _, ok := schema["properties"].(map[string]any); ok {
			schema["additionalProperties"] = false
		}
	case []any:
		for _, part := range schema {
			closed(part)
		}
	}
	return schema
}

func TestTheHistoryWeighsByItsReadUnits(t *testing.T) {
	h := newHarness(t)
	for units, weight := range map[int]int{100: 1, 101: 2} {
		h.history.units = units
		h.limiter.weight.Store(0)
		h.must(t, http.StatusOK, "GET", "/developers/webhooks/events", "")
		if got := h.limiter.weight.Load(); got != int64(weight) {
			t.Errorf("%d units: got a weight of %d, want %d", units, got, weight)
		}
	}
}
