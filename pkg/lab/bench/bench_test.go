package bench_test

import (
	"bytes"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/commerce-integration/service/pkg/lab/bench"
	"github.com/commerce-integration/service/pkg/lab/workload"
	"github.com/commerce-integration/service/pkg/local/tableserver"
)

// config is one with hardly any data, for moments.
func config(t *testing.T, out *bytes.Buffer, sections []bench.Section) bench.Config {
	t.Helper()
	bin, err := tableserver.CacheDir()
	if err != nil {
		t.Fatal(err)
	}
	cfg := bench.Config{
		Template: "../../../template.yaml", BinDir: bin, Rounds: 1, Duration: 200 * time.Millisecond, Out: out, Log: t.Output(), Profiles: t.TempDir(),
		Products: 1000, Tenants: 4, TenantProducts: 300, Instances: 2, Requests: 40, Events: 60, Rate: 50, Stored: []int{0, 80}, Others: 20, Waiting: 40, Imported: 450,
	}
	for _, s := range sections {
		cfg.Sections = append(cfg.Sections, s.Name)
	}
	return cfg
}

func wantReport(t *testing.T, report string, parts ...string) {
	t.Helper()
	for _, want := range parts {
		if !strings.Contains(report, want) {
			t.Errorf("the report lacks %q:\n%s", want, report)
		}
	}
	if strings.Contains(report, "NaN") || strings.Contains(report, "Inf") {
		t.Errorf("the report has a figure of nothing:\n%s", report)
	}
}

func TestEverySectionOfTheReadsMeasuresSomething(t *testing.T) {
	var out bytes.Buffer
	if err := bench.Run(t.Context(), bench.ReadSections(), config(t, &out, bench.ReadSections())); err != nil {
		t.Fatalf("%v\n%s", err, &out)
	}
	wantReport(t, out.String(), "cores, go", "| Lists over HTTP", "| no filter, newest first", "| Records by id", "| Units of the table",
		"| product changed, in batches of 100", "| A list of 20, scattered", "| 3,008 MB, uniform", "| A million of", "| All of a million", "| delivered event, alone", "| API Gateway")
}

func TestEverySectionOfTheDeliveriesMeasuresSomething(t *testing.T) {
	var out bytes.Buffer
	cfg := config(t, &out, bench.WebhookSections())
	var err error
	if cfg.Program, err = workload.Build(t.Context(), t.TempDir()); err != nil {
		t.Fatal(err)
	}
	if err := bench.Run(t.Context(), bench.WebhookSections(), cfg); err != nil {
		t.Fatalf("%v\n%s", err, &out)
	}
	wantReport(t, out.String(), "cores, go", "| End to end: 60 events", "| round 1, load", "| The table's work for one delivered event", "| payload ",
		"| all but record and index", "| An event that comes alone, 50/s", "| function worker", "| stream", "| The table's work for one of 60 events, of which one in 100 passes", "| Latency at 50 events/s", "| 60 events stored before", "| 80 events stored before", "| Isolation",
		"| while 40 events come for an endpoint that hangs", "| while they wait for it", "| beside an import of 450 records")
	if profiles, err := filepath.Glob(filepath.Join(cfg.Profiles, "*.prof")); len(profiles) != 3 || err != nil {
		t.Errorf("there are the profiles %v, %v, want three", profiles, err)
	}
}

func TestAnUnknownSectionIsRefusedBeforeAnythingIsStarted(t *testing.T) {
	var out bytes.Buffer
	cfg := config(t, &out, nil)
	cfg.Sections = []string{"lists", "nonsense"}
	err := bench.Run(t.Context(), bench.ReadSections(), cfg)
	if err == nil || !strings.Contains(err.Error(), `no section "nonsense"`) || !strings.Contains(err.Error(), "lists") || out.Len() > 0 {
		t.Errorf("got %v after %q, want an error that names the sections that there are", err, &out)
	}
}
