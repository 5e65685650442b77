package main

import (
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"testing"
	"time"
	"unicode"

	"github.com/commerce-integration/service/pkg/base/value"
)

// wiretap is a receiver that keeps its requests as they came.
type wiretap struct {
	url      string
	requests chan request
}

// newWiretap answers its n-th request, counted from 1, with the status.
func newWiretap(t *testing.T, status func(n int) int) *wiretap {
	t.Helper()
	w, n := &wiretap{requests: make(chan request, 16)}, 0
	server := httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		got := request{method: r.Method, Header: map[string]string{}, Body: string(body)}
		for name, values := range r.Header {
			got.Header[strings.ToLower(name)] = values[0]
			if len(values) > 1 || err != nil {
				t.Errorf("header %s: %q; %v", name, values, err)
			}
		}
		n++
		rw.WriteHeader(status(n))
		w.requests <- got
	}))
	t.Cleanup(server.Close)
	w.url = server.URL + "/hook"
	return w
}

// next is the next request.
func (w *wiretap) next(t *testing.T) request {
	t.Helper()
	select {
	case got := <-w.requests:
		return got
	case <-time.After(patience):
		t.Fatal("nothing was delivered")
		return request{}
	}
}

// request is a webhook, taken apart so that it can be tampered with.
type request struct {
	method string
	Header map[string]string // by lower-case name
	Body   string
}

func (r request) with(header, v string) request {
	r.Header = maps.Clone(r.Header)
	r.Header[header] = v
	return r
}

func (r request) without(header string) request {
	r.Header = maps.Clone(r.Header)
	delete(r.Header, header)
	return r
}

func (r request) withBody(body string) request {
	r.Body = body
	return r
}

// signatures are the request's, each with its version.
func (r request) signatures() []string { return strings.Fields(r.Header["webhook-signature"]) }

// tampered are the ways to tamper with a request; none may verify by a secret that
// verifies the request itself. Times are the request's own, changed: one
// reckoned from now could be the genuine one of a request that waited.
func tampered(r request) map[string]request {
	sent, _ := strconv.ParseInt(r.Header["webhook-timestamp"], 10, 64) // genuine
	swapped := make([]string, 0, 5)
	for _, s := range r.signatures() {
		swapped = append(swapped, s[:10]+strings.Map(swapCase, s[10:14])+s[14:])
	}
	return map[string]request{
		"another body":                  r.withBody(strings.Replace(r.Body, "A-1", "A-2", 1)),
		"a longer body":                 r.withBody(r.Body + " "),
		"a shorter body":                r.withBody(r.Body[:len(r.Body)-1]),
		"no body":                       r.withBody(""),
		"another id":                    r.with("webhook-id", value.NewID().String()),
		"no id":                         r.without("webhook-id"),
		"an earlier time":               r.with("webhook-timestamp", fmt.Sprint(sent-60)),
		"a later time":                  r.with("webhook-timestamp", fmt.Sprint(sent+60)),
		"a time long ago":               r.with("webhook-timestamp", fmt.Sprint(sent-600)),
		"a time far ahead":              r.with("webhook-timestamp", fmt.Sprint(sent+600)),
		"no time":                       r.without("webhook-timestamp"),
		"other signatures":              r.with("webhook-signature", strings.Join(swapped, " ")),
		"signatures of another version": r.with("webhook-signature", strings.ReplaceAll(r.Header["webhook-signature"], "v1,", "v2,")),
		"no signature":                  r.without("webhook-signature"),
	}
}

// swapCase makes another base64 character of one.
func swapCase(r rune) rune {
	switch {
	case unicode.IsUpper(r):
		return unicode.ToLower(r)
	case unicode.IsLower(r):
		return unicode.ToUpper(r)
	}
	return 'A'
}

// spicedOrder is a message of a new order with characters that are easily
// changed on their way.
func (s *service) spicedOrder() string {
	return fmt.Sprintf(`{"organizationId":%q,"kind":"order","op":"put","record":{"id":%q,"orderNumber":"A-1","currency":"EUR",
		"notes":"Thé \u2028 <☕> 𝄞 & \\","items":[{"name":"Tea","quantity":2,"unitPrice":9.9}]}}`, s.OrganizationID, value.NewID())
}
