package template

import (
	"regexp"
	"slices"
	"strconv"
	"time"
)

// Function is a Lambda function with its event sources other than the API.
type Function struct {
	Name        string // folder of its code: functions/<name>
	LogicalID   string
	Timeout     time.Duration
	MemoryMB    int
	Environment map[string]string
	Permissions []Permission
	Queues      []QueueSource
	Streams     []StreamSource
	Schedules   []Schedule
}

// QueueSource invokes a function with the messages of a queue.
type QueueSource struct {
	ID             string // of the event source mapping
	Queue          string // logical id
	BatchSize      int
	MaxConcurrency int  // 0 for no bound
	ReportFailures bool // the function's answer names failed messages
}

// StreamSource invokes a function with the changes of the table, of which it gives up none.
type StreamSource struct {
	ID                    string // of the event source mapping
	BatchSize             int
	Window                time.Duration // how long a batch may wait to fill
	ParallelizationFactor int
	Bisect                bool     // halves a batch whose invocation failed
	ReportFailures        bool     // the function's answer names the first failed record
	Filters               []string // JSON patterns, any of which lets a record through; none lets all
}

// Schedule invokes a function regularly.
type Schedule struct {
	ID    string
	Every time.Duration
}

func (x *extractor) function(id string, properties *node) Function {
	globals := x.root.get("Globals", "Function")
	either := func(key string) *node {
		if own := properties.get(key); own != nil {
			return own
		}
		return globals.get(key)
	}
	f := Function{
		Name:        x.functionOf[id],
		LogicalID:   id,
		Timeout:     x.seconds(either("Timeout"), 3),
		MemoryMB:    x.integer(either("MemorySize"), 128),
		Environment: map[string]string{},
		Permissions: x.permissions(properties.get("Policies")),
	}
	for _, level := range []*node{globals, properties} {
		for name, value := range level.get("Environment", "Variables").pairs() {
			f.Environment[name] = x.text(value)
		}
	}
	for name, event := range properties.get("Events").pairs() {
		if kind := x.text(event.get("Type")); kind != "Schedule" {
			x.fail(event, "event %s of %s: type %q is not supported, only Schedule", name, id, kind)
			continue
		}
		f.Schedules = append(f.Schedules, x.schedule(id+name, event.get("Properties", "Schedule")))
	}
	return f
}

// schedule reads a rate expression. As in AWS, the unit is singular exactly when the value is 1.
func (x *extractor) schedule(id string, n *node) Schedule {
	expression := x.text(n)
	parts := regexp.MustCompile(`^rate\(([1-9][0-9]{0,5}) (minute|hour|day)(s?)\)$`).FindStringSubmatch(expression)
	if parts == nil || (parts[1] == "1") != (parts[3] == "") {
		x.fail(n, "schedule %q is not supported, only rates like rate(1 minute) and rate(2 hours)", expression)
		return Schedule{ID: id, Every: time.Minute}
	}
	count, _ := strconv.Atoi(parts[1]) // up to six digits
	units := map[string]time.Duration{"minute": time.Minute, "hour": time.Hour, "day": 24 * time.Hour}
	return Schedule{ID: id, Every: time.Duration(count) * units[parts[2]]}
}

// source adds an event source mapping to its function.
func (x *extractor) source(m *Model, id string, properties *node) {
	function := m.Functions[x.functionNamed(properties.get("FunctionName"))]
	arn := x.text(properties.get("EventSourceArn"))
	if arn == m.Table.StreamARN && arn != "" {
		if m.Table.StreamView == "" {
			x.fail(properties, "%s: table %s has no stream", id, m.Table.LogicalID)
		}
		function.Streams = append(function.Streams, x.streamSource(id, properties))
		m.Functions[function.Name] = function
		return
	}
	for _, queue := range m.Queues {
		if queue.ARN == arn {
			function.Queues = append(function.Queues, x.queueSource(id, queue.LogicalID, properties))
			m.Functions[function.Name] = function
			return
		}
	}
	x.fail(properties, "%s: source %q is neither the table nor a queue", id, arn)
}

func (x *extractor) queueSource(id, queue string, properties *node) QueueSource {
	for _, name := range []string{"MaximumBatchingWindowInSeconds", "FilterCriteria"} {
		if n := properties.get(name); n != nil {
			x.fail(n, "%s: %s is not supported for a queue", id, name)
		}
	}
	return QueueSource{
		ID:             id,
		Queue:          queue,
		BatchSize:      x.integer(properties.get("BatchSize"), 10),
		MaxConcurrency: x.integer(properties.get("ScalingConfig", "MaximumConcurrency"), 0),
		ReportFailures: x.reportsFailures(properties),
	}
}

func (x *extractor) streamSource(id string, properties *node) StreamSource {
	for _, name := range []string{"MaximumRetryAttempts", "MaximumRecordAgeInSeconds"} {
		if n := properties.get(name); x.integer(n, -1) != -1 {
			x.fail(n, "%s: %s %s is not supported, only -1", id, name, x.text(n))
		}
	}
	if n := properties.get("StartingPosition"); x.text(n) != "TRIM_HORIZON" {
		x.fail(properties, "%s: StartingPosition %q is not supported, only TRIM_HORIZON", id, x.text(n))
	}
	return StreamSource{
		ID:                    id,
		BatchSize:             x.integer(properties.get("BatchSize"), 100),
		Window:                x.seconds(properties.get("MaximumBatchingWindowInSeconds"), 0),
		ParallelizationFactor: x.integer(properties.get("ParallelizationFactor"), 1),
		Bisect:                x.boolean(properties.get("BisectBatchOnFunctionError")),
		ReportFailures:        x.reportsFailures(properties),
		Filters:               x.filters(properties),
	}
}

func (x *extractor) reportsFailures(properties *node) bool {
	return slices.Contains(x.texts(properties.get("FunctionResponseTypes")), "ReportBatchItemFailures")
}

func (x *extractor) filters(properties *node) []string {
	var patterns []string
	for _, filter := range properties.get("FilterCriteria", "Filters").list() {
		patterns = append(patterns, x.text(filter.get("Pattern")))
	}
	return patterns
}
