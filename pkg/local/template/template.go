// Package template reads the templates of the service's stack and of its state's (pkg/app/state) into a model of what they
// deploy: routes, authorizers, gateway responses, functions with their event sources, table, queues and alarms. The
// model is what AWS would make of the same files; a construct that the package does not understand is an error where it matters, never
// a guess. Other packages of the local runner run the model.
package template

import (
	"errors"
	"fmt"
	"os"
	"path"
	"strconv"
	"strings"
	"time"

	"github.com/commerce-integration/service/pkg/app/state"
)

// Model holds both stacks, resolved.
type Model struct {
	// Parameters holds the effective value of every parameter of the service.
	Parameters map[string]string
	API        API
	// Functions by name, which is the folder of their code: functions/<name>.
	Functions map[string]Function
	Table     Table
	// Queues by logical id.
	Queues map[string]Queue
	// Alarms by logical id.
	Alarms map[string]Alarm
	// MetricFilters by logical id.
	MetricFilters map[string]MetricFilter
}

// Load reads the service's template in a file, and resolves it beside the state's. See [Resolve].
func Load(file string, values map[string]string) (*Model, error) {
	source, err := os.ReadFile(file)
	if err != nil {
		return nil, fmt.Errorf("read template: %w", err)
	}
	model, err := Resolve(source, state.Template, values)
	if err != nil {
		return nil, fmt.Errorf("template %s: %w", file, err)
	}
	return model, nil
}

// Resolve parses the templates of the service and of its state and resolves them with values, which override parameters
// by name and are the values of a Ref ("Table") or an attribute ("Table.StreamArn") of a resource. The outputs of the
// state are the service's parameters of the same names. The name of a queue is its logical id; the value of another
// resource is its logical id, too. A parameter without value and default, and a value whose name is in neither template,
// are errors.
func Resolve(service, state []byte, values map[string]string) (*Model, error) {
	both, err := resolvers(service, state, values)
	if err != nil {
		return nil, err
	}
	model := &Model{
		Functions: map[string]Function{}, Queues: map[string]Queue{},
		Alarms: map[string]Alarm{}, MetricFilters: map[string]MetricFilter{},
	}
	var errs []error
	for _, r := range both {
		x := &extractor{resolver: r, functionOf: map[string]string{}}
		x.read(model)
		errs = append(errs, x.errs...)
	}
	if err := errors.Join(errs...); err != nil {
		return nil, err
	}
	return model, nil
}

// extractor reads the model out of the resources. It collects errors, so that one run shows all of them.
type extractor struct {
	*resolver
	functionOf map[string]string // a function's name by logical id
	errs       []error
}

func (x *extractor) fail(at *node, format string, args ...any) {
	line := 0
	if at != nil {
		line = at.line
	}
	x.errs = append(x.errs, fmt.Errorf("line %d: %w", line, fmt.Errorf(format, args...)))
}

// read adds the template's resources to the model.
func (x *extractor) read(m *Model) {
	m.Parameters = x.parameters
	resources := x.root.get("Resources")
	for id, resource := range resources.pairs() {
		if x.text(resource.get("Type")) == "AWS::Serverless::Function" {
			x.functionOf[id] = path.Base(x.text(resource.get("Properties", "CodeUri")))
		}
	}
	for id, resource := range resources.pairs() {
		properties := resource.get("Properties")
		switch x.text(resource.get("Type")) {
		case "AWS::Serverless::Function":
			f := x.function(id, properties)
			m.Functions[f.Name] = f
		case "AWS::Serverless::Api":
			m.API = x.api(properties)
		case "AWS::DynamoDB::Table":
			m.Table = x.table(id, properties)
		case "AWS::SQS::Queue":
			m.Queues[id] = x.queue(id, properties)
		case "AWS::CloudWatch::Alarm":
			m.Alarms[id] = x.alarm(id, properties)
		case "AWS::Logs::MetricFilter":
			m.MetricFilters[id] = x.metricFilter(id, properties)
		}
	}
	for id, resource := range resources.pairs() {
		if x.text(resource.get("Type")) == "AWS::Lambda::EventSourceMapping" {
			x.source(m, id, resource.get("Properties"))
		}
	}
}

// text returns a scalar's resolved text, "" for an absent one.
func (x *extractor) text(n *node) string {
	text, err := x.resolve(n)
	if err != nil {
		x.errs = append(x.errs, err)
	}
	return text
}

// integer returns a resolved whole number, or fallback when it is absent.
func (x *extractor) integer(n *node, fallback int) int {
	if n == nil {
		return fallback
	}
	text := x.text(n)
	i, err := strconv.Atoi(text)
	if err != nil {
		x.fail(n, "%q is no whole number", text)
	}
	return i
}

// seconds returns a resolved number of seconds.
func (x *extractor) seconds(n *node, fallback int) time.Duration {
	return time.Duration(x.integer(n, fallback)) * time.Second
}

// boolean returns a resolved true or false, false when it is absent.
func (x *extractor) boolean(n *node) bool {
	text := x.text(n)
	if text != "" && text != "true" && text != "false" {
		x.fail(n, "%q is neither true nor false", text)
	}
	return text == "true"
}

// texts returns the resolved elements of a list.
func (x *extractor) texts(n *node) []string {
	var texts []string
	for _, entry := range n.list() {
		texts = append(texts, x.text(entry))
	}
	return texts
}

// functionNamed returns the name of the function that a Ref, a GetAtt or an integration's URI names, by itself or by its
// alias.
func (x *extractor) functionNamed(n *node) string {
	id := strings.TrimSuffix(n.target(), ".Alias")
	if name, argument, ok := n.intrinsic(); ok && name == "Fn::Sub" && argument.kind == scalar {
		_, after, _ := strings.Cut(argument.text, "/functions/${")
		id, _, _ = strings.Cut(after, "}")
		id = strings.TrimSuffix(strings.TrimSuffix(id, ".Alias"), ".Arn")
	}
	name := x.functionOf[id]
	if name == "" {
		x.fail(n, "names no function of this template")
	}
	return name
}
