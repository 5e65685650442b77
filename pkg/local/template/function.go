package template

import (
	"fmt"
	"path"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
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

// QueueSource invokes a function with the messages of a queue. The function's answer names failed messages.
type QueueSource struct {
	ID             string // of the event source mapping
	Queue          string // logical id
	BatchSize      int
	MaxConcurrency int // 0 for no bound
}

// StreamSource invokes a function with the changes of the table, of which it gives up none. A batch does not wait to fill.
// The function's answer names the first failed record. A batch whose invocation failed is halved.
type StreamSource struct {
	ID                    string // of the event source mapping
	BatchSize             int
	ParallelizationFactor int
	Filters               []string // JSON patterns, any of which lets a record through
}

// Schedule invokes a function regularly.
type Schedule struct {
	ID    string
	Every time.Duration
}

// function reads a function, whose properties are in place of the globals.
func (m *Model) function(r *resolver, id string, properties jsontext.Value) error {
	declared := struct {
		CodeURI     string `json:"CodeUri"`
		Timeout     time.Duration
		MemorySize  int
		Environment struct{ Variables map[string]string }
		Policies    []policy
		Events      map[string]struct {
			Properties struct{ Schedule string }
		}
	}{Timeout: 3 * time.Second, MemorySize: 128}
	globals, err := r.tree(below(r.root, "Globals", "Function"))
	if err != nil {
		return err
	}
	shared, err := json.Marshal(globals)
	if err != nil {
		return err
	}
	for _, level := range []jsontext.Value{shared, properties} {
		if err := decode(level, &declared); err != nil {
			return err
		}
	}
	f := Function{
		Name: path.Base(declared.CodeURI), LogicalID: id, Timeout: declared.Timeout, MemoryMB: declared.MemorySize, Environment: declared.Environment.Variables,
	}
	if f.Permissions, err = permissions(declared.Policies); err != nil {
		return err
	}
	for name, event := range declared.Events {
		every, err := rate(event.Properties.Schedule)
		if err != nil {
			return fmt.Errorf("event %s: %w", name, err)
		}
		f.Schedules = append(f.Schedules, Schedule{ID: id + name, Every: every})
	}
	m.Functions[f.Name] = f
	return nil
}

// rate reads a rate of minutes.
func rate(expression string) (time.Duration, error) {
	var minutes int
	if _, err := fmt.Sscanf(expression, "rate(%d minute", &minutes); err != nil || minutes < 1 {
		return 0, fmt.Errorf("schedule %q is not supported, only rates of minutes", expression)
	}
	return time.Duration(minutes) * time.Minute, nil
}

// mapping is an event source mapping. A local run takes the rest for granted, and the template's tests hold it.
type mapping struct {
	FunctionName          string
	EventSourceARN        string `json:"EventSourceArn"`
	BatchSize             int
	ParallelizationFactor int
	ScalingConfig         struct{ MaximumConcurrency int }
	FilterCriteria        struct{ Filters []struct{ Pattern string } }
}

// source adds an event source mapping to its function.
func (m *Model) source(_ *resolver, id string, properties jsontext.Value) error {
	declared := mapping{ParallelizationFactor: 1}
	if err := decode(properties, &declared); err != nil {
		return err
	}
	name, err := m.functionNamed(declared.FunctionName)
	if err != nil {
		return err
	}
	f, queue := m.Functions[name], m.queueOf(declared.EventSourceARN)
	switch {
	case declared.EventSourceARN == m.Table.StreamARN:
		stream := StreamSource{ID: id, BatchSize: declared.BatchSize, ParallelizationFactor: declared.ParallelizationFactor}
		for _, filter := range declared.FilterCriteria.Filters {
			stream.Filters = append(stream.Filters, filter.Pattern)
		}
		f.Streams = append(f.Streams, stream)
	case queue != "":
		f.Queues = append(f.Queues, QueueSource{
			ID: id, Queue: queue, BatchSize: declared.BatchSize, MaxConcurrency: declared.ScalingConfig.MaximumConcurrency,
		})
	default:
		return fmt.Errorf("source %q is neither the table's stream nor a queue", declared.EventSourceARN)
	}
	m.Functions[name] = f
	return nil
}

// queueOf returns the logical id of a queue, "" for another ARN.
func (m *Model) queueOf(arn string) string {
	for id, queue := range m.Queues {
		if queue.ARN == arn {
			return id
		}
	}
	return ""
}
