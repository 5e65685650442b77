package records_test

import (
	"math/rand/v2"
	"net/http"
	"slices"
	"testing"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/google/go-cmp/cmp"

	"github.com/commerce-integration/service/pkg/base/value"
	"github.com/commerce-integration/service/pkg/commerce"
	"github.com/commerce-integration/service/pkg/index"
	"github.com/commerce-integration/service/pkg/ops"
)

// client keeps a copy of the records of a kind.
type client struct {
	ask  func(target string) answer
	from map[string]string // by list: the X-Sync-From of the last complete read
	copy map[value.ID]entry
}

// entry is a record or its deletion. Of the two the newer counts.
type entry struct {
	ID        value.ID
	UpdatedAt value.Time `json:"updatedAt"`
	DeletedAt value.Time `json:"deletedAt"`
}

func (e entry) at() value.Time { return max(e.UpdatedAt, e.DeletedAt) }

// sync reads what is new in a list: /api/products?updatedFrom= or
// /api/deletions?kind=product&deletedFrom=. It returns how much that was.
func (c *client) sync(t *testing.T, list string) (taken int) {
	t.Helper()
	from, next := c.from[list], ""
	if from == "" {
		from = "1970-01-01"
	}
	for after, pages := (value.ID{}), 0; ; pages++ {
		a := c.ask(list + from + "&limit=3&afterId=" + after.String())
		if pages == 0 {
			next = a.header.Get("X-Sync-From")
		}
		page := a.page(t)
		for _, data := range page.Data {
			var e entry
			if err := json.Unmarshal(data, &e, json.MatchCaseInsensitiveNames(true)); err != nil {
				t.Fatal(err)
			}
			if after = e.ID; e.at() > c.copy[e.ID].at() {
				c.copy[e.ID] = e
			}
			taken++
		}
		if len(page.Data) < page.Meta.Limit {
			break
		}
	}
	c.from[list] = next
	return taken
}

// records are the live records of the copy, with their times.
func (c *client) records() map[value.ID]value.Time {
	live := map[value.ID]value.Time{}
	for id, e := range c.copy {
		if e.DeletedAt == 0 {
			live[id] = e.UpdatedAt
		}
	}
	return live
}

const (
	newProducts = "/api/products?updatedFrom="
	newDeleted  = "/api/deletions?kind=product&deletedFrom="
)

// churn changes records of the kinds while three instances answer a client, which
// reads now and then and in the end. The indexer is late, takes changes twice, and
// lists are compacted and rebuilt. It returns how many writes it made.
func (w *harness) churn(random *rand.Rand, kinds []commerce.Kind, read func(ask func(target string) answer)) (writes int) {
	w.t.Helper()
	instances := []http.Handler{w.serve(), w.serve(), w.serve()}
	asking := func(target string) answer { return ask(w.t, instances[random.IntN(len(instances))], user(), target) }
	var indexed []change
	for range 300 {
		kind, id := kinds[random.IntN(len(kinds))], numbered(1+random.IntN(36/len(kinds)))
		switch random.IntN(12) {
		case 0, 1, 2:
			w.putRandom(kind, id, random)
			writes++
		case 3:
			w.remove(kind, id)
			writes++
		case 4:
			w.Pass([]time.Duration{time.Millisecond, time.Second, 2 * time.Minute, 11 * time.Minute}[random.IntN(4)])
		case 5, 6:
			indexed = append(indexed, w.waiting...)
			w.index()
		case 7:
			if n := len(indexed); n > 5 {
				w.reindex(indexed[n-5:])
			}
		case 8:
			w.flush([]*index.List{w.lists.Records[kind], w.lists.Deletions}[random.IntN(2)])
		case 9:
			if random.IntN(4) == 0 {
				w.rebuild(w.lists.Records[kind])
			}
			instances[random.IntN(3)] = w.serve()
		default:
			read(asking)
		}
		w.Pass(time.Millisecond)
	}
	w.settle()
	read(asking)
	return writes
}

func TestACopyByXSyncFromEqualsTheTable(t *testing.T) {
	w, random := newHarness(t, present), rand.New(rand.NewPCG(3, 4))
	c, taken := &client{from: map[string]string{}, copy: map[value.ID]entry{}}, 0
	writes := w.churn(random, []commerce.Kind{commerce.KindProduct}, func(ask func(string) answer) {
		c.ask = ask
		for _, list := range [][]string{{newProducts, newDeleted}, {newDeleted, newProducts}}[random.IntN(2)] {
			taken += c.sync(t, list)
		}
	})
	want := map[value.ID]value.Time{}
	for key, revision := range w.live() {
		want[key.id] = revision
	}
	if diff := cmp.Diff(want, c.records()); diff != "" || len(want) == 0 {
		t.Errorf("(-table +copy):\n%s", diff)
	}
	if c.sync(t, newProducts)+c.sync(t, newDeleted) > 0 {
		t.Error("what was read comes again")
	}
	if taken > 2*writes {
		t.Errorf("%d entries were read for %d writes", taken, writes)
	}
}

// rebuild rebuilds a list of ours from the table.
func (w *harness) rebuild(list *index.List) {
	w.t.Helper()
	if err := ops.Rebuild(w.t.Context(), w.Table, w.compactor(), index.Key{Org: ours, List: list}, func(int, int) {}); err != nil {
		w.t.Fatal(err)
	}
}

func TestTheFirstPageOfEachListSaysFromWhenToAskNext(t *testing.T) {
	w := newHarness(t, present)
	for n := range 3 {
		w.put(commerce.KindProduct, map[string]any{"id": numbered(n + 1), "name": "p", "isActive": n > 0}, siteA)
	}
	w.remove(commerce.KindProduct, numbered(3))
	w.settle()
	api := w.serve()
	since := value.TimeOf(present).Add(time.Millisecond).String()
	for target, want := range map[string]string{
		"/api/products": since,
		"/api/products?afterId=00000000-0000-0000-0000-000000000000": since,
		"/api/products?page=1&limit=1&orderBy=name":                  since,
		"/api/products?isActive=true&search=nothing":                 since,
		"/api/products?siteId=" + siteB.String():                     since,
		"/api/products?updatedFrom=" + since:                         since,
		"/api/products?page=2&limit=1":                               "",
		"/api/products?afterId=" + numbered(1).String():              "",
		"/api/deletions":                                                since,
		"/api/deletions?deletedFrom=" + since:                           since,
		"/api/deletions?afterId=" + numbered(1).String():                "",
		"/api/customers":                                                "1970-01-01T00:00:00.000Z",
		"/api/customers?updatedFrom=1970-01-01T00:00:00.000Z&limit=100": "1970-01-01T00:00:00.000Z",
	} {
		t.Run(target, func(t *testing.T) {
			a := ask(t, api, user(), target)
			if got := a.header.Get("X-Sync-From"); got != want || a.status != http.StatusOK {
				t.Errorf("got %d and %q, want %q", a.status, got, want)
			}
			head := send(t, api, user(), http.MethodHead, target)
			same := ask(t, api, user(), target, "If-None-Match", a.header.Get("ETag"))
			if same.status != http.StatusNotModified || same.header.Get("X-Sync-From") != want || head.header.Get("X-Sync-From") != want {
				t.Errorf("got %d and %q, HEAD %q, want 304 and %q", same.status, same.header.Get("X-Sync-From"), head.header.Get("X-Sync-From"), want)
			}
		})
	}
	ask(t, api, user(), "/api/products?updatedFrom="+since).expect(t)
	if a := ask(t, api, of(theirs, user()), "/api/products"); a.header.Get("X-Sync-From") != "1970-01-01T00:00:00.000Z" {
		t.Errorf("another organization gets %q", a.header.Get("X-Sync-From"))
	}
}

func TestNoCacheReadsTheIndexNow(t *testing.T) {
	w := newHarness(t, present)
	api := w.serve()
	targets := []string{"/api/products", "/api/deletions"}
	asked := func(header ...string) (totals []int) {
		for _, target := range targets {
			totals = append(totals, ask(t, api, user(), target, header...).page(t).Meta.Total)
		}
		return totals
	}
	asked()
	for n, row := range []struct {
		header []string
		now    bool
	}{
		{nil, false},
		{[]string{"Cache-Control", "no-cache"}, true},
		{[]string{"Cache-Control", "no-store, max-age=0"}, false},
		{[]string{"Cache-Control", "max-age=0, No-Cache"}, true},
		{[]string{"Cache-Control", "max-age=0", "Cache-Control", "no-cache"}, true},
		{[]string{"Cache-Control", "no-cached"}, false},
	} {
		before := asked()
		w.put(commerce.KindProduct, map[string]any{"id": numbered(2*n + 1), "name": "p"})
		w.put(commerce.KindProduct, map[string]any{"id": numbered(2*n + 2), "name": "p"})
		w.remove(commerce.KindProduct, numbered(2*n+2))
		w.index()
		want := slices.Clone(before)
		if row.now {
			want = []int{before[0] + 1, before[1] + 1}
		}
		if got := asked(row.header...); !slices.Equal(got, want) {
			t.Errorf("%q: got %v entries of %v, want %v", row.header, got, targets, want)
		}
		w.Pass(time.Second)
	}
}
