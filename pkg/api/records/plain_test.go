package records_test

import (
	"cmp"
	"math/big"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"
	"unicode"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	"golang.org/x/text/cases"
	"golang.org/x/text/unicode/norm"

	"github.com/commerce-integration/service/pkg/auth"
	"github.com/commerce-integration/service/pkg/base/value"
	"github.com/commerce-integration/service/pkg/commerce"
)

// This file answers lists the slow way: record by record, from the JSON that
// is stored and the rules of the API alone. It shares no code with what it
// is compared with.

// letters are those that Unicode keeps apart but people type without.
var letters = strings.NewReplacer("ı", "i", "ø", "o", "ł", "l", "đ", "d", "æ", "ae", "œ", "oe", "ß", "ss")

// plainFold is the form in which texts are compared.
func plainFold(s string) string {
	var b strings.Builder
	for _, r := range norm.NFKD.String(s) {
		if !unicode.Is(unicode.M, r) {
			b.WriteRune(r)
		}
	}
	return letters.Replace(cases.Fold().String(b.String()))
}

// plainRecord is a stored record: its fields as JSON, and what of them is a
// text, a time or a number.
type plainRecord struct {
	id      string
	fields  map[string]jsontext.Value
	texts   map[string]string
	times   map[string]time.Time
	numbers map[string]*big.Rat
	sites   []string
	visible time.Time
	// reference is a product's externalRef, which no field has.
	reference string
	folded    map[string][]string // what fold found before
}

func (w *harness) plainRecord(t testing.TB, s *commerce.Stored) *plainRecord {
	t.Helper()
	r := &plainRecord{
		id: s.ID.String(), reference: s.ExternalRef, texts: map[string]string{}, times: map[string]time.Time{}, numbers: map[string]*big.Rat{},
		folded: map[string][]string{},
	}
	if err := json.Unmarshal(s.Doc, &r.fields); err != nil {
		t.Fatal(err)
	}
	for name, raw := range r.fields {
		switch raw.Kind() {
		case '"':
			var text string
			if err := json.Unmarshal(raw, &text); err != nil {
				t.Fatal(err)
			}
			r.texts[name] = text
			if at, err := time.Parse(time.RFC3339, text); err == nil {
				r.times[name] = at
			}
		case '0':
			r.numbers[name], _ = new(big.Rat).SetString(string(raw))
		}
	}
	for _, id := range s.SiteIDs {
		r.sites = append(r.sites, id.String())
	}
	key := revisionKey{recordKey: recordKey{s.OrganizationID, s.Kind, s.ID}, revision: s.Revision}
	r.visible = w.visible[key].Std()
	return r
}

// known panics on a field that the kind does not have.
func (r *plainRecord) known(field string) {
	if _, exists := r.fields[field]; !exists {
		panic("plain: no field " + field)
	}
}

// text is a field's text; ok is false where it is null.
func (r *plainRecord) text(field string) (text string, ok bool) {
	r.known(field)
	text, ok = r.texts[field]
	return text, ok
}

func (r *plainRecord) time(field string) (at time.Time, ok bool) {
	r.known(field)
	at, ok = r.times[field]
	return at, ok
}

func (r *plainRecord) number(field string) (n *big.Rat, ok bool) {
	r.known(field)
	n, ok = r.numbers[field]
	return n, ok
}

// fold is each value of a field, folded; none where it is null.
func (r *plainRecord) fold(field string) []string {
	if folded, before := r.folded[field]; before {
		return folded
	}
	r.known(field)
	var texts []string
	if text, ok := r.texts[field]; ok {
		texts = []string{text}
	} else if r.fields[field].Kind() == '[' {
		if err := json.Unmarshal(r.fields[field], &texts); err != nil {
			panic(err)
		}
	}
	for i, text := range texts {
		texts[i] = plainFold(text)
	}
	r.folded[field] = texts
	return texts
}

// overdue is the rule of isOverdue.
func (r *plainRecord) overdue(now time.Time) bool {
	kind, _ := r.text("type")
	status, _ := r.text("status")
	due, hasDue := r.time("dueAt")
	owed, _ := r.number("amountDue")
	return kind == "INVOICE" && (status == "ISSUED" || status == "PARTIALLY_PAID") && hasDue && due.Before(now) && owed.Sign() > 0
}

// shape is the JSON that a reader gets.
func (r *plainRecord) shape(kind commerce.Kind, now time.Time) map[string]jsontext.Value {
	if kind != commerce.KindInvoice {
		return r.fields
	}
	shape := map[string]jsontext.Value{}
	for name, v := range r.fields {
		shape[name] = v
	}
	shape["isOverdue"] = jsontext.Value(strconv.FormatBool(r.overdue(now)))
	return shape
}

// plainQuery is what is asked of a list, by whom and when.
type plainQuery struct {
	kind      commerce.Kind
	principal *auth.Principal
	header    string // X-Site-Id; "": not sent
	values    url.Values
	now       time.Time
	under     func(category string) []string // it and all below it
}

// site is the site that is asked for; "" for none.
func (q *plainQuery) site() string { return strings.ToLower(cmp.Or(q.header, q.values.Get("siteId"))) }

// covered are the sites that the answer may be about; nil for all.
func (q *plainQuery) covered() []string {
	if site := q.site(); site != "" {
		return []string{site}
	}
	var sites []string
	for _, id := range q.principal.SiteIDs {
		sites = append(sites, id.String())
	}
	return sites
}

// shows is the rule of sites.
func (q *plainQuery) shows(r *plainRecord) bool {
	sites := q.covered()
	if q.kind == commerce.KindProduct {
		return sites == nil || r.sites == nil || slices.ContainsFunc(r.sites, func(s string) bool { return slices.Contains(sites, s) })
	}
	own, hasSite := r.text("siteId")
	if q.kind == commerce.KindCategory && !hasSite {
		globals := q.site() == ""
		if given := q.values.Get("includeGlobal"); given != "" {
			globals = given == "true"
		}
		return globals
	}
	return sites == nil || hasSite && slices.Contains(sites, own)
}

// showsItem is the rule of sites for one record by its id.
func (q *plainQuery) showsItem(r *plainRecord) bool {
	if q.kind == commerce.KindCategory {
		if _, hasSite := r.text("siteId"); !hasSite {
			return true
		}
	}
	return q.shows(r)
}

// plainFilter says whether a record holds for an argument of a query string.
type plainFilter func(q *plainQuery, r *plainRecord, argument string) bool

func sameID(field string) plainFilter {
	return func(_ *plainQuery, r *plainRecord, argument string) bool {
		id, ok := r.text(field)
		return ok && id == strings.ToLower(argument)
	}
}

func sameFlag(field string) plainFilter {
	return func(_ *plainQuery, r *plainRecord, argument string) bool {
		return string(r.fields[field]) == argument
	}
}

func oneOf(field string) plainFilter {
	return func(_ *plainQuery, r *plainRecord, argument string) bool {
		text, ok := r.text(field)
		return ok && slices.Contains(strings.Split(argument, ","), text)
	}
}

func sameText(field string) plainFilter {
	return func(_ *plainQuery, r *plainRecord, argument string) bool {
		folded := r.fold(field)
		return len(folded) > 0 && folded[0] == plainFold(strings.TrimSpace(argument))
	}
}

func from(field string) plainFilter {
	return func(_ *plainQuery, r *plainRecord, argument string) bool {
		at, ok := r.time(field)
		return ok && !at.Before(plainTime(argument))
	}
}

func to(field string) plainFilter {
	return func(_ *plainQuery, r *plainRecord, argument string) bool {
		at, ok := r.time(field)
		return ok && at.Before(plainTime(argument))
	}
}

func atLeast(field string) plainFilter {
	return func(_ *plainQuery, r *plainRecord, argument string) bool {
		n, ok := r.number(field)
		return ok && n.Cmp(plainNumber(argument)) >= 0
	}
}

func atMost(field string) plainFilter {
	return func(_ *plainQuery, r *plainRecord, argument string) bool {
		n, ok := r.number(field)
		return ok && n.Cmp(plainNumber(argument)) <= 0
	}
}

func plainNumber(argument string) *big.Rat {
	n, ok := new(big.Rat).SetString(argument)
	if !ok {
		panic("plain: no number " + argument)
	}
	return n
}

func plainTime(argument string) time.Time {
	for _, layout := range []string{time.RFC3339, "2006-01-02T15:04:05-0700", time.DateOnly} {
		if at, err := time.Parse(layout, argument); err == nil {
			return at
		}
	}
	panic("plain: no time " + argument)
}

// always is the filter of parameters that are no filters by themselves.
func always(*plainQuery, *plainRecord, string) bool { return true }

// plainFilters are the filters of each kind's list by parameter.
var plainFilters = map[commerce.Kind]map[string]plainFilter{
	commerce.KindProduct: {
		"categoryId": func(q *plainQuery, r *plainRecord, argument string) bool {
			categories := []string{strings.ToLower(argument)}
			if q.values.Get("includeDescendants") == "true" {
				categories = q.under(categories[0])
			}
			category, ok := r.text("categoryId")
			return ok && slices.Contains(categories, category)
		},
		"includeDescendants": always, "brandId": sameID("brandId"), "isActive": sameFlag("isActive"),
		"trackInventory": sameFlag("trackInventory"), "type": oneOf("type"), "sku": sameText("sku"), "barcode": sameText("barcode"),
		"externalRef": func(_ *plainQuery, r *plainRecord, argument string) bool {
			return r.reference != "" && plainFold(r.reference) == plainFold(strings.TrimSpace(argument))
		},
	},
	commerce.KindCategory: {
		"isActive": sameFlag("isActive"), "includeGlobal": always, "slug": sameText("slug"),
		"parentId": func(_ *plainQuery, r *plainRecord, argument string) bool {
			parent, ok := r.text("parentId")
			return argument == "root" && !ok || ok && parent == strings.ToLower(argument)
		},
	},
	commerce.KindOrder: {
		"status": oneOf("status"), "paymentStatus": oneOf("paymentStatus"), "fulfillmentStatus": oneOf("fulfillmentStatus"),
		"customerId": sameID("customerId"), "currency": oneOf("currency"), "orderNumber": sameText("orderNumber"),
		"placedFrom": from("placedAt"), "placedTo": to("placedAt"), "externalRef": sameText("externalRef"),
		"minTotal": atLeast("total"), "maxTotal": atMost("total"),
	},
	commerce.KindCustomer: {
		"type": oneOf("type"), "isActive": sameFlag("isActive"), "email": sameText("email"),
		"customerNumber": sameText("customerNumber"), "externalRef": sameText("externalRef"),
	},
	commerce.KindInvoice: {
		"type": oneOf("type"), "status": oneOf("status"), "customerId": sameID("customerId"), "orderId": sameID("orderId"),
		"isOverdue": func(q *plainQuery, r *plainRecord, argument string) bool {
			return r.overdue(q.now) == (argument == "true")
		},
		"currency": oneOf("currency"), "invoiceNumber": sameText("invoiceNumber"), "externalRef": sameText("externalRef"),
		"issuedFrom": from("issuedAt"), "issuedTo": to("issuedAt"), "dueFrom": from("dueAt"), "dueTo": to("dueAt"),
		"minTotal": atLeast("total"), "maxTotal": atMost("total"),
	},
	commerce.KindStock: {
		"productId": sameID("productId"), "locationRef": sameText("locationRef"),
		"minAvailable": atLeast("available"), "maxAvailable": atMost("available"),
	},
}

// plainShared are the parameters of every list.
var plainShared = map[string]plainFilter{
	"page": always, "limit": always, "orderBy": always, "orderDirection": always, "afterId": always,
	"siteId": always, // by shows
	"search": func(q *plainQuery, r *plainRecord, argument string) bool {
		for _, token := range strings.Fields(argument) {
			token = strings.TrimSpace(plainFold(token))
			if !slices.ContainsFunc(plainSearch[q.kind], func(field string) bool {
				return slices.ContainsFunc(r.fold(field), func(text string) bool { return strings.Contains(text, token) })
			}) && token != "" {
				return false
			}
		}
		return true
	},
	"ids": func(_ *plainQuery, r *plainRecord, argument string) bool {
		return slices.Contains(strings.Split(strings.ToLower(argument), ","), r.id)
	},
	"createdFrom": from("createdAt"), "createdTo": to("createdAt"),
	"updatedFrom": func(_ *plainQuery, r *plainRecord, argument string) bool {
		return !r.visible.Before(plainTime(argument))
	},
	"updatedTo": func(_ *plainQuery, r *plainRecord, argument string) bool {
		return r.visible.Before(plainTime(argument))
	},
}

// plainSearch are the fields that search looks into.
var plainSearch = map[commerce.Kind][]string{
	commerce.KindProduct:  {"name", "sku", "barcode", "tags"},
	commerce.KindCategory: {"name", "slug"},
	commerce.KindOrder:    {"orderNumber", "customerName", "customerEmail"},
	commerce.KindCustomer: {"firstName", "lastName", "companyName", "email", "phone", "customerNumber"},
	commerce.KindInvoice:  {"invoiceNumber", "customerName"},
	commerce.KindStock:    {"locationRef"},
}

// plainOrders are the orders of each list: the default first, and after the
// name what it compares and, with a minus, that it descends by itself.
var plainOrders = map[commerce.Kind][]string{
	commerce.KindProduct:  {"createdAt -time", "updatedAt -time", "name text", "sku text", "sellingPrice -number", "purchasePrice -number"},
	commerce.KindCategory: {"order number", "name text", "createdAt -time", "updatedAt -time"},
	commerce.KindOrder:    {"placedAt -time", "createdAt -time", "updatedAt -time", "total -number", "orderNumber text"},
	commerce.KindCustomer: {"createdAt -time", "updatedAt -time", "lastName text", "totalSpent -number", "ordersCount -number"},
	commerce.KindInvoice:  {"issuedAt -time", "createdAt -time", "updatedAt -time", "dueAt -time", "total -number", "invoiceNumber text"},
	commerce.KindStock:    {"updatedAt -time", "createdAt -time", "available -number", "onHand -number"},
}

func plainFilterOf(kind commerce.Kind, parameter string) (plainFilter, bool) {
	if f, ok := plainFilters[kind][parameter]; ok {
		return f, true
	}
	f, ok := plainShared[parameter]
	return f, ok
}

// holds says whether a record is in the answer, on whichever page.
func (q *plainQuery) holds(r *plainRecord) bool {
	if !q.shows(r) {
		return false
	}
	for name := range q.values {
		filter, ok := plainFilterOf(q.kind, name)
		if !ok {
			panic("plain: no filter " + name)
		}
		if !filter(q, r, q.values.Get(name)) {
			return false
		}
	}
	return true
}

// order is what the answer is ordered by.
func (q *plainQuery) order() (field, class string, desc bool) {
	declared := plainOrders[q.kind][0]
	for _, o := range plainOrders[q.kind] {
		if name, _, _ := strings.Cut(o, " "); name == q.values.Get("orderBy") {
			declared = o
		}
	}
	field, class, _ = strings.Cut(declared, " ")
	class, desc = strings.TrimPrefix(class, "-"), strings.HasPrefix(class, "-")
	switch strings.ToLower(q.values.Get("orderDirection")) {
	case "asc":
		desc = false
	case "desc":
		desc = true
	}
	return field, class, desc
}

// compare orders two records: what is null comes last in both directions.
func (q *plainQuery) compare(a, b *plainRecord) int {
	if q.values.Has("afterId") || q.values.Get("orderBy") == "id" {
		return strings.Compare(a.id, b.id)
	}
	field, class, desc := q.order()
	c, nullA, nullB := 0, false, false
	switch class {
	case "text":
		textsA, textsB := a.fold(field), b.fold(field)
		nullA, nullB = len(textsA) == 0, len(textsB) == 0
		if !nullA && !nullB {
			c = strings.Compare(textsA[0], textsB[0])
		}
	case "number":
		numberA, okA := a.number(field)
		numberB, okB := b.number(field)
		if nullA, nullB = !okA, !okB; okA && okB {
			c = numberA.Cmp(numberB)
		}
	case "time":
		timeA, okA := a.time(field)
		timeB, okB := b.time(field)
		if nullA, nullB = !okA, !okB; okA && okB {
			c = timeA.Compare(timeB)
		}
	}
	if nullA != nullB {
		if nullA {
			return 1
		}
		return -1
	}
	if c = cmp.Or(c, strings.Compare(a.id, b.id)); desc {
		return -c
	}
	return c
}

// plainPage is the answer: the records of the page and all that hold.
type plainPage struct {
	records          []*plainRecord
	page, limit      int
	total, pageCount int
}

func (q *plainQuery) answer(records []*plainRecord) plainPage {
	hits := slices.DeleteFunc(slices.Clone(records), func(r *plainRecord) bool { return !q.holds(r) })
	slices.SortFunc(hits, q.compare)
	p := plainPage{total: len(hits), page: 1, limit: 20}
	if text := q.values.Get("limit"); text != "" {
		p.limit, _ = strconv.Atoi(text)
	}
	if text := q.values.Get("page"); text != "" {
		p.page, _ = strconv.Atoi(text)
	}
	for p.pageCount*p.limit < p.total {
		p.pageCount++
	}
	if after := strings.ToLower(q.values.Get("afterId")); after != "" {
		hits = slices.DeleteFunc(hits, func(r *plainRecord) bool { return r.id <= after })
	}
	first := min((p.page-1)*p.limit, len(hits))
	p.records = hits[first:min(first+p.limit, len(hits))]
	return p
}

// plainUnder follows categories downwards from one of them.
func plainUnder(categories []*plainRecord) func(string) []string {
	return func(root string) []string {
		found := []string{root}
		for i := 0; i < len(found); i++ {
			for _, c := range categories {
				if parent, ok := c.text("parentId"); ok && parent == found[i] && !slices.Contains(found, c.id) {
					found = append(found, c.id)
				}
			}
		}
		return found
	}
}

// plainDeletion is an entry of the list of deletions.
type plainDeletion struct {
	id, kind  string
	deletedAt time.Time
	visible   time.Time
}

// plainDeletions are an organization's tombstones.
func (w *harness) plainDeletions(org value.ID) []plainDeletion {
	var found []plainDeletion
	for key, s := range w.stored {
		if key.org == org && s.Deleted {
			visible := w.visible[revisionKey{recordKey: key, deletions: true, revision: s.Revision}]
			found = append(found, plainDeletion{key.id.String(), string(key.kind), s.Revision.Std(), visible.Std()})
		}
	}
	return found
}
