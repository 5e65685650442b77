package commerce_test

import (
	"context"
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	commerce "github.com/commerce-integration/service/pkg/client/go"
)

// service answers requests in place of the real one, for what that does not do at
// will. It keeps the requests, with the time of each.
type service struct {
	answer   func(*http.Request) *http.Response // nil: no answer
	requests []*http.Request
	bodies   []string
	at       []time.Duration
	start    time.Time
}

func (s *service) RoundTrip(r *http.Request) (*http.Response, error) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return nil, err
	}
	s.requests, s.bodies, s.at = append(s.requests, r), append(s.bodies, string(body)), append(s.at, time.Since(s.start))
	if response := s.answer(r); response != nil {
		return response, nil
	}
	return nil, errors.New("connection reset")
}

// reply makes an answer; status 0: none.
type reply func() *http.Response

func answer(status int, body string, header ...string) reply {
	return func() *http.Response {
		if status == 0 {
			return nil
		}
		r := &http.Response{StatusCode: status, Header: http.Header{}, Body: io.NopCloser(strings.NewReader(body))}
		for i := 0; i < len(header); i += 2 {
			r.Header.Set(header[i], header[i+1])
		}
		return r
	}
}

// inTurn gives one reply after another, and then the last one again.
func inTurn(replies ...reply) *service {
	return &service{start: time.Now(), answer: func(*http.Request) *http.Response {
		next := replies[0]
		if len(replies) > 1 {
			replies = replies[1:]
		}
		return next()
	}}
}

func (s *service) client(config commerce.Config) *commerce.Client {
	config.HTTP = &http.Client{Transport: s}
	return commerce.New("https://api.example.com/prod/", config)
}

func TestARequestIsRepeatedWhenThatCanHelp(t *testing.T) {
	get := func(ctx context.Context, c *commerce.Client) error { _, err := c.GetMe(ctx); return err }
	post := func(ctx context.Context, c *commerce.Client) error {
		_, err := c.CreateApplication(ctx, commerce.CreateApplicationDto{Name: "Shop"})
		return err
	}
	patch := func(ctx context.Context, c *commerce.Client) error {
		_, err := c.UpdateApplication(ctx, "x", commerce.UpdateApplicationDto{})
		return err
	}
	for name, test := range map[string]struct {
		ask     func(context.Context, *commerce.Client) error
		first   reply
		retries int
		want    int           // requests
		wait    time.Duration // before the second
	}{
		"429 waits as told":            {ask: get, first: answer(429, "", "Retry-After", "7"), want: 2, wait: 7 * time.Second},
		"503 until a date":             {ask: get, first: answer(503, "", "Retry-After", "Sat, 01 Jan 2000 00:00:20 GMT"), want: 2, wait: 20 * time.Second},
		"a date that is over":          {ask: get, first: answer(503, "", "Retry-After", "Sat, 01 Jan 1999 00:00:20 GMT"), want: 2},
		"504":                          {ask: get, first: answer(504, "", "Retry-After", "1"), want: 2, wait: time.Second},
		"a creation":                   {ask: post, first: answer(503, "", "Retry-After", "1"), want: 2, wait: time.Second},
		"a creation that is under way": {ask: post, first: answer(409, "", "Retry-After", "1"), want: 2, wait: time.Second},
		"a conflict":                   {ask: post, first: answer(409, ""), want: 1},
		"a change that may have acted": {ask: patch, first: answer(503, "", "Retry-After", "1"), want: 1},
		"a change that was not let in": {ask: patch, first: answer(429, "", "Retry-After", "1"), want: 2, wait: time.Second},
		"our fault":                    {ask: get, first: answer(400, ""), want: 1},
		"the service's fault":          {ask: get, first: answer(500, ""), want: 1},
		"never":                        {ask: get, first: answer(503, "", "Retry-After", "1"), retries: -1, want: 1},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := inTurn(test.first, answer(200, `{}`))
				err := test.ask(t.Context(), s.client(commerce.Config{Retries: test.retries}))
				if len(s.requests) != test.want || (err == nil) != (test.want == 2) {
					t.Fatalf("%d requests, %v, want %d", len(s.requests), err, test.want)
				}
				if test.want == 2 && s.at[1] != test.wait {
					t.Errorf("repeated after %v, want %v", s.at[1], test.wait)
				}
			})
		})
	}
}

func TestRepetitionsOfAPostAreTheSameRequest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := inTurn(answer(0, ""))
		_, err := s.client(commerce.Config{}).CreateApplication(t.Context(), commerce.CreateApplicationDto{Name: "Shop"})
		if err == nil || len(s.requests) != 5 {
			t.Fatalf("%d requests, %v, want 5 that fail", len(s.requests), err)
		}
		key := s.requests[0].Header.Get("Idempotency-Key")
		for i, r := range s.requests {
			if got := r.Header.Get("Idempotency-Key"); got != key || key == "" || s.bodies[i] != `{"name":"Shop"}` {
				t.Errorf("request %d: key %q, body %s, want %q", i, got, s.bodies[i], key)
			}
			if earliest := (1<<i - 1) * 250 * time.Millisecond; s.at[i] < earliest || s.at[i] > 2*earliest {
				t.Errorf("request %d after %v, want %v to %v", i, s.at[i], earliest, 2*earliest)
			}
		}
		own := inTurn(answer(201, `{}`))
		if _, err := own.client(commerce.Config{}).CreateApplication(t.Context(), commerce.CreateApplicationDto{}, commerce.Header("Idempotency-Key", "mine")); err != nil {
			t.Fatal(err)
		}
		if got := own.requests[0].Header.Get("Idempotency-Key"); got != "mine" {
			t.Errorf("key %q, want that of the caller", got)
		}
	})
}

func TestNoRepetitionWaitsBeyondTheContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
		defer cancel()
		s := inTurn(answer(429, `{"code":"rate_limited"}`, "Retry-After", "7"))
		_, err := s.client(commerce.Config{}).GetMe(ctx)
		var refused *commerce.Error
		if !errors.As(err, &refused) || refused.Code != "rate_limited" || time.Since(s.start) != 0 {
			t.Errorf("%v after %v, want rate_limited at once", err, time.Since(s.start))
		}
	})
}

func TestATokenIsMadeOnceAndAgainWhenItIsRefused(t *testing.T) {
	tokens, accepted := 0, "Bearer 1"
	s := &service{answer: func(r *http.Request) *http.Response {
		if r.URL.Path == "/prod/oauth/token" {
			tokens++
			return answer(200, `{"access_token":"`+string(rune('0'+tokens))+`","token_type":"Bearer","expires_in":3600}`, "Content-Type", "application/json")()
		}
		if r.Header.Get("Authorization") != accepted {
			return answer(401, `{"statusCode":401,"code":"unauthenticated"}`)()
		}
		return answer(200, `{}`)()
	}}
	c := s.client(commerce.Config{ClientID: "id", ClientSecret: "secret", Scopes: []string{"orders:read"}})
	for _, accepted = range []string{"Bearer 1", "Bearer 1", "Bearer 2"} {
		if _, err := c.GetMe(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	if user, secret, _ := s.requests[0].BasicAuth(); user != "id" || secret != "secret" || s.bodies[0] != "grant_type=client_credentials&scope=orders%3Aread" {
		t.Errorf("%s:%s asked %s", user, secret, s.bodies[0])
	}
	accepted = "none"
	var refused *commerce.Error
	if _, err := c.GetMe(t.Context()); !errors.As(err, &refused) || refused.StatusCode != 401 || tokens != 3 {
		t.Errorf("%v with %d tokens, want 401 with 3", err, tokens)
	}
}

func TestCredentialsAreSent(t *testing.T) {
	for name, config := range map[string]commerce.Config{"X-Api-Key": {APIKey: "cis_live_x"}, "Authorization": {Token: "y"}, "": {}} {
		s := inTurn(answer(200, `{}`))
		if _, err := s.client(config).GetMe(t.Context()); err != nil {
			t.Fatal(err)
		}
		for _, header := range []string{"X-Api-Key", "Authorization"} {
			if got := s.requests[0].Header.Get(header); (got != "") != (header == name) {
				t.Errorf("%+v sends %s: %q", config, header, got)
			}
		}
	}
}

func TestParametersAreSentAsTheServiceReadsThem(t *testing.T) {
	s := inTurn(answer(200, `{"data":[],"meta":{"total":0}}`, "ETag", `"a"`))
	header := http.Header{}
	_, err := s.client(commerce.Config{}).ListOrders(t.Context(), &commerce.ListOrdersParams{
		Limit: new(5), Status: []string{"PENDING", "COMPLETED"}, Search: new("a b"),
		Metadata: map[string]string{"erpId": "A&1"}, Has: []string{"metadata.a", "metadata.b"},
		PlacedFrom: new(time.Date(2026, 1, 2, 4, 4, 5, 678_900_000, time.FixedZone("", 3600))),
	}, commerce.Header("X-Site-Id", "site"), commerce.AnswerHeader(header))
	if err != nil || header.Get("ETag") != `"a"` {
		t.Fatalf("%v, header %v", err, header)
	}
	want := "https://api.example.com/prod/api/orders?has=metadata.a%2Cmetadata.b&limit=5&metadata%5BerpId%5D=A%261&placedFrom=2026-01-02T03%3A04%3A05.678Z&search=a+b&status=PENDING%2CCOMPLETED"
	if got := s.requests[0]; got.URL.String() != want || got.Header.Get("X-Site-Id") != "site" || got.Header.Get("Accept") != "application/json" {
		t.Errorf("%s with %v, want %s", got.URL, got.Header, want)
	}
	if _, err := s.client(commerce.Config{}).GetOrder(t.Context(), "a/b?", nil); err != nil || s.requests[1].URL.EscapedPath() != "/prod/api/orders/a%2Fb%3F" {
		t.Errorf("%v, %s", err, s.requests[1].URL)
	}
}

func TestAnErrorSaysWhatTheServiceSaid(t *testing.T) {
	for body, want := range map[string]commerce.Error{
		`{"statusCode":400,"error":"Bad Request","code":"validation_failed","message":"limit must be 1 to 100","details":[{"field":"limit"}],"requestId":"r"}`: {StatusCode: 400, Code: "validation_failed", Message: "limit must be 1 to 100", RequestID: "r"},
		"<html>": {StatusCode: 400, Message: "Bad Request"},
	} {
		_, err := inTurn(answer(400, body)).client(commerce.Config{}).GetMe(t.Context())
		var got *commerce.Error
		if !errors.As(err, &got) || got.StatusCode != want.StatusCode || got.Code != want.Code || got.Message != want.Message || got.RequestID != want.RequestID {
			t.Errorf("%+v, want %+v", got, want)
		}
	}
}

func TestAWalkGoesToTheNextPageAndEndsWithAnError(t *testing.T) {
	first := answer(200, `{"data":[{"id":"1"},{"id":"2"}]}`, "X-Sync-From", "then",
		"Link", `<https://x/p?page=1>; rel="first", <https://x/p?limit=2&search=a+b&page=2>; rel="next"`)
	last := answer(200, `{"data":[{"id":"3"}]}`, "Link", `<https://x/p?page=1>; rel="first"`)
	for name, test := range map[string]struct {
		second reply
		stop   int
		want   string
	}{
		"to the end":       {second: last, want: "123"},
		"stopped":          {second: last, stop: 2, want: "12"},
		"ended by refusal": {second: answer(400, ""), want: "12!"},
	} {
		t.Run(name, func(t *testing.T) {
			s, got, header := inTurn(first, test.second), "", http.Header{}
			for product, err := range s.client(commerce.Config{}).AllProducts(t.Context(), nil, commerce.AnswerHeader(header)) {
				if err != nil {
					got += "!"
					continue
				}
				if got += product.ID; len(got) == test.stop {
					break
				}
			}
			if got != test.want || header.Get("X-Sync-From") != "then" {
				t.Errorf("%s with %v, want %s", got, header, test.want)
			}
			queries := []string{"limit=100", "limit=2&page=2&search=a+b"}
			for i, r := range s.requests {
				if r.URL.RawQuery != queries[i] {
					t.Errorf("page %d: %s, want %s", i+1, r.URL.RawQuery, queries[i])
				}
			}
		})
	}
}
