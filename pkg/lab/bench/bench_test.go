package bench_test

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"github.com/commerce-integration/service/pkg/lab/bench"
)

func TestEveryRowMeasuresSomething(t *testing.T) {
	var out bytes.Buffer
	err := bench.Run(t.Context(), bench.Config{
		Events: 60, Lone: 10, Organizations: 5, Imported: 500, Products: 1000, Duration: 200 * time.Millisecond, Steady: 200 * time.Millisecond, Rest: 100 * time.Millisecond,
		Out: &out, Log: t.Output(),
	})
	if err != nil {
		t.Fatalf("%v\n%s", err, &out)
	}
	report := out.String()
	for _, want := range []string{
		"cores, go", "| one at a time, organizations: 1 ", "| burst, organizations: 1 ", "| one at a time after it, organizations: 1 ",
		"| alone in its organization, organizations: 5 ", "| burst, organizations: 5 ", "| steady, beside an import, organizations: 5 ", "| steady, beside a dead receiver, organizations: 5 ",
		"| steady, table after 10 ms, organizations: 5 ",
		"| list: filter, search, order, total ", "| list: no filter, newest first ", "| list: no filter, one request a second ", "| record by id ",
		"| walk, to its end ", "| feed, caught up ",
	} {
		if !strings.Contains(report, want) {
			t.Errorf("the report lacks %q", want)
		}
	}
	if strings.Contains(report, "NaN") || strings.Contains(report, "Inf") || t.Failed() {
		t.Errorf("the report:\n%s", report)
	}
}
