package commerce

import (
	"reflect"
	"slices"
	"testing"

	"github.com/commerce-integration/service/pkg/base/value"
	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	"pgregory.net/rapid"
)

var (
	testOrg  = value.MustID("0192f0c1-7a3e-7c54-9f3b-6c2a4d8e1f00")
	testSite = value.MustID("0192f0c1-9d4f-7b33-8c6e-73b2c4d5e6f7")
	testID   = value.MustID("0192f0c2-1b7d-7e11-8a4c-51f0a2b3c4d5")
)

const testNow value.Time = 1_795_242_941_242 // 2026-11-21T06:35:41.242Z

// exampleRecords are those of the catalogue, by kind.
var exampleRecords = func() map[Kind]string {
	records := map[Kind]string{}
	for _, d := range kinds {
		records[d.kind] = d.sample
	}
	return records
}()

// put is a versionless put of a record's JSON.
func put(kind Kind, record string) Change {
	return Change{Kind: kind, Op: OpPut, OrganizationID: testOrg, Record: jsontext.Value(record)}
}

// store applies a change that must be stored.
func store(t testing.TB, old *Stored, c Change, now value.Time) *Stored {
	t.Helper()
	next, err := Apply(old, c, now)
	if err != nil || next == nil {
		t.Fatalf("Apply(%s %s) = %v, %v; want something to store", c.Op, c.Record, next, err)
	}
	return next
}

// fill draws a value for anything that a record's shape holds. Optional
// parts are sometimes null.
func fill(t *rapid.T, v reflect.Value, name string) {
	switch p := v.Addr().Interface().(type) {
	case *value.ID:
		*p = value.ID(rapid.SliceOfN(rapid.Byte(), 16, 16).Draw(t, name))
		p[0] |= 1
	case *value.Time:
		*p = value.Time(rapid.Int64Range(0, 4_000_000_000_000).Draw(t, name))
	case *value.Amount:
		least, most := int64(-100_000_0000), int64(100_000_0000)
		switch name {
		case "taxRate":
			least, most = 0, 1_000_0000
		case "purchasePrice", "sellingPrice", "minStockLevel", "maxStockLevel", "reorderPoint", "quantity", "unitPrice", "fulfilledQuantity", "refundedQuantity", "reserved":
			least = 0
		}
		*p = value.Amount(rapid.Int64Range(least, most).Draw(t, name))
	case *Currency:
		*p = Currency(rapid.SampledFrom([]string{"EUR", "USD", "JPY", "HRK"}).Draw(t, name))
	case *Country:
		*p = Country(rapid.SampledFrom([]string{"DE", "US", "JP"}).Draw(t, name))
	case *jsontext.Value:
		*p = freeFormText(t, name)
	case interface{ Values() []string }:
		v.SetString(rapid.SampledFrom(p.Values()).Draw(t, name))
	default:
		fillPlain(t, v, name)
	}
}

func fillPlain(t *rapid.T, v reflect.Value, name string) {
	switch v.Kind() {
	case reflect.String:
		v.SetString(words(t, name))
	case reflect.Bool:
		v.SetBool(rapid.Bool().Draw(t, name))
	case reflect.Int64:
		v.SetInt(rapid.Int64().Draw(t, name))
	case reflect.Pointer:
		if rapid.Bool().Draw(t, name+"?") {
			v.Set(reflect.New(v.Type().Elem()))
			fill(t, v.Elem(), name)
		}
	case reflect.Slice:
		v.Set(reflect.MakeSlice(v.Type(), rapid.IntRange(0, 3).Draw(t, name+"#"), 3))
		for i := range v.Len() {
			fill(t, v.Index(i), name)
		}
	case reflect.Struct:
		for i := range v.NumField() {
			fill(t, v.Field(i), v.Type().Field(i).Tag.Get("json"))
		}
	default:
		t.Fatalf("%s: no way to draw a %s", name, v.Type())
	}
}

func words(t *rapid.T, name string) string {
	return rapid.SampledFrom([]string{
		"plain", "two words", `quote " and \ slash`, "tab\tand\nline", "ünïcödé 中文 🙂", `,"isOverdue":false`, `"}],"status":"PAID`,
		"a\u2028b", "<a&b>", "{}", "null", "-",
	}).Draw(t, name)
}

func freeFormText(t *rapid.T, name string) jsontext.Value {
	return jsontext.Value(rapid.SampledFrom([]string{
		`{}`, `{"b":1,"a":[true,null,{"z":"x","y":1e300}]}`, `{"n":12345678901234567890.123456789}`, `{"\u00e9":"\u0041\/"}`,
		`{ "isOverdue" : false, "status":"ISSUED","dueAt":"1999-01-01T00:00:00.000Z","updatedAt":"x"}`,
	}).Draw(t, name))
}

// head is what every kind's shape has.
type head struct {
	ID, OrganizationID value.ID
	SiteID             *value.ID
	UpdatedAt          value.Time
}

func headOf(record any) (h head) {
	to, from := reflect.ValueOf(&h).Elem(), reflect.ValueOf(record).Elem()
	for i := range to.NumField() {
		if f := from.FieldByName(to.Type().Field(i).Name); f.IsValid() {
			to.Field(i).Set(f)
		}
	}
	return h
}

// drawRecord draws a complete record of the organization in GET shape.
func drawRecord(t *rapid.T, kind Kind) any {
	r := New(kind)
	v := reflect.ValueOf(r).Elem()
	fill(t, v, "")
	v.FieldByName("OrganizationID").Set(reflect.ValueOf(testOrg))
	v.FieldByName("ID").Set(reflect.ValueOf(testID))
	if s, ok := r.(*Stock); ok {
		s.ID = StockID(testOrg, s.ProductID, s.SiteID, s.LocationRef)
	}
	return r
}

// drawMessage draws the record of a put: a record in GET shape, of which
// fields that may be absent are sometimes left out.
func drawMessage(t *rapid.T, kind Kind) jsontext.Value {
	doc, err := Encode(drawRecord(t, kind))
	if err != nil {
		t.Fatal(err)
	}
	if kind == KindInvoice { // a number, unless it is a draft
		doc = overlay(doc, `{"invoiceNumber":"R-1"}`)
	}
	keep := []string{"id", "name", "description", "invoiceNumber", "quantity", "unitPrice", "locationRef"} // some of them of lines
	if kind == KindStock {
		keep = append(keep, "siteId")
	}
	fields, err := splitObject([]byte(leastOf[kind]))
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range fields {
		keep = append(keep, m.name)
	}
	return thin(t, doc, keep...)
}

// thin leaves out some members of an object and of the objects in it.
func thin(t *rapid.T, v jsontext.Value, keep ...string) jsontext.Value {
	switch v.Kind() {
	case '{':
		fields, err := splitObject(v)
		if err != nil {
			t.Fatal(err)
		}
		out := map[string]jsontext.Value{}
		for _, m := range fields {
			if slices.Contains(keep, m.name) || rapid.IntRange(0, 3).Draw(t, m.name+" kept") > 0 {
				out[m.name] = m.value
				if m.name != "attributes" && m.name != "metadata" {
					out[m.name] = thin(t, m.value, keep...)
				}
			}
		}
		return encode(t, out)
	case '[':
		elements, err := splitArray(v)
		if err != nil {
			t.Fatal(err)
		}
		out := []jsontext.Value{}
		for _, e := range elements {
			out = append(out, thin(t, e.value, keep...))
		}
		return encode(t, out)
	}
	return v
}

func encode(t *rapid.T, v any) jsontext.Value {
	b, err := json.Marshal(v, json.Deterministic(true))
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// eachKind runs a property for every kind of record.
func eachKind(t *testing.T, property func(t *rapid.T, kind Kind)) {
	t.Helper()
	for _, kind := range Kinds() {
		t.Run(string(kind), func(t *testing.T) {
			t.Parallel()
			rapid.Check(t, func(t *rapid.T) { property(t, kind) })
		})
	}
}
