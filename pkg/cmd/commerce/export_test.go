package main

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/commerce-integration/service/pkg/base/value"
)

// export returns the organization's export, its lines sorted.
func (s *service) export(t *testing.T) string {
	t.Helper()
	lines := strings.SplitAfter(s.commerce(t, "export", "--url", s.BaseURL, "--key", s.APIKey, "--to", "-"), "\n")
	slices.Sort(lines)
	return strings.Join(lines, "")
}

// withoutTime matches the time of the last change, which an import sets.
var withoutTime = regexp.MustCompile(`,"updatedAt":"[^"]*"`)

func TestAnExportIsImportedAgain(t *testing.T) {
	t.Parallel()
	s, other := newOrganization(t), newOrganization(t)
	order, product := value.NewID(), value.NewID()
	s.send(t, s.order(order, "PENDING"))
	s.send(t, fmt.Sprintf(`{"organizationId":%q,"kind":"product","op":"put","record":{"id":%q,"name":"Zoë \u2028 <&> 😀"}}`, s.OrganizationID, product))
	other.send(t, other.order(value.NewID(), "PENDING"))
	await(t, "the records", func() bool { return s.total(t, "/api/orders")+s.total(t, "/api/products") == 2 })
	before := s.export(t)
	path := filepath.Join(t.TempDir(), "shop.jsonl")
	s.commerce(t, "export", "--url", s.BaseURL, "--key", s.APIKey, "--to", path)
	if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o600 || strings.Count(before, "\n") != 2 {
		t.Errorf("exported %s, %v; want two records in a file that only its owner reads", before, err)
	}
	s.send(t, fmt.Sprintf(`{"organizationId":%q,"records":[{"kind":"order","op":"delete","record":{"id":%q}},{"kind":"product","op":"delete","record":{"id":%q}}]}`,
		s.OrganizationID, order, product))
	await(t, "the deletions", func() bool {
		got := s.export(t)
		return strings.Count(got, `"op":"delete"`) == 2 && strings.Count(got, "\n") == 2
	})
	s.commerce(t, "import", "--url", s.BaseURL, "--token", s.JWT, path)
	await(t, "the records again", func() bool { return s.total(t, "/api/orders")+s.total(t, "/api/products") == 2 })
	unchanged := func(text string) string { return withoutTime.ReplaceAllString(text, "") }
	if after := s.export(t); unchanged(after) != unchanged(before) {
		t.Errorf("after the import:\n%s\nbefore:\n%s", after, before)
	}
}

func TestAnInterruptedExportLeavesNoFile(t *testing.T) {
	t.Parallel()
	s := newOrganization(t)
	dir := t.TempDir()
	path := filepath.Join(dir, "x.jsonl")
	if err := os.WriteFile(path, []byte("before"), 0o600); err != nil {
		t.Fatal(err)
	}
	ctx, interrupt := context.WithCancel(t.Context())
	interrupt()
	if _, stderr, err := runCommand(ctx, "export", "--url", s.BaseURL, "--key", s.APIKey, "--to", path); err == nil {
		t.Errorf("an interrupted export succeeded: %s", stderr)
	}
	content, err := os.ReadFile(path)
	if files, _ := os.ReadDir(dir); err != nil || !bytes.Equal(content, []byte("before")) || len(files) != 1 {
		t.Errorf("after an interrupt: %d files, %q, %v; want the one from before", len(files), content, err)
	}
}
