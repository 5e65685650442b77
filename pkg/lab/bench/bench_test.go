package bench_test

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"github.com/commerce-integration/service/pkg/lab/bench"
	"github.com/commerce-integration/service/pkg/lab/workload"
	"github.com/commerce-integration/service/pkg/local/tableserver"
)

func TestEverySectionMeasuresSomething(t *testing.T) {
	bin, err := tableserver.CacheDir()
	if err != nil {
		t.Fatal(err)
	}
	program, err := workload.Build(t.Context(), t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	err = bench.Run(t.Context(), bench.Config{
		Template: "../../../template.yaml", BinDir: bin, Program: program, Out: &out, Log: t.Output(),
		Events: 60, Rounds: 1, Rate: 50, Paced: 200 * time.Millisecond, Organizations: 5,
		Imported: 450, Products: 1000, Duration: 200 * time.Millisecond,
	})
	if err != nil {
		t.Fatalf("%v\n%s", err, &out)
	}
	report := out.String()
	for _, want := range []string{
		"cores, go", "| Deliveries ", "| one at a time, organizations: 1", "| burst, organizations: 5", "| one at a time, after the bursts, organizations: 5",
		"beside an import of 450 records", "| event of a burst of 60", "| event alone in its organization", "| record by id", "| list: no filter, newest first", "| feed: caught up",
	} {
		if !strings.Contains(report, want) {
			t.Errorf("the report lacks %q", want)
		}
	}
	if strings.Contains(report, "NaN") || strings.Contains(report, "Inf") || t.Failed() {
		t.Errorf("the report:\n%s", report)
	}
}

func TestAnUnknownSectionIsRefusedBeforeAnythingIsStarted(t *testing.T) {
	var out bytes.Buffer
	err := bench.Run(t.Context(), bench.Config{Sections: []string{"reads", "nonsense"}, Out: &out})
	if err == nil || !strings.Contains(err.Error(), `unknown section "nonsense"`) || !strings.Contains(err.Error(), "reads") || out.Len() > 0 {
		t.Errorf("got %v after %q, want an error that names the sections that there are", err, &out)
	}
}
