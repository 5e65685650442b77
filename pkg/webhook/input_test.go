package webhook_test

import (
	"testing"

	"github.com/commerce-integration/service/pkg/fault"
	"github.com/commerce-integration/service/pkg/webhook"
)

func TestURLsThatCannotBeDeliveredToAreRefused(t *testing.T) {
	for _, test := range []struct {
		url     string
		private bool // targets are allowed
		want    string
	}{
		{"https://example.com", false, ""},
		{"https://example.com:65535/a?b=c", false, ""},
		{"https://example.com:", false, ""},
		{"http://127.0.0.1:8080/hook", true, ""},
		{"http://example.com", false, fault.DetailFormat},
		{"https://example.com:65536/", false, fault.DetailFormat},
		{"https://example.com:0/", false, fault.DetailFormat},
		{"https://example.com:x/", false, fault.DetailFormat},
		{"https://:443/", false, fault.DetailFormat},
		{"https://me@example.com/", false, fault.DetailFormat},
		{"ftp://example.com/", true, fault.DetailFormat},
		{"/hook", false, fault.DetailFormat},
		{"https://example.com/a b", false, fault.DetailFormat},
	} {
		rules := webhook.Rules{AllowPrivateTargets: test.private}
		_, err := rules.ParseCreate([]byte(`{"url":"` + test.url + `","events":["*"]}`))
		got := ""
		if f, ok := fault.As(err); ok && len(f.Details) == 1 && f.Details[0].Field == "url" {
			got = f.Details[0].Code
		} else if err != nil {
			t.Errorf("%s: %v, want a fault of the url alone", test.url, err)
		}
		if got != test.want {
			t.Errorf("%s: got %q, want %q", test.url, got, test.want)
		}
	}
}
