package webhook_test

import (
	"net/http"
	"testing"

	"github.com/go-json-experiment/json"
	"github.com/google/go-cmp/cmp"

	"github.com/commerce-integration/service/pkg/base/fault"
	"github.com/commerce-integration/service/pkg/base/value"
	"github.com/commerce-integration/service/pkg/webhook"
)

// FuzzBodies parses a body as an endpoint's creation and as its change. One is
// refused by a fault that says why, or makes an endpoint to whose URL a request
// can be made, and which sending the same again leaves as it is.
func FuzzBodies(f *testing.F) {
	for _, seed := range []string{
		`{"url":"https://erp.example.com/hooks","description":"Orders","events":["order.*","product.created"],"retryCount":5,"timeoutSeconds":10}`,
		`{"url":" https://example.com:8443/?a=%20b ","events":["*"],"description":null,"retryCount":null}`, `{"events":[],"status":"DISABLED"}`,
		`{"url":"https://[fe80::1%25eth0]/","events":["webhook.test"],"applicationId":"018f0000-0000-7000-8000-000000000001"}`,
		`{"url":"https://bücher.example/","events":["order.paid","order.paid"]}`, `{"retryCount":1e1,"status":"PAUSED"}`, `{"description":null}`, `{}`,
	} {
		f.Add([]byte(seed))
	}
	rules, application := webhook.Rules{}, value.MustID("018f0000-0000-7000-8000-000000000001")
	seal := func([]byte, string) string { return "sealed" }
	f.Fuzz(func(t *testing.T, body []byte) {
		dto, err := rules.ParseCreate(body, application, application)
		checkRefusal(t, body, err)
		if err == nil {
			again, err := rules.ParseCreate(marshal(t, dto), application, application)
			if diff := cmp.Diff(dto, again); err != nil || diff != "" {
				t.Fatalf("%q is %+v, and sent again: %v\n%s", body, dto, err, diff)
			}
			e, _ := webhook.NewEndpoint(application, application, dto, seal, 1)
			checkURL(t, e.URL)
		}
		change, err := rules.ParseUpdate(body, application)
		checkRefusal(t, body, err)
		if err != nil {
			return
		}
		before := &webhook.Endpoint{URL: "https://example.com", Status: webhook.Active, SubscribedEvents: []string{"*"}}
		after, err := before.Update(change, 1)
		checkRefusal(t, body, err)
		if err != nil {
			return
		}
		checkURL(t, after.URL)
		if same, err := after.Update(change, 2); err != nil || same != after {
			t.Fatalf("%q changes %+v a second time: %+v, %v", body, after, same, err)
		}
	})
}

func checkRefusal(t *testing.T, body []byte, err error) {
	t.Helper()
	if fa, ok := fault.As(err); err != nil && (!ok || fa.Kind != fault.Invalid || fa.Message == "") {
		t.Fatalf("%q: %v is no refusal", body, err)
	}
}

// checkURL makes a request as the worker does.
func checkURL(t *testing.T, url string) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, url, nil)
	if err != nil || r.URL.Scheme != "https" || r.URL.Host == "" || r.URL.User != nil {
		t.Fatalf("no request can be made to %q, which was accepted: %v", url, err)
	}
}

func marshal(t *testing.T, v any) []byte {
	t.Helper()
	body, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return body
}
