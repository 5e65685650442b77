package webhook_test

import (
	"testing"

	"github.com/commerce-integration/service/pkg/base/fault"
	"github.com/commerce-integration/service/pkg/base/value"
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
		{"https://a]b/", false, fault.DetailFormat},
		{"https://a<b/", false, fault.DetailFormat},
		{"https://a,b.example.com/", false, fault.DetailFormat},
		{"https://[example.com]/", false, fault.DetailFormat},
		{"https://bücher.example/", false, ""},
		{"https://a_b-c.example.", false, ""},
		{"https://[2001:db8::1]:8443/", false, ""},
		{"https://me@example.com/", false, fault.DetailFormat},
		{"ftp://example.com/", true, fault.DetailFormat},
		{"/hook", false, fault.DetailFormat},
		{"https://example.com/a b", false, fault.DetailFormat},
	} {
		t.Run(test.url, func(t *testing.T) {
			rules := webhook.Rules{AllowPrivateTargets: test.private}
			_, err := rules.ParseCreate([]byte(`{"url":"`+test.url+`","events":["*"]}`), value.NewID(), value.NewID())
			got := ""
			if f, ok := fault.As(err); ok && len(f.Details) == 1 && f.Details[0].Field == "url" {
				got = f.Details[0].Code
			} else if err != nil {
				t.Errorf("%v, want a fault of the url alone", err)
			}
			if got != test.want {
				t.Errorf("got %q, want %q", got, test.want)
			}
		})
	}
}

func TestTargetsThatDeliveriesNeverReachAreRefused(t *testing.T) {
	type target struct {
		host string
		port uint16
	}
	for _, test := range []struct {
		url  string
		want target
	}{
		{"https://Example.com", target{"Example.com", 443}},
		{"https://example.com:/", target{"example.com", 443}},
		{"https://example.com:8443/a", target{"example.com", 8443}},
		{"http://10.0.0.1/a", target{"10.0.0.1", 80}},
		{"https://[fe80::1%25eth0]:25/", target{"fe80::1%eth0", 25}},
	} {
		t.Run(test.url, func(t *testing.T) {
			for _, reason := range []string{"", "it is too far"} {
				var got target
				rules := webhook.Rules{AllowPrivateTargets: true, Refusal: func(host string, port uint16) string {
					got = target{host, port}
					return reason
				}}
				_, err := rules.ParseCreate([]byte(`{"url":"`+test.url+`","events":["*"]}`), value.NewID(), value.NewID())
				_, updateErr := rules.ParseUpdate([]byte(`{"url":"`+test.url+`"}`), value.NewID())
				if got != test.want {
					t.Errorf("asked about %+v, want %+v", got, test.want)
				}
				for _, err := range []error{err, updateErr} {
					f, refused := fault.As(err)
					if refused != (reason != "") {
						t.Errorf("%s, refused for %q: got %v", test.url, reason, err)
					} else if refused && (len(f.Details) != 1 || f.Details[0].Code != fault.DetailNotAllowed || f.Message != "url must be one that deliveries can reach: it is too far") {
						t.Errorf("got %+v", f)
					}
				}
			}
		})
	}
}
