package template

import (
	"strconv"
	"time"
)

// Alarm is a CloudWatch alarm.
type Alarm struct {
	LogicalID   string
	Description string
	// Expression is over the metrics, by their ids; "" when there is one metric.
	Expression  string
	Metrics     []AlarmMetric
	Threshold   float64
	Comparison  string // such as GreaterThanThreshold
	Evaluations int    // the latest periods that are looked at
	Datapoints  int    // of these, those that must breach
	MissingData string // such as notBreaching
}

// AlarmMetric is a metric of an alarm.
type AlarmMetric struct {
	ID         string // in the expression
	Namespace  string
	Name       string
	Dimensions map[string]string
	Statistic  string
	Period     time.Duration
}

// MetricFilter makes a metric of lines of the log.
type MetricFilter struct {
	LogicalID string
	Pattern   string
	Namespace string
	Name      string
	Value     string
}

func (x *extractor) alarm(id string, properties *node) Alarm {
	a := Alarm{
		LogicalID:   id,
		Description: x.text(properties.get("AlarmDescription")),
		Threshold:   x.decimal(properties.get("Threshold")),
		Comparison:  x.text(properties.get("ComparisonOperator")),
		Evaluations: x.integer(properties.get("EvaluationPeriods"), 1),
		MissingData: x.text(properties.get("TreatMissingData")),
	}
	a.Datapoints = x.integer(properties.get("DatapointsToAlarm"), a.Evaluations)
	if properties.get("MetricName") != nil {
		a.Metrics = []AlarmMetric{x.alarmMetric("", properties, properties.get("Statistic"), properties.get("Period"))}
	}
	for _, entry := range properties.get("Metrics").list() {
		if expression := entry.get("Expression"); expression != nil {
			a.Expression = x.text(expression)
			continue
		}
		stat := entry.get("MetricStat")
		a.Metrics = append(a.Metrics, x.alarmMetric(x.text(entry.get("Id")), stat.get("Metric"), stat.get("Stat"), stat.get("Period")))
	}
	return a
}

func (x *extractor) alarmMetric(id string, metric, statistic, period *node) AlarmMetric {
	m := AlarmMetric{
		ID: id, Namespace: x.text(metric.get("Namespace")), Name: x.text(metric.get("MetricName")),
		Dimensions: map[string]string{}, Statistic: x.text(statistic), Period: x.seconds(period, 0),
	}
	for _, dimension := range metric.get("Dimensions").list() {
		m.Dimensions[x.text(dimension.get("Name"))] = x.text(dimension.get("Value"))
	}
	return m
}

func (x *extractor) metricFilter(id string, properties *node) MetricFilter {
	f := MetricFilter{LogicalID: id, Pattern: x.text(properties.get("FilterPattern"))}
	for _, transformation := range properties.get("MetricTransformations").list() {
		f.Namespace, f.Name = x.text(transformation.get("MetricNamespace")), x.text(transformation.get("MetricName"))
		f.Value = x.text(transformation.get("MetricValue"))
	}
	return f
}

// decimal returns a resolved number.
func (x *extractor) decimal(n *node) float64 {
	text := x.text(n)
	f, err := strconv.ParseFloat(text, 64)
	if err != nil {
		x.fail(n, "%q is no number", text)
	}
	return f
}
