package webhooks_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/commerce-integration/service/pkg/base/value"
	"github.com/commerce-integration/service/pkg/webhook"
)

// point is an entry of statistics as JSON; nothing happened in it when there
// are no numbers.
func point(at string, numbers ...any) string {
	if len(numbers) == 0 {
		numbers = []any{0, 0, "null", "null"}
	}
	return fmt.Sprintf(`{"at":%q,"successCount":%v,"failureCount":%v,"filteredCount":0,"p50Ms":%v,"p95Ms":%v}`, append([]any{at}, numbers...)...)
}

// count records that attempts ended at the time, one for each duration in
// milliseconds; a negative one is that of a failure.
func (h *harness) count(t *testing.T, item, at string, tooks ...int64) {
	t.Helper()
	when, err := value.ParseTime(at)
	if err != nil {
		t.Fatal(err)
	}
	attempts := make([]webhook.Attempt, len(tooks))
	for i, ms := range tooks {
		attempts[i] = webhook.Attempt{At: when.Add(-time.Duration(max(ms, -ms)) * time.Millisecond), DurationMs: max(ms, -ms)}
		if ms < 0 {
			reason := "timed out"
			attempts[i].Error = &reason
		}
	}
	h.Count(t, h.stored(t, item).ID, when, attempts...)
}

// busy is a harness at noon whose endpoint has counted on three days.
func busy(t *testing.T) (h *harness, item string) {
	h = newHarness(t)
	h.Set(time.Date(2026, 11, 21, 12, 20, 0, 0, time.UTC))
	item = h.endpoint(t, minimal)
	h.count(t, item, "2026-10-21T00:00:00Z", 3)
	h.count(t, item, "2026-11-19T23:59:59.999Z", 5, 5, -7)
	h.count(t, item, "2026-11-20T12:15:00Z", 1)
	h.count(t, item, "2026-11-20T12:45:00Z", 2)
	h.count(t, item, "2026-11-21T10:00:00Z", 10, 11, 12, 13, -14)
	h.count(t, item, "2026-11-21T12:10:00Z", 9)
	return h, item
}

func TestStatsShowEveryIntervalOfTheSpan(t *testing.T) {
	h, item := busy(t)
	for _, test := range []struct {
		query string
		want  []string
	}{
		{"?from=2026-11-21T09:00:00Z&to=2026-11-21T13:00:00Z", []string{
			point("2026-11-21T09:00:00.000Z"), point("2026-11-21T10:00:00.000Z", 4, 1, 12, 14), point("2026-11-21T11:00:00.000Z"),
			point("2026-11-21T12:00:00.000Z", 1, 0, 9, 9),
		}},
		{"?from=2026-11-21T10:59:59.999%2B00:00&to=2026-11-21T12:00:00.001Z&interval=hour", []string{ // whole hours
			point("2026-11-21T10:00:00.000Z", 4, 1, 12, 14), point("2026-11-21T11:00:00.000Z"), point("2026-11-21T12:00:00.000Z", 1, 0, 9, 9),
		}},
		{"?from=2026-11-21T12:00:00Z&to=2026-11-21T12:00:00.001Z", []string{point("2026-11-21T12:00:00.000Z", 1, 0, 9, 9)}},
		{"?from=2026-11-21T11:00:00Z&to=2026-11-21T12:00:00Z", []string{point("2026-11-21T11:00:00.000Z")}}, // to is outside
		{"?from=2026-11-21T12:00:00%2B01:00", []string{point("2026-11-21T11:00:00.000Z"), point("2026-11-21T12:00:00.000Z", 1, 0, 9, 9)}},
		{"?from=2026-11-19&to=2026-11-21T12:20:00Z&interval=day", []string{
			point("2026-11-19T00:00:00.000Z", 2, 1, 5, 7), point("2026-11-20T00:00:00.000Z", 2, 0, 1, 2), point("2026-11-21T00:00:00.000Z", 5, 1, 11, 14),
		}},
		{"?from=2026-11-20T18:00:00Z&to=2026-11-21T00:00:00Z&interval=day", []string{point("2026-11-20T00:00:00.000Z", 2, 0, 1, 2)}}, // the whole day
		{"?from=2026-11-21T12:00:00Z&to=2026-11-22&interval=day", []string{point("2026-11-21T00:00:00.000Z", 5, 1, 11, 14)}},
		{"?from=2026-11-22&to=2026-11-23&interval=day", []string{point("2026-11-22T00:00:00.000Z")}}, // yet to come
		{"?from=2026-10-21&to=2026-10-22&interval=day", []string{point("2026-10-21T00:00:00.000Z", 1, 0, 3, 3)}},
	} {
		t.Run(test.query, func(t *testing.T) {
			a := h.must(t, http.StatusOK, "GET", item+"/stats"+test.query, "")
			if diff := cmp.Diff(`{"data":[`+strings.Join(test.want, ",")+`],"circuit":null}`, a.Body); diff != "" {
				t.Errorf("%s (-want +got):\n%s", test.query, diff)
			}
		})
	}
}

func TestStatsWithoutASpanAreOfTheLastDayOrMonth(t *testing.T) {
	h, item := busy(t)
	for _, test := range []struct {
		query       string
		points      int
		first, last string
	}{
		{"", 25, "2026-11-20T12:00:00.000Z", "2026-11-21T12:00:00.000Z"},
		{"?interval=hour", 25, "2026-11-20T12:00:00.000Z", "2026-11-21T12:00:00.000Z"},
		{"?to=2026-11-21T12:00:00Z", 24, "2026-11-20T12:00:00.000Z", "2026-11-21T11:00:00.000Z"},
		{"?interval=day", 31, "2026-10-22T00:00:00.000Z", "2026-11-21T00:00:00.000Z"},
		{"?interval=day&to=2026-11-21", 30, "2026-10-22T00:00:00.000Z", "2026-11-20T00:00:00.000Z"},
		{"?interval=day&to=2026-10-23", 2, "2026-10-21T00:00:00.000Z", "2026-10-22T00:00:00.000Z"}, // as far as they are kept
		{"?to=2026-10-21T02:00:00Z", 2, "2026-10-21T00:00:00.000Z", "2026-10-21T01:00:00.000Z"},
		{"?from=2026-10-21T12:20:00Z", 745, "2026-10-21T12:00:00.000Z", "2026-11-21T12:00:00.000Z"}, // 31 days ago
		{"?from=2026-10-21", 757, "2026-10-21T00:00:00.000Z", "2026-11-21T12:00:00.000Z"},
		{"?from=2026-10-21T12:20:00Z&to=2026-11-21T12:20:00Z&interval=day", 32, "2026-10-21T00:00:00.000Z", "2026-11-21T00:00:00.000Z"},
	} {
		t.Run(test.query, func(t *testing.T) {
			a := h.must(t, http.StatusOK, "GET", item+"/stats"+test.query, "")
			data, _ := a.field("data").([]any)
			if len(data) != test.points {
				t.Errorf("%d entries, want %d", len(data), test.points)
				return
			}
			at := func(i int) any { return data[i].(map[string]any)["at"] }
			if at(0) != test.first || at(len(data)-1) != test.last {
				t.Errorf("from %v to %v, want %s to %s", at(0), at(len(data)-1), test.first, test.last)
			}
		})
	}
	a := h.must(t, http.StatusOK, "GET", item+"/stats", "")
	if got := strings.Count(a.Body, `"p50Ms":null`); got != 22 {
		t.Errorf("of the last day %d hours are empty, want 22: %s", got, a.Body)
	}
	h.must(t, http.StatusNotModified, "GET", item+"/stats", "", "If-None-Match", a.Header.Get("ETag"))
	h.count(t, item, "2026-11-21T12:19:00Z", 9)
	h.must(t, http.StatusOK, "GET", item+"/stats", "", "If-None-Match", a.Header.Get("ETag"))
}

func TestParametersOfStatsAreChecked(t *testing.T) {
	h, item := busy(t)
	for _, test := range []struct{ query, field, code, message string }{
		{"interval=week", "interval", "invalid_format", "must be one of hour, day"},
		{"interval=HOUR", "interval", "invalid_format", "must be one of hour, day"},
		{"interval=", "interval", "invalid_format", "must not be empty"},
		{"from=yesterday", "from", "invalid_format", "RFC 3339"},
		{"to=2026-11-31", "to", "invalid_format", "RFC 3339"},
		{"from=2026-11-21&to=2026-11-21", "from", "out_of_range", "must be before to"},
		{"from=2026-11-22&to=2026-11-21", "from", "out_of_range", "must be before to"},
		{"from=2026-11-21T12:20:00Z", "from", "out_of_range", "must be before to, which is now when it is left out"},
		{"from=2026-10-20T23:59:59.999Z", "from", "out_of_range", "must not be before 2026-10-21T00:00:00.000Z: older statistics are not kept"},
		{"from=0001-01-01&to=9999-12-31", "from", "out_of_range", "must not be before 2026-10-21T00:00:00.000Z"},
		{"to=2026-10-21", "to", "out_of_range", "must be after 2026-10-21T00:00:00.000Z: older statistics are not kept"},
		{"to=0001-01-01&interval=day", "to", "out_of_range", "must be after 2026-10-21T00:00:00.000Z"},
		{"from=2026-11-21&to=2026-12-22T00:00:00.001Z", "from", "out_of_range", "must be at most 31 days before to"},
		{"from=2026-11-21&to=9999-12-31T23:59:59.999Z&interval=day", "from", "out_of_range", "must be at most 31 days before to"},
		{"limit=10", "limit", "unknown", "is not a parameter"},
		{"applicationId=x", "applicationId", "invalid_format", "UUID"},
	} {
		t.Run(test.query, func(t *testing.T) {
			a := h.do(t, "GET", item+"/stats?"+test.query, "")
			details, _ := a.field("details").([]any)
			if a.Status != http.StatusBadRequest || len(details) != 1 {
				t.Errorf("%d %s, want 400 for %s alone", a.Status, a.Body, test.field)
				return
			}
			d, _ := details[0].(map[string]any)
			if message, _ := d["message"].(string); d["field"] != test.field || d["in"] != "query" || d["code"] != test.code || !strings.Contains(message, test.message) {
				t.Errorf("%v, want %s %s %q", d, test.field, test.code, test.message)
			}
		})
	}
	if a := h.do(t, "GET", item+"/stats?from=x&to=y&interval=z", ""); strings.Count(a.Body, `"field"`) != 3 {
		t.Errorf("three wrong parameters: %d %s", a.Status, a.Body)
	}
	h.must(t, http.StatusOK, "GET", item+"/stats?from=2026-11-21&to=2026-12-22", "")
	for _, query := range []string{
		"to=9999-12-31T23:59:59.999Z", "to=9999-12-31T23:59:59.999Z&interval=day", "from=9999-12-31T23:00:00Z&to=9999-12-31T23:30:00Z",
	} {
		a := h.must(t, http.StatusOK, "GET", item+"/stats?"+query, "")
		entries, _ := a.field("data").([]any)
		if len(entries) == 0 || strings.Count(a.Body, `"successCount":0,"failureCount":0`) != len(entries) {
			t.Errorf("%s: %s, want entries in which nothing is counted", query, a.Body)
		}
	}
	h.must(t, http.StatusOK, "GET", item+"/stats?applicationId="+h.App.String(), "")
}
