package commerce

import (
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"testing"

	"github.com/commerce-integration/service/pkg/base/value"
	"github.com/commerce-integration/service/pkg/lists/columnar"
	"pgregory.net/rapid"
)

var (
	siteA = value.MustID("aaaaaaaa-0000-4000-8000-000000000001")
	siteB = value.MustID("bbbbbbbb-0000-4000-8000-000000000002")
	siteC = value.MustID("cccccccc-0000-4000-8000-000000000003")
)

// leastOf are the fields without which a record of a kind is refused.
var leastOf = map[Kind]string{
	KindProduct: `{"name":"n"}`, KindCategory: `{"name":"n"}`, KindOrder: `{"orderNumber":"1","currency":"EUR"}`,
	KindCustomer: `{}`, KindInvoice: `{"currency":"EUR"}`, KindStock: `{"productId":"` + testID.String() + `","onHand":0}`,
}

// shelf is an index of stored records beside the records themselves.
type shelf struct {
	kind   Kind
	view   *columnar.View
	stored map[value.ID]*Stored
	names  map[value.ID]string
	fields Fields
}

func newShelf(kind Kind) *shelf {
	return &shelf{kind: kind, view: columnar.NewView(ListOf(kind).Schema), stored: map[value.ID]*Stored{}, names: map[value.ID]string{}}
}

// add stores a record under a name; its JSON has no id.
func (s *shelf) add(t testing.TB, name, fields string, sites ...value.ID) value.ID {
	t.Helper()
	id := value.DeriveID(testOrg, name)
	record := overlay([]byte(leastOf[s.kind]), `{`+fields+`}`)
	if s.kind != KindStock {
		record = overlay(record, `{"id":"`+id.String()+`"}`)
	}
	c := put(s.kind, string(record))
	if s.kind == KindProduct {
		c.Sites, c.ExternalRef = Sites{Given: true, Value: sites}, Reference{Given: true, Value: "Ref " + name}
	}
	stored := store(t, nil, c, testNow+value.Time(len(s.stored)))
	s.put(t, stored, name)
	return stored.ID
}

func (s *shelf) find(q columnar.Query) (columnar.Result, error) { return s.view.Query(q), nil }

func (s *shelf) put(t testing.TB, stored *Stored, name string) {
	t.Helper()
	doc, err := Document(stored, stored.Revision+1, s.fields)
	if err != nil {
		t.Fatal(err)
	}
	s.view.Apply([]columnar.Document{doc})
	s.stored[stored.ID], s.names[stored.ID] = stored, name
}

// list returns the names on the page that a query string asks for.
func (s *shelf) list(t testing.TB, query string, scope SiteScope) string {
	t.Helper()
	values, err := url.ParseQuery(query)
	if err != nil {
		t.Fatal(err)
	}
	q, err := ListOf(s.kind).Parse(values)
	if err != nil {
		t.Fatalf("%s: %v", query, err)
	}
	if id, ok := q.ID("siteId"); ok {
		scope.Site = &id
	}
	in, err := IndexQuery(s.kind, q, scope, s.find, testNow, s.fields)
	if err != nil {
		t.Fatalf("%s: %v", query, err)
	}
	var names []string
	for _, hit := range s.view.Query(in).Hits {
		names = append(names, s.names[hit.ID])
	}
	return strings.Join(names, " ")
}

type listCase struct {
	query string
	scope SiteScope
	want  string
}

func (s *shelf) check(t *testing.T, cases []listCase) {
	t.Helper()
	for _, tt := range cases {
		if got := s.list(t, tt.query, tt.scope); got != tt.want {
			t.Errorf("%s ?%s as %v:\n got %s\nwant %s", s.kind.Plural(), tt.query, tt.scope.Sites, got, tt.want)
		}
	}
}

func limitedTo(sites ...value.ID) SiteScope { return SiteScope{Sites: sites} }

func TestTheListOfProducts(t *testing.T) {
	s := newShelf(KindProduct)
	category, brand := value.DeriveID(testOrg, "category"), value.DeriveID(testOrg, "brand")
	s.add(t, "everywhere", `"name":"Élan Mug","sku":"M-1","tags":["red cup","blue"],"sellingPrice":5`)
	s.add(t, "inA", `"name":"beer mug","sku":"m-2","barcode":"400","categoryId":"`+category.String()+`","type":"DIGITAL","sellingPrice":10`, siteA)
	s.add(t, "inAB", `"name":"Bowl","brandId":"`+brand.String()+`","isActive":false,"trackInventory":true,"purchasePrice":0`, siteA, siteB)
	s.check(t, []listCase{
		{"orderDirection=asc", SiteScope{}, "everywhere inA inAB"},
		{"", SiteScope{}, "inAB inA everywhere"},
		{"orderBy=name", SiteScope{}, "inA inAB everywhere"},
		{"orderBy=sku", SiteScope{}, "everywhere inA inAB"},
		{"orderBy=sellingPrice", SiteScope{}, "inA everywhere inAB"},
		{"orderBy=purchasePrice&orderDirection=asc&limit=1", SiteScope{}, "inAB"},
		{"siteId=" + siteA.String(), SiteScope{}, "inAB inA everywhere"},
		{"siteId=" + siteB.String(), SiteScope{}, "inAB everywhere"},
		{"siteId=" + siteC.String(), SiteScope{}, "everywhere"},
		{"", limitedTo(siteB, siteC), "inAB everywhere"},
		{"siteId=" + siteB.String(), limitedTo(siteA, siteB), "inAB everywhere"},
		{"categoryId=" + category.String(), SiteScope{}, "inA"},
		{"brandId=" + brand.String(), SiteScope{}, "inAB"},
		{"isActive=false", SiteScope{}, "inAB"},
		{"trackInventory=false", SiteScope{}, "inA everywhere"},
		{"type=DIGITAL,SERVICE", SiteScope{}, "inA"},
		{"type=PHYSICAL", SiteScope{}, "inAB everywhere"},
		{"sku=M-2", SiteScope{}, "inA"},
		{"sku=m", SiteScope{}, ""},
		{"barcode=400", SiteScope{}, "inA"},
		{"externalRef=REF+ina", SiteScope{}, "inA"},
		{"externalRef=ref+in", SiteScope{}, ""},
		{"externalRef=ref+ina", limitedTo(siteB), ""},
		{"search=MUG", SiteScope{}, "inA everywhere"},
		{"search=elan+m-1", SiteScope{}, "everywhere"},
		{"search=cup+blue", SiteScope{}, "everywhere"},
		{"search=cupblue", SiteScope{}, ""},
		{"search=400", SiteScope{}, "inA"},
		{"ids=" + s.idOf("inA").String() + "," + siteA.String(), SiteScope{}, "inA"},
		{"createdFrom=2026-11-21T06:35:41.243Z", SiteScope{}, "inAB inA"},
		{"updatedTo=2026-11-21T06:35:41.244Z", SiteScope{}, "everywhere"}, // visible a millisecond after the change
		{"afterId=00000000-0000-0000-0000-000000000000&limit=3", limitedTo(siteC), "everywhere"},
	})
}

func (s *shelf) idOf(name string) value.ID { return value.DeriveID(testOrg, name) }

func TestTheListOfCategories(t *testing.T) {
	s := newShelf(KindCategory)
	root := s.add(t, "root", `"name":"Root","order":2`)
	s.add(t, "child", `"name":"A child","order":1,"parentId":"`+root.String()+`","siteId":"`+siteA.String()+`"`)
	s.add(t, "other", `"name":"Other","order":3,"isActive":false,"siteId":"`+siteB.String()+`"`)
	s.check(t, []listCase{
		{"", SiteScope{}, "child root other"},
		{"orderBy=order&orderDirection=desc", SiteScope{}, "other root child"},
		{"orderBy=name", SiteScope{}, "child other root"},
		{"includeGlobal=true", SiteScope{}, "child root other"},
		{"includeGlobal=false", SiteScope{}, "child other"},
		{"siteId=" + siteA.String(), SiteScope{}, "child"},
		{"siteId=" + siteA.String() + "&includeGlobal=true", SiteScope{}, "child root"},
		{"siteId=" + siteA.String() + "&includeGlobal=false", SiteScope{}, "child"},
		{"siteId=" + siteC.String(), SiteScope{}, ""},
		{"", limitedTo(siteB), "root other"},
		{"includeGlobal=false", limitedTo(siteB), "other"},
		{"siteId=" + siteB.String(), limitedTo(siteA, siteB), "other"},
		{"parentId=root", SiteScope{}, "root other"},
		{"parentId=" + root.String(), SiteScope{}, "child"},
		{"isActive=true", SiteScope{}, "child root"},
		{"slug=A-Child", SiteScope{}, "child"},
		{"search=child", SiteScope{}, "child"},
	})
}

func TestTheListOfOrders(t *testing.T) {
	s := newShelf(KindOrder)
	s.add(t, "none", `"orderNumber":"N-1","externalRef":"ERP 1","placedAt":"2026-01-03","total":5`)
	s.add(t, "inA", `"orderNumber":"n-2","siteId":"`+siteA.String()+`","status":"COMPLETED","paymentStatus":"PAID","fulfillmentStatus":"SHIPPED",`+
		`"customerId":"`+testID.String()+`","customerName":"Zoë","customerEmail":"Zoe@x.test","currency":"USD","placedAt":"2026-01-01","total":7`)
	s.check(t, []listCase{
		{"", SiteScope{}, "none inA"},
		{"orderBy=total", SiteScope{}, "inA none"},
		{"orderBy=orderNumber", SiteScope{}, "none inA"},
		{"siteId=" + siteA.String(), SiteScope{}, "inA"},
		{"", limitedTo(siteA, siteB), "inA"},
		{"", limitedTo(siteB), ""},
		{"status=COMPLETED,CANCELLED", SiteScope{}, "inA"},
		{"paymentStatus=UNPAID", SiteScope{}, "none"},
		{"fulfillmentStatus=SHIPPED", SiteScope{}, "inA"},
		{"customerId=" + testID.String(), SiteScope{}, "inA"},
		{"currency=EUR", SiteScope{}, "none"},
		{"currency=EUR,USD", SiteScope{}, "none inA"},
		{"orderNumber=N-2", SiteScope{}, "inA"},
		{"externalRef=erp+1", SiteScope{}, "none"},
		{"placedFrom=2026-01-01&placedTo=2026-01-03", SiteScope{}, "inA"},
		{"minTotal=5.0001", SiteScope{}, "inA"},
		{"maxTotal=5", SiteScope{}, "none"},
		{"search=zoe", SiteScope{}, "inA"},
		{"search=zoe%40x.test", SiteScope{}, "inA"},
		{"search=n-+zo", SiteScope{}, "inA"},
	})
}

func TestTheListOfCustomers(t *testing.T) {
	s := newShelf(KindCustomer)
	s.add(t, "ada", `"firstName":"Ada","lastName":"Ångström","email":"Ada@X.test","phone":"+49 30","customerNumber":"C1","totalSpent":9.5,"ordersCount":2`)
	s.add(t, "acme", `"type":"BUSINESS","companyName":"ACME","lastName":"Zeta","isActive":false,"siteId":"`+siteA.String()+`","externalRef":"e"`)
	s.check(t, []listCase{
		{"", SiteScope{}, "acme ada"},
		{"orderBy=lastName", SiteScope{}, "ada acme"},
		{"orderBy=totalSpent", SiteScope{}, "ada acme"},
		{"orderBy=ordersCount&orderDirection=asc", SiteScope{}, "acme ada"},
		{"type=BUSINESS", SiteScope{}, "acme"},
		{"isActive=true", SiteScope{}, "ada"},
		{"email=ada%40x.TEST", SiteScope{}, "ada"},
		{"customerNumber=c1", SiteScope{}, "ada"},
		{"externalRef=E", SiteScope{}, "acme"},
		{"siteId=" + siteA.String(), SiteScope{}, "acme"},
		{"search=angstrom+ada", SiteScope{}, "ada"},
		{"search=acme", SiteScope{}, "acme"},
		{"search=%2B49", SiteScope{}, "ada"},
	})
}

func TestTheListOfStock(t *testing.T) {
	s := newShelf(KindStock)
	other := value.DeriveID(testOrg, "other")
	s.add(t, "berlin", `"locationRef":"Berlin","onHand":5,"reserved":2`)
	s.add(t, "inA", `"siteId":"`+siteA.String()+`","onHand":-1`)
	s.add(t, "other", `"productId":"`+other.String()+`","locationRef":"berlin ost","onHand":8`)
	s.check(t, []listCase{
		{"", SiteScope{}, "other inA berlin"},
		{"orderBy=available", SiteScope{}, "other berlin inA"},
		{"orderBy=onHand&orderDirection=asc", SiteScope{}, "inA berlin other"},
		{"orderBy=createdAt", SiteScope{}, "other inA berlin"},
		{"productId=" + testID.String(), SiteScope{}, "inA berlin"},
		{"locationRef=berlin", SiteScope{}, "berlin"},
		{"search=BERLIN", SiteScope{}, "other berlin"},
		{"maxAvailable=3", SiteScope{}, "inA berlin"},
		{"minAvailable=-0.5&maxAvailable=3", SiteScope{}, "berlin"},
		{"siteId=" + siteA.String(), SiteScope{}, "inA"},
		{"", limitedTo(siteA, siteB), "inA"},
	})
}

func TestTheListOfInvoices(t *testing.T) {
	s := newShelf(KindInvoice)
	s.add(t, "draft", `"customerId":"`+testID.String()+`"`)
	s.add(t, "late", `"status":"ISSUED","invoiceNumber":"R-1","total":5,"issuedAt":"2026-01-01","dueAt":"2026-02-01","customerName":"Zoë"`)
	s.add(t, "open", `"status":"PARTIALLY_PAID","invoiceNumber":"R-2","total":7,"amountPaid":1,"issuedAt":"2026-03-01","dueAt":"2027-02-01","externalRef":"x"`)
	s.add(t, "paid", `"status":"PAID","invoiceNumber":"R-3","total":6,"amountPaid":6,"issuedAt":"2026-02-01","dueAt":"2026-02-01","orderId":"`+testID.String()+`"`)
	s.add(t, "credit", `"type":"CREDIT_NOTE","status":"ISSUED","invoiceNumber":"R-4","currency":"USD","total":1,"issuedAt":"2026-01-15","dueAt":"2026-02-01"`)
	s.check(t, []listCase{
		{"", SiteScope{}, "open paid credit late draft"},
		{"orderDirection=asc", SiteScope{}, "late credit paid open draft"},
		{"orderBy=total", SiteScope{}, "open paid late credit draft"},
		{"orderBy=dueAt&limit=1", SiteScope{}, "open"},
		{"orderBy=invoiceNumber", SiteScope{}, "late open paid credit draft"},
		{"isOverdue=true", SiteScope{}, "late"},
		{"isOverdue=false", SiteScope{}, "open paid credit draft"},
		{"status=ISSUED,PARTIALLY_PAID", SiteScope{}, "open credit late"},
		{"type=CREDIT_NOTE", SiteScope{}, "credit"},
		{"customerId=" + testID.String(), SiteScope{}, "draft"},
		{"orderId=" + testID.String(), SiteScope{}, "paid"},
		{"currency=USD", SiteScope{}, "credit"},
		{"invoiceNumber=r-2", SiteScope{}, "open"},
		{"externalRef=X", SiteScope{}, "open"},
		{"issuedFrom=2026-01-15&issuedTo=2026-02-01", SiteScope{}, "credit"},
		{"dueTo=2026-02-01T00:00:00.001Z", SiteScope{}, "paid credit late"},
		{"minTotal=5&maxTotal=6.0000", SiteScope{}, "paid late"},
		{"minTotal=6&maxTotal=6", SiteScope{}, "paid"},
		{"minTotal=-1&maxTotal=1e0", SiteScope{}, "credit draft"},
		{"search=zoe+r-1", SiteScope{}, "late"},
	})
}

func TestATotalOutsideItsBoundsIsRefused(t *testing.T) {
	for query, want := range map[string]string{
		"minTotal=":                    "minTotal must not be empty",
		"minTotal=cheap":               "must be a number",
		"minTotal=0.00001":             "at most 4 decimals",
		"maxTotal=100000000000":        "must lie between -99999999999.9999 and 99999999999.9999",
		"minTotal=5.0001&maxTotal=5":   "minTotal must not be more than maxTotal",
		"maxTotal=-5&minTotal=-4.9999": "minTotal must not be more than maxTotal",
	} {
		for _, kind := range []Kind{KindOrder, KindInvoice} {
			values, err := url.ParseQuery(query)
			if err != nil {
				t.Fatal(err)
			}
			if _, err := ListOf(kind).Parse(values); err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("%ss?%s: %v, want %q", kind, query, err, want)
			}
		}
	}
}

func TestProductsOfCategoriesBelow(t *testing.T) {
	categories, products := newShelf(KindCategory), newShelf(KindProduct)
	parent := ""
	for _, name := range []string{"top", "middle", "bottom"} {
		id := categories.add(t, name, `"name":"n"`+parent)
		parent = `,"parentId":"` + id.String() + `"`
		products.add(t, "in-"+name, `"categoryId":"`+id.String()+`"`)
	}
	// a cycle: the top below the bottom
	top := store(t, categories.stored[categories.idOf("top")],
		put(KindCategory, `{"id":"`+categories.idOf("top").String()+`","name":"n"`+parent+`}`), testNow)
	for range 2 {
		for from, want := range map[string]string{"top": "in-top in-middle in-bottom", "middle": "in-middle in-bottom", "bottom": "in-bottom"} {
			if categories.stored[top.ID].Revision == top.Revision {
				want = "in-top in-middle in-bottom"
			}
			values := url.Values{"categoryId": {categories.idOf(from).String()}, "includeDescendants": {"true"}, "orderDirection": {"asc"}}
			q, err := ListOf(KindProduct).Parse(values)
			if err != nil {
				t.Fatal(err)
			}
			in, err := IndexQuery(KindProduct, q, SiteScope{}, categories.find, testNow, Fields{})
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			for _, hit := range products.view.Query(in).Hits {
				got = append(got, products.names[hit.ID])
			}
			if strings.Join(got, " ") != want {
				t.Errorf("below %s: %v, want %s", from, got, want)
			}
		}
		categories.put(t, top, "top")
	}

	failed := errors.New("no view")
	q, err := ListOf(KindProduct).Parse(url.Values{"categoryId": {testID.String()}, "includeDescendants": {"true"}})
	if err != nil {
		t.Fatal(err)
	}
	_, err = IndexQuery(KindProduct, q, SiteScope{}, func(columnar.Query) (columnar.Result, error) { return columnar.Result{}, failed }, testNow, Fields{})
	if !errors.Is(err, failed) {
		t.Errorf("the tree cannot be read: %v", err)
	}
}

func TestWhatAListShowsIsShownByIdentifier(t *testing.T) {
	for _, kind := range Kinds() {
		s := newShelf(kind)
		if kind == KindProduct {
			s.add(t, "none", `"name":"n"`)
			s.add(t, "inA", `"name":"n"`, siteA)
			s.add(t, "inAB", `"name":"n"`, siteA, siteB)
		} else {
			s.add(t, "none", `"siteId":null`)
			s.add(t, "inA", `"siteId":"`+siteA.String()+`"`)
			s.add(t, "inB", `"siteId":"`+siteB.String()+`"`)
		}
		for _, scope := range []SiteScope{
			{}, limitedTo(siteA), limitedTo(siteB, siteC), limitedTo(siteC), {Site: &siteA}, {Site: &siteC}, {Site: &siteB, Sites: []value.ID{siteA, siteB}},
		} {
			query := ""
			if kind == KindCategory { // globals are hidden from a site's list, but not from its readers
				query = "includeGlobal=true"
			}
			listed := strings.Fields(s.list(t, query, scope))
			for id, stored := range s.stored {
				shown, err := scope.Shows(stored)
				if err != nil {
					t.Fatal(err)
				}
				if shown != slices.Contains(listed, s.names[id]) {
					t.Errorf("%s %s for %+v: shown %v, listed %v", kind, s.names[id], scope, shown, listed)
				}
			}
		}
	}
}

func TestOverdueInTheIndexIsOverdueInTheShape(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		stored, err := Apply(nil, put(KindInvoice, string(drawMessage(t, KindInvoice))), testNow)
		if err != nil {
			t.Fatal(err)
		}
		doc, err := Document(stored, testNow, Fields{})
		if err != nil {
			t.Fatal(err)
		}
		now := value.Time(rapid.Int64Range(0, 4_000_000_000_000).Draw(t, "now"))
		for _, want := range []bool{true, false} {
			q, err := ListOf(KindInvoice).Parse(url.Values{"isOverdue": {fmt.Sprint(want)}})
			if err != nil {
				t.Fatal(err)
			}
			in, err := IndexQuery(KindInvoice, q, SiteScope{}, nil, now, Fields{})
			if err != nil {
				t.Fatal(err)
			}
			listed := columnar.Match(ListOf(KindInvoice).Schema, in, doc)
			shown := strings.Contains(string(stored.shape(now)), `,"isOverdue":true,"orderId"`)
			if listed != (shown == want) {
				t.Fatalf("isOverdue=%v at %s lists %v, shown %v: %s", want, now, listed, shown, stored.Doc)
			}
		}
	})
}

func TestDeletionsAreListedWhileTheyLast(t *testing.T) {
	view := columnar.NewView(DeletionList().Schema)
	apply := func(s *Stored) { view.Apply([]columnar.Document{DeletionDocument(s, s.Revision)}) }
	list := func(query string) []Deletion {
		values, err := url.ParseQuery(query)
		if err != nil {
			t.Fatal(err)
		}
		q, err := DeletionList().Parse(values)
		if err != nil {
			t.Fatal(err)
		}
		var deletions []Deletion
		for _, hit := range view.Query(q.Index()).Hits {
			d, ok := DeletionOf(hit)
			if !ok {
				t.Fatalf("hit %+v is no deletion", hit)
			}
			deletions = append(deletions, d)
		}
		return deletions
	}
	gone := func(kind Kind, at value.Time) *Stored {
		return &Stored{Kind: kind, ID: testID, OrganizationID: testOrg, Deleted: true, Revision: at}
	}
	apply(gone(KindOrder, testNow))
	apply(gone(KindInvoice, testNow+1))
	if got := list(""); len(got) != 2 || got[0] != (Deletion{testID, KindInvoice, testNow + 1}) || got[1].Kind != KindOrder {
		t.Errorf("both: %+v", got)
	}
	if got := list("kind=order,product"); len(got) != 1 || got[0].Kind != KindOrder {
		t.Errorf("orders: %+v", got)
	}
	if got := list("deletedFrom=2026-11-21T06:35:41.243Z"); len(got) != 1 || got[0].Kind != KindInvoice {
		t.Errorf("from: %+v", got)
	}
	apply(&Stored{Kind: KindOrder, ID: testID, OrganizationID: testOrg, Revision: testNow + 5})
	if got := list(""); len(got) != 1 || got[0].Kind != KindInvoice {
		t.Errorf("after it was created again: %+v", got)
	}
	if _, ok := DeletionOf(columnar.Hit{Sub: 9}); ok {
		t.Error("a hit of no kind is a deletion")
	}
}

func TestADeletedRecordIsATombstoneOfTheIndex(t *testing.T) {
	doc, err := Document(&Stored{Kind: KindProduct, ID: testID, Deleted: true, Revision: 5}, 7, Fields{})
	if err != nil || !doc.Deleted || doc.ID != [16]byte(testID) || doc.Revision != 5 || doc.Visible != 7 {
		t.Errorf("%+v, %v", doc, err)
	}
	if _, err := Document(&Stored{Kind: KindProduct, ID: testID, Doc: []byte(`{`)}, 7, Fields{}); err == nil {
		t.Error("a broken document is indexed")
	}
}
