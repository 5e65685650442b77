package developers_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/commerce-integration/service/pkg/account"
	"github.com/commerce-integration/service/pkg/api/developers"
	"github.com/commerce-integration/service/pkg/api/idempotency"
	"github.com/commerce-integration/service/pkg/auth"
	"github.com/commerce-integration/service/pkg/base/fault"
	"github.com/commerce-integration/service/pkg/base/value"
)

const (
	apps   = "/developers/applications"
	header = "Idempotency-Key"
	shop   = `{"name":"Shop"}`
)

// applications is how many applications the organization has.
func (s *service) applications() int {
	s.t.Helper()
	all, err := s.Table.Applications(s.t.Context(), s.as.OrganizationID)
	if err != nil {
		s.t.Fatal(err)
	}
	return len(all)
}

// same fails unless the answer is a replay of the first.
func (s *service) same(first, again reply) {
	s.t.Helper()
	if caching := []string{first.Header.Get("Cache-Control"), again.Header.Get("Cache-Control")}; caching[0] != "no-store" || caching[1] != "no-store" {
		s.t.Errorf("Cache-Control: got %q, want no-store: the answers may show a secret", caching)
	}
	if again.Header.Get("Idempotency-Replayed") != "true" || first.Header.Get("Idempotency-Replayed") != "" {
		s.t.Errorf("Idempotency-Replayed: got %q and then %q, want it on the second only",
			first.Header.Get("Idempotency-Replayed"), again.Header.Get("Idempotency-Replayed"))
	}
	if again.Status != first.Status || again.Body != first.Body {
		s.t.Errorf("got %d %s, want %d %s", again.Status, again.Body, first.Status, first.Body)
	}
	for _, name := range []string{"Location", "ETag", "Content-Type"} {
		if again.Header.Get(name) != first.Header.Get(name) {
			s.t.Errorf("%s: got %q, want %q", name, again.Header.Get(name), first.Header.Get(name))
		}
	}
}

func TestARepeatedRequestGetsTheFirstAnswer(t *testing.T) {
	s := newService(t)
	app := s.create("Shop")
	path := apps + "/" + app.ID.String()
	key := s.createKey(app.ID, `{"name":"till"}`)
	for _, test := range []struct {
		name, path, body string
		status           int
	}{
		{"an application", apps, shop, http.StatusCreated},
		{"an API key", path + "/api-keys", `{"name":"till"}`, http.StatusCreated},
		{"a revocation", path + "/api-keys/" + key.ID.String() + "/revoke", "", http.StatusOK},
		{"a suspension", path + "/suspend", "", http.StatusOK},
	} {
		t.Run(test.name, func(t *testing.T) {
			s.t = t
			first := s.want(test.status, "POST", test.path, test.body, header, test.path)
			s.same(first, s.do("POST", test.path, test.body, header, test.path))
			s.same(first, s.do("POST", test.path+"/", test.body, header, test.path))
			upper := strings.NewReplacer(app.ID.String(), strings.ToUpper(app.ID.String()), key.ID.String(), strings.ToUpper(key.ID.String()))
			s.same(first, s.do("POST", upper.Replace(test.path), test.body, header, test.path))
		})
	}
}

func TestParallelCreationsWithOneKeyMakeOneApplication(t *testing.T) {
	s := newService(t)
	const n = 50
	replies := make([]reply, n)
	var wg sync.WaitGroup
	for i := range n {
		wg.Go(func() { replies[i] = s.do("POST", apps, shop, header, "k") })
	}
	wg.Wait()
	created, body := 0, ""
	for _, r := range replies {
		switch {
		case r.Status == http.StatusConflict:
			if r.Header.Get("Retry-After") != "1" || !strings.Contains(r.Body, `"code":"conflict"`) {
				t.Errorf("a concurrent duplicate: got Retry-After %q, %s", r.Header.Get("Retry-After"), r.Body)
			}
			continue
		case r.Status != http.StatusCreated:
			t.Errorf("got %d %s", r.Status, r.Body)
		case r.Header.Get("Idempotency-Replayed") == "":
			created++
		}
		if body == "" {
			body = r.Body
		}
		if r.Body != body {
			t.Errorf("got %s and %s", r.Body, body)
		}
	}
	if got := s.applications(); created != 1 || got != 1 {
		t.Errorf("%d requests created, the organization has %d applications, want 1 and 1", created, got)
	}
}

func TestParallelChangesOfOneStateLetOneThrough(t *testing.T) {
	s := newService(t)
	path := apps + "/" + s.create("Shop").ID.String()
	tag := s.want(200, "GET", path, "").Header.Get("ETag")
	statuses := make(chan int, 50)
	var wg sync.WaitGroup
	for i := range cap(statuses) {
		wg.Go(func() {
			statuses <- s.do("PATCH", path, fmt.Sprintf(`{"name":"Shop %d"}`, i), "If-Match", tag).Status
		})
	}
	wg.Wait()
	close(statuses)
	count := map[int]int{}
	for status := range statuses {
		count[status]++
	}
	if count[http.StatusOK] != 1 || count[http.StatusPreconditionFailed] != 49 {
		t.Errorf("by status: got %v, want one 200 and 49 times 412", count)
	}
}

func TestAnotherRequestUnderTheSameKeyIsRefused(t *testing.T) {
	s := newService(t)
	s.want(201, "POST", apps, shop, header, "k")
	app := s.create("Other")
	for _, test := range []struct{ name, path, body string }{
		{"another body", apps, `{"name": "Shop"}`},
		{"another path", apps + "/" + app.ID.String() + "/api-keys", shop},
		{"another query", apps + "?x=1", shop},
	} {
		t.Run(test.name, func(t *testing.T) {
			s.t = t
			if r := s.want(422, "POST", test.path, test.body, header, "k"); !strings.Contains(r.Body, `"code":"idempotency_key_reused"`) {
				t.Errorf("got %s", r.Body)
			}
		})
	}
}

func TestTheOrderOfAQueryIsNoOtherRequest(t *testing.T) {
	f := func(query string) idempotency.Fingerprint {
		values, err := url.ParseQuery(query)
		if err != nil {
			t.Fatal(err)
		}
		return idempotency.FingerprintOf("POST", "/p", values.Encode(), nil, "")
	}
	if f("a=1&b=2") != f("b=2&a=1") || f("a=1&b=2") == f("a=2&b=1") {
		t.Error("a fingerprint must depend on parameters and not on their order")
	}
}

func TestAnIdempotencyKeyIs1To128VisibleCharacters(t *testing.T) {
	s := newService(t)
	for _, test := range []struct {
		name   string
		keys   []string
		status int
		code   string
	}{
		{"one character", []string{"!"}, 201, ""},
		{"128 characters", []string{strings.Repeat("~", 128)}, 201, ""},
		{"none", []string{""}, 400, fault.DetailOutOfRange},
		{"129 characters", []string{strings.Repeat("a", 129)}, 400, fault.DetailOutOfRange},
		{"a space", []string{"a b"}, 400, fault.DetailFormat},
		{"a delete character", []string{"a\x7f"}, 400, fault.DetailFormat},
		{"a letter beyond ASCII", []string{"ä"}, 400, fault.DetailFormat},
		{"two keys", []string{"a", "b"}, 400, fault.DetailDuplicate},
	} {
		t.Run(test.name, func(t *testing.T) {
			s.t = t
			var headers []string
			for _, key := range test.keys {
				headers = append(headers, header, key)
			}
			r := s.want(test.status, "POST", apps, shop, headers...)
			want := fmt.Sprintf(`"details":[{"field":"Idempotency-Key","in":"header","code":"%s"`, test.code)
			if test.status == 400 && !strings.Contains(r.Body, want) {
				t.Errorf("got %s, want %s", r.Body, want)
			}
		})
	}
	t.Run("a read ignores it", func(t *testing.T) {
		s.t = t
		s.want(200, "GET", apps, "", header, "a b")
	})
}

func TestAKeyIsItsPrincipalsOwn(t *testing.T) {
	s := newService(t)
	org, user := s.as.OrganizationID, s.as.UserID
	first := s.want(201, "POST", apps, shop, header, "k")
	for _, test := range []struct {
		name string
		as   auth.Principal
	}{
		{"another organization", person(value.NewID(), auth.Owner)},
		{"the same user id of another organization", auth.Principal{
			Kind: auth.KindUser, OrganizationID: value.NewID(), UserID: user, Scopes: auth.Owner.Scopes(), RateLimit: 600,
		}},
		{"another user", person(org, auth.Owner)},
	} {
		t.Run(test.name, func(t *testing.T) {
			s.t, s.as = t, test.as
			if r := s.want(201, "POST", apps, shop, header, "k"); r.Header.Get("Idempotency-Replayed") != "" || r.Body == first.Body {
				t.Errorf("got %s", r.Body)
			}
		})
	}
	t.Run("an application of the user's id", func(t *testing.T) {
		application := auth.Principal{Kind: auth.KindApplication, OrganizationID: org, ApplicationID: user}
		person := auth.Principal{Kind: auth.KindUser, OrganizationID: org, UserID: user}
		if idempotency.NewKey(org, application.Subject(), "k") == idempotency.NewKey(org, person.Subject(), "k") {
			t.Error("both have the same key")
		}
	})
}

func TestAnswersAreKeptFor24Hours(t *testing.T) {
	s := newService(t)
	first := s.want(201, "POST", apps, shop, header, "k")
	s.Pass(24*time.Hour - 100*time.Millisecond)
	s.same(first, s.do("POST", apps, shop, header, "k"))
	s.Pass(2 * time.Second)
	if r := s.want(201, "POST", apps, shop, header, "k"); r.Header.Get("Idempotency-Replayed") != "" || r.Body == first.Body {
		t.Errorf("after 24 hours: got %s again", r.Body)
	}
}

func TestOnlySuccessesAreKept(t *testing.T) {
	s := newService(t)
	s.want(400, "POST", apps, `{"name":""}`, header, "k")
	s.want(201, "POST", apps, shop, header, "k")
	s.want(404, "POST", apps+"/"+value.NewID().String()+"/suspend", "", header, "l")
	s.want(201, "POST", apps, shop, header, "l")
}

func TestALockOfAKilledInstanceEndsAfter60Seconds(t *testing.T) {
	s := newService(t)
	key := idempotency.NewKey(s.as.OrganizationID, s.as.Subject(), "k")
	lock, _, err := s.keeper.Lock(t.Context(), key, idempotency.FingerprintOf("POST", apps, "", []byte(shop), fmt.Sprint(s.as.Scopes, s.as.SiteIDs, s.as.GrantID)))
	if err != nil || lock == nil {
		t.Fatalf("lock: got %v, %v", lock, err)
	}
	s.want(409, "POST", apps, shop, header, "k")
	s.want(422, "POST", apps, `{"name":"Other"}`, header, "k")
	s.Pass(time.Minute - 100*time.Millisecond)
	s.want(409, "POST", apps, shop, header, "k")
	s.want(422, "POST", apps, `{"name":"Other"}`, header, "k")
	s.Pass(100 * time.Millisecond)
	s.want(201, "POST", apps, shop, header, "k")
	if err := lock.Free(t.Context()); err != nil { // too late: the lock is another's
		t.Fatal(err)
	}
	if s.want(201, "POST", apps, shop, header, "k"); s.applications() != 1 {
		t.Errorf("the organization has %d applications, want 1", s.applications())
	}
}

// delayed does something before or after applications are created, and after their clients are changed.
type delayed struct {
	developers.Store

	before, after func() error
}

func (d delayed) CreateApplication(ctx context.Context, org value.ID, app account.Application, tokenScopes []string, kept ...*idempotency.Kept) error {
	return errors.Join(d.before(), d.Store.CreateApplication(ctx, org, app, tokenScopes, kept...), d.after())
}

func nothing() error { return nil }

func (d delayed) ChangeClient(
	ctx context.Context, org, id value.ID, change func(*account.Client) error, keep ...func(*account.Client) (*idempotency.Kept, error),
) (*account.Client, error) {
	c, err := d.Store.ChangeClient(ctx, org, id, change, keep...)
	return c, errors.Join(err, d.after())
}

func TestACreationWhoseAnswerWasLostIsFoundAgain(t *testing.T) {
	s := newService(t)
	s.serve(delayed{s.Table, nothing, func() error { return fault.Busy(errors.New("no answer")) }})
	s.want(503, "POST", apps, shop, header, "k")
	s.serve(s.Table)
	r := s.want(201, "POST", apps, shop, header, "k")
	if got := s.applications(); got != 1 || r.Header.Get("Idempotency-Replayed") != "true" {
		t.Errorf("the organization has %d applications, want 1: %s", got, r.Body)
	}
}

func TestARotationWhoseAnswerWasLostIsFoundAgain(t *testing.T) {
	s := newService(t)
	app := s.create("Shop")
	path := apps + "/" + app.ID.String() + "/rotate-secret"
	s.serve(delayed{s.Table, nothing, func() error { return fault.Busy(errors.New("no answer")) }})
	s.want(503, "POST", path, "", header, "k")
	s.serve(s.Table)
	r := s.want(200, "POST", path, "", header, "k")
	client, err := s.Table.Client(t.Context(), s.as.OrganizationID, app.ID)
	if err != nil {
		t.Fatal(err)
	}
	if now := s.Now(); !client.Secrets.Accept(app.ClientSecret, now) || !client.Secrets.Accept(decode[account.Application](t, r).ClientSecret, now) {
		t.Errorf("Idempotency-Replayed %q: want the secret before the rotation and that of the answer to work", r.Header.Get("Idempotency-Replayed"))
	}
}

func TestACreationThatLostItsLockMakesNothing(t *testing.T) {
	s := newService(t)
	s.serve(delayed{s.Table, func() error {
		s.Pass(time.Minute)
		s.serve(s.Table)
		s.want(201, "POST", apps, shop, header, "k")
		return nil
	}, nothing})
	s.want(409, "POST", apps, shop, header, "k")
	if got := s.applications(); got != 1 {
		t.Errorf("the organization has %d applications, want 1", got)
	}
}

// The fixture looks for the secrets in the table, in which both answers are kept.
func TestSecretsOfKeptAnswersAreNotReadable(t *testing.T) {
	s := newService(t)
	s.Leaks.Made("the-key-of-the-client")
	app := decode[account.Application](t, s.want(201, "POST", apps, shop, header, "the-key-of-the-client"))
	s.want(201, "POST", apps+"/"+app.ID.String()+"/api-keys", `{"name":"till"}`, header, "the-key-of-the-client-for-a-key")
}
