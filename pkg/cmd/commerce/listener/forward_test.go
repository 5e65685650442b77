package listener_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/commerce-integration/service/pkg/cmd/commerce/listener"
)

func TestListenerAnswersAsTheURLThatItForwardsTo(t *testing.T) {
	for _, c := range []struct {
		status, want int
		shown        string
		repeat       bool // when it comes again
	}{
		{200, 204, "answered 200", true},
		{204, 204, "answered 204", true},
		{302, 302, "answered 302", false},
		{410, 410, "answered 410", false},
		{500, 500, "answered 500", false},
	} {
		t.Run(fmt.Sprint(c.status), func(t *testing.T) {
			var got []*http.Request
			target := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				got = append(got, r)
				w.Header().Set("Location", "/elsewhere")
				w.WriteHeader(c.status)
			}))
			defer target.Close()
			l := open(t, listener.Config{ForwardTo: target.URL, Now: at(moment)}, secret)
			for range 2 {
				if status := send(t, l, "a", `{}`); status != c.want {
					t.Errorf("got %d, want %d", status, c.want)
				}
			}
			if e := l.events[1]; e.Answer != c.status || e.Repeat != c.repeat {
				t.Errorf("got %s, want %s and repeat %v", e.Outcome(), c.shown, c.repeat)
			}
			if len(got) != 2 || got[0].Header.Get("webhook-id") != "a" || got[0].Header.Get("webhook-signature") == "" {
				t.Errorf("forwarded %v, want two webhooks with their headers", got)
			}
		})
	}
}

func TestListenerForwardsNothingThatItRefuses(t *testing.T) {
	l := open(t, listener.Config{ForwardTo: "http://127.0.0.1:1/", Now: at(moment)}, secret)
	if got := post(l, "a", "1", "v1,AAAA", []byte(`{}`)); got != http.StatusUnauthorized || l.events[0].Unreached != nil {
		t.Errorf("got %d and %v, want 401 and no attempt to forward", got, l.events[0].Unreached)
	}
	if got := send(t, l, "b", `{}`); got != http.StatusBadGateway || l.events[1].Unreached == nil {
		t.Errorf("a URL that nobody serves: got %d and %v, want 502 and why", got, l.events[1].Unreached)
	}
}
