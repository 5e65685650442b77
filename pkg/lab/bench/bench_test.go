package bench_test

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/commerce-integration/service/pkg/lab/bench"
	"github.com/commerce-integration/service/pkg/local/tableserver"
)

// config is one with hardly any data, for moments.
func config(t *testing.T, out *bytes.Buffer) bench.Config {
	t.Helper()
	cache, err := os.UserCacheDir()
	if err != nil {
		t.Fatal(err)
	}
	return bench.Config{
		Template: "../../../template.yaml", BinDir: filepath.Join(cache, "commerce-integration", "dynoxide-"+tableserver.Version),
		Products: 1000, Orders: 1000, Duration: 200 * time.Millisecond, Rounds: 1, Out: out, Log: t.Output(),
	}
}

func TestEverySectionMeasuresSomething(t *testing.T) {
	var out bytes.Buffer
	if err := bench.Run(t.Context(), config(t, &out)); err != nil {
		t.Fatalf("%v\n%s", err, &out)
	}
	report := out.String()
	for _, want := range []string{
		"cores, go", "| 1,000 products in the index", "| 1,000 orders of 24 months, all loaded", "| Requests in the function",
		"| Lists over HTTP", "| no filter, newest first", "| Records by id", "| Units of the table", "| product changed, in batches of 100",
		"| 1,000 orders: cold, default list, page 1", "| Index of an order", "| A million of", "| API Gateway",
	} {
		if !strings.Contains(report, want) {
			t.Errorf("the report lacks %q:\n%s", want, report)
		}
	}
	if strings.Contains(report, "NaN") || strings.Contains(report, "Inf") {
		t.Errorf("the report has a figure of nothing:\n%s", report)
	}
}

func TestAnUnknownSectionIsRefusedBeforeAnythingIsStarted(t *testing.T) {
	var out bytes.Buffer
	cfg := config(t, &out)
	cfg.Sections = []string{"lists", "nonsense"}
	err := bench.Run(t.Context(), cfg)
	if err == nil || !strings.Contains(err.Error(), `no section "nonsense"`) || !strings.Contains(err.Error(), "lists") || out.Len() > 0 {
		t.Errorf("got %v after %q, want an error that names the sections that there are", err, &out)
	}
}
