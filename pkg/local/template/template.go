// Package template reads the templates of the service's stack and of its state's (pkg/app/state) into a model of what a local
// run needs: routes, authorizers, gateway responses, functions with their event sources, table and queues. Other
// packages run the model. An intrinsic function that the package does not know is an error; a property that it does not
// know is left out.
package template

import (
	"fmt"
	"maps"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/commerce-integration/service/pkg/app/state"
)

// Model holds both stacks, resolved.
type Model struct {
	API API
	// Functions by name, which is the folder of their code: functions/<name>.
	Functions map[string]Function
	Table     Table
	// Queues by logical id.
	Queues map[string]Queue
	// Resources of both stacks by logical id, whatever their conditions.
	Resources map[string]Resource
}

// Resource is a resource with its references resolved. Every scalar is a JSON string.
type Resource struct {
	Type       string
	Properties jsontext.Value
}

// Load reads the service's template in a file, and resolves it together with the state's. See [Resolve].
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

// Resolve reads the templates of the service and of its state. The values override parameters by name and are the values
// of a Ref ("Table") or an attribute ("Table.StreamArn") of a resource. The outputs of the state are the service's
// parameters of the same names. The name of a queue is its logical id; the value of another resource is its logical id,
// too. It fails when a parameter has neither value nor default, and when neither template has the name of a value.
func Resolve(service, state []byte, values map[string]string) (*Model, error) {
	r, err := newResolver(service, state, values)
	if err != nil {
		return nil, err
	}
	m := &Model{Functions: map[string]Function{}, Queues: map[string]Queue{}, Resources: map[string]Resource{}}
	if err := m.addResources(r); err != nil {
		return nil, err
	}
	return m, m.extract(r)
}

// addResources adds the resources, whatever their conditions.
func (m *Model) addResources(r *resolver) error {
	for id, resource := range below(r.root, "Resources") {
		properties, err := r.tree(below(resource, "Properties"))
		if err != nil {
			return fmt.Errorf("%s: %w", id, err)
		}
		text, err := json.Marshal(properties)
		if err != nil {
			return fmt.Errorf("%s: %w", id, err)
		}
		m.Resources[id] = Resource{textAt(resource, "Type"), text}
	}
	return nil
}

// extract reads the resources, functions before what names them.
func (m *Model) extract(r *resolver) error {
	for _, kind := range []struct {
		name    string
		extract func(r *resolver, id string, properties jsontext.Value) error
	}{
		{"AWS::DynamoDB::Table", m.table},
		{"AWS::SQS::Queue", m.queue},
		{"AWS::Serverless::Function", m.function},
		{"AWS::Serverless::Api", m.api},
		{"AWS::Lambda::EventSourceMapping", m.source},
	} {
		for _, id := range slices.Sorted(maps.Keys(m.Resources)) {
			if m.Resources[id].Type != kind.name {
				continue
			}
			if err := kind.extract(r, id, m.Resources[id].Properties); err != nil {
				return fmt.Errorf("%s: %w", id, err)
			}
		}
	}
	return nil
}

// decode reads resolved properties, whose scalars are texts, also numbers and seconds.
func decode(properties jsontext.Value, into any) error {
	return json.Unmarshal(properties, into, json.WithUnmarshalers(json.JoinUnmarshalers(
		json.UnmarshalFunc(func(text []byte, i *int) (err error) {
			*i, err = strconv.Atoi(unquoted(text))
			return err
		}),
		json.UnmarshalFunc(func(text []byte, i *int64) (err error) {
			*i, err = strconv.ParseInt(unquoted(text), 10, 64)
			return err
		}),
		json.UnmarshalFunc(func(text []byte, d *time.Duration) error {
			seconds, err := strconv.Atoi(unquoted(text))
			*d = time.Duration(seconds) * time.Second
			return err
		}),
		json.UnmarshalFunc(func(text []byte, all *oneOrMore) error {
			if text[0] != '[' {
				text = slices.Concat([]byte{'['}, text, []byte{']'})
			}
			return json.Unmarshal(text, (*[]string)(all))
		}),
	)))
}

// oneOrMore is a list of texts, or one text in its place.
type oneOrMore []string

func unquoted(text []byte) string { return strings.Trim(string(text), `"`) }

// functionNamed returns the name of the function that a reference leads to: by its logical id, an attribute of it, or an
// integration's URI, which has either between slashes.
func (m *Model) functionNamed(reference string) (string, error) {
	if _, rest, ok := strings.Cut(reference, "/functions/"); ok {
		reference = strings.TrimSuffix(rest, "/invocations")
	}
	id, _, _ := strings.Cut(reference, ".")
	for name, f := range m.Functions {
		if f.LogicalID == id {
			return name, nil
		}
	}
	return "", fmt.Errorf("%q names no function of this template", reference)
}
