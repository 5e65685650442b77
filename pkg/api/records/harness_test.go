package records_test

import (
	"context"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-lambda-go/events"
	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/commerce-integration/service/pkg/api"
	"github.com/commerce-integration/service/pkg/api/records"
	"github.com/commerce-integration/service/pkg/auth"
	"github.com/commerce-integration/service/pkg/base/value"
	"github.com/commerce-integration/service/pkg/commerce"
	"github.com/commerce-integration/service/pkg/dynamo"
	"github.com/commerce-integration/service/pkg/index"
	"github.com/commerce-integration/service/pkg/index/compactor"
	"github.com/commerce-integration/service/pkg/index/indexer"
	"github.com/commerce-integration/service/pkg/index/views"
	"github.com/commerce-integration/service/pkg/testkit/servicetest"
)

// The organizations and sites of these tests.
var (
	ours   = value.MustID("0192f0c1-7a3e-7c54-9f3b-6c2a4d8e1f00")
	theirs = value.MustID("0192f0c1-7a3e-7c54-9f3b-6c2a4d8e1fff")
	siteA  = value.MustID("aaaaaaaa-0000-4000-8000-000000000001")
	siteB  = value.MustID("bbbbbbbb-0000-4000-8000-000000000002")
	siteC  = value.MustID("cccccccc-0000-4000-8000-000000000003")
)

// present is when these tests ask, unless they move the clock.
var present = time.Date(2026, 11, 21, 6, 35, 41, 242_000_000, time.UTC)

// recordKey names a record.
type recordKey struct {
	org  value.ID
	kind commerce.Kind
	id   value.ID
}

// revisionKey names a revision as a list shows it.
type revisionKey struct {
	recordKey
	deletions bool // the list of deletions, not that of the kind
	revision  value.Time
}

// change is one write that the indexer has to process.
type change struct {
	old, next *commerce.Stored
	n         int // of the writes before it
}

// harness is a real table with an indexer of its stream, under a clock that the
// test moves. It remembers what was stored and when it became visible in lists.
type harness struct {
	*servicetest.Service
	t       testing.TB
	lists   *index.Lists
	writer  *indexer.Indexer
	stream  []events.DynamoDBEventRecord // of every write
	waiting []change                     // written and not indexed
	writes  int
	stored  map[recordKey]*commerce.Stored
	visible map[revisionKey]value.Time
}

func newHarness(t testing.TB, now time.Time) *harness {
	t.Helper()
	w := &harness{Service: servicetest.New(t), t: t, stored: map[recordKey]*commerce.Stored{}, visible: map[revisionKey]value.Time{}}
	w.Set(now)
	w.lists = index.NewLists(w.Table, dynamo.Shards)
	w.writer = indexer.New(w.Table, indexer.DecodeFor(w.lists, dynamo.Stream{}, w.Table), noPark{t}, noStart{}, w.Leaks.Logger())
	return w
}

// noPark fails the test: every record of these tests can be indexed.
type noPark struct{ t testing.TB }

func (p noPark) Park(_ context.Context, _ string, _ events.DynamoDBEventRecord, cause error) error {
	p.t.Errorf("a record was parked: %v", cause)
	return nil
}

// noStart leaves jobs to those who look for them.
type noStart struct{}

func (noStart) Send(context.Context, value.ID, string) error { return nil }

// settle indexes what waits and lets the views' freshness pass.
func (w *harness) settle() {
	w.t.Helper()
	w.index()
	w.Pass(views.Freshness)
}

// flush moves the tail of a list into segments, as happens within a
// day.
func (w *harness) flush(list *index.List) {
	w.t.Helper()
	if err := w.Table.RequestJob(w.t.Context(), ours, list.Name, w.Now()); err != nil {
		w.t.Fatal(err)
	}
	if _, err := w.compactor().Run(w.t.Context(), ours, list.Name); err != nil {
		w.t.Fatal(err)
	}
}

func (w *harness) compactor() *compactor.Compactor {
	return compactor.New(w.Table, w.lists.All(), w.Time, slog.New(slog.DiscardHandler))
}

// apply stores a change as ingestion does; it gives nil when there was
// nothing to write.
func (w *harness) apply(c commerce.Change) *commerce.Stored {
	w.t.Helper()
	id, err := commerce.Identify(c)
	if err != nil {
		w.t.Fatalf("identify %s: %v", c.Record, err)
	}
	key := recordKey{c.OrganizationID, c.Kind, id}
	old := w.stored[key]
	next, err := commerce.Apply(old, c, w.Now())
	if err != nil {
		w.t.Fatalf("apply %s %s: %v", c.Op, c.Record, err)
	}
	if next == nil {
		return nil
	}
	if err := w.Table.PutRecord(w.t.Context(), old, next); err != nil {
		w.t.Fatalf("store %s: %v", c.Record, err)
	}
	w.stored[key] = next
	w.waiting = append(w.waiting, change{old, next, w.writes})
	w.writes++
	return next
}

// put stores a record of ours.
func (w *harness) put(kind commerce.Kind, record map[string]any, sites ...value.ID) *commerce.Stored {
	w.t.Helper()
	return w.putFor(ours, kind, record, sites...)
}

func (w *harness) putFor(org value.ID, kind commerce.Kind, record map[string]any, sites ...value.ID) *commerce.Stored {
	w.t.Helper()
	doc, err := json.Marshal(record, json.Deterministic(true))
	if err != nil {
		w.t.Fatal(err)
	}
	c := commerce.Change{Kind: kind, Op: commerce.OpPut, OrganizationID: org, Record: doc}
	if kind == commerce.KindProduct {
		c.Sites = commerce.Sites{Given: true, Value: sites}
	}
	return w.apply(c)
}

// remove deletes a record of ours.
func (w *harness) remove(kind commerce.Kind, id value.ID) *commerce.Stored {
	w.t.Helper()
	return w.apply(commerce.Change{Kind: kind, Op: commerce.OpDelete, OrganizationID: ours, Record: jsontext.Value(`{"id":"` + id.String() + `"}`)})
}

// index gives the indexer what waits, in one batch.
func (w *harness) index() {
	w.t.Helper()
	w.reindex(w.waiting)
	w.waiting = nil
}

// reindex gives the indexer changes, also such that it had before.
func (w *harness) reindex(changes []change) {
	w.t.Helper()
	w.stream = append(w.stream, w.StreamRecords(w.t, dynamo.StreamRecord)...)
	var batch events.DynamoDBEvent
	newest := map[revisionKey]change{}
	for _, c := range changes {
		batch.Records = append(batch.Records, w.stream[c.n])
		key := revisionKey{recordKey: recordKey{c.next.OrganizationID, c.next.Kind, c.next.ID}}
		if known, ok := newest[key]; !ok || known.next.Revision <= c.next.Revision {
			newest[key] = c
		}
		wasDeleted := c.old != nil && c.old.Deleted
		key.deletions = true
		if known, ok := newest[key]; (wasDeleted || c.next.Deleted) && (!ok || known.next.Revision <= c.next.Revision) {
			newest[key] = c
		}
	}
	response, err := w.writer.Handle(w.t.Context(), batch)
	if err != nil || len(response.BatchItemFailures) > 0 {
		w.t.Fatalf("index %d changes: %+v, %v", len(changes), response, err)
	}
	for key, c := range newest {
		key.revision = c.next.Revision
		w.visible[key] = max(w.visible[key], w.Now())
	}
	w.Pass(time.Millisecond) // no two entries of a tail are of one moment
}

// serve starts an instance of the read API, with views and caches that are
// still empty.
func (w *harness) serve() http.Handler {
	views := views.NewCache(w.Table, views.Config{Clock: w.Time})
	return server(records.Operations(w.Table, views, records.Config{
		Clock: w.Time, Lists: w.lists,
	}), w.Time)
}

type principalKey struct{}

// server is the plumbing of requests around operations. Who asks is in the
// request's context.
func server(operations []api.Operation, clock func() time.Time) http.Handler {
	return limitedServer(operations, clock, servicetest.Unlimited{})
}

func limitedServer(operations []api.Operation, clock func() time.Time, limiter api.Limiter) http.Handler {
	return api.NewServer(operations, api.Config{
		Caller: func(r *http.Request) api.Caller {
			p := r.Context().Value(principalKey{}).(*auth.Principal)
			return api.Caller{Principal: *p, RequestID: "request-1", BaseURL: "https://host/prod"}
		},
		Limiter: limiter, Clock: clock, Logger: slog.New(slog.DiscardHandler),
	})
}

// user is a user of ours with every scope.
func user() *auth.Principal {
	return &auth.Principal{
		Kind: auth.KindUser, OrganizationID: ours, UserID: value.MustID("00000000-0000-4000-8000-00000000aaaa"),
		Scopes: auth.AllScopes(), RateLimit: 600,
	}
}

// key is an API key of ours that covers these sites; without any, every site.
func key(sites ...value.ID) *auth.Principal {
	return &auth.Principal{
		Kind: auth.KindKey, OrganizationID: ours, ApplicationID: value.MustID("00000000-0000-4000-8000-00000000bbbb"),
		KeyID: value.MustID("00000000-0000-4000-8000-00000000cccc"), Scopes: auth.ReadScopes(), SiteIDs: sites, RateLimit: 1000,
	}
}

// application is an application's own token.
func application() *auth.Principal {
	p := key()
	p.Kind, p.KeyID = auth.KindApplication, value.ID{}
	return p
}

// of is the same principal in another organization.
func of(org value.ID, p *auth.Principal) *auth.Principal {
	other := *p
	other.OrganizationID = org
	return &other
}

// narrowed is the same principal with these scopes only.
func narrowed(p *auth.Principal, scopes ...auth.Scope) *auth.Principal {
	other := *p
	other.Scopes = auth.NewScopes(scopes...)
	return &other
}

// tester is a *testing.T, a *testing.B or a *rapid.T.
type tester interface {
	Helper()
	Context() context.Context
	Errorf(format string, args ...any)
	Fatalf(format string, args ...any)
}

// answer is what came back.
type answer struct {
	asked  string
	status int
	header http.Header
	body   []byte
}

// ask sends a GET. header is names and values in turn.
func ask(t tester, h http.Handler, p *auth.Principal, target string, header ...string) answer {
	t.Helper()
	return send(t, h, p, http.MethodGet, target, header...)
}

func send(t tester, h http.Handler, p *auth.Principal, method, target string, header ...string) answer {
	t.Helper()
	path, query, _ := strings.Cut(target, "?")
	r := (&http.Request{
		Method: method, URL: &url.URL{Path: path, RawQuery: query}, Host: "host", Header: http.Header{}, Body: http.NoBody,
	}).WithContext(context.WithValue(t.Context(), principalKey{}, p))
	for i := 0; i < len(header); i += 2 {
		r.Header.Add(header[i], header[i+1])
	}
	rec := httptest.NewRecorder()
	h.ServeHTTP(rec, r)
	asked := method + " " + target + " " + strings.Join(header, " ") + " as " + string(p.Kind)
	if p.SiteIDs != nil {
		asked += " limited to " + join(p.SiteIDs)
	}
	return answer{asked: asked, status: rec.Code, header: rec.Header(), body: rec.Body.Bytes()}
}

// page is the body of a list, strictly decoded.
type page = api.Page[jsontext.Value]

func (a answer) page(t tester) page {
	t.Helper()
	var p page
	if a.status != http.StatusOK {
		t.Fatalf("%s: got %d %s, want 200", a.asked, a.status, a.body)
	}
	if err := json.Unmarshal(a.body, &p, json.RejectUnknownMembers(true)); err != nil {
		t.Fatalf("%s: %s: %v", a.asked, a.body, err)
	}
	return p
}

// ids lists the ids on a page.
func (a answer) ids(t tester) string {
	t.Helper()
	var ids []string
	for _, record := range a.page(t).Data {
		var head struct{ ID value.ID }
		if err := json.Unmarshal(record, &head, json.MatchCaseInsensitiveNames(true)); err != nil {
			t.Fatalf("%s: %s: %v", a.asked, record, err)
		}
		ids = append(ids, head.ID.String())
	}
	return strings.Join(ids, " ")
}

func (a answer) problem(t tester) api.Problem {
	t.Helper()
	var p api.Problem
	if err := json.Unmarshal(a.body, &p, json.RejectUnknownMembers(true)); err != nil || p.StatusCode != a.status {
		t.Fatalf("%s: %d %s is no problem of ours: %v", a.asked, a.status, a.body, err)
	}
	return p
}

// expect fails unless the answer is a page of these records.
func (a answer) expect(t tester, want ...*commerce.Stored) {
	t.Helper()
	ids := make([]value.ID, len(want))
	for i, s := range want {
		ids[i] = s.ID
	}
	if got := a.ids(t); got != join(ids) {
		t.Errorf("%s:\n got %s\nwant %s", a.asked, got, join(ids))
	}
}

func join(ids []value.ID) string {
	texts := make([]string, len(ids))
	for i, id := range ids {
		texts[i] = id.String()
	}
	return strings.Join(texts, " ")
}

// numbered is an id whose order is known.
func numbered(n int) value.ID {
	var id value.ID
	id[0], id[6], id[8], id[14], id[15] = 1, 0x70, 0x80, byte(n>>8), byte(n)
	return id
}
