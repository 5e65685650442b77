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

func webhooksConfig(t *testing.T, out *bytes.Buffer) bench.WebhooksConfig {
	t.Helper()
	cache, err := os.UserCacheDir()
	if err != nil {
		t.Fatal(err)
	}
	t.Setenv(asChild, "1")
	return bench.WebhooksConfig{
		Template: "../../../template.yaml", BinDir: filepath.Join(cache, "commerce-integration", "dynoxide-"+tableserver.Version),
		Child: []string{os.Args[0]}, Events: 50, Rounds: 1, Rate: 50, Duration: 500 * time.Millisecond, Others: 20, Waiting: 40, Imported: 450,
		Profiles: t.TempDir(), Out: out, Log: t.Output(),
	}
}

func TestEverySectionOfTheDeliveriesMeasuresSomething(t *testing.T) {
	var out bytes.Buffer
	cfg := webhooksConfig(t, &out)
	if err := bench.RunWebhooks(t.Context(), cfg); err != nil {
		t.Fatalf("%v\n%s", err, &out)
	}
	report := out.String()
	for _, want := range []string{
		"cores, go", "| End to end: 50 events", "| round 1, load", "| The table's work for one delivered event", "| event's row ", "| payload ",
		"| all but record and index", "| The local table alone", "| 8 connections", "| Latency at 50 events/s", "| record's message to receipt",
		"| The worker alone", "| Isolation", "| beside an endpoint that hangs, 40 events", "| beside an import of 450 records",
	} {
		if !strings.Contains(report, want) {
			t.Errorf("the report lacks %q:\n%s", want, report)
		}
	}
	if strings.Contains(report, "NaN") || strings.Contains(report, "Inf") {
		t.Errorf("the report has a figure of nothing:\n%s", report)
	}
	if profiles, err := filepath.Glob(filepath.Join(cfg.Profiles, "*.prof")); len(profiles) < 4 || err != nil {
		t.Errorf("there are the profiles %v, %v, want one of each process", profiles, err)
	}
}

func TestAnUnknownSectionOfTheDeliveriesIsRefused(t *testing.T) {
	var out bytes.Buffer
	cfg := webhooksConfig(t, &out)
	cfg.Sections = []string{"nonsense"}
	err := bench.RunWebhooks(t.Context(), cfg)
	if err == nil || !strings.Contains(err.Error(), `no section "nonsense"`) || !strings.Contains(err.Error(), "latency") || out.Len() > 0 {
		t.Errorf("got %v after %q, want an error that names the sections that there are", err, &out)
	}
}
