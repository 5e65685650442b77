package sources_test

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"fmt"
	"net/http"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/aws/aws-lambda-go/events"
	"github.com/go-json-experiment/json"

	"github.com/commerce-integration/service/pkg/api"
	"github.com/commerce-integration/service/pkg/api/idempotency"
	"github.com/commerce-integration/service/pkg/api/sources"
	"github.com/commerce-integration/service/pkg/auth"
	"github.com/commerce-integration/service/pkg/auth/ratelimit"
	"github.com/commerce-integration/service/pkg/base/fault"
	"github.com/commerce-integration/service/pkg/base/value"
	"github.com/commerce-integration/service/pkg/commerce"
	"github.com/commerce-integration/service/pkg/commerce/receipt"
	"github.com/commerce-integration/service/pkg/commerce/shop"
	"github.com/commerce-integration/service/pkg/dynamo"
	"github.com/commerce-integration/service/pkg/ingest"
	"github.com/commerce-integration/service/pkg/queue"
	"github.com/commerce-integration/service/pkg/testkit/servicetest"
	"github.com/commerce-integration/service/pkg/webhook/source"
)

const secret = "shpss_0123456789abcdef0123456789abcdef"

// harness serves the operations on the real table and queue, and applies what they
// queue by the real ingest.
type harness struct {
	*servicetest.Service
	server   *api.Server
	faults   *faults
	ingester *ingest.Ingester
	caller   auth.Principal
}

// faults ends the process before or after a step: the steps are the calls that
// change the table or the queue.
type faults struct {
	*dynamo.Table
	queue.Posts
	mu         sync.Mutex // of step
	step, dies int
	after      bool
}

var errKilled = fault.Busy(errors.New("killed"))

func (f *faults) do(call func() error) error {
	f.mu.Lock()
	f.step++
	dies := f.step == f.dies
	f.mu.Unlock()
	if dies && !f.after {
		return errKilled
	}
	if err := call(); err != nil || !dies {
		return err
	}
	return errKilled
}

func (f *faults) ChangeShopObject(ctx context.Context, s *source.Source, kind commerce.Kind, id string, change func(*source.Object) bool) error {
	return f.do(func() error { return f.Table.ChangeShopObject(ctx, s, kind, id, change) })
}

func (f *faults) ChangeShopItem(ctx context.Context, s *source.Source, id string, change func(*source.Item) bool) error {
	return f.do(func() error { return f.Table.ChangeShopItem(ctx, s, id, change) })
}

func (f *faults) CreateReceipt(ctx context.Context, s *receipt.Stored) error {
	return f.do(func() error { return f.Table.CreateReceipt(ctx, s) })
}

func (f *faults) Send(ctx context.Context, org, id value.ID, message []byte) error {
	return f.do(func() error { return f.Posts.Send(ctx, org, id, message) })
}

func newHarness(t *testing.T) *harness {
	t.Helper()
	s := servicetest.New(t)
	h := &harness{Service: s, faults: &faults{Table: s.Table, Posts: queue.NewPosts(s.Queues().Queue("RecordsQueue"))}}
	h.caller = h.owner(s.Org)
	records := queue.NewRecords(s.Queues().Queue("RecordsQueue"), s.Queues().Queue("ImportsQueue"))
	h.ingester = ingest.New(s.Table, queue.NewRejects(s.Queues().Queue("RecordsDLQ")), records, s.Time, s.Leaks.Logger())
	h.restart()
	return h
}

// restart makes the function anew, as after its process died.
func (h *harness) restart() {
	h.faults.step, h.faults.dies = 0, 0
	h.server = api.NewServer(sources.Operations(h.faults, h.faults, h.Box, h.Time), api.Config{
		Caller: func(r *http.Request) api.Caller {
			return api.Caller{BaseURL: "https://x.test/prod", Principal: h.caller, SourceAddress: r.Header.Get("From")}
		},
		Limiter:     ratelimit.New(h.Table, h.Time),
		Idempotency: idempotency.New(h.Table, h.Box, h.Time), Clock: h.Time, Logger: h.Leaks.Logger(),
	})
}

func (h *harness) owner(org value.ID) auth.Principal {
	return auth.Principal{Kind: auth.KindUser, OrganizationID: org, UserID: value.NewID(), Scopes: auth.Admin.Scopes(), RateLimit: 100_000}
}

// ask makes a request and reads its answer into v unless that is nil.
func (h *harness) ask(t *testing.T, method, path, body string, v any, headers ...string) servicetest.Answer {
	t.Helper()
	a := h.AskJSON(h.server, method, path, body, headers...)
	if v != nil {
		if err := json.Unmarshal([]byte(a.Body), v); err != nil {
			t.Fatalf("%s %s: %d %s: %v", method, path, a.Status, a.Body, err)
		}
	}
	return a
}

// create makes a source, and returns it with its secret.
func (h *harness) create(t *testing.T, kind shop.System, prefix string) (s source.WebhookSource) {
	t.Helper()
	body := fmt.Sprintf(`{"kind":%q,"name":"Shop","idPrefix":%q`, kind, prefix)
	if kind == shop.Shopify {
		h.Leaks.Made(secret)
		body += `,"secret":"` + secret + `"`
	}
	if a := h.ask(t, "POST", "/developers/sources", body+"}", &s); a.Status != http.StatusCreated {
		t.Fatalf("got %d %s", a.Status, a.Body)
	}
	return s
}

func sign(body, key string) string {
	mac := hmac.New(sha256.New, []byte(key))
	mac.Write([]byte(body))
	return base64.StdEncoding.EncodeToString(mac.Sum(nil))
}

// shopify sends a webhook of Shopify that was triggered at a second.
func (h *harness) shopify(s source.WebhookSource, topic, body string, second int, headers ...string) servicetest.Answer {
	return h.AskJSON(h.server, "POST", source.Path+s.ID.String(), body, append([]string{
		"X-Shopify-Hmac-Sha256", sign(body, secret), "X-Shopify-Topic", topic, "X-Shopify-Webhook-Id", value.NewID().String(),
		"X-Shopify-Triggered-At", time.Unix(int64(1_700_000_000+second), 123_456_789).UTC().Format(time.RFC3339Nano),
	}, headers...)...)
}

func (h *harness) woo(s source.WebhookSource, topic, body, delivery string) servicetest.Answer {
	return h.AskJSON(h.server, "POST", source.Path+s.ID.String(), body,
		"X-WC-Webhook-Signature", sign(body, s.Secret), "X-WC-Webhook-Topic", topic, "X-WC-Webhook-Delivery-ID", delivery)
}

// apply has ingest apply what is queued.
func (h *harness) apply(t *testing.T) {
	t.Helper()
	for {
		var all []events.SQSMessage
		for _, name := range []string{"RecordsQueue", "ImportsQueue"} {
			batch := h.Queues().Receive(t, name)
			answer, err := h.ingester.Handle(t.Context(), events.SQSEvent{Records: batch})
			if err != nil || len(answer.BatchItemFailures) > 0 {
				t.Fatalf("ingest: %v, %v", answer, err)
			}
			h.Queues().Delete(t, name, batch...)
			all = append(all, batch...)
		}
		if len(all) == 0 {
			return
		}
	}
}

// names are the live products, as ids derive from what the shop says.
func (h *harness) product(t *testing.T, parts ...string) string {
	t.Helper()
	stored, err := h.Table.Record(t.Context(), h.Org, commerce.KindProduct, value.DeriveID(shop.Namespace, strings.Join(parts, "\x1f")))
	if err != nil {
		t.Fatal(err)
	}
	if stored == nil || stored.Deleted {
		return ""
	}
	record, err := stored.Record()
	if err != nil {
		t.Fatal(err)
	}
	return record.(*commerce.Product).Name
}

// stock is what is on hand of the product at the location; "" where none is kept.
func (h *harness) stock(t *testing.T, location string, parts ...string) string {
	t.Helper()
	id := commerce.StockID(h.Org, value.DeriveID(shop.Namespace, strings.Join(parts, "\x1f")), nil, &location)
	stored, err := h.Table.Record(t.Context(), h.Org, commerce.KindStock, id)
	if err != nil {
		t.Fatal(err)
	}
	if stored == nil || stored.Deleted {
		return ""
	}
	record, err := stored.Record()
	if err != nil {
		t.Fatal(err)
	}
	return record.(*commerce.Stock).OnHand.String()
}

// tee is a product of Shopify with the sizes.
func tee(title string, sizes ...string) string {
	variants := make([]string, len(sizes))
	for i, size := range sizes {
		variants[i] = fmt.Sprintf(`{"id":"v%s","option1":%q,"price":"1.00","inventory_item_id":"i%s"}`, size, size, size)
	}
	return fmt.Sprintf(`{"id":1,"handle":"tee","title":%q,"options":[{"name":"Size"}],"product_type":"Shirts","variants":[%s]}`, title, strings.Join(variants, ","))
}

func level(item string, available int) string {
	return fmt.Sprintf(`{"inventory_item_id":%q,"location_id":7,"available":%d}`, item, available)
}

func accepted(t *testing.T, a servicetest.Answer) {
	t.Helper()
	if a.Status != http.StatusAccepted {
		t.Errorf("got %d %s, want 202", a.Status, a.Body)
	}
}

func TestASourceIsManagedByItsOrganizationAlone(t *testing.T) {
	h := newHarness(t)
	s := h.create(t, shop.WooCommerce, "")
	path := "/developers/sources/" + s.ID.String()
	var shown source.WebhookSource
	got := h.ask(t, "GET", path, "", &shown)
	if shown.Secret != "****"+s.Secret[len(s.Secret)-4:] || shown.URL != "https://x.test/prod/ingest/sources/"+s.ID.String() {
		t.Errorf("got %s", got.Body)
	}
	if a := h.ask(t, "PATCH", path, `{"name":"Berlin"}`, &shown, "If-Match", `"x"`); a.Status != http.StatusPreconditionFailed {
		t.Errorf("another ETag: got %d %s", a.Status, a.Body)
	}
	if a := h.ask(t, "PATCH", path, `{"name":"Berlin"}`, &shown, "If-Match", got.Header.Get("ETag")); a.Status != 200 || shown.Name != "Berlin" {
		t.Errorf("got %d %s", a.Status, a.Body)
	}
	for _, row := range []struct{ body, wrong string }{
		{`{}`, "kind"},
		{`{"kind":"ETSY","name":"x"}`, "kind"},
		{`{"kind":"WOOCOMMERCE","name":""}`, "name"},
		{`{"kind":"WOOCOMMERCE","name":"x","secret":"12345678"}`, "secret"},
		{`{"kind":"SHOPIFY","name":"x"}`, "secret"},
		{`{"kind":"SHOPIFY","name":"x","secret":"1234567"}`, "secret"},
		{`{"kind":"SHOPIFY","name":"x","secret":"` + strings.Repeat("x", 256) + `"}`, "secret"},
		{`{"kind":"WOOCOMMERCE","name":"x","idPrefix":"` + strings.Repeat("x", 41) + `"}`, "idPrefix"},
	} {
		if a := h.ask(t, "POST", "/developers/sources", row.body, nil); a.Status != http.StatusBadRequest || !strings.Contains(a.Body, `"field":"`+row.wrong+`"`) {
			t.Errorf("%s: got %d %s, want %s refused", row.body, a.Status, a.Body, row.wrong)
		}
	}
	h.caller = h.owner(h.Organization(t).Org)
	for method, body := range map[string]string{"GET": "", "PATCH": `{"name":"x"}`, "DELETE": ""} {
		if a := h.ask(t, method, path, body, nil); a.Status != http.StatusNotFound {
			t.Errorf("%s by another organization: got %d %s", method, a.Status, a.Body)
		}
	}
	if a := h.ask(t, "GET", "/developers/sources", "", nil); a.Body != `{"data":[]}` {
		t.Errorf("another organization lists %s", a.Body)
	}
	h.caller = h.owner(h.Org)
	if a := h.ask(t, "POST", "/developers/sources", `{"kind":"WOOCOMMERCE","name":"x"}`, nil); a.Status != http.StatusConflict {
		t.Errorf("the same ids for two shops: got %d %s", a.Status, a.Body)
	}
	for i := range source.MaxSources {
		a := h.ask(t, "POST", "/developers/sources", fmt.Sprintf(`{"kind":"WOOCOMMERCE","name":"x","idPrefix":"%d"}`, i), nil)
		if want := i == source.MaxSources-1; (a.Status == http.StatusConflict) != want {
			t.Errorf("source %d: got %d", i+2, a.Status)
		}
	}
	accepted(t, h.woo(s, "product.updated", `{"id":1}`, "c"))
	if a := h.ask(t, "DELETE", path, "", nil); a.Status != http.StatusNoContent {
		t.Errorf("delete: got %d", a.Status)
	}
	if a := h.woo(s, "product.updated", `{"id":1}`, "d"); a.Status != http.StatusUnauthorized {
		t.Errorf("a webhook of a deleted source: got %d", a.Status)
	}
}

func TestOnlyWhatASecretSignedIsTaken(t *testing.T) {
	h := newHarness(t)
	s := h.create(t, shop.Shopify, "")
	body := tee("Tee", "S")
	url := source.Path + s.ID.String()
	for name, a := range map[string]servicetest.Answer{
		"another secret":      h.AskJSON(h.server, "POST", url, body, "X-Shopify-Hmac-Sha256", sign(body, "another"), "X-Shopify-Topic", "products/update"),
		"another body":        h.AskJSON(h.server, "POST", url, body+" ", "X-Shopify-Hmac-Sha256", sign(body, secret)),
		"no signature":        h.AskJSON(h.server, "POST", url, body),
		"no base64":           h.AskJSON(h.server, "POST", url, body, "X-Shopify-Hmac-Sha256", "%"),
		"the other system's":  h.AskJSON(h.server, "POST", url, body, "X-WC-Webhook-Signature", sign(body, secret)),
		"an unknown id":       h.AskJSON(h.server, "POST", source.Path+value.NewID().String(), body, "X-Shopify-Hmac-Sha256", sign(body, secret)),
		"what is no id":       h.AskJSON(h.server, "POST", source.Path+"x", body, "X-Shopify-Hmac-Sha256", sign(body, secret)),
		"the unknown's dummy": h.AskJSON(h.server, "POST", source.Path+value.NewID().String(), body, "X-Shopify-Hmac-Sha256", sign(body, "none")),
	} {
		if a.Status != http.StatusUnauthorized || !strings.Contains(a.Body, "invalid_signature") {
			t.Errorf("%s: got %d %s", name, a.Status, a.Body)
		}
	}
	accepted(t, h.shopify(s, "products/update", body, 1))

	rotated := "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"
	h.Leaks.Made(rotated)
	h.ask(t, "POST", "/developers/sources/"+s.ID.String()+"/rotate-secret", `{"secret":"`+rotated+`","overlapHours":1}`, nil)
	accepted(t, h.shopify(s, "products/update", body, 2))
	h.Pass(time.Hour)
	if a := h.shopify(s, "products/update", body, 4); a.Status != http.StatusUnauthorized {
		t.Errorf("after the overlap: got %d", a.Status)
	}
	accepted(t, h.AskJSON(h.server, "POST", url, body, "X-Shopify-Hmac-Sha256", sign(body, rotated), "X-Shopify-Topic", "products/update"))
}

func TestWrongSignaturesAreCountedInMemory(t *testing.T) {
	h := newHarness(t)
	s := h.create(t, shop.Shopify, "")
	statuses := map[int]int{}
	for i := range 70 {
		id := s.ID.String()
		if i%2 == 1 {
			id = strings.ToUpper(id)
		}
		statuses[h.AskJSON(h.server, "POST", source.Path+id, "{}", "From", "192.0.2.1").Status]++
	}
	if statuses[401] != 60 || statuses[429] != 10 {
		t.Errorf("got %v, want 60 answers 401 and then 429", statuses)
	}
	accepted(t, h.shopify(s, "products/update", tee("Tee", "S"), 1)) // from elsewhere
	h.Pass(time.Minute)
	if a := h.AskJSON(h.server, "POST", source.Path+s.ID.String(), "{}", "From", "192.0.2.1"); a.Status != http.StatusUnauthorized {
		t.Errorf("a minute later: got %d", a.Status)
	}
}

func TestBodiesAreTakenUpToAMebibyte(t *testing.T) {
	h := newHarness(t)
	s := h.create(t, shop.Shopify, "")
	body := tee("Tee", "S")
	fill := strings.Repeat(" ", 1<<20-len(body))
	accepted(t, h.shopify(s, "products/update", body+fill, 1))
	if a := h.shopify(s, "products/update", body+fill+" ", 2); a.Status != http.StatusRequestEntityTooLarge {
		t.Errorf("got %d %s", a.Status, a.Body)
	}
}

func TestWhatIsKeptOfAnObjectIsBounded(t *testing.T) {
	h := newHarness(t)
	s, w := h.create(t, shop.Shopify, ""), h.create(t, shop.WooCommerce, "")
	long := strings.Repeat("x", 400_000)
	variations := func(length int) string {
		all := make([]string, 2_048)
		for i := range all {
			all[i] = fmt.Sprintf(`"%0*d"`, length, i)
		}
		return `{"id":7,"variations":[` + strings.Join(all, ",") + `]}`
	}
	for name, row := range map[string]struct {
		answer servicetest.Answer
		want   int
	}{
		"a location":       {h.shopify(s, "inventory_levels/update", `{"inventory_item_id":1,"location_id":"`+long+`","available":1}`, 1), 400},
		"a quantity":       {h.shopify(s, "inventory_levels/update", `{"inventory_item_id":1,"location_id":1,"available":"`+long+`"}`, 1), 413},
		"a variant":        {h.shopify(s, "products/update", `{"id":1,"handle":"x","variants":[{"id":"`+long+`"}]}`, 1), 400},
		"an item":          {h.shopify(s, "products/update", `{"id":1,"handle":"x","variants":[{"id":1,"inventory_item_id":"`+long+`"}]}`, 1), 400},
		"what is escaped":  {h.shopify(s, "orders/updated", `{"id":1,"name":"#1","note":"`+strings.Repeat("\ufffe", 300_000)+`"}`, 1), 413},
		"a category":       {h.shopify(s, "products/update", `{"id":1,"handle":"x","product_type":"`+long+`","variants":[{"id":1}]}`, 1), 413},
		"variations":       {h.woo(w, "product.updated", variations(14), "a"), 202},
		"longer variation": {h.woo(w, "product.updated", variations(200), "b"), 413},
	} {
		if row.answer.Status != row.want {
			t.Errorf("%s: got %d %s, want %d", name, row.answer.Status, row.answer.Body, row.want)
		}
	}
}

func TestWhatChangesNoRecordIsReceipted(t *testing.T) {
	h := newHarness(t)
	s, w := h.create(t, shop.Shopify, ""), h.create(t, shop.WooCommerce, "")
	for _, topic := range []string{"refunds/create", "themes/publish"} {
		var got sources.Received
		a := h.shopify(s, topic, `{"id":1}`, 1)
		if err := json.Unmarshal([]byte(a.Body), &got); err != nil || a.Status != http.StatusAccepted {
			t.Fatalf("got %d %s", a.Status, a.Body)
		}
		r, err := h.Table.Receipt(t.Context(), h.Org, got.ReceiptID)
		if err != nil || r == nil || r.Receipt.Status != receipt.Completed || *r.Receipt.Topic != topic || *r.Receipt.SourceID != s.ID {
			t.Errorf("%s: receipt %+v, %v", topic, r, err)
		}
	}
	form := []string{"Content-Type", "application/x-www-form-urlencoded"}
	if a := h.Ask(h.server, "POST", source.Path+w.ID.String(), "webhook_id=12", form...); a.Status != http.StatusOK || a.Body != "" {
		t.Errorf("ping: got %d %s", a.Status, a.Body)
	}
	if a := h.Ask(h.server, "POST", source.Path+w.ID.String(), "webhook_id=12&x=1", form...); a.Status != http.StatusUnauthorized {
		t.Errorf("another form: got %d %s", a.Status, a.Body)
	}
	if a := h.shopify(s, "products/update", `{"title":"x"}`, 1); a.Status != http.StatusBadRequest {
		t.Errorf("a body without an id: got %d %s", a.Status, a.Body)
	}
}

func TestVariantsThatVanishAreDeleted(t *testing.T) {
	h := newHarness(t)
	s := h.create(t, shop.Shopify, "")
	want := func(step string, names ...string) {
		t.Helper()
		h.apply(t)
		for i, size := range []string{"S", "M", "L"} {
			if got := h.product(t, "shopify/tee", size); got != names[i] {
				t.Errorf("%s: %s is %q, want %q", step, size, got, names[i])
			}
		}
	}
	accepted(t, h.shopify(s, "products/create", tee("Tee", "S", "M"), 10))
	want("created", "Tee - S", "Tee - M", "")
	accepted(t, h.shopify(s, "products/update", tee("Shirt", "S", "L"), 30))
	want("one replaced", "Shirt - S", "", "Shirt - L")
	accepted(t, h.shopify(s, "products/update", tee("Old", "S", "M"), 20))
	want("late", "Shirt - S", "", "Shirt - L")
	accepted(t, h.shopify(s, "products/update", tee("Blouse", "S", "L"), 30))
	want("the same version, later", "Blouse - S", "", "Blouse - L")
	truncated := strings.Replace(tee("Blouse", "S"), `"variants"`, `"variant_gids":[{"admin_graphql_api_id":"gid://shopify/ProductVariant/vL"}],"variants"`, 1)
	accepted(t, h.shopify(s, "products/update", truncated, 35))
	want("named only", "Blouse - S", "", "Blouse - L")
	accepted(t, h.shopify(s, "products/delete", `{"id":1}`, 40))
	want("deleted", "", "", "")
	accepted(t, h.shopify(s, "products/update", tee("Late", "S"), 39))
	want("late after the deletion", "", "", "")
	accepted(t, h.shopify(s, "products/create", tee("Again", "M"), 50))
	want("again", "", "Again - M", "")
	accepted(t, h.shopify(s, "products/delete", `{"id":1}`, 40))
	want("the deletion replayed", "", "Again - M", "")
	if stored, err := h.Table.Record(t.Context(), h.Org, commerce.KindCategory, value.DeriveID(shop.Namespace, "category/Shirts")); err != nil || stored == nil {
		t.Errorf("the category is %v, %v", stored, err)
	}
}

func TestADeletionWithoutATimeDoesNotUndoANewerPut(t *testing.T) {
	h := newHarness(t)
	w := h.create(t, shop.WooCommerce, "")
	put := func(minute int) string {
		return fmt.Sprintf(`{"id":5,"name":"Tea %d","date_modified_gmt":"2026-11-21T06:%02d:00"}`, minute, minute)
	}
	for _, step := range []struct{ name, topic, body, delivery, want string }{
		{"put", "product.created", put(1), "a", "Tea 1"},
		{"deleted", "product.deleted", `{"id":5}`, "b", ""},
		{"repeated", "product.deleted", `{"id":5}`, "b", ""},
		{"restored", "product.restored", put(2), "c", "Tea 2"},
		{"the deletion replayed", "product.deleted", `{"id":5}`, "b", "Tea 2"},
		{"an old put", "product.updated", put(1), "d", "Tea 2"},
		{"deleted again", "product.deleted", `{"id":"5"}`, "e", ""},
		{"put again", "product.updated", put(3), "f", "Tea 3"},
		{"the first deletion replayed", "product.deleted", `{"id":5}`, "b", "Tea 3"},
	} {
		accepted(t, h.woo(w, step.topic, step.body, step.delivery))
		h.apply(t)
		if got := h.product(t, "woocommerce/5"); got != step.want {
			t.Errorf("%s: got %q, want %q", step.name, got, step.want)
		}
	}
}

func TestVariationsFollowTheirProduct(t *testing.T) {
	h := newHarness(t)
	w := h.create(t, shop.WooCommerce, "")
	accepted(t, h.woo(w, "product.created", `{"id":8,"type":"variation","name":"Tea - Green","date_modified_gmt":"2026-11-21T06:09:00"}`, "a"))
	accepted(t, h.woo(w, "product.created", `{"id":9,"type":"variation","name":"Tea - Black","date_modified_gmt":"2026-11-21T06:09:00"}`, "b"))
	accepted(t, h.woo(w, "product.updated", `{"id":7,"type":"variable","name":"Tea","variations":[8,9],"date_modified_gmt":"2026-11-21T06:00:00"}`, "c"))
	h.apply(t)
	accepted(t, h.woo(w, "product.updated", `{"id":7,"type":"variable","name":"Tea","variations":[8],"date_modified_gmt":"2026-11-21T06:01:00"}`, "d"))
	h.apply(t)
	if tea, green, black := h.product(t, "woocommerce/7"), h.product(t, "woocommerce/8"), h.product(t, "woocommerce/9"); tea != "" || green == "" || black != "" {
		t.Errorf("got %q, %q, %q, want the variation that is left", tea, green, black)
	}
	accepted(t, h.woo(w, "product.deleted", `{"id":7}`, "e"))
	h.apply(t)
	if green := h.product(t, "woocommerce/8"); green != "" {
		t.Errorf("the variation of a deleted product is %q", green)
	}
}

func TestAProductOfWooCommerceBringsItsStockAndReference(t *testing.T) {
	h := newHarness(t)
	w := h.create(t, shop.WooCommerce, "")
	accepted(t, h.woo(w, "product.updated", `{"id":5,"name":"Tea","manage_stock":true,"stock_quantity":12}`, "a"))
	h.apply(t)
	if got := h.stock(t, "", "woocommerce/5"); got != "12" {
		t.Errorf("got %q on hand, want 12", got)
	}
	stored, err := h.Table.Record(t.Context(), h.Org, commerce.KindProduct, value.DeriveID(shop.Namespace, "woocommerce/5"))
	if err != nil || stored.ExternalRef != "5" {
		t.Errorf("got %+v, %v, want the reference 5", stored, err)
	}
}

func TestASourceHasALimitOfItsOwn(t *testing.T) {
	h := newHarness(t)
	s := h.create(t, shop.Shopify, "")
	p := auth.Principal{Kind: auth.KindSource, OrganizationID: h.Org, SourceID: s.ID}
	if _, err := ratelimit.New(h.Table, h.Time).Admit(t.Context(), source.RateLimit-1, ratelimit.Subject{ID: p.Subject(), Limit: source.RateLimit}); err != nil {
		t.Fatal(err)
	}
	accepted(t, h.shopify(s, "refunds/create", `{"id":1}`, 1))
	if a := h.shopify(s, "refunds/create", `{"id":1}`, 1); a.Status != http.StatusTooManyRequests || a.Header.Get("Retry-After") == "" {
		t.Errorf("past the limit: got %d %v", a.Status, a.Header)
	}
}

func TestLevelsFindTheirVariantOrWaitForIt(t *testing.T) {
	h := newHarness(t)
	s := h.create(t, shop.Shopify, "")
	want := func(step, onHand string) {
		t.Helper()
		h.apply(t)
		if got := h.stock(t, "7", "shopify/tee", "S"); got != onHand {
			t.Errorf("%s: got %q, want %q", step, got, onHand)
		}
	}
	accepted(t, h.shopify(s, "inventory_levels/update", level("iS", 4), 20))
	accepted(t, h.shopify(s, "inventory_levels/update", level("iS", 5), 10)) // late
	want("early", "")
	accepted(t, h.shopify(s, "products/create", tee("Tee", "S"), 5))
	want("with the variant", "4")
	accepted(t, h.shopify(s, "inventory_levels/update", level("iS", -1), 30))
	want("a newer one", "-1")
	accepted(t, h.shopify(s, "inventory_levels/update", level("iS", 9), 25))
	want("a late one", "-1")
	accepted(t, h.shopify(s, "inventory_levels/disconnect", `{"inventory_item_id":"iS","location_id":7}`, 40))
	want("disconnected", "")
	accepted(t, h.shopify(s, "inventory_levels/connect", level("iS", 0), 50))
	want("connected", "0")
	accepted(t, h.shopify(s, "inventory_levels/update", level("iS", 6), 55))
	accepted(t, h.shopify(s, "products/update", strings.Replace(tee("Tee", "S"), `"tee"`, `"shirt"`, 1), 56))
	want("as before its handle changed", "6")
	if got := h.stock(t, "7", "shopify/shirt", "S"); got != "6" {
		t.Errorf("with another handle: got %q, want the latest level", got)
	}
	accepted(t, h.shopify(s, "products/update", tee("Tee", "S"), 57))
	accepted(t, h.shopify(s, "inventory_levels/update", level("iS", 0), 58))
	accepted(t, h.shopify(s, "inventory_levels/update", `{"inventory_item_id":"iS","location_id":7,"available":1.23456}`, 60))
	want("of five decimals", "0")

	const unprintable = "Berlin \U000e0001"
	accepted(t, h.shopify(s, "inventory_levels/update", `{"inventory_item_id":"iM","location_id":"`+unprintable+`","available":3}`, 61))
	accepted(t, h.shopify(s, "products/update", tee("Tee", "S", "M"), 62))
	h.apply(t)
	if got := h.stock(t, unprintable, "shopify/tee", "M"); got != "3" {
		t.Errorf("at a location with a tag character: got %q, want 3", got)
	}
}

// Whichever call the process ends before or after, the webhook that the shop then
// sends again leaves what it would have left, and a newer one does.
func TestWhateverEndsTheWorkTheNextWebhookCompletesIt(t *testing.T) {
	h := newHarness(t)
	for dies := 1; dies <= 14; dies++ {
		for _, again := range []bool{true, false} {
			s := h.create(t, shop.Shopify, fmt.Sprint(dies, again))
			ns := value.DeriveID(shop.Namespace, fmt.Sprint(dies, again))
			live := func(size string) bool {
				stored, err := h.Table.Record(t.Context(), h.Org, commerce.KindProduct, value.DeriveID(ns, "shopify/tee\x1f"+size))
				return err == nil && stored != nil && !stored.Deleted
			}
			onHand := func(size string) bool {
				location := "7"
				stored, err := h.Table.Record(t.Context(), h.Org, commerce.KindStock, commerce.StockID(h.Org, value.DeriveID(ns, "shopify/tee\x1f"+size), nil, &location))
				return err == nil && stored != nil && !stored.Deleted
			}
			accepted(t, h.shopify(s, "products/create", tee("Tee", "S", "M"), 1))
			accepted(t, h.shopify(s, "inventory_levels/update", level("iL", 3), 2))
			h.restart()
			h.faults.dies, h.faults.after = (dies+1)/2, dies%2 == 0
			died := h.shopify(s, "products/update", tee("Tee", "S", "L"), 3).Status == http.StatusServiceUnavailable
			h.restart()
			second := 3
			if !again {
				second = 4
			}
			accepted(t, h.shopify(s, "products/update", tee("Tee", "S", "L"), second))
			h.apply(t)
			if !live("S") || live("M") || !live("L") || !onHand("L") {
				t.Errorf("died %t at %d, again %t: S %t, M %t, L %t, stock %t", died, dies, again, live("S"), live("M"), live("L"), onHand("L"))
			}
			h.ask(t, "DELETE", "/developers/sources/"+s.ID.String(), "", nil)
		}
	}
}

func TestTheSamplesArriveWhole(t *testing.T) {
	h := newHarness(t)
	s := h.create(t, shop.Shopify, "")
	body, err := os.ReadFile("../../commerce/shop/testdata/shopify-orders-updated.json")
	if err != nil {
		t.Fatal(err)
	}
	var got sources.Received
	if err := json.Unmarshal([]byte(h.shopify(s, "orders/updated", string(body), 1).Body), &got); err != nil {
		t.Fatal(err)
	}
	h.apply(t)
	r, err := h.Table.Receipt(t.Context(), h.Org, got.ReceiptID)
	if err != nil || r.Receipt.AcceptedCount != 1 || r.Receipt.Status != receipt.Completed {
		t.Errorf("got %+v, %v", r, err)
	}
}
