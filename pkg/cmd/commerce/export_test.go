package main

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/commerce-integration/service/pkg/base/value"
	"github.com/commerce-integration/service/pkg/commerce"
	"github.com/commerce-integration/service/pkg/dynamo"
)

// apply stores what a message makes of a record, as ingest does.
func (s *tableHarness) apply(t *testing.T, message string) *commerce.Stored {
	t.Helper()
	changes, refusals := commerce.ParseMessage([]byte(message))
	if len(refusals) > 0 {
		t.Fatalf("%s: %+v", message, refusals)
	}
	id, err := commerce.Identify(changes[0])
	if err != nil {
		t.Fatal(err)
	}
	found := s.table.ReadRecords(t.Context(), []dynamo.RecordRef{{OrganizationID: changes[0].OrganizationID, Kind: changes[0].Kind, ID: id}})
	next, err := commerce.Apply(found[0].Stored, changes[0], value.TimeOf(time.Now()))
	if err != nil || next == nil {
		t.Fatalf("%s: %v, %v", message, next, err)
	}
	if err := s.table.PutRecord(t.Context(), found[0].Stored, next); err != nil {
		t.Fatal(err)
	}
	return next
}

// fill stores records of every form: with and without version and sites, with
// text of every kind, changed, deleted.
func (s *tableHarness) fill(t *testing.T, org value.ID) (first *commerce.Stored) {
	t.Helper()
	message := func(format string, args ...any) *commerce.Stored {
		return s.apply(t, fmt.Sprintf(`{"organizationId":%q,`, org)+fmt.Sprintf(format, args...)+"}")
	}
	first = message(`"kind":"customer","op":"put","version":7,"record":{"id":%q,"metadata":{"z":1,"a":[null,1.50]},"firstName":"Zoë \u2028 \\ <&> 😀","email":"zoe@example.com"}`, value.NewID())
	message(`"kind":"product","op":"put","siteIds":[%q,%q],"record":{"id":%q,"name":"Tea"}`, value.NewID(), value.NewID(), value.NewID())
	gone := value.NewID()
	message(`"kind":"order","op":"put","record":{"id":%q,"orderNumber":"1","currency":"EUR","items":[{"name":"Tea","quantity":2,"unitPrice":9.90}]}`, gone)
	message(`"kind":"order","op":"delete","record":{"id":%q}`, gone)
	for range 150 {
		message(`"kind":"category","op":"put","record":{"id":%q,"name":"Teas"}`, value.NewID())
	}
	return first
}

// exported exports an organization and returns the file's path and text.
func (s *tableHarness) exported(t *testing.T, org value.ID) (path, text string) {
	t.Helper()
	path = filepath.Join(t.TempDir(), "organization.export")
	if _, stderr, err := runCommand(t.Context(), "export", "--data", s.data, "--organization", org.String(), "--to", path); err != nil {
		t.Fatalf("export: %v, %s", err, stderr)
	}
	content, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return path, string(content)
}

// imports imports an export and expects the counts.
func (s *tableHarness) imports(t *testing.T, path, want string, args ...string) {
	t.Helper()
	stdout, stderr, err := runCommand(t.Context(), append([]string{"import", "--data", s.data, "--format", "export", path}, args...)...)
	if got := strings.Join(strings.Fields(stdout), " "); err != nil || got != want {
		t.Errorf("import %q: got %q, %v, %s; want %q", args, got, err, stderr, want)
	}
}

func TestAnExportIsImportedByteForByte(t *testing.T) {
	t.Parallel()
	a, b := twoOrganizations()
	from, to := newTableHarness(t), newTableHarness(t)
	customer := from.fill(t, a)
	from.store(t, b, 3)
	path, text := from.exported(t, a)
	if _, again := from.exported(t, a); again != text {
		t.Error("a second export has other bytes")
	}
	if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("the file's mode: %v, %v; want that only its owner reads it", info.Mode(), err)
	}
	if strings.Contains(text, b.String()) || strings.Count(text, "\n") != 155 || !strings.Contains(text, string(customer.Doc)) {
		t.Errorf("the export has %d lines, want 155 of one organization alone, with the stored bytes", strings.Count(text, "\n"))
	}
	to.imports(t, path, "stored 153 same 0 newer 0 expired 0")
	to.imports(t, path, "stored 0 same 153 newer 0 expired 0")
	if _, again := to.exported(t, a); again != text {
		t.Error("the imported records export to other bytes")
	}
	stored := to.table.ReadRecords(t.Context(), []dynamo.RecordRef{{OrganizationID: a, Kind: customer.Kind, ID: customer.ID}})[0].Stored
	if events, err := commerce.Events(nil, stored); err != nil || len(events) > 0 {
		t.Errorf("an imported record has %d events, %v; want none", len(events), err)
	}
	to.reindex(t, "--organization", a.String())
	if got, code := to.verify(t, nothing, "--organization", a.String()); code != 0 {
		t.Errorf("the lists differ: %s", got)
	}
	// Into another organization of the first table, whose own records stay.
	_, before := from.exported(t, b)
	from.imports(t, path, "stored 153 same 0 newer 0 expired 0", "--organization", b.String(), "--events")
	_, moved := from.exported(t, b)
	for line := range strings.Lines(strings.ReplaceAll(text, a.String(), b.String())) {
		if !strings.HasPrefix(line, `{"records":`) && !strings.Contains(moved, line) {
			t.Fatalf("another organization lacks %s", line)
		}
	}
	if got, want := strings.Count(moved, "\n"), strings.Count(text, "\n")+strings.Count(before, "\n")-2; got != want {
		t.Errorf("another organization has %d lines, want %d", got, want)
	}
	if _, again := from.exported(t, a); again != text {
		t.Error("the first organization has changed")
	}
}

func TestAnImportKeepsWhatIsLater(t *testing.T) {
	t.Parallel()
	a, _ := twoOrganizations()
	s := newTableHarness(t)
	customer := s.fill(t, a)
	path, text := s.exported(t, a)
	put := fmt.Sprintf(`{"organizationId":%q,"kind":"customer","op":"put","version":8,"record":{"id":%q,"firstName":"Ann"}}`, a, customer.ID)
	later := s.apply(t, put)
	s.imports(t, path, "stored 0 same 152 newer 1 expired 0")
	if _, now := s.exported(t, a); !strings.Contains(now, string(later.Doc)) || strings.Contains(now, string(customer.Doc)) {
		t.Error("an older record replaced a later one")
	}
	// What is older is replaced: the record as it is now goes over its first state.
	path, now := s.exported(t, a)
	other := newTableHarness(t)
	old := filepath.Join(t.TempDir(), "old.export")
	if err := os.WriteFile(old, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	other.imports(t, old, "stored 153 same 0 newer 0 expired 0")
	other.imports(t, path, "stored 1 same 152 newer 0 expired 0")
	if _, got := other.exported(t, a); got != now {
		t.Error("the later export did not replace the older one")
	}
}

func TestADamagedExportIsRefusedAsAWhole(t *testing.T) {
	t.Parallel()
	a, b := twoOrganizations()
	s := newTableHarness(t)
	s.store(t, a, 3)
	_, text := s.exported(t, a)
	lines := strings.SplitAfter(text, "\n")
	empty := newTableHarness(t)
	path := filepath.Join(t.TempDir(), "x.export")
	for name, c := range map[string]struct{ text, want string }{
		"empty":          {"", "cut off"},
		"cut off":        {strings.Join(lines[:3], ""), "cut off"},
		"a lost line":    {lines[0] + lines[1] + lines[2] + lines[4], "damaged"},
		"a changed name": {strings.Replace(text, "Tea 1", "Tee 1", 1), "damaged"},
		"more behind it": {text + lines[1], "line 6: it is behind"},
		"not an export":  {`{"kind":"product"}`, "line 1 is not"},
		"a later format": {strings.Replace(text, `"version":1`, `"version":2`, 1), "version 2; this command reads version 1"},
		"another owner":  {strings.Replace(text, a.String(), b.String(), 1), "line 2: product"},
		"no JSON":        {lines[0] + "{\n", "line 2: "},
		"a wrong member": {strings.Replace(text, `"revision"`, `"rev"`, 1), "line 2: "},
		"no record":      {lines[0] + `{"kind":"product","id":"` + a.String() + `","revision":1}` + "\n", "line 2: product"},
		"no kind":        {lines[0] + `{"id":"` + a.String() + `","revision":1,"deleted":true}` + "\n", "line 2: kind, id and revision"},
	} {
		t.Run(name, func(t *testing.T) {
			if err := os.WriteFile(path, []byte(c.text), 0o600); err != nil {
				t.Fatal(err)
			}
			_, stderr, err := runCommand(t.Context(), "import", "--data", empty.data, "--format", "export", path)
			if err == nil || !strings.Contains(stderr, c.want) || !strings.Contains(stderr, "nothing was imported") {
				t.Errorf("got %q, want %q", stderr, c.want)
			}
			if items := empty.items(t); len(items) > 0 {
				t.Errorf("the table has %d items, want none", len(items))
			}
		})
	}
}

func TestAnInterruptedExportLeavesNoFile(t *testing.T) {
	t.Parallel()
	a, _ := twoOrganizations()
	s := newTableHarness(t)
	s.store(t, a, 1)
	dir := t.TempDir()
	path := filepath.Join(dir, "x.export")
	if err := os.WriteFile(path, []byte("before"), 0o600); err != nil {
		t.Fatal(err)
	}
	ctx, interrupt := context.WithCancel(t.Context())
	interrupt()
	if _, stderr, err := runCommand(ctx, "export", "--data", s.data, "--to", path); err == nil {
		t.Errorf("an interrupted export succeeded: %s", stderr)
	}
	content, err := os.ReadFile(path)
	if files, _ := os.ReadDir(dir); err != nil || !bytes.Equal(content, []byte("before")) || len(files) != 1 {
		t.Errorf("after an interrupt: %d files, %q, %v; want the one from before", len(files), content, err)
	}
}

func TestExportAndImportAskForWhatTheyNeed(t *testing.T) {
	t.Parallel()
	s := newTableHarness(t)
	for _, c := range []struct {
		args []string
		want string
	}{
		{[]string{"export", "--data", s.data}, "--to: required"},
		{[]string{"export", "--data", s.data, "--organization", "acme", "--to", "x"}, "--organization acme: must be a UUID"},
		{[]string{"export", "--data", t.TempDir(), "--to", "x"}, "name a table with --table"},
		{[]string{"import", "--data", s.data, "--format", "export", "-"}, "takes one file"},
		{[]string{"import", "--data", s.data, "--format", "export", "a", "b"}, "takes one file"},
		{[]string{"import", "--data", s.data, "--format", "export", "--kind", "order", "a"}, "takes none of --kind"},
		{[]string{"import", "--data", s.data, "--format", "export", s.data + "/gone"}, "no such file"},
		{[]string{"import", "--data", s.data, "--format", "csv", "--table", "shop", "a"}, "--table is for --format export"},
	} {
		_, stderr, err := runCommand(t.Context(), c.args...)
		if err == nil || !strings.Contains(stderr, c.want) {
			t.Errorf("%q: got %q, want %q", c.args, stderr, c.want)
		}
	}
}
