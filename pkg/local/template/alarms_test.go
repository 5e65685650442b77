package template

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
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

// rule says when the alarm goes off: by which statistics, in how many periods in a row, and whether by missing data.
func (a *alarm) rule() string {
	expression, metrics := a.expression()
	statistics := map[string]bool{}
	for _, m := range metrics {
		statistics[m.MetricStat.Stat+" of "+m.MetricStat.Period.String()] = true
	}
	rule := strings.Join(slices.Sorted(maps.Keys(statistics)), ", ")
	if expression != "" {
		rule = expression + " by " + rule
	}
	comparison := map[string]string{"GreaterThanThreshold": ">", "LessThanThreshold": "<"}[a.ComparisonOperator]
	rule += fmt.Sprintf(" %s %v, %d times", comparison, a.Threshold, a.EvaluationPeriods)
	if a.DatapointsToAlarm != 0 {
		rule += fmt.Sprintf(", of them %d", a.DatapointsToAlarm)
	}
	if a.TreatMissingData != "notBreaching" {
		rule += " or " + a.TreatMissingData
	}
	return rule
}

// rules has the rule of every alarm.
func rules() map[string]string {
	const (
		some     = "Maximum of 1m0s > 0, 1 times"
		inFlight = "Maximum of 1m0s > 60000, 1 times"
		throttle = "SUM(METRICS()) by Sum of 1m0s > 0, 3 times"
	)
	of := map[string]string{
		"RecordsDLQAlarm": some, "DeliveriesDLQAlarm": some, "IndexJobsDLQAlarm": some, "ParkAlarm": some,
		"DispatcherAgeAlarm":     "Maximum of 1m0s > 60000, 5 times or breaching",
		"IndexerAgeAlarm":        "Maximum of 1m0s > 300000, 5 times or breaching",
		"RecordsAgeAlarm":        "Maximum of 1m0s > 900, 3 times",
		"ImportsAgeAlarm":        "Maximum of 1m0s > 21600, 3 times",
		"IndexJobsAgeAlarm":      "Maximum of 1m0s > 1800, 3 times",
		"DeliveriesAgeAlarm":     "Maximum of 1m0s > 3600, 3 times",
		"SlowDeliveriesAgeAlarm": "Maximum of 1m0s > 14400, 3 times",
		"RecordsInFlightAlarm":   inFlight, "DeliveriesInFlightAlarm": inFlight, "SlowDeliveriesInFlightAlarm": inFlight,
		"ApiErrorsAlarm":          "Average of 1m0s > 0.01, 3 times",
		"ClaimedConcurrencyAlarm": "claimed / 1000 by Maximum of 1m0s > 0.8, 3 times",
		"FunctionThrottlesAlarm":  throttle, "TableThrottlesAlarm": throttle, "GSI1ThrottlesAlarm": throttle,
		"RecursionAlarm":                "SUM(METRICS()) by Sum of 1m0s > 0, 1 times",
		"QueriesTooLargeAlarm":          "Sum of 5m0s > 0, 1 times",
		"IndexJobStalledAlarm":          "Sum of 24h0m0s > 0, 1 times",
		"RefusedCredentialsAlarm":       "Sum of 5m0s > 1000, 1 times",
		"SweeperSilentAlarm":            "Sum of 5m0s < 1, 1 times or breaching",
		"AuthorizerFunctionErrorsAlarm": "Average of 5m0s > 0.05, 3 times",
	}
	for _, name := range []string{"Records", "Imports", "Deliveries", "SlowDeliveries", "IndexJobs"} {
		of[name+"UnpolledAlarm"] = "SUM(METRICS()) by Sum of 5m0s < 1, 3 times or breaching"
	}
	for _, name := range []string{"Developers", "Webhooks", "Api", "Receipts", "Portal", "Ingest", "Dispatcher", "Indexer", "Worker", "Sweeper"} {
		of[name+"FunctionErrorsAlarm"] = "Sum of 5m0s > 5, 1 times"
	}
	return of
}

func TestEachAlarmGoesOffByItsRule(t *testing.T) {
	got := map[string]string{}
	for id, a := range alarms(t, stack(t)) {
		got[id] = a.rule()
	}
	if diff := cmp.Diff(rules(), got); diff != "" {
		t.Errorf("rules (-want +got):\n%s", diff)
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
