package webhook_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/google/go-cmp/cmp"

	"github.com/commerce-integration/service/pkg/base/fault"
	"github.com/commerce-integration/service/pkg/base/value"
	"github.com/commerce-integration/service/pkg/commerce"
	"github.com/commerce-integration/service/pkg/webhook"
)

// sealText makes visible what is sealed, and for what.
func sealText(plain []byte, purpose string) string { return purpose + "=" + string(plain) }

// set returns the endpoint with the settings of a body.
func set(e *webhook.Endpoint, body string) (*webhook.Endpoint, error) {
	dto, err := webhook.ParseDeliverySettings([]byte(body))
	if err != nil {
		return nil, err
	}
	return e.SetDelivery(dto, sealText, e.UpdatedAt+10)
}

func subscriber(types ...string) *webhook.Endpoint {
	return &webhook.Endpoint{ID: value.NewID(), SubscribedEvents: types, UpdatedAt: 1000, RetryCount: 3, TimeoutSeconds: 2}
}

func TestWrongDeliverySettingsAreRefusedByField(t *testing.T) {
	for _, test := range []struct{ body, want string }{
		{`{"filter":[]}`, "filter invalid_format"},
		{`{"filter":{}}`, "filter invalid_format"},
		{`{"filter":{"object":{"total":[{"numeric":["!",1]}]}}}`, "filter.object.total[0].numeric invalid_format"},
		{`{"filter":{"object":{"total":[{"numeric":["<",1e309]}]}}}`, "filter.object.total[0].numeric[1] out_of_range"},
		{`{"filter":{"object":{"totl":[1]}}}`, "filter.object.totl[0] unknown"},
		{`{"filter":{"object":{"total":["12.5"]}}}`, "filter.object.total[0] wrong_type"},
		{`{"filter":{"object":{"status":["PAID",{"numeric":[">",1]}]}}}`, "filter.object.status[1] wrong_type"},
		{`{"filter":{"object":{"pricesIncludeTax":["true"]}}}`, "filter.object.pricesIncludeTax[0] wrong_type"},
		{`{"filter":{"object":{"items":[{"exists":true}]}}}`, "filter.object.items[0] wrong_type"},
		{`{"filter":{"object":{"items":{"sku":["x"],"colour":["x"]}}}}`, "filter.object.items.colour[0] unknown"},
		{`{"filter":{"object":{"status":{"name":["x"]}}}}`, "filter.object.status.name[0] unknown"},
		{`{"filter":{"object":["x"]}}`, "filter.object[0] wrong_type"},
		{`{"filter":{"total":[1]}}`, "filter.total[0] unknown"},
		{`{"filter":{"siteId":[1]}}`, "filter.siteId[0] wrong_type"},
		{`{"filter":{"siteId":{"id":["x"]}}}`, "filter.siteId.id[0] unknown"},
		{`{"filter":{"$or":[{"object":{"total":[1]}},{"previousAttributes":{"sku":["x"]}}]}}`, "filter.$or[1].previousAttributes.sku[0] unknown"},
		{`{"changed":[]}`, "changed out_of_range"},
		{`{"changed":["status","status"]}`, "changed[1] duplicate"},
		{`{"changed":["status","sku"]}`, "changed[1] unknown"},
		{`{"changed":["updatedAt"]}`, "changed not_allowed"},
		{`{"changed":["items.sku"]}`, "changed[0] unknown"},
		{`{"fields":["Status"]}`, "fields[0] unknown"},
		{`{"fields":["status"],"payload":"thin"}`, "fields not_allowed"},
		{`{"payload":"none"}`, "payload invalid_format"},
		{`{"retryCount":11,"timeoutSeconds":0}`, "retryCount out_of_range|timeoutSeconds out_of_range"},
		{`{"headers":{"Host":"x"}}`, "headers.Host not_allowed"},
		{`{"headers":{"webhook-id":"x"}}`, "headers.webhook-id not_allowed"},
		{
			`{"headers":{"CONTENT-TYPE":"x","user-agent":"x","connection":"x","transfer-encoding":"x"}}`,
			"headers.CONTENT-TYPE not_allowed|headers.connection not_allowed|headers.transfer-encoding not_allowed|headers.user-agent not_allowed",
		},
		{`{"headers":{"X-A":"1","x-a":"2"}}`, "headers.x-a duplicate"},
		{`{"headers":{"X A":"1","":"2"}}`, "headers. invalid_format|headers.X A invalid_format"},
		{`{"headers":{"X-A":"  "}}`, "headers.X-A invalid_format"},
		{`{"headers":{"X-A":"é"}}`, "headers.X-A invalid_format"},
		{`{"headers":{"X-A":"a\nb"}}`, "headers.X-A invalid_format"},
		{`{"headers":{"X-A":"****"}}`, "headers.X-A not_allowed"},
		{`{"colour":1}`, "colour unknown"},
	} {
		t.Run(test.body, func(t *testing.T) {
			_, err := set(subscriber("order.*"), test.body)
			f, ok := fault.As(err)
			if !ok {
				t.Fatalf("%v is no fault", err)
			}
			var got []string
			for _, d := range f.Details {
				got = append(got, d.Field+" "+d.Code)
			}
			if joined := strings.Join(got, "|"); joined != test.want {
				t.Errorf("got %s, want %s: %v", joined, test.want, err)
			}
		})
	}
}

// TestBoundsOfDeliverySettings is about the last that is taken and the first
// that is not.
func TestBoundsOfDeliverySettings(t *testing.T) {
	headers := func(n int, name, text string) string {
		all := make([]string, n)
		for i := range all {
			all[i] = fmt.Sprintf("%q:%q", fmt.Sprintf(name, i), text)
		}
		return `{"headers":{` + strings.Join(all, ",") + `}}`
	}
	for _, test := range []struct {
		name  string
		bound int
		make  func(n int) string
	}{
		{"headers", webhook.MaxHeaders, func(n int) string { return headers(n, "X-%d", "v") }},
		{"characters of a header's name", webhook.MaxHeaderName, func(n int) string { return headers(1, strings.Repeat("x", n-1)+"%d", "v") }},
		{"characters of a header's value", webhook.MaxHeaderValue, func(n int) string { return headers(1, "X%d", strings.Repeat("v", n)) }},
		{"characters of all headers", webhook.MaxHeaderBytes, func(n int) string {
			return fmt.Sprintf(`{"headers":{"A":%q,"B":%q}}`, strings.Repeat("v", webhook.MaxHeaderValue), strings.Repeat("v", n-webhook.MaxHeaderValue-2))
		}},
		{"retries", webhook.MaxRetryCount, func(n int) string { return fmt.Sprintf(`{"retryCount":%d}`, n) }},
		{"seconds", webhook.MaxTimeoutSeconds, func(n int) string { return fmt.Sprintf(`{"timeoutSeconds":%d}`, n) }},
		{"bytes of a filter", 4096, func(n int) string {
			return ` { "filter" : {"object":{"notes":["` + strings.Repeat("x", n-len(`{"object":{"notes":[""]}}`)) + `"]} }}`
		}},
	} {
		t.Run(test.name, func(t *testing.T) {
			if _, err := set(subscriber("order.*"), test.make(test.bound)); err != nil {
				t.Errorf("%d: %v", test.bound, err)
			}
			if _, err := set(subscriber("order.*"), test.make(test.bound+1)); err == nil {
				t.Errorf("%d is taken", test.bound+1)
			}
		})
	}
}

func TestDeliverySettingsReplaceEachOther(t *testing.T) {
	e, err := set(subscriber("order.*", "product.*"), `{"filter": {"object": {"sku": ["x"], "total": [1.50]}}, "changed":["status"], "payload":"thin",
		"headers":{"x-key":" secret ","Authorization":"Bearer b"},"retryCount":0}`)
	if err != nil {
		t.Fatal(err)
	}
	want := webhook.DeliverySettings{
		Filter: jsontext.Value(`{"object":{"sku":["x"],"total":[1.50]}}`), Changed: []string{"status"}, Thin: true,
		Headers: []webhook.SealedHeader{
			{Name: "Authorization", Sealed: "webhook endpoint " + e.ID.String() + " header Authorization=Bearer b"},
			{Name: "X-Key", Sealed: "webhook endpoint " + e.ID.String() + " header X-Key=secret"},
		},
	}
	if diff := cmp.Diff(want, e.Delivery); diff != "" || e.RetryCount != 0 || e.TimeoutSeconds != webhook.DefaultTimeoutSeconds || e.UpdatedAt != 1010 {
		t.Errorf("%+v\n%s", e, diff)
	}
	shown := e.ShapeDelivery()
	if diff := cmp.Diff(map[string]string{"Authorization": "****", "X-Key": "****"}, shown.Headers); diff != "" || shown.Payload != webhook.PayloadThin {
		t.Errorf("shown %+v: %s", shown, diff)
	}
	same, err := set(e, `{"filter":{"object":{"sku":["x"],"total":[1.50]}},"changed":["status"],"payload":"thin","headers":{"X-KEY":"****","authorization":"****"},"retryCount":0}`)
	if err != nil || same != e {
		t.Errorf("what was shown, sent again: %+v, %v", same, err)
	}
	fewer, err := set(e, `{"headers":{"X-Key":"****"}}`)
	if err != nil {
		t.Fatal(err)
	}
	want = webhook.DeliverySettings{Headers: e.Delivery.Headers[1:]}
	if diff := cmp.Diff(want, fewer.Delivery); diff != "" || fewer.RetryCount != webhook.DefaultRetryCount {
		t.Error(diff)
	}
}

func TestEventsCannotBeTakenAwayFromTheSettingsThatNameThem(t *testing.T) {
	e, err := set(subscriber("order.*", "product.*"), `{"filter":{"object":{"sku":["x"]}}}`)
	if err != nil {
		t.Fatal(err)
	}
	change := func(events string) error {
		dto, err := webhook.Rules{}.ParseUpdate([]byte(`{"events":`+events+`}`), e.OrganizationID)
		if err == nil {
			_, err = e.Update(dto, 2000)
		}
		return err
	}
	if err := change(`["product.created"]`); err != nil {
		t.Error(err)
	}
	if f, ok := fault.As(change(`["order.*"]`)); !ok || f.Details[0].Field != "events" || !strings.Contains(f.Details[0].Message, "filter.object.sku[0]") {
		t.Errorf("%+v, want a fault of events", f)
	}
}

func TestHeadersAreSealedAgainWithTheSecrets(t *testing.T) {
	e, err := set(subscriber("*"), `{"headers":{"A":"1","B":"2"}}`)
	if err != nil {
		t.Fatal(err)
	}
	again := func(text, purpose string) (string, error) { return text + "!" + purpose, nil }
	next, err := e.Reseal(again, 2000)
	if err != nil || next == e {
		t.Fatal(next, err)
	}
	for i, h := range next.Delivery.Headers {
		before := e.Delivery.Headers[i]
		if want := before.Sealed + "!" + webhook.HeaderPurpose(e.ID, h.Name); h.Name != before.Name || h.Sealed != want || strings.Contains(before.Sealed, "!") {
			t.Errorf("%+v, want %s", h, want)
		}
	}
}

// event is an order's event.
func event(eventType, object, previous string) *commerce.WebhookPayload {
	site := value.MustID("018f0000-0000-7000-8000-000000000009")
	return &commerce.WebhookPayload{ID: value.NewID(), Type: eventType, SiteID: &site, Data: commerce.WebhookData{Object: jsontext.Value(object), PreviousAttributes: jsontext.Value(previous)}}
}

func TestEndpointsGetWhatTheirSettingsSelect(t *testing.T) {
	const updated, order = "order.updated", `{"id":"1","status":"PAID","total":12.5,"updatedAt":"2026-11-22T00:00:00.000Z"}`
	for _, test := range []struct {
		settings, eventType, previous string
		want                          string // the refusal; "": the endpoint gets it
	}{
		{`{}`, updated, `{}`, ""},
		{`{"filter":{"object":{"total":[{"numeric":[">=",12.50]}]}}}`, updated, `{}`, ""},
		{`{"filter":{"object":{"total":[{"numeric":[">",12.50]}]}}}`, updated, `{}`, "filter: object.total does not match"},
		{`{"filter":{"previousAttributes":{"status":["OPEN"]},"siteId":["018f0000-0000-7000-8000-000000000009"]}}`, updated, `{"status":"OPEN"}`, ""},
		{`{"filter":{"previousAttributes":{"status":["OPEN"]}}}`, "order.created", `null`, "filter: previousAttributes.status does not match"},
		{`{"filter":{"siteId":[null]}}`, updated, `{}`, "filter: siteId does not match"},
		{`{"changed":["status","items"]}`, updated, `{"status":"OPEN"}`, ""},
		{`{"changed":["status","items"]}`, updated, `{"total":1}`, "changed: none of status, items has changed"},
		{`{"changed":["status"]}`, updated, `{}`, "changed: none of status has changed"},
		{`{"changed":["status"]}`, "order.created", `null`, ""},
		{`{"changed":["status"]}`, "order.deleted", `null`, ""},
		{`{"changed":["status"],"filter":{"object":{"total":[1]}}}`, "order.created", `null`, "filter: object.total does not match"},
		{`{"filter":{"object":{"total":[1]}},"changed":["items"]}`, "endpoint.disabled", `{"status":"ACTIVE"}`, ""},
		{`{"filter":{"object":{"total":[1]}}}`, "webhook.test", `null`, ""},
	} {
		t.Run(test.settings+" "+test.eventType, func(t *testing.T) {
			e, err := set(subscriber("*"), test.settings)
			if err != nil {
				t.Fatal(err)
			}
			candidate := webhook.Candidate{WebhookPayload: event(test.eventType, order, test.previous)}
			for range 2 {
				if got, err := candidate.Refusal(e); err != nil || got != test.want {
					t.Errorf("%q, %v, want %q", got, err, test.want)
				}
			}
		})
	}
}

// TestABodyStaysWhatItWas holds what is sent to the settings that the endpoint
// had when the delivery was made.
func TestABodyStaysWhatItWas(t *testing.T) {
	ev := event("order.updated", `{"id":"1","status":"PAID","tags":["☕ <&>",1.5],"updatedAt":"2026-11-22T00:00:00.000Z"}`, `{"status":"OPEN","tags":[]}`)
	payload, err := ev.Encode()
	if err != nil {
		t.Fatal(err)
	}
	envelope, _, _ := strings.Cut(string(payload), `{"object":`)
	for settings, want := range map[string]string{
		`{}`:                       strings.TrimPrefix(string(payload), envelope),
		`{"fields":["tags"]}`:      `{"object":{"id":"1","tags":["☕ <&>",1.5]},"previousAttributes":{"tags":[]}}}`,
		`{"fields":["total"]}`:     `{"object":{"id":"1"},"previousAttributes":{}}}`,
		`{"payload":"thin"}`:       `{"object":{"id":"1","updatedAt":"2026-11-22T00:00:00.000Z"},"previousAttributes":{}}}`,
		`{"fields":["updatedAt"]}`: `{"object":{"id":"1","updatedAt":"2026-11-22T00:00:00.000Z"},"previousAttributes":{}}}`,
	} {
		t.Run(settings, func(t *testing.T) {
			e, err := set(subscriber("order.*"), settings)
			if err != nil {
				t.Fatal(err)
			}
			d := webhook.NewDelivery(ev, e, "", 1)
			e.Delivery = webhook.DeliverySettings{Fields: []string{"notes"}}
			if body, err := d.Body(payload); err != nil || string(body) != envelope+want {
				t.Errorf("got  %s, %v\nwant %s", body, err, envelope+want)
			}
		})
	}
	test := webhook.NewTestDelivery(event("webhook.test", `{"message":"x"}`, `null`), &webhook.Endpoint{Delivery: webhook.DeliverySettings{Thin: true}}, 1)
	if test.Fields != nil {
		t.Errorf("webhook.test is sent with %v only", test.Fields)
	}
}
