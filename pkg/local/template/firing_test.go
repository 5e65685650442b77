package template_test

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/commerce-integration/service/pkg/local/template"
	"github.com/commerce-integration/service/pkg/local/template/alarmtest"
	"github.com/commerce-integration/service/pkg/price"
)

func load(t *testing.T) *template.Model {
	t.Helper()
	m, err := template.Load(filepath.Join(root, "template.yaml"), map[string]string{"JwtIssuer": "https://issuer.example", "JwtAudience": "commerce"})
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// firing is what sets an alarm off: samples of a period, of one of its metrics
// or of all. The calm ones are at the limit and do not.
type firing struct {
	breach, calm []float64
	all          bool // every metric must breach
}

// firings has a row for every alarm.
func firings() map[string]firing {
	silent := firing{breach: nil, calm: []float64{1}, all: true} // of what must be heard of
	deadLetter := firing{breach: []float64{0, 1}, calm: []float64{0}}
	inFlight := firing{breach: []float64{60_001}, calm: []float64{60_000}}
	age := func(seconds float64) firing {
		return firing{breach: []float64{0, seconds + 1}, calm: []float64{seconds}}
	}
	refused := firing{breach: []float64{0, 1, 0}, calm: []float64{0}}
	errors := firing{breach: []float64{1, 0, 1, 1, 1, 1, 1}, calm: []float64{1, 1, 1, 1, 1, 0}}
	of := map[string]firing{
		"RecordsDLQAlarm": deadLetter, "DeliveriesDLQAlarm": deadLetter, "IndexJobsDLQAlarm": deadLetter, "ParkAlarm": deadLetter,
		"DispatcherAgeAlarm": {breach: []float64{300_001}, calm: []float64{300_000}},
		"IndexerAgeAlarm":    {breach: []float64{300_001}, calm: []float64{300_000}},
		"RecordsAgeAlarm":    age(900), "ImportsAgeAlarm": age(6 * 3600), "IndexJobsAgeAlarm": age(1800),
		"DeliveriesAgeAlarm": age(3600), "SlowDeliveriesAgeAlarm": age(4 * 3600),
		"RecordsUnpolledAlarm": silent, "ImportsUnpolledAlarm": silent, "IndexJobsUnpolledAlarm": silent,
		"DeliveriesUnpolledAlarm": silent, "SlowDeliveriesUnpolledAlarm": silent,
		"RecordsInFlightAlarm": inFlight, "DeliveriesInFlightAlarm": inFlight, "SlowDeliveriesInFlightAlarm": inFlight,
		"ApiErrorsAlarm":          {breach: append(slices.Repeat([]float64{0}, 98), 1, 1), calm: append(slices.Repeat([]float64{0}, 99), 1)},
		"FunctionThrottlesAlarm":  refused,
		"ClaimedConcurrencyAlarm": {breach: []float64{801}, calm: []float64{800}},
		"RecursionAlarm":          refused,
		"TableThrottlesAlarm":     refused, "GSI1ThrottlesAlarm": refused,
		"QueriesTooLargeAlarm": refused, "IndexJobStalledAlarm": refused,
		"RefusedCredentialsAlarm":       {breach: slices.Repeat([]float64{1}, 1001), calm: slices.Repeat([]float64{1}, 1000)},
		"SweeperSilentAlarm":            silent,
		"AuthorizerFunctionErrorsAlarm": {breach: append(slices.Repeat([]float64{0}, 94), slices.Repeat([]float64{1}, 6)...), calm: append(slices.Repeat([]float64{0}, 95), slices.Repeat([]float64{1}, 5)...)},
	}
	for _, name := range []string{"Developers", "Webhooks", "Api", "Receipts", "Portal", "Ingest", "Dispatcher", "Indexer", "Worker", "Sweeper"} {
		of[name+"FunctionErrorsAlarm"] = errors
	}
	return of
}

// Every alarm goes off by what it is for, and not a step before.
func TestEachAlarmGoesOff(t *testing.T) {
	m, rows := load(t), firings()
	for id, a := range m.Alarms {
		row, ok := rows[id]
		if !ok {
			t.Errorf("%s has no row", id)
			continue
		}
		t.Run(id, func(t *testing.T) {
			// series are those of all metrics, of which the i-th is another one.
			series := func(other int, of, rest alarmtest.Series) []alarmtest.Series {
				all := make([]alarmtest.Series, len(a.Metrics))
				for i := range all {
					all[i] = rest
					if i == other || row.all {
						all[i] = of
					}
				}
				return all
			}
			periods := a.Evaluations
			calm, breach := alarmtest.Steady(periods, row.calm...), alarmtest.Steady(periods, row.breach...)
			almost := slices.Concat(breach[:a.Datapoints-1], calm[:1])
			for i := range a.Metrics {
				if !alarmtest.Fires(t, &a, series(i, breach, calm)...) {
					t.Errorf("%s does not set it off in %d periods of %v", a.Metrics[i].Name, periods, row.breach)
				}
				if alarmtest.Fires(t, &a, series(i, almost, calm)...) {
					t.Errorf("%s sets it off in fewer than %d periods", a.Metrics[i].Name, a.Datapoints)
				}
			}
			if alarmtest.Fires(t, &a, series(-1, calm, calm)...) {
				t.Errorf("%v sets it off", row.calm)
			}
			want := row.breach == nil || strings.HasSuffix(id, "erAgeAlarm") // dispatcher's and indexer's
			if got := alarmtest.Fires(t, &a, make([]alarmtest.Series, len(a.Metrics))...); got != want {
				t.Errorf("missing data sets it off: %t, want %t", got, want)
			}
		})
	}
	for id := range rows {
		if _, ok := m.Alarms[id]; !ok {
			t.Errorf("the template has no %s", id)
		}
	}
}

// known is what AWS documents of the metrics that alarms take: their
// dimensions. A metric of another name has no data, and an alarm on it is silent.
var known = map[string][]string{
	"AWS/SQS ApproximateNumberOfMessagesVisible":    {"QueueName"},
	"AWS/SQS ApproximateNumberOfMessagesNotVisible": {"QueueName"},
	"AWS/SQS ApproximateAgeOfOldestMessage":         {"QueueName"},
	"AWS/SQS NumberOfEmptyReceives":                 {"QueueName"},
	"AWS/SQS NumberOfMessagesReceived":              {"QueueName"},
	"AWS/Lambda IteratorAge":                        {"FunctionName"},
	"AWS/Lambda Errors":                             {"FunctionName"},
	"AWS/Lambda Throttles":                          {"FunctionName"},
	"AWS/Lambda RecursiveInvocationsDropped":        {"FunctionName"},
	"AWS/Lambda ClaimedAccountConcurrency":          {},
	"AWS/ApiGateway 5XXError":                       {"ApiName", "Stage"},
	"AWS/DynamoDB ReadThrottleEvents":               {"TableName"},
	"AWS/DynamoDB WriteThrottleEvents":              {"TableName"},
}

func TestAlarmsTakeMetricsThatThereAre(t *testing.T) {
	m := load(t)
	for id, a := range m.Alarms {
		for _, metric := range a.Metrics {
			dimensions := slices.Sorted(maps.Keys(metric.Dimensions))
			if strings.HasPrefix(metric.Namespace, "Commerce/") {
				if !slices.ContainsFunc(slices.Collect(maps.Values(m.MetricFilters)), func(f template.MetricFilter) bool {
					return f.Namespace == metric.Namespace && f.Name == metric.Name && len(dimensions) == 0
				}) {
					t.Errorf("%s: no metric filter makes %s %s", id, metric.Name, dimensions)
				}
				continue
			}
			want, ok := known[metric.Namespace+" "+metric.Name]
			if id == "GSI1ThrottlesAlarm" {
				want = []string{"GlobalSecondaryIndexName", "TableName"}
			}
			if !ok || !slices.Equal(dimensions, want) {
				t.Errorf("%s: %s %s has the dimensions %s, want %s", id, metric.Namespace, metric.Name, dimensions, want)
			}
		}
	}
}

// Every function, queue and index that must move has its alarms.
func TestNothingIsWithoutItsAlarm(t *testing.T) {
	m := load(t)
	watched := map[string]bool{}
	for _, a := range m.Alarms {
		for _, metric := range a.Metrics {
			for _, on := range metric.Dimensions {
				watched[metric.Name+" "+on] = true
			}
		}
	}
	must := func(metric, on string) {
		if on, _, _ = strings.Cut(on, "."); !watched[metric+" "+on] && !watched[metric+" "+on+".QueueName"] {
			t.Errorf("no alarm is on %s of %s", metric, on)
		}
	}
	for _, f := range m.Functions {
		must("Errors", f.LogicalID)
		if f.LogicalID != "PortalFunction" { // an alarm sums ten metrics; ApiErrorsAlarm counts what the portal does not answer
			must("Throttles", f.LogicalID)
			must("RecursiveInvocationsDropped", f.LogicalID)
		}
		if len(f.Streams) > 0 {
			must("IteratorAge", f.LogicalID)
		}
		for _, source := range f.Queues {
			must("ApproximateAgeOfOldestMessage", source.Queue)
			must("NumberOfEmptyReceives", source.Queue)
		}
	}
	for id := range m.Queues {
		if strings.HasSuffix(id, "DLQ") || id == "ParkQueue" {
			must("ApproximateNumberOfMessagesVisible", id)
		}
	}
	for _, index := range m.Table.Indexes {
		must("WriteThrottleEvents", index.Name)
	}
}

// TestTheRunbookHasEveryAlarm holds the section Alarms of OPERATING to the template,
// and its figures of what alarms cost.
func TestTheRunbookHasEveryAlarm(t *testing.T) {
	text, err := os.ReadFile(filepath.Join(root, "pkg", "ops", "OPERATING.md"))
	if err != nil {
		t.Fatal(err)
	}
	_, section, _ := strings.Cut(string(text), "## Alarms\n")
	section, _, _ = strings.Cut(section, "\n## ")
	m, found := load(t), map[string]int{}
	for line := range strings.Lines(section) {
		cells := strings.Split(strings.TrimSpace(line), " | ")
		if !strings.HasPrefix(line, "| `") {
			continue
		}
		if len(cells) != 3 || len(cells[1]) < 40 || len(cells[2]) < 40 {
			t.Errorf("want a meaning, and what to look at and do: %s", line)
		}
		for _, name := range regexp.MustCompile("`(\\w+Alarm)`").FindAllStringSubmatch(cells[0], -1) {
			found[name[1]]++
		}
	}
	metrics := 0
	for id, a := range m.Alarms {
		metrics += len(a.Metrics)
		if found[id] != 1 {
			t.Errorf("%s has %d entries", id, found[id])
		}
		delete(found, id)
	}
	for id := range found {
		t.Errorf("the template has no %s", id)
	}
	if want := costs(len(m.Alarms), metrics); !strings.Contains(strings.Join(strings.Fields(section), " "), want) {
		t.Errorf("the section does not say %q", want)
	}
}

// costs is the section's sentence.
func costs(alarms, metrics int) string {
	return fmt.Sprintf("%d alarms over %d metrics cost $%.2f a month", alarms, metrics, float64(metrics)*price.AlarmMetrics)
}

func TestTheDashboardShowsEveryAlarm(t *testing.T) {
	source, err := os.ReadFile(filepath.Join(root, "template.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	_, dashboard, _ := strings.Cut(string(source), "\n  Dashboard:\n")
	for id := range load(t).Alarms {
		if strings.Count(dashboard, `"${`+id+`.Arn}"`) != 1 {
			t.Errorf("the dashboard does not show %s", id)
		}
	}
}
