// Package alarmtest decides for tests whether an alarm of the template goes
// off. Its evaluator takes what the template says of an alarm (metrics,
// statistics, expression, threshold, periods, missing data) and the samples of
// each metric, as CloudWatch's documentation describes it: the latest
// EvaluationPeriods are looked at, and DatapointsToAlarm of them must breach.
// What the template does not use, such as another expression, fails the test.
package alarmtest

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/go-json-experiment/json"

	"github.com/commerce-integration/service/pkg/local/template"
)

// Series is what a metric got: the samples of each period, the latest last. A
// period without samples is one of missing data.
type Series [][]float64

// Steady is a series of the same samples in so many periods.
func Steady(periods int, samples ...float64) Series {
	return slices.Repeat(Series{samples}, periods)
}

// Fires reports whether the alarm is in the state ALARM after these samples,
// in the order of its metrics.
func Fires(t testing.TB, a *template.Alarm, metrics ...Series) bool {
	t.Helper()
	if len(metrics) != len(a.Metrics) {
		t.Fatalf("%s has %d metrics, and got samples of %d", a.LogicalID, len(a.Metrics), len(metrics))
	}
	breaching := 0
	for back := range a.Evaluations {
		points := map[string]float64{}
		var order []string
		for i, series := range metrics {
			m := &a.Metrics[i]
			at := len(series) - 1 - back
			if at < 0 || len(series[at]) == 0 {
				continue
			}
			points[m.ID] = statistic(t, m.Statistic, series[at])
			order = append(order, m.ID)
		}
		point, missing := expression(t, a.Expression, points, order)
		if missing && a.MissingData == "breaching" || !missing && breaches(t, a, point) {
			breaching++
		}
		if missing && a.MissingData != "breaching" && a.MissingData != "notBreaching" {
			t.Fatalf("%s: missing data is %q", a.LogicalID, a.MissingData)
		}
	}
	return breaching >= a.Datapoints
}

func statistic(t testing.TB, name string, samples []float64) float64 {
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

var share = regexp.MustCompile(`^(\w+) / (\d+)$`)

// expression is an expression's value in one period. SUM leaves missing data
// out; a quotient of missing data is missing.
func expression(t testing.TB, text string, points map[string]float64, order []string) (point float64, missing bool) {
	t.Helper()
	switch match := share.FindStringSubmatch(text); {
	case len(order) == 0:
		return 0, true
	case text == "":
		return points[order[0]], false
	case text == "SUM(METRICS())":
		for _, id := range order {
			point += points[id]
		}
		return point, false
	case match != nil:
		divisor, _ := strconv.ParseFloat(match[2], 64)
		dividend, ok := points[match[1]]
		return dividend / divisor, !ok
	}
	t.Fatalf("unknown expression %q", text)
	return 0, true
}

func breaches(t testing.TB, a *template.Alarm, point float64) bool {
	t.Helper()
	switch a.Comparison {
	case "GreaterThanThreshold":
		return point > a.Threshold
	case "LessThanThreshold":
		return point < a.Threshold
	}
	t.Fatalf("%s: unknown comparison %q", a.LogicalID, a.Comparison)
	return false
}

// FiresByLog holds that an alarm goes off by a log, whose lines are JSON as the
// functions write them (with slog's own names or Lambda's), and not by other
// lines: its metric filter takes some of these.
func FiresByLog(t testing.TB, m *template.Model, alarm, log string) {
	t.Helper()
	a, ok := m.Alarms[alarm]
	if !ok || len(a.Metrics) != 1 {
		t.Fatalf("the template has no alarm %s of one metric", alarm)
	}
	taken := Taken(t, m, &a.Metrics[0], log)
	if taken == 0 {
		t.Errorf("%s: its metric filter takes no line of\n%s", alarm, log)
	}
	threshold := int(a.Threshold)
	one := []float64{float64(taken)}
	if a.Comparison == "LessThanThreshold" {
		if Fires(t, &a, Series{one}) {
			t.Errorf("%s goes off by what the log says, want it not to", alarm)
		}
		return
	}
	if !Fires(t, &a, Series{slices.Repeat([]float64{1}, threshold+1)}) {
		t.Errorf("%s does not go off by %d lines", alarm, threshold+1)
	}
}

// Taken is how many lines of the log the metric's filter takes.
func Taken(t testing.TB, m *template.Model, metric *template.AlarmMetric, log string) int {
	t.Helper()
	taken := 0
	for _, f := range m.MetricFilters {
		if f.Namespace != metric.Namespace || f.Name != metric.Name {
			continue
		}
		for line := range strings.Lines(log) {
			matches, err := Matches(f.Pattern, line)
			if err != nil {
				t.Fatalf("%s: %v", f.LogicalID, err)
			}
			if matches {
				taken++
			}
		}
	}
	return taken
}

var (
	pattern   = regexp.MustCompile(`^\{ (.*) \}$`)
	condition = regexp.MustCompile(`^\$\.(\w+) = "([^"]*)"$`)
)

// Matches reports whether a filter pattern takes a line. It knows conditions
// on texts of the top level, joined by && or by ||.
func Matches(filter, line string) (bool, error) {
	inner := pattern.FindStringSubmatch(filter)
	if inner == nil || strings.Contains(filter, "&&") && strings.Contains(filter, "||") {
		return false, fmt.Errorf("unknown pattern %s", filter)
	}
	fields := map[string]any{}
	if json.Unmarshal([]byte(line), &fields) != nil {
		return false, nil // a line that is no JSON matches nothing
	}
	if message, ok := fields["msg"]; ok {
		fields["message"] = message
	}
	all, anyOne := true, false
	for part := range strings.SplitSeq(strings.ReplaceAll(inner[1], "||", "&&"), " && ") {
		c := condition.FindStringSubmatch(part)
		if c == nil {
			return false, fmt.Errorf("unknown condition %s", part)
		}
		holds := fields[c[1]] == c[2]
		all, anyOne = all && holds, anyOne || holds
	}
	return all || anyOne && strings.Contains(filter, "||"), nil
}
