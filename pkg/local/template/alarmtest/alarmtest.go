// Package alarmtest checks whether an alarm of the template counts what the log says.
package alarmtest

import (
	"regexp"
	"strings"
	"testing"

	"github.com/go-json-experiment/json"

	"github.com/commerce-integration/service/pkg/local/template"
)

// FiresByLog holds that the metric filter of an alarm takes a line of the log. A filter has the name of its metric. The
// lines are JSON as the functions write them, with slog's own names or Lambda's. The template's own tests hold how many
// lines set the alarm off.
func FiresByLog(t testing.TB, m *template.Model, alarm, log string) {
	t.Helper()
	var on struct{ MetricName string }
	var filter struct{ FilterPattern string }
	if err := json.Unmarshal(m.Resources[alarm].Properties, &on); err != nil {
		t.Fatalf("alarm %s: %v", alarm, err)
	}
	if err := json.Unmarshal(m.Resources[on.MetricName].Properties, &filter); err != nil {
		t.Fatalf("metric filter %s: %v", on.MetricName, err)
	}
	for line := range strings.Lines(log) {
		if matches(filter.FilterPattern, line) {
			return
		}
	}
	t.Errorf("%s: %s matches no line of\n%s", alarm, filter.FilterPattern, log)
}

var condition = regexp.MustCompile(`\$\.(\w+) = "([^"]*)"`)

// matches reports whether a filter pattern takes a line. It knows conditions on texts of the top level, joined by && or
// by ||.
func matches(pattern, line string) bool {
	fields := map[string]any{}
	if json.Unmarshal([]byte(line), &fields) != nil {
		return false // the line is not JSON
	}
	if message, ok := fields["msg"]; ok {
		fields["message"] = message
	}
	conditions, held := condition.FindAllStringSubmatch(pattern, -1), 0
	for _, c := range conditions {
		if fields[c[1]] == c[2] {
			held++
		}
	}
	return held == len(conditions) || held > 0 && strings.Contains(pattern, "||")
}
