package importer_test

import (
	"strings"
	"testing"

	"github.com/commerce-integration/service/pkg/commerce/importer"
)

func TestLinesThatAreNoRecordsCostOnlyThemselves(t *testing.T) {
	long := `{"kind":"product","record":{"name":"` + strings.Repeat("x", 1<<20) + `"}}`
	for _, c := range []struct{ line, want string }{
		{`nonsense`, "malformed_json"},
		{`{"kind":"product"}`, "record must be an object"},
		{`{"kind":"product","record":[]}`, "record must be an object"},
		{`{"record":{}}`, "kind is required"},
		{`{"kind":"product","record":{},"colour":1}`, "colour is not a field of this resource"},
		{`{"kind":"product","record":{},"version":"7"}`, "version must be a whole number of at most 64 bits"},
		{`{"kind":"product","kind":"order","record":{}}`, "kind must be given once"},
		{`{"kind":"product","record":{"a":1,"a":2}}`, "record.a must be given once"},
		{`{"kind":"product","op":"upsert","record":{}}`, "op must be one of put, delete"},
		{"{\"kind\":\"product\",\"record\":{\"name\":\"\xff\"}}", "malformed_json"},
		{long, "too_large: the line is longer than 1 MiB"},
	} {
		t.Run(c.line, func(t *testing.T) {
			text := `{"kind":"product","record":{"id":"a"}}` + "\n" + c.line + "\r\n\n" + `{"kind":"order","record":{"id":"b"}}`
			records, rejected := readAll(t, importer.JSONLines, "", writeFile(t, "x.jsonl", text))
			if len(records) != 2 || records[1].Place.Line != 4 {
				t.Errorf("line %.80s: got %d records, want its neighbours on lines 1 and 4", c.line, len(records))
			}
			if len(rejected) != 1 || rejected[0].Place.String() != "x.jsonl:2" || !strings.Contains(rejected[0].Error(), c.want) {
				t.Errorf("line %.80s: got %v, want %q at x.jsonl:2", c.line, rejected, c.want)
			}
		})
	}
}

func TestLinesOfOneKindAreTheRecordsThemselves(t *testing.T) {
	records, rejected := readAll(t, importer.JSONLines, "customer", writeFile(t, "x.jsonl", "{\"id\":\"a\"}\n[]\n"))
	if len(records) != 1 || records[0].Kind != "customer" || records[0].Op != "put" || string(records[0].Body) != `{"id":"a"}` {
		t.Errorf("got %+v, want the customer", records)
	}
	if len(rejected) != 1 {
		t.Errorf("got %v, want the array rejected", rejected)
	}
}
