package template

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"
)

// alarm is a CloudWatch alarm.
type alarm struct {
	Metric
	Statistic          string
	Period             time.Duration
	Metrics            []query
	Threshold          float64 `json:",string"`
	ComparisonOperator string
	EvaluationPeriods  int
	DatapointsToAlarm  int
	TreatMissingData   string
}

// query is a metric of an alarm, or the expression over its metrics.
type query struct {
	ID         string `json:"Id"`
	Expression string
	MetricStat struct {
		Metric Metric
		Stat   string
		Period time.Duration
	}
}

type Metric struct {
	Namespace, MetricName string
	Dimensions            []struct{ Name, Value string }
}

// alarms are those of the stack by logical id. An alarm on one metric has it as its only query.
func alarms(t *testing.T, m *Model) map[string]*alarm {
	t.Helper()
	all := map[string]*alarm{}
	for id, resource := range m.Resources {
		if resource.Type != "AWS::CloudWatch::Alarm" {
			continue
		}
		a := properties[alarm](t, m, id)
		if a.MetricName != "" {
			only := query{ID: "only"}
			only.MetricStat.Metric, only.MetricStat.Stat, only.MetricStat.Period = a.Metric, a.Statistic, a.Period
			a.Metrics = []query{only}
		}
		all[id] = &a
	}
	return all
}

// expression is what the alarm goes by, and its metrics.
func (a *alarm) expression() (expression string, metrics []query) {
	for _, q := range a.Metrics {
		if q.Expression != "" {
			expression = q.Expression
		} else {
			metrics = append(metrics, q)
		}
	}
	return expression, metrics
}

var share = regexp.MustCompile(`^(\w+) / (\d+)$`)

// breaches reports whether a period with these samples breaches, as CloudWatch's documentation describes it. SUM leaves
// missing data out; a quotient of missing data is missing.
func (a *alarm) breaches(t *testing.T, samples [][]float64) bool {
	t.Helper()
	expression, metrics := a.expression()
	var points []float64
	for i, m := range metrics {
		if len(samples[i]) > 0 {
			points = append(points, statistic(t, m.MetricStat.Stat, samples[i]))
		}
	}
	if len(points) == 0 {
		return a.TreatMissingData == "breaching"
	}
	point := points[0]
	switch match := share.FindStringSubmatch(expression); {
	case match != nil && match[1] == metrics[0].ID:
		divisor, _ := strconv.ParseFloat(match[2], 64)
		point /= divisor
	case expression == "SUM(METRICS())":
		point = statistic(t, "Sum", points)
	case expression != "":
		t.Fatalf("unknown expression %q", expression)
	}
	switch a.ComparisonOperator {
	case "GreaterThanThreshold":
		return point > a.Threshold
	case "LessThanThreshold":
		return point < a.Threshold
	}
	t.Fatalf("unknown comparison %q", a.ComparisonOperator)
	return false
}

func statistic(t *testing.T, name string, samples []float64) float64 {
	t.Helper()
	sum := 0.0
	for _, sample := range samples {
		sum += sample
	}
	switch name {
	case "Sum":
		return sum
	case "Average":
		return sum / float64(len(samples))
	case "Maximum":
		return slices.Max(samples)
	}
	t.Fatalf("unknown statistic %q", name)
	return 0
}

// firing is what sets an alarm off: samples in every period of a time, of one of its metrics or of all. The calm ones are
// at the limit and do not.
type firing struct {
	after        time.Duration
	breach, calm []float64
	all          bool // every metric must breach
}

// repeated is n samples of 1 after zero others of 0.
func repeated(zero, n int) []float64 {
	return append(make([]float64, zero), slices.Repeat([]float64{1}, n)...)
}

// firings has a row for every alarm.
func firings() map[string]firing {
	deadLetter := firing{after: time.Minute, breach: []float64{0, 1}, calm: []float64{0}}
	inFlight := firing{after: time.Minute, breach: []float64{60_001}, calm: []float64{60_000}}
	streamAge := firing{after: 5 * time.Minute, breach: []float64{300_001}, calm: []float64{300_000}}
	age := func(seconds float64) firing {
		return firing{after: 3 * time.Minute, breach: []float64{0, seconds + 1}, calm: []float64{seconds}}
	}
	silent := func(after time.Duration) firing { return firing{after: after, calm: []float64{1}, all: true} }
	some := func(after time.Duration) firing {
		return firing{after: after, breach: []float64{0, 1, 0}, calm: []float64{0}}
	}
	of := map[string]firing{
		"RecordsDLQAlarm": deadLetter, "DeliveriesDLQAlarm": deadLetter, "IndexJobsDLQAlarm": deadLetter, "ParkAlarm": deadLetter,
		"DispatcherAgeAlarm": streamAge, "IndexerAgeAlarm": streamAge,
		"RecordsAgeAlarm": age(900), "ImportsAgeAlarm": age(6 * 3600), "IndexJobsAgeAlarm": age(1800),
		"DeliveriesAgeAlarm": age(3600), "SlowDeliveriesAgeAlarm": age(4 * 3600),
		"RecordsInFlightAlarm": inFlight, "DeliveriesInFlightAlarm": inFlight, "SlowDeliveriesInFlightAlarm": inFlight,
		"ApiErrorsAlarm":          {after: 3 * time.Minute, breach: repeated(98, 2), calm: repeated(99, 1)},
		"ClaimedConcurrencyAlarm": {after: 3 * time.Minute, breach: []float64{801}, calm: []float64{800}},
		"FunctionThrottlesAlarm":  some(3 * time.Minute), "TableThrottlesAlarm": some(3 * time.Minute), "GSI1ThrottlesAlarm": some(3 * time.Minute),
		"RecursionAlarm": some(time.Minute), "QueriesTooLargeAlarm": some(5 * time.Minute), "IndexJobStalledAlarm": some(24 * time.Hour),
		"RefusedCredentialsAlarm":       {after: 5 * time.Minute, breach: repeated(0, 1001), calm: repeated(0, 1000)},
		"SweeperSilentAlarm":            silent(5 * time.Minute),
		"AuthorizerFunctionErrorsAlarm": {after: 15 * time.Minute, breach: repeated(94, 6), calm: repeated(95, 5)},
	}
	for _, name := range []string{"Records", "Imports", "Deliveries", "SlowDeliveries", "IndexJobs"} {
		of[name+"UnpolledAlarm"] = silent(15 * time.Minute)
	}
	for _, name := range []string{"Developers", "Webhooks", "Api", "Receipts", "Portal", "Ingest", "Dispatcher", "Indexer", "Worker", "Sweeper"} {
		of[name+"FunctionErrorsAlarm"] = firing{after: 5 * time.Minute, breach: repeated(1, 6), calm: repeated(1, 5)}
	}
	return of
}

// Each alarm goes off at its limit, and not before.
func TestEachAlarmGoesOff(t *testing.T) {
	rows := firings()
	for id, a := range alarms(t, stack(t)) {
		row, ok := rows[id]
		delete(rows, id)
		if !ok {
			t.Errorf("%s has no row", id)
			continue
		}
		t.Run(id, func(t *testing.T) { row.check(t, id, a) })
	}
	for id := range rows {
		t.Errorf("the template has no %s", id)
	}
}

func (row *firing) check(t *testing.T, id string, a *alarm) {
	_, metrics := a.expression()
	// samples are those of all metrics, of which the i-th breaches.
	samples := func(breaching int) [][]float64 {
		all := make([][]float64, len(metrics))
		for i := range all {
			all[i] = row.calm
			if i == breaching || row.all && breaching >= 0 {
				all[i] = row.breach
			}
		}
		return all
	}
	for i, m := range metrics {
		if !a.breaches(t, samples(i)) {
			t.Errorf("%v of %s does not set it off", row.breach, m.MetricStat.Metric.MetricName)
		}
		if after := m.MetricStat.Period * time.Duration(a.EvaluationPeriods); after != row.after || a.DatapointsToAlarm != 0 {
			t.Errorf("it goes off after %v, or fewer data points; want %v", after, row.after)
		}
	}
	if a.breaches(t, samples(-1)) {
		t.Errorf("%v sets it off", row.calm)
	}
	want := row.breach == nil || strings.HasSuffix(id, "erAgeAlarm") // dispatcher's and indexer's
	if got := a.breaches(t, make([][]float64, len(metrics))); got != want {
		t.Errorf("missing data sets it off: %t, want %t", got, want)
	}
}

func TestTheAlarmOnConcurrencyGoesByTheAccountsQuota(t *testing.T) {
	a := alarms(t, stack(t, "AccountConcurrency=5000"))["ClaimedConcurrencyAlarm"]
	if expression, _ := a.expression(); expression != "claimed / 5000" {
		t.Errorf("expression %q, want a share of 5000", expression)
	}
}

// known has the dimensions of each metric, as AWS documents them. An alarm on a metric without data is silent.
var known = map[string]string{
	"AWS/SQS ApproximateNumberOfMessagesVisible":    "QueueName",
	"AWS/SQS ApproximateNumberOfMessagesNotVisible": "QueueName",
	"AWS/SQS ApproximateAgeOfOldestMessage":         "QueueName",
	"AWS/SQS NumberOfEmptyReceives":                 "QueueName",
	"AWS/SQS NumberOfMessagesReceived":              "QueueName",
	"AWS/Lambda IteratorAge":                        "FunctionName",
	"AWS/Lambda Errors":                             "FunctionName",
	"AWS/Lambda Throttles":                          "FunctionName",
	"AWS/Lambda RecursiveInvocationsDropped":        "FunctionName",
	"AWS/Lambda ClaimedAccountConcurrency":          "",
	"AWS/ApiGateway 5XXError":                       "ApiName Stage",
	"AWS/DynamoDB ReadThrottleEvents":               "TableName",
	"AWS/DynamoDB WriteThrottleEvents":              "TableName",
}

type metricFilter struct {
	FilterPattern         string
	MetricTransformations []struct{ MetricNamespace, MetricName string }
}

// metricFilters are those of the stack by the namespace and name of their metric.
func metricFilters(t *testing.T, m *Model) map[string]metricFilter {
	t.Helper()
	all := map[string]metricFilter{}
	for id, resource := range m.Resources {
		if resource.Type == "AWS::Logs::MetricFilter" {
			f := properties[metricFilter](t, m, id)
			all[f.MetricTransformations[0].MetricNamespace+" "+f.MetricTransformations[0].MetricName] = f
		}
	}
	return all
}

func TestAlarmsTakeMetricsThatThereAre(t *testing.T) {
	m := stack(t)
	counted := metricFilters(t, m)
	for id, a := range alarms(t, m) {
		_, metrics := a.expression()
		for _, q := range metrics {
			metric := q.MetricStat.Metric
			name := metric.Namespace + " " + metric.MetricName
			var dimensions []string
			for _, d := range metric.Dimensions {
				dimensions = append(dimensions, d.Name)
			}
			want, ok := known[name]
			if id == "GSI1ThrottlesAlarm" {
				want += " GlobalSecondaryIndexName"
			}
			_, own := counted[name]
			if got := strings.Join(dimensions, " "); !ok && !own || got != want {
				t.Errorf("%s: %s has the dimensions %q, want %q", id, name, got, want)
			}
		}
	}
}

// A metric filter whose message nobody logs makes its alarm silent.
func TestMetricFiltersMatchMessagesThatAreLogged(t *testing.T) {
	code := sources(t, "pkg")
	filters := metricFilters(t, stack(t))
	if len(filters) == 0 {
		t.Error("no metric filter is found")
	}
	for name, f := range filters {
		messages := regexp.MustCompile(`\$\.message = ("[^"]+")`).FindAllStringSubmatch(f.FilterPattern, -1)
		if len(messages) == 0 {
			t.Errorf("%s: no message in %s", name, f.FilterPattern)
		}
		for _, message := range messages {
			if !strings.Contains(code, message[1]) {
				t.Errorf("%s: nothing logs the message %s", name, message[1])
			}
		}
	}
}

func TestEveryFunctionQueueAndIndexHasItsAlarms(t *testing.T) {
	m := stack(t)
	watched := map[string]bool{}
	for _, a := range alarms(t, m) {
		_, metrics := a.expression()
		for _, q := range metrics {
			for _, d := range q.MetricStat.Metric.Dimensions {
				watched[q.MetricStat.Metric.MetricName+" "+strings.TrimSuffix(d.Value, ".QueueName")] = true
			}
		}
	}
	must := func(on string, metrics ...string) {
		for _, metric := range metrics {
			if !watched[metric+" "+on] {
				t.Errorf("no alarm is on %s of %s", metric, on)
			}
		}
	}
	for _, f := range m.Functions {
		must(f.LogicalID, "Errors")
		if f.LogicalID != "PortalFunction" { // an alarm sums ten metrics; ApiErrorsAlarm counts the portal's failures
			must(f.LogicalID, "Throttles", "RecursiveInvocationsDropped")
		}
		if len(f.Streams) > 0 {
			must(f.LogicalID, "IteratorAge")
		}
		for _, source := range f.Queues {
			must(source.Queue, "ApproximateAgeOfOldestMessage", "NumberOfEmptyReceives")
			must(m.Queues[source.Queue].DeadLetterQueue, "ApproximateNumberOfMessagesVisible")
		}
	}
	must("ParkQueue", "ApproximateNumberOfMessagesVisible")
	// Past about 120,000 messages in flight a queue gives out none, without an error.
	for _, queue := range []string{"RecordsQueue", "DeliveriesQueue", "SlowDeliveriesQueue"} {
		must(queue, "ApproximateNumberOfMessagesNotVisible")
	}
	for _, index := range m.Table.Create.GlobalSecondaryIndexes {
		must(*index.IndexName, "WriteThrottleEvents")
	}
}

// TestTheRunbookHasEveryAlarm holds the section Alarms of OPERATING to the template, and its figures of what alarms cost.
func TestTheRunbookHasEveryAlarm(t *testing.T) {
	_, section, _ := strings.Cut(read(t, "pkg", "ops", "OPERATING.md"), "## Alarms\n")
	section, _, _ = strings.Cut(section, "\n## ")
	found := map[string]int{}
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
	all, metrics := alarms(t, stack(t)), 0
	for id, a := range all {
		_, own := a.expression()
		metrics += len(own)
		if found[id] != 1 {
			t.Errorf("%s has %d entries", id, found[id])
		}
		delete(found, id)
	}
	for id := range found {
		t.Errorf("the template has no %s", id)
	}
	want := fmt.Sprintf("%d alarms over %d metrics cost $%.2f a month", len(all), metrics, float64(metrics)*0.10)
	if !strings.Contains(strings.Join(strings.Fields(section), " "), want) {
		t.Errorf("the section does not say %q", want)
	}
}
