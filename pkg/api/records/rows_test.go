package records_test

import (
	"bytes"
	"encoding/csv"
	"fmt"
	"math/rand/v2"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/commerce-integration/service/pkg/auth"
	"github.com/commerce-integration/service/pkg/base/value"
	"github.com/commerce-integration/service/pkg/commerce"
)

const (
	ndjsonType = "application/x-ndjson"
	csvType    = "text/csv"
)

// table reads CSV, whose every row must have the columns of its first one.
func (a answer) table(t tester) [][]string {
	t.Helper()
	rows, err := csv.NewReader(bytes.NewReader(a.body)).ReadAll()
	if err != nil || len(rows) == 0 {
		t.Fatalf("%s: %s: %v", a.asked, a.body, err)
	}
	return rows
}

func TestTheColumnsOfCSVAreStable(t *testing.T) {
	api := newShelf().serve()
	for path, want := range map[string]string{
		"/api/products?orderBy=id": "id,organizationId,name,description,type,sku,barcode,categoryId,brandId,unit,purchasePrice,sellingPrice," +
			"taxRate,isActive,trackInventory,minStockLevel,maxStockLevel,reorderPoint,isPerishable,shelfLifeDays,createdAt,updatedAt,images,attributes,tags",
		"/api/categories?orderBy=id": "id,organizationId,siteId,name,description,slug,parentId,isActive,image,order,createdAt,updatedAt",
		"/api/deletions?orderBy=id":  "id,kind,deletedAt",
		"/api/changes":               "kind,op,id,changedAt,cursor,object",
	} {
		if a := ask(t, api, user(), path, "Accept", csvType); string(a.body) != want+"\r\n" {
			t.Errorf("%s: got %d %s, want %s", path, a.status, a.body, want)
		}
	}
}

func TestNoCellOfCSVIsAFormula(t *testing.T) {
	s := newShelf()
	for n, tt := range []struct{ name, cell string }{
		{"plain", "plain"},
		{`with "quotes", commas`, `with "quotes", commas`},
		{"=1+1", "'=1+1"},
		{"+43 1", "'+43 1"},
		{"-x", "'-x"},
		{"@SUM(A1)", "'@SUM(A1)"},
		{"＝1", "'＝1"},
		{"a\nb", "a\nb"},
		{"Zoë \u2028 😀", "Zoë \u2028 😀"},
	} {
		s.put(t, commerce.KindProduct, map[string]any{
			"id": numbered(n), "name": tt.name, "description": "=" + tt.name, "sku": "", "sellingPrice": 2.5, "attributes": map[string]any{"=a": "x\ny"}, "tags": []string{"=1"},
		})
		a := ask(t, s.serve(), user(), "/api/products?orderBy=id&ids="+numbered(n).String(), "Accept", csvType)
		row := map[string]string{}
		for i, column := range a.table(t)[0] {
			row[column] = a.table(t)[1][i]
		}
		got := []string{row["name"], row["description"], row["sellingPrice"], row["taxRate"], row["attributes"], row["tags"]}
		if want := []string{tt.cell, "'=" + tt.name, "2.5", "", `{"=a":"x\ny"}`, `["=1"]`}; !slices.Equal(got, want) {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}

func TestAcceptChoosesTheMediaType(t *testing.T) {
	api := newShelf().serve()
	const jsonType, none = "application/json", ""
	for _, tt := range []struct{ accept, walk, page string }{
		{"", jsonType, jsonType},
		{"*/*", jsonType, jsonType},
		{"text/html, */*;q=0.1", jsonType, jsonType},
		{"application/json, text/csv", jsonType, jsonType},
		{"application/*", jsonType, jsonType},
		{"text/csv", csvType, none},
		{"TEXT/CSV; charset=utf-8", csvType, none},
		{"text/*", csvType, none},
		{"application/x-ndjson", ndjsonType, none},
		{"application/json;q=0.5, text/csv;q=0.8, application/x-ndjson;q=0.9", ndjsonType, jsonType},
		{"application/json;q=0.5, text/csv", csvType, jsonType},
		{"*/*, application/json;q=0", ndjsonType, none},
		{"text/csv;q=0, */*;q=0.5", jsonType, jsonType},
		{"text/csv;q=x", none, none},
		{"text/html", none, none},
	} {
		for path, want := range map[string]string{
			"/api/products?orderBy=id": tt.walk, "/api/deletions?afterId=" + numbered(1).String(): tt.walk, "/api/changes": tt.walk,
			"/api/products": tt.page, "/api/deletions?orderBy=deletedAt": tt.page, "/api/orders?search=x": tt.page,
		} {
			a := ask(t, api, user(), path, "Accept", tt.accept)
			got, _, _ := strings.Cut(a.header.Get("Content-Type"), ";")
			if a.status == http.StatusNotAcceptable && strings.Contains(a.problem(t).Message, "text/csv") {
				got = none
			}
			if got != want || !strings.Contains(a.header.Get("Vary"), "Accept,") {
				t.Errorf("%s: got %d %s, want %s", a.asked, a.status, got, want)
			}
		}
	}
	if a := ask(t, api, user(), "/api/me", "Accept", csvType); a.status != http.StatusNotAcceptable {
		t.Errorf("%s: got %d, want 406", a.asked, a.status)
	}
}

// Records of all sizes, of what becomes longest in CSV and in Lambda's JSON.
func TestAWalkInRowsHasEachRecordOnce(t *testing.T) {
	random, fillers := rand.New(rand.NewPCG(7, 8)), []string{"xxxx", `\"\\`, "x\u2028", `\n\t`}
	s := newShelf()
	var want []string
	for n := range 600 {
		id, size := numbered(n+1), []int{1, 1 << 10, 30 << 10, 127 << 10}[random.IntN(4)]
		want = append(want, id.String())
		s.put(t, commerce.KindProduct, map[string]any{"id": id, "name": "p", "description": "-", "attributes": map[string]any{"a": "-"}})
		s.enlarge(id, []string{`"description":"-"`, `"a":"-"`}[n%2], []string{`"description":"`, `"a":"`}[n%2]+strings.Repeat(fillers[random.IntN(4)], size/4)+`"`)
	}
	api := s.serve()
	for _, accept := range []string{ndjsonType, csvType} {
		var got []string
		follow(t, api, user(), "/api/products?orderBy=id&limit=1000", accept, func(a answer) {
			if len(a.body) > 5632<<10 || carried(t, a.body) > 6<<20 {
				t.Errorf("%s: %d bytes, carried in %d", a.asked, len(a.body), carried(t, a.body))
			}
			if accept == csvType {
				for _, row := range a.table(t)[1:] {
					got = append(got, row[0])
				}
				return
			}
			for line := range bytes.Lines(a.body) {
				var record struct{ ID value.ID }
				if err := json.Unmarshal(line, &record, json.MatchCaseInsensitiveNames(true)); err != nil {
					t.Fatal(err)
				}
				got = append(got, record.ID.String())
			}
		})
		if !slices.Equal(got, want) {
			t.Errorf("%s: got %d records, want %d in order", accept, len(got), len(want))
		}
	}
}

// What is there from the beginning to the end comes once, whatever changes.
func TestChangesDoNotDisturbAWalkInRows(t *testing.T) {
	w := newHarness(t, present)
	w.fill(40)
	w.settle()
	random, api := rand.New(rand.NewPCG(9, 10)), w.serve()
	var got []string
	follow(t, api, user(), "/api/products?orderBy=id&limit=3", ndjsonType, func(a answer) {
		for line := range bytes.Lines(a.body) {
			got = append(got, string(line[7:7+36]))
		}
		n := random.IntN(40)
		if n%5 == 0 {
			w.remove(commerce.KindProduct, numbered(n+1))
		} else {
			w.put(commerce.KindProduct, map[string]any{"id": numbered(n + 1), "name": a.asked})
		}
		if n%2 == 0 {
			w.settle()
		}
	})
	if !slices.IsSorted(got) || len(slices.Compact(slices.Clone(got))) != len(got) {
		t.Errorf("got %v, want each record once, in order", got)
	}
	for n := range 40 {
		if id := numbered(n + 1).String(); n%5 != 0 && !slices.Contains(got, id) {
			t.Errorf("the walk lacks %s", id)
		}
	}
}

func TestRowsHaveAnEntityTagAndTheTimeToGoOnFrom(t *testing.T) {
	w := newHarness(t, present)
	w.fill(3)
	w.remove(commerce.KindProduct, numbered(3))
	w.settle()
	api := w.serve()
	for _, path := range []string{"/api/products?orderBy=id&limit=1", "/api/deletions?orderBy=id"} {
		tags := map[string]bool{}
		for _, accept := range []string{"application/json", ndjsonType, csvType} {
			a := ask(t, api, user(), path, "Accept", accept)
			tags[a.header.Get("ETag")] = true
			if same := ask(t, api, user(), path, "Accept", accept, "If-None-Match", a.header.Get("ETag")); same.status != http.StatusNotModified {
				t.Errorf("%s: got %d, want 304", same.asked, same.status)
			}
			if head := send(t, api, user(), http.MethodHead, path, "Accept", accept); head.header.Get("ETag") != a.header.Get("ETag") || a.header.Get("X-Sync-From") == "" {
				t.Errorf("%s: got %v, HEAD %v", a.asked, a.header, head.header)
			}
		}
		if len(tags) != 3 {
			t.Errorf("%s: got the tags %v, want one for each media type", path, tags)
		}
	}
	for _, p := range []*auth.Principal{of(theirs, user()), narrowed(user(), auth.OrdersRead)} {
		if a := ask(t, api, p, "/api/products?orderBy=id", "Accept", ndjsonType); a.status == http.StatusOK && len(a.body) > 0 || bytes.Contains(a.body, []byte("p001")) {
			t.Errorf("%s: got %d %s", a.asked, a.status, a.body)
		}
	}
}

func TestEachChangeHasACursor(t *testing.T) {
	w := newHarness(t, present)
	for n := range 6 { // of each id a product and an order
		w.least(ours, commerce.KindProduct, numbered(n+1))
		w.least(ours, commerce.KindOrder, numbered(n+1))
	}
	for n := range 4 {
		w.remove(commerce.KindProduct, numbered(n+1))
		w.remove(commerce.KindOrder, numbered(n+1))
	}
	w.settle()
	api := w.serve()
	all := ask(t, api, user(), feedPath).changes(t)
	cursors := []string{}
	for i, change := range all.Data {
		cursors = append(cursors, change.Cursor)
		rest := all.Data[i+1:]
		if i+1 < len(all.Data) && all.Data[i+1].ID == change.ID && commerce.Op(change.Op) == commerce.OpDelete {
			rest = all.Data[i:] // deletions of one id stay together
		}
		var want, got []string
		for _, c := range rest {
			want = append(want, fmt.Sprint(c.Kind, c.ID))
		}
		for after := change.Cursor; len(got) < len(want); {
			page := ask(t, api, user(), feedPath+"?limit=2&after="+after).changes(t)
			for _, c := range page.Data {
				got = append(got, fmt.Sprint(c.Kind, c.ID))
			}
			if after = page.Meta.Next; len(page.Data) > 0 && page.Data[len(page.Data)-1].Cursor <= change.Cursor {
				t.Errorf("the cursor %s is not after %s", after, change.Cursor)
			}
			if !page.Meta.More {
				break
			}
		}
		if !slices.Equal(got, want) {
			t.Errorf("behind change %d: got %v, want %v", i, got, want)
		}
	}
	if len(cursors) != 12 || !slices.IsSorted(cursors) {
		t.Errorf("got %d cursors, want 12 in order: %v", len(cursors), cursors)
	}
}

func TestTheFeedAnswersRows(t *testing.T) {
	w := newHarness(t, present)
	w.fill(5)
	w.remove(commerce.KindProduct, numbered(2))
	w.settle()
	api := w.serve()
	var want []string
	for _, change := range ask(t, api, user(), feedPath).changes(t).Data {
		want = append(want, change.Cursor)
	}
	var lines, cells []string
	follow(t, api, user(), feedPath+"?limit=2", ndjsonType, func(a answer) {
		for line := range bytes.Lines(a.body) {
			var change struct {
				Object jsontext.Value `json:"object"`
				Cursor string         `json:"cursor"`
			}
			if err := json.Unmarshal(line, &change); err != nil {
				t.Fatal(err)
			}
			lines = append(lines, change.Cursor)
		}
	})
	follow(t, api, user(), feedPath+"?limit=2", csvType, func(a answer) {
		for _, row := range a.table(t)[1:] {
			cells = append(cells, row[4])
		}
	})
	if len(want) != 5 || !slices.Equal(lines, want) || !slices.Equal(cells, want) {
		t.Errorf("got the cursors %v as lines and %v as CSV, want %v", lines, cells, want)
	}
	now := ask(t, api, user(), feedPath+"?after=now", "Accept", csvType)
	if a := ask(t, api, user(), feedPath+"?after="+now.header.Get("X-Next-Cursor"), "Accept", ndjsonType); a.status != http.StatusOK || len(a.body) > 0 || linkTo(a, "next") != "" {
		t.Errorf("from now: got %d %s %v, want nothing", a.status, a.body, a.header)
	}
}
