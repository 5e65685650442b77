package ingest_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/commerce-integration/service/pkg/base/value"
	"github.com/commerce-integration/service/pkg/commerce"
	"github.com/commerce-integration/service/pkg/dynamo"
)

// FuzzHandle ingests a message, and ingests it again. Either time it is done:
// each of its records is stored or refused. The second time changes nothing.
func FuzzHandle(f *testing.F) {
	h := newHarness(f)
	for _, seed := range []string{
		`{"organizationId":"{org}","kind":"product","op":"put","version":7,"siteIds":["{org}"],"record":{"id":"{org}","name":"Sencha 100 g","sellingPrice":9.9}}`,
		`{"organizationId":"{org}","kind":"order","op":"put","record":{"id":"{org}","orderNumber":"A-1","currency":"EUR","items":[{"name":"a","quantity":2,"unitPrice":1e-4}]}}`,
		`{"organizationId":"{org}","records":[{"kind":"category","op":"put","record":{"id":"{org}","name":"a"}},{"kind":"customer","op":"delete","record":{"id":"{org}"}},7]}`,
		`{"organizationId":"{org}","kind":"invoice","op":"put","silent":true,"version":9223372036854775807,"record":{"id":"{org}","currency":"EUR","metadata":{"a":[null]}}}`,
		`{"organizationId":"00000000-0000-0000-0000-000000000000","kind":"product","op":"delete","record":{"id":"{org}"}}`, "[]",
	} {
		f.Add(strings.ReplaceAll(seed, "{org}", "018f0000-0000-7000-8000-000000000001"))
	}
	f.Fuzz(func(t *testing.T, body string) {
		changes, refused := commerce.ParseMessage([]byte(body))
		type record struct {
			kind commerce.Kind
			id   value.ID
		}
		seen := map[record]bool{}
		for _, c := range changes {
			id, err := commerce.Identify(c)
			if err == nil && seen[record{c.Kind, id}] {
				return // the last of one record's changes wins, twice
			}
			seen[record{c.Kind, id}] = true
		}
		first := h.ingest(t, body, changes, len(refused))
		if diff := cmp.Diff(first, h.ingest(t, body, changes, len(refused))); diff != "" {
			t.Fatalf("%s, ingested again:\n%s", body, diff)
		}
	})
}

// ingest handles a message and returns what is stored of its changes then,
// tombstones included. It fails unless the others are refused.
func (f *harness) ingest(t *testing.T, body string, changes []commerce.Change, refused int) (stored []*commerce.Stored) {
	t.Helper()
	f.rejects.got = nil
	f.apply(t, body)
	for _, c := range changes {
		id, err := commerce.Identify(c)
		if err != nil {
			refused++
			continue
		}
		found := f.table.ReadRecords(t.Context(), []dynamo.RecordRef{{OrganizationID: c.OrganizationID, Kind: c.Kind, ID: id}})[0]
		if found.Err != nil {
			t.Fatal(found.Err)
		}
		if stored = append(stored, found.Stored); found.Stored == nil {
			refused++
		}
	}
	if got := len(f.rejects.got); got < refused || got > refused+len(stored) { // a change may be refused of a record that is stored
		t.Fatalf("%s: %d refused, want at least the %d that are not stored", body, got, refused)
	}
	return stored
}
