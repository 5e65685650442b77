package records_test

import (
	"context"
	"encoding/base64"
	"fmt"
	"math/rand/v2"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/google/go-cmp/cmp"

	"github.com/commerce-integration/service/pkg/api/records"
	"github.com/commerce-integration/service/pkg/auth"
	"github.com/commerce-integration/service/pkg/auth/ratelimit"
	"github.com/commerce-integration/service/pkg/base/value"
	"github.com/commerce-integration/service/pkg/commerce"
	"github.com/commerce-integration/service/pkg/index"
	"github.com/commerce-integration/service/pkg/index/views"
	"github.com/commerce-integration/service/pkg/lists"
	"github.com/commerce-integration/service/pkg/lists/columnar"
	"github.com/commerce-integration/service/pkg/testkit/servicetest"
)

const feedPath = "/api/changes"

// changes is the body of an answer of the feed, strictly decoded.
func (a answer) changes(t tester) records.Changes {
	t.Helper()
	var c records.Changes
	if a.status != http.StatusOK {
		t.Fatalf("%s: got %d %s, want 200", a.asked, a.status, a.body)
	}
	if err := json.Unmarshal(a.body, &c, json.RejectUnknownMembers(true)); err != nil {
		t.Fatalf("%s: %s: %v", a.asked, a.body, err)
	}
	for _, change := range c.Data {
		if (commerce.Op(change.Op) == commerce.OpPut) != (change.Object != nil) {
			t.Errorf("%s: %s has %+v", a.asked, change.Op, change)
		}
	}
	return c
}

// follower keeps a copy of all records from the feed.
type follower struct {
	ask   func(target string) answer
	after string // the cursor
	copy  map[recordKey]value.Time
	last  map[recordKey]value.Time // the changedAt of the last change
	taken int
}

func newFollower(ask func(target string) answer) *follower {
	return &follower{ask: ask, copy: map[recordKey]value.Time{}, last: map[recordKey]value.Time{}}
}

// sync reads until there is no more for now. It fails where a change of a record
// is older than the one before it.
func (f *follower) sync(t tester, query string) {
	t.Helper()
	for more := true; more; {
		target := feedPath + "?" + query
		if f.after != "" {
			target += "&after=" + f.after
		}
		a := f.ask(target)
		got := a.changes(t)
		f.after, more = got.Meta.Next, got.Meta.More
		for _, c := range got.Data {
			key := recordKey{ours, c.Kind, c.ID}
			if c.ChangedAt < f.last[key] {
				t.Errorf("%s: %s %s of %s after %s", a.asked, c.Op, c.ID, c.ChangedAt, f.last[key])
			}
			f.last[key] = c.ChangedAt
			if delete(f.copy, key); commerce.Op(c.Op) == commerce.OpPut {
				f.copy[key] = c.ChangedAt
			}
		}
		f.taken += len(got.Data)
	}
}

// live are the stored records of ours.
func (w *harness) live() map[recordKey]value.Time {
	live := map[recordKey]value.Time{}
	for key, s := range w.stored {
		if !s.Deleted && key.org == ours {
			live[key] = s.Revision
		}
	}
	return live
}

func TestACopyFromTheFeedEqualsTheTable(t *testing.T) {
	kinds := []commerce.Kind{commerce.KindProduct, commerce.KindOrder, commerce.KindCategory}
	for seed := range uint64(3) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			w, random, f := newHarness(t, present), rand.New(rand.NewPCG(5, seed)), newFollower(nil)
			writes := w.churn(random, kinds, func(ask func(string) answer) {
				f.ask = ask
				f.sync(t, fmt.Sprintf("limit=%d", 1+random.IntN(4)))
			})
			if diff := cmp.Diff(w.live(), f.copy); diff != "" || len(f.copy) == 0 {
				t.Errorf("(-table +copy):\n%s", diff)
			}
			taken := f.taken
			if f.sync(t, "limit=3"); f.taken > taken {
				t.Errorf("%d changes came again", f.taken-taken)
			}
			if f.taken > 3*writes {
				t.Errorf("%d changes were read for %d writes", f.taken, writes)
			}
		})
	}
}

// putRandom stores the least of a record, with something that differs.
func (w *harness) putRandom(kind commerce.Kind, id value.ID, random *rand.Rand) {
	w.t.Helper()
	m := map[string]any{"id": id, "name": fmt.Sprint(random.IntN(1000))}
	if kind == commerce.KindOrder {
		m = map[string]any{"id": id, "orderNumber": fmt.Sprint(random.IntN(1000)), "currency": "EUR"}
	}
	w.put(kind, m)
}

// shown is what an answer shows, as "put product 1".
func (a answer) shown(t tester) string {
	t.Helper()
	var all []string
	for _, c := range a.changes(t).Data {
		all = append(all, fmt.Sprintf("%s %s %d", c.Op, c.Kind, c.ID[15]))
	}
	return strings.Join(all, ", ")
}

func TestAChangeShowsTheRecordAsItIsNow(t *testing.T) {
	w := newHarness(t, present)
	w.put(commerce.KindProduct, map[string]any{"id": numbered(1), "name": "first"})
	w.put(commerce.KindProduct, map[string]any{"id": numbered(2), "name": "p"})
	w.put(commerce.KindProduct, map[string]any{"id": numbered(3), "name": "p"})
	w.remove(commerce.KindProduct, numbered(3))
	w.settle()
	last := w.put(commerce.KindProduct, map[string]any{"id": numbered(1), "name": "last"}) // not indexed
	w.remove(commerce.KindProduct, numbered(2))                                            // nor this
	w.least(ours, commerce.KindProduct, numbered(3))                                       // nor this
	api := w.serve()
	first := ask(t, api, user(), feedPath)
	want := `{"data":[{"kind":"product","op":"put","id":"` + last.ID.String() + `","changedAt":"` + last.Revision.String() +
		`","object":` + string(last.Doc) + `,"cursor":"`
	if got := string(first.body); !strings.HasPrefix(got, want) {
		t.Errorf("got %s, want %s", got, want)
	}
	w.settle()
	next := feedPath + "?after=" + first.changes(t).Meta.Next
	if got := ask(t, api, user(), next).shown(t); got != "put product 1, put product 3, delete product 2" {
		t.Errorf("got %s, want what was indexed since", got)
	}
}

func TestTheFeedIsOfTheKindsAndSitesOfTheCredential(t *testing.T) {
	w := newHarness(t, present)
	for _, kind := range []commerce.Kind{commerce.KindProduct, commerce.KindCategory, commerce.KindOrder, commerce.KindCustomer, commerce.KindInvoice} {
		w.least(ours, kind, numbered(1))
	}
	w.put(commerce.KindOrder, order(2, siteA))
	w.put(commerce.KindOrder, order(3, siteB))
	w.least(theirs, commerce.KindProduct, numbered(9))
	w.remove(commerce.KindInvoice, numbered(1))
	w.settle()
	api := w.serve()
	const all = "put product 1, put category 1, put order 1, put order 2, put order 3, put customer 1, delete invoice 1"
	for _, tt := range []struct {
		p           *auth.Principal
		query, want string
	}{
		{user(), "", all},
		{user(), "?kinds=order,invoice", "put order 1, put order 2, put order 3, delete invoice 1"},
		{user(), "?kinds=category", "put category 1"},
		{narrowed(key(), auth.OrdersRead, auth.CustomersRead), "", "put order 1, put order 2, put order 3, put customer 1"},
		{narrowed(user(), auth.InvoicesRead, auth.WebhooksRead), "", "delete invoice 1"},
		{key(siteA), "?kinds=order,product", "put product 1, put order 2"},
		{user(), "?kinds=order&siteId=" + siteB.String(), "put order 3"},
		{of(theirs, user()), "", "put product 9"},
	} {
		t.Run(tt.query, func(t *testing.T) {
			a := ask(t, api, tt.p, feedPath+tt.query)
			if got := a.shown(t); got != tt.want {
				t.Errorf("%s: got %s, want %s", a.asked, got, tt.want)
			}
		})
	}
	for _, tt := range []struct {
		p     *auth.Principal
		query string
		code  string
	}{
		{narrowed(key(), auth.OrdersRead), "?kinds=order,product", "insufficient_scope"},
		{narrowed(user(), auth.WebhooksRead), "", "insufficient_scope"},
		{key(siteA), "?siteId=" + siteB.String(), "site_forbidden"},
	} {
		if a := ask(t, api, tt.p, feedPath+tt.query); a.status != http.StatusForbidden || a.problem(t).Code != tt.code {
			t.Errorf("%s: got %d %s, want 403 %s", a.asked, a.status, a.body, tt.code)
		}
	}
}

func TestARecordThatLeftTheSitesIsNotShown(t *testing.T) {
	w := newHarness(t, present)
	w.put(commerce.KindProduct, map[string]any{"id": numbered(1), "name": "p"}, siteA)
	w.settle()
	w.put(commerce.KindProduct, map[string]any{"id": numbered(1), "name": "p"}, siteB) // not indexed
	api := w.serve()
	if got := ask(t, api, key(siteA), feedPath).shown(t); got != "" {
		t.Errorf("a key of site A gets %s", got)
	}
}

func TestParametersOfTheFeedAreChecked(t *testing.T) {
	api := newShelf().serve()
	for query, want := range map[string]string{
		"limit=0": "limit must be between 1 and 1000", "limit=1001": "limit must be between 1 and 1000",
		"limit=1x": "limit must be a whole number between 1 and 1000, digits only",
		"wait=21":  "wait must be between 0 and 20", "wait=-1": "wait must be a whole number between 0 and 20, digits only",
		"wait=01":         "wait must be a whole number between 0 and 20, digits only",
		"kinds=orders":    "kinds must be one or several, comma-separated, of " + strings.Join(commerce.Kind("").Values(), ", "),
		"kinds=order,":    "kinds must be one or several, comma-separated, of " + strings.Join(commerce.Kind("").Values(), ", "),
		"after=nonsense":  "after must be a cursor that meta.next or a change gave, or now",
		"after=":          "after must not be empty; leave the parameter out instead",
		"page=1":          "page is not a parameter of this operation",
		"after=AAAA&x=1":  "x is not a parameter of this operation",
		"limit=1&limit=2": "limit must be given once",
	} {
		a := ask(t, api, user(), feedPath+"?"+query)
		if p := a.problem(t); a.status != http.StatusBadRequest || p.Message != want || len(p.Details) != 1 {
			t.Errorf("%s: got %d %+v, want 400 %s", query, a.status, p, want)
		}
	}
	for _, query := range []string{"limit=1", "limit=1000", "wait=0", "kinds=order,order", "after=now"} {
		ask(t, api, user(), feedPath+"?"+query).changes(t)
	}
}

func TestACursorIsContinuedWhereItBelongs(t *testing.T) {
	w := newHarness(t, present)
	w.least(ours, commerce.KindProduct, numbered(1))
	w.least(theirs, commerce.KindProduct, numbered(2))
	w.settle()
	api := w.serve()
	next := ask(t, api, user(), feedPath).changes(t).Meta.Next
	text := base64.NewEncoding(".0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ_abcdefghijklmnopqrstuvwxyz").WithPadding(base64.NoPadding)
	data, err := text.DecodeString(next)
	if err != nil {
		t.Fatal(err)
	}
	damaged := slices.Clone(data)
	damaged[20] ^= 1
	var backwards []string
	for _, kind := range slices.Backward(commerce.Kinds()) {
		backwards = append(backwards, string(kind))
	}
	const malformed, mismatch, expired = "validation_failed", "cursor_mismatch", "cursor_expired"
	for _, tt := range []struct {
		name  string
		p     *auth.Principal
		query string
		code  string // "": it is continued
	}{
		{"the same", user(), next, ""},
		{"the same kinds, named", user(), next + "&kinds=" + strings.Join(backwards, ","), ""},
		{"a key that reads the same", key(), next, ""},
		{"fewer kinds", user(), next + "&kinds=product", mismatch},
		{"fewer scopes", narrowed(user(), auth.ProductsRead), next, mismatch},
		{"a site", user(), next + "&siteId=" + siteA.String(), mismatch},
		{"a key of a site", key(siteA), next, mismatch},
		{"another organization", of(theirs, user()), next, mismatch},
		{"a changed byte", user(), text.EncodeToString(damaged), malformed},
		{"a byte less", user(), text.EncodeToString(data[1:]), malformed},
		{"cut", user(), next[:20], malformed},
		{"padded", user(), next + "%3D", malformed},
	} {
		t.Run(tt.name, func(t *testing.T) {
			a := ask(t, api, tt.p, feedPath+"?after="+tt.query)
			if tt.code == "" && a.shown(t) != "" {
				t.Errorf("got %s, want no change", a.body)
			}
			if tt.code != "" && (a.status != http.StatusBadRequest || a.problem(t).Code != tt.code) {
				t.Errorf("got %d %s, want 400 %s", a.status, a.body, tt.code)
			}
		})
	}
	fewer := ask(t, api, user(), feedPath+"?kinds=category,invoice").changes(t).Meta.Next
	if got := ask(t, api, user(), feedPath+"?after="+fewer).shown(t); got != "put product 1" {
		t.Errorf("a cursor of fewer kinds: got %q, want the product", got)
	}
	w.Set(present.Add(89 * 24 * time.Hour))
	if got := ask(t, api, user(), feedPath+"?after="+next).shown(t); got != "" {
		t.Errorf("after 89 days: got %s, want no change", got)
	}
	w.Set(present.Add(89*24*time.Hour + time.Hour))
	if a := ask(t, api, user(), feedPath+"?after="+next); a.status != http.StatusBadRequest || a.problem(t).Code != expired {
		t.Errorf("after more than 89 days: got %d %s, want %s", a.status, a.body, expired)
	}
}

func TestNowIsTheCursorOfThePresent(t *testing.T) {
	w := newHarness(t, present)
	w.least(ours, commerce.KindProduct, numbered(1))
	w.settle()
	api := w.serve()
	now := ask(t, api, user(), feedPath+"?after=now&wait=20")
	w.least(ours, commerce.KindProduct, numbered(2))
	w.least(ours, commerce.KindCustomer, numbered(3)) // of a list that had no entry before
	w.settle()
	got := ask(t, api, user(), feedPath+"?after="+now.changes(t).Meta.Next).shown(t)
	if now.shown(t) != "" || got != "put product 2, put customer 3" {
		t.Errorf("now shows %s, and later %s", now.body, got)
	}
}

// A list that changes all the time must not keep a client from the others.
func TestEachListHasItsTurn(t *testing.T) {
	w := newHarness(t, present)
	w.least(ours, commerce.KindInvoice, numbered(1))
	api := w.serve()
	after := ""
	for n := range 3 {
		for i := range 4 {
			w.put(commerce.KindProduct, map[string]any{"id": numbered(i + 1), "name": fmt.Sprint(n)})
		}
		w.settle()
		a := ask(t, api, user(), feedPath+"?limit=3"+after)
		if strings.Contains(a.shown(t), "invoice") {
			return
		}
		after = "&after=" + a.changes(t).Meta.Next
	}
	t.Error("the invoice never came")
}

func TestAnAnswerOfTheFeedFitsIntoALambdasAnswer(t *testing.T) {
	s := newShelf()
	text := strings.Repeat("x", 200<<10)
	for n := range 60 {
		s.put(t, commerce.KindProduct, map[string]any{"id": numbered(n + 1), "name": "p", "description": "d"})
		s.enlarge(numbered(n+1), `"d"`, `"`+text+`"`)
	}
	f := newFollower(func(target string) answer {
		a := ask(t, s.serve(), user(), target)
		if len(a.body) > 5632<<10 {
			t.Errorf("%s: an answer of %d bytes", target, len(a.body))
		}
		return a
	})
	f.sync(t, "limit=1000")
	if len(f.copy) != 60 {
		t.Errorf("got %d records, want 60", len(f.copy))
	}
}

// countedViews counts the queries of lists.
type countedViews struct {
	records.Views
	queries int
}

func (v *countedViews) Query(ctx context.Context, org value.ID, list *index.List, q columnar.Query, now bool) (lists.Answer, error) {
	v.queries++
	return v.Views.Query(ctx, org, list, q, now)
}

// Once an organization is quiet, an answer without a change reads one small item,
// at an instance that knows nothing of its lists, too.
func TestAnEmptyAnswerOfAQuietOrganizationReadsNoList(t *testing.T) {
	w := newHarness(t, present)
	w.least(ours, commerce.KindProduct, numbered(1))
	w.settle()
	after := ""
	poll := func(shown string, reads bool) {
		t.Helper()
		v := &countedViews{Views: views.NewCache(w.Table, views.Config{Clock: w.Time})}
		api := server(records.Operations(w.Table, v, records.Config{Clock: w.Time, Lists: w.lists}), w.Time)
		a := ask(t, api, user(), feedPath+after)
		if got := a.shown(t); got != shown || (v.queries > 0) != reads {
			t.Errorf("got %q by %d queries of lists, want %q, reads %t", got, v.queries, shown, reads)
		}
		after = "?after=" + a.changes(t).Meta.Next
	}
	poll("put product 1", true)
	w.Pass(time.Second)
	poll("", true)
	w.Pass(2 * time.Minute)
	poll("", true) // the first look after the activity
	for range 5 {
		w.Pass(time.Second)
		poll("", false)
	}
	w.least(theirs, commerce.KindProduct, numbered(1))
	w.least(ours, commerce.KindCustomer, numbered(2))
	w.settle()
	poll("put customer 2", true)
	w.Pass(2 * time.Minute)
	poll("", true)
	w.Pass(9 * time.Minute)
	poll("", false)
	w.Pass(2 * time.Minute)
	poll("", true)
}

// limited admits so many requests.
type limited struct {
	servicetest.Unlimited
	left int
}

func (l *limited) Admit(ctx context.Context, weight int, of ...ratelimit.Subject) (ratelimit.Decision, error) {
	d, err := l.Unlimited.Admit(ctx, weight, of...)
	l.left -= weight
	d.Allowed = l.left >= 0
	return d, err
}

func TestARequestWaitsForAChange(t *testing.T) {
	w := newHarness(t, present)
	w.least(ours, commerce.KindProduct, numbered(1))
	w.settle()
	cache := views.NewCache(w.Table, views.Config{Clock: w.Time})
	paused, limiter := 0, &limited{left: 1000}
	operations := records.Operations(w.Table, cache, records.Config{Clock: w.Time, Lists: w.lists, Pause: func(ctx context.Context, d time.Duration) error {
		if paused++; paused == 3 {
			w.least(ours, commerce.KindProduct, numbered(2))
			w.index()
		}
		w.Pass(d)
		return ctx.Err()
	}})
	api := limitedServer(operations, w.Time, limiter)
	after := ask(t, api, user(), feedPath).changes(t).Meta.Next
	a := ask(t, api, user(), feedPath+"?wait=20&after="+after)
	if a.shown(t) != "put product 2" || paused != 3 {
		t.Errorf("got %s after %d pauses, want the change after 3", a.body, paused)
	}
	after, paused = a.changes(t).Meta.Next, 10
	if got := ask(t, api, user(), feedPath+"?wait=20&after="+after).shown(t); got != "" || paused != 30 {
		t.Errorf("got %s after %d pauses, want nothing after 20", got, paused-10)
	}
	paused, limiter.left = 10, 5
	if a := ask(t, api, user(), feedPath+"?wait=20&after="+after); a.shown(t) != "" || paused != 15 {
		t.Errorf("got %s after %d pauses, want nothing, and an end of the wait with the rate limit, after 5", a.body, paused-10)
	}
	if a := ask(t, api, user(), feedPath+"?wait=20&after="+after); a.status != http.StatusTooManyRequests {
		t.Errorf("got %d, want 429 when the limit is reached", a.status)
	}
}

// Nine waits are those of requests at other instances.
func TestTenRequestsOfAnOrganizationWaitAtATime(t *testing.T) {
	w := newHarness(t, present)
	paused := 0
	var during func()
	operations := records.Operations(w.Table, views.NewCache(w.Table, views.Config{Clock: w.Time}), records.Config{
		Clock: w.Time, Lists: w.lists, Pause: func(_ context.Context, d time.Duration) error {
			if paused++; during != nil {
				during()
			}
			w.Pass(d)
			return nil
		},
	})
	api := server(operations, w.Time)
	after := ask(t, api, user(), feedPath+"?after=now").changes(t).Meta.Next
	otherAfter := ask(t, api, of(theirs, user()), feedPath+"?after=now").changes(t).Meta.Next
	poll := func(p *auth.Principal, after string, want int) {
		t.Helper()
		paused = 0
		if got := ask(t, api, p, feedPath+"?wait=2&after="+after).shown(t); got != "" || paused != want {
			t.Errorf("got %q after %d pauses, want nothing after %d", got, paused, want)
		}
	}
	for range 9 {
		if _, err := w.Table.BeginWait(t.Context(), ours, value.NewID(), 10, w.Now(), w.Now().Add(time.Hour)); err != nil {
			t.Fatal(err)
		}
	}
	during = func() {
		during = nil
		poll(key(), after, 0)
		poll(of(theirs, user()), otherAfter, 2)
		paused = 1
	}
	poll(user(), after, 2)
	poll(key(), after, 2) // the one before has ended
}
