package importer_test

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/commerce-integration/service/pkg/commerce"
	"github.com/commerce-integration/service/pkg/commerce/importer"
)

func writeFile(t *testing.T, name, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestCSVCellsBecomeWhatTheShapeHas(t *testing.T) {
	for _, c := range []struct {
		kind         commerce.Kind
		header, row  string
		want, reject string
	}{
		{"product", "sku", "00123", `{"sku":"00123"}`, ""},
		{"product", "name", ` "A ""mug"", blue" `, "", `malformed_csv: bare " in non-quoted-field`},
		{"product", "name", `"A ""mug"", blue"`, `{"name":"A \"mug\", blue"}`, ""},
		{"product", "sellingPrice", "12.50", `{"sellingPrice":12.5}`, ""},
		{"product", "sellingPrice", "1e2", `{"sellingPrice":100}`, ""},
		{"product", "sellingPrice", `"12,50"`, "", "sellingPrice must be a number"},
		{"product", "sellingPrice", "0.00001", "", "sellingPrice must have at most 4 decimals"},
		{"product", "isActive", "TRUE", `{"isActive":true}`, ""},
		{"product", "isActive", "yes", "", "isActive must be true or false"},
		{"product", "shelfLifeDays", "30", `{"shelfLifeDays":30}`, ""},
		{"product", "tags", "a; b;;a", `{"tags":["a","b"]}`, ""},
		{"product", "tags", `"[""a;b"",""c""]"`, `{"tags":["a;b","c"]}`, ""},
		{"product", "tags", `"[""a"""`, "", "tags must be valid JSON"},
		{"product", "attributes", `"{""weight"": 12}"`, `{"attributes":{"weight": 12}}`, ""},
		{"product", "attributes", "heavy", "", "attributes must be a JSON object, or have a column for each of its fields"},
		{"product", "attributes.weight,attributes.colour", "12,red", `{"attributes":{"weight":"12","colour":"red"}}`, ""},
		{"product", "attributes,attributes.colour", `"{""weight"":12}",red`, `{"attributes":{"weight":12,"colour":"red"}}`, ""},
		{"product", "attributes.colour,attributes", `red,"{""weight"":12}"`, "", "attributes overlaps with another column of this row"},
		{"product", "id,sku", ",", "", "the row is empty"},
		{"product", "id,sku", "1", "", "malformed_csv: the row has 1 fields, the header 2"},
		{"order", "items[0].sku,items[0].quantity,items[1].sku", "A,2,B", `{"items":[{"sku":"A","quantity":2},{"sku":"B"}]}`, ""},
		{"order", "items[0].sku,items[1].sku", "A,", `{"items":[{"sku":"A"}]}`, ""},
		{"order", "items[0].sku,items[1].sku", ",B", "", "a list has an empty entry before another"},
		{"order", "items", `"[{""sku"":""A""}]"`, `{"items":[{"sku":"A"}]}`, ""},
		{"order", "items", "A;B", "", "items must be a JSON array, or have a column for each entry's fields"},
		{"order", "billingAddress.city,billingAddress.country", "Köln,DE", `{"billingAddress":{"city":"Köln","country":"DE"}}`, ""},
		{"order", "couponCodes[0],couponCodes[1]", "A,B", `{"couponCodes":["A","B"]}`, ""},
		{"order", "placedAt", "2026-11-21", `{"placedAt":"2026-11-21"}`, ""},
		{"customer", "addresses[0].line1,addresses[0].country", "High St 1,GB", `{"addresses":[{"line1":"High St 1","country":"GB"}]}`, ""},
		{"invoice", "lines[0].description,lines[0].unitPrice", "Mug,1.10", `{"lines":[{"description":"Mug","unitPrice":1.1}]}`, ""},
		{"category", "name,order", "Mugs,7", `{"name":"Mugs","order":7}`, ""},
	} {
		t.Run(fmt.Sprintf("%v_%v_%v", c.kind, c.header, c.row), func(t *testing.T) {
			if !strings.HasPrefix(c.header, "id") {
				c.header, c.row, c.want = "id,"+c.header, "1,"+c.row, strings.Replace(c.want, "{", `{"id":"1",`, 1)
			}
			path := writeFile(t, "x.csv", c.header+"\n"+c.row+"\n")
			records, rejected := readAll(t, importer.CSV, c.kind, path)
			switch {
			case c.want != "" && (len(records) != 1 || canonical(records[0].Body) != canonical([]byte(c.want))):
				t.Errorf("%s %s = %s: got %v %v, want %s", c.kind, c.header, c.row, records, rejected, c.want)
			case c.reject != "" && (len(rejected) != 1 || !strings.HasSuffix(rejected[0].Error(), c.reject)):
				t.Errorf("%s %s = %s: got %v %v, want the rejection %q", c.kind, c.header, c.row, records, rejected, c.reject)
			}
		})
	}
}

// canonical writes the members of objects in one order.
func canonical(text jsontext.Value) string {
	text = slices.Clone(text)
	_ = text.Canonicalize() // what is no JSON differs from all that is
	return string(text)
}

func TestCSVColumnsOfTheEnvelope(t *testing.T) {
	path := writeFile(t, "x.csv", "\ufeffid,op,version,siteIds\n1,delete,7,\n2,,,a;b\n3,,,[]\n4,remove,,\n5,,1.5,\n")
	records, rejected := readAll(t, importer.CSV, "product", path)
	if len(records) != 3 || len(rejected) != 2 {
		t.Fatalf("got %d records and %v, want 3 and 2 rejections", len(records), rejected)
	}
	if r := records[0]; r.Op != commerce.OpDelete || r.Version == nil || *r.Version != 7 || r.SiteIDs != nil {
		t.Errorf("first row: got %+v, want a delete of version 7", r)
	}
	for i, want := range []string{`["a","b"]`, `[]`} {
		if got := string(records[i+1].SiteIDs); got != want {
			t.Errorf("sites of row %d: got %s, want %s", i+2, got, want)
		}
	}
	for i, want := range []string{
		"x.csv:5: validation_failed: op must be one of put, delete, adjust",
		"x.csv:6: validation_failed: version must be a whole number of at most 64 bits",
	} {
		if got := rejected[i].Error(); got != want {
			t.Errorf("rejection %d: got %s, want %s", i, got, want)
		}
	}
}

func TestCSVReferenceOfAProductStandsBesideTheRecord(t *testing.T) {
	path := writeFile(t, "x.csv", "id,externalRef\n1,E-7\n2,\n")
	products, _ := readAll(t, importer.CSV, "product", path)
	customers, _ := readAll(t, importer.CSV, "customer", path)
	if string(products[0].ExternalRef) != `"E-7"` || products[1].ExternalRef != nil || string(products[0].Body) != `{"id":"1"}` {
		t.Errorf("got the products %+v", products)
	}
	if customers[0].ExternalRef != nil || !strings.Contains(string(customers[0].Body), `"externalRef":"E-7"`) {
		t.Errorf("got the customer %s", customers[0].Body)
	}
}

func TestCSVCellsOfRefusedRowsLoseTheGuardFromFormulas(t *testing.T) {
	for header, want := range map[string]string{"id,name,refused": "-5 degrees", "id,name,note": "'-5 degrees"} {
		source, err := importer.Open(importer.CSV, "product", []string{writeFile(t, "x.csv", header+"\n1,'-5 degrees,x\n")})
		if err != nil {
			t.Fatal(err)
		}
		source.Mapping = &importer.Mapping{Kind: "product", Columns: map[string]string{"id": "id", "name": "name"}}
		records, _ := readSource(t, source)
		if len(records) != 1 || !strings.Contains(string(records[0].Body), `"name":"`+want+`"`) {
			t.Errorf("%s: got %+v, want %s", header, records, want)
		}
	}
}

func TestCSVCellsThatAreNotUTF8AreReadAsWindows1252(t *testing.T) {
	source, err := importer.Open(importer.CSV, "product", []string{writeFile(t, "x.csv", "id,name\n1,K\xfcche \x80\n")})
	if err != nil {
		t.Fatal(err)
	}
	var warned []string
	source.Warn = func(place importer.Place, message string) { warned = append(warned, place.String()+": "+message) }
	for record, err := range source.Records() {
		if err != nil || !strings.Contains(string(record.Body), `"name":"Küche €"`) {
			t.Errorf("got %s, %v", record.Body, err)
		}
	}
	if want := []string{`x.csv:2: name is not UTF-8, and read as Windows-1252: "Küche €"`}; !slices.Equal(warned, want) {
		t.Errorf("warned %q, want %q", warned, want)
	}
}

func TestCSVPlacesAreLinesOfTheFile(t *testing.T) {
	path := writeFile(t, "x.csv", "id,description\n1,\"two\nlines\"\n2,x\n")
	records, _ := readAll(t, importer.CSV, "product", path)
	if len(records) != 2 || records[1].Place.String() != "x.csv:4" {
		t.Errorf("got %+v, want the second record on line 4", records)
	}
}

func TestCSVHeadersThatCannotBeRead(t *testing.T) {
	for _, c := range []struct {
		kind         commerce.Kind
		header, want string
	}{
		{"product", "", "the file is empty"},
		{"product", "id,id", `column "id" is there twice`},
		{"product", "colour", `column "colour": unknown field "colour"`},
		{"product", "name.first", `column "name.first": name must be a string`},
		{"product", "name[0]", `column "name[0]": name must be a string`},
		{"product", "tags[1000]", "a position is written [0] to [999]"},
		{"product", "tags[-1]", "a position is written [0] to [999]"},
		{"product", "tags[0", "a position is written [0] to [999]"},
		{"order", "items[0].colour", `unknown field "items[0].colour"`},
	} {
		t.Run(fmt.Sprintf("%v_%v", c.kind, c.header), func(t *testing.T) {
			path := writeFile(t, "x.csv", c.header)
			source, err := importer.Open(importer.CSV, c.kind, []string{path})
			if err != nil {
				t.Fatal(err)
			}
			for _, err = range source.Records() {
				if err != nil {
					break
				}
			}
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("header %q: got %v, want %q", c.header, err, c.want)
			}
		})
	}
}
