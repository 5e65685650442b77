package commerce_test

import (
	"net/http"
	"strconv"
	"testing"
	"time"

	standardwebhooks "github.com/standard-webhooks/standard-webhooks/libraries/go"

	commerce "github.com/commerce-integration/service/pkg/client/go"
)

const secret = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"

// delivery is the header of a delivery of the body, signed by the secret.
func delivery(t *testing.T, secret, body string, at time.Time) http.Header {
	t.Helper()
	webhook, err := standardwebhooks.NewWebhook(secret)
	if err != nil {
		t.Fatal(err)
	}
	signature, err := webhook.Sign("msg", at, []byte(body))
	if err != nil {
		t.Fatal(err)
	}
	h := http.Header{}
	h.Set("webhook-id", "msg")
	h.Set("webhook-timestamp", strconv.FormatInt(at.Unix(), 10))
	h.Set("webhook-signature", signature)
	return h
}

func TestADeliveryIsTheEventOfItsType(t *testing.T) {
	body := `{"id":"e","type":"order.paid","data":{"object":{"orderNumber":"A-1001","total":19.80},"previousAttributes":{"total":12345678901.2345}}}`
	got, err := commerce.ParseDelivery(secret, delivery(t, secret, body, time.Now()), []byte(body))
	order, ok := got.(*commerce.OrderEvent)
	if err != nil || !ok || order.Type != "order.paid" || order.Data.Object.OrderNumber != "A-1001" || order.Data.Object.Total != "19.80" {
		t.Fatalf("%+v, %v", got, err)
	}
	if old, ok := order.Data.PreviousAttributes["total"].(interface{ String() string }); !ok || old.String() != "12345678901.2345" {
		t.Errorf("previous total %v, want each of its digits", order.Data.PreviousAttributes["total"])
	}
	for eventType, want := range map[string]func(any) bool{
		"payment.failed":      func(v any) bool { _, ok := v.(*commerce.OrderEvent); return ok },
		"product.created":     func(v any) bool { _, ok := v.(*commerce.ProductEvent); return ok },
		"endpoint.failing":    func(v any) bool { _, ok := v.(*commerce.EndpointAlert); return ok },
		"of another version":  func(v any) bool { p, ok := v.(*commerce.WebhookPayload); return ok && p.Data.Object["a"] == "b" },
		"webhook.test":        func(v any) bool { _, ok := v.(*commerce.WebhookTestMessageEvent); return ok },
		"category.deleted":    func(v any) bool { _, ok := v.(*commerce.CategoryEvent); return ok },
		"invoice.voided":      func(v any) bool { _, ok := v.(*commerce.InvoiceEvent); return ok },
		"customer.updated":    func(v any) bool { _, ok := v.(*commerce.CustomerEvent); return ok },
		"event.failed":        func(v any) bool { _, ok := v.(*commerce.EventAlert); return ok },
		"payment.completed":   func(v any) bool { _, ok := v.(*commerce.OrderEvent); return ok },
		"endpoint.recovered":  func(v any) bool { _, ok := v.(*commerce.EndpointAlert); return ok },
		"order.another.thing": func(v any) bool { _, ok := v.(*commerce.WebhookPayload); return ok },
	} {
		body := `{"type":"` + eventType + `","data":{"object":{"a":"b"}}}`
		got, err := commerce.ParseDelivery(secret, delivery(t, secret, body, time.Now()), []byte(body))
		if err != nil || !want(got) {
			t.Errorf("%s: %T, %v", eventType, got, err)
		}
	}
}

func TestADeliveryThatCannotBeTrustedIsRefused(t *testing.T) {
	const body = `{"type":"webhook.test","data":{"object":{"message":"m"}}}`
	changed := func(name, value string) http.Header {
		h := delivery(t, secret, body, time.Now())
		h.Set(name, value)
		return h
	}
	signed := delivery(t, secret, body, time.Now())
	for name, test := range map[string]struct {
		secret, body string
		header       http.Header
		accepted     bool
	}{
		"good":                       {secret, body, signed, true},
		"one of several signatures":  {secret, body, changed("webhook-signature", "v2,x v1,eA== "+signed.Get("webhook-signature")), true},
		"a changed body":             {secret, body + " ", signed, false},
		"another secret":             {"whsec_C2FVsBQIhrscChlQIMV+b5sSYspob7oD", body, signed, false},
		"an empty secret":            {"", body, delivery(t, "", body, time.Now()), false},
		"a secret of no bytes":       {"whsec_", body, delivery(t, "", body, time.Now()), false},
		"no header":                  {secret, body, http.Header{}, false},
		"a signature without a text": {secret, body, changed("webhook-signature", "v1,"), false},
		"another id":                 {secret, body, changed("webhook-id", "other"), false},
		"a timestamp of no number":   {secret, body, changed("webhook-timestamp", "1.5"), false},
		"an old one":                 {secret, body, delivery(t, secret, body, time.Now().Add(-6*time.Minute)), false},
		"one of the future":          {secret, body, delivery(t, secret, body, time.Now().Add(6*time.Minute)), false},
		"no JSON":                    {secret, "{", delivery(t, secret, "{", time.Now()), false},
	} {
		if _, err := commerce.ParseDelivery(test.secret, test.header, []byte(test.body)); (err == nil) != test.accepted {
			t.Errorf("%s: %v, want accepted %v", name, err, test.accepted)
		}
	}
}
