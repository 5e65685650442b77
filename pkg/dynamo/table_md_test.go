package dynamo_test

import (
	"flag"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/commerce-integration/service/pkg/dynamo/chart"
)

var update = flag.Bool("update", false, "rewrite TABLE.md")

// TestTheChartIsPublished holds TABLE.md to the chart of the table's items.
func TestTheChartIsPublished(t *testing.T) {
	var b strings.Builder
	b.WriteString("# The table\n\nEvery item of the single table, generated from `chart` by `go test ./pkg/dynamo -run Published -update`.\n" +
		"`keys.go` makes the keys. GSI1 is sparse. A time to live is the attribute `expiresAtEpoch`.\n\n" +
		"| Item | PK | SK | GSI1PK | GSI1SK | TTL | Read as |\n|---|---|---|---|---|---|---|\n")
	for _, f := range chart.Forms() {
		ttl := ""
		if f.Expires {
			ttl = "yes"
		}
		fmt.Fprintf(&b, "| %s | %s | %s | %s | %s | %s | %s |\n", f.Item, cell(f.PK), cell(f.SK), cell(f.GSI1PK), cell(f.GSI1SK), ttl, f.Reads)
	}
	if *update {
		must(t, os.WriteFile("TABLE.md", []byte(b.String()), 0o644))
	}
	if text, err := os.ReadFile("TABLE.md"); err != nil || string(text) != b.String() {
		t.Errorf("TABLE.md is not current (%v): go test ./pkg/dynamo -run Published -update", err)
	}
}

// cell shows alternatives of a key, which a bar separates, as code.
func cell(key string) string {
	if key == "" {
		return ""
	}
	return "`" + strings.ReplaceAll(key, "|", "` or `") + "`"
}
