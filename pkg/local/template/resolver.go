package template

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// resolver evaluates intrinsics.
type resolver struct {
	root       *node
	parameters map[string]string
	values     map[string]string // of resources, their attributes and pseudo parameters
}

// resolvers returns the resolvers of the state and of the service, whose parameters the state's outputs are.
func resolvers(service, state []byte, values map[string]string) ([]*resolver, error) {
	var roots []*node
	for _, source := range [][]byte{state, service} {
		root, err := readYAML(source)
		if err != nil {
			return nil, err
		}
		roots = append(roots, root)
	}
	for name := range values {
		id, _, _ := strings.Cut(name, ".")
		if !slices.ContainsFunc(roots, func(root *node) bool {
			return root.get("Parameters", name) != nil || root.get("Resources", id) != nil || pseudo()[name] != ""
		}) {
			return nil, fmt.Errorf("a value is given for %s, which no template names", name)
		}
	}
	kept, err := newResolver(roots[0], values)
	if err != nil {
		return nil, err
	}
	given := map[string]string{}
	for name, output := range roots[0].get("Outputs").pairs() {
		if given[name], err = kept.resolve(output.get("Value")); err != nil {
			return nil, err
		}
	}
	maps.Copy(given, values)
	own, err := newResolver(roots[1], given)
	return []*resolver{kept, own}, err
}

// pseudo are CloudFormation's own parameters, which values may override.
func pseudo() map[string]string {
	return map[string]string{
		"AWS::AccountId": "000000000000",
		"AWS::Partition": "aws",
		"AWS::Region":    "local",
		"AWS::StackName": "local",
		"AWS::URLSuffix": "amazonaws.com",
	}
}

// newResolver takes of the values those that the template names.
func newResolver(root *node, values map[string]string) (*resolver, error) {
	r := &resolver{root: root, parameters: map[string]string{}, values: pseudo()}
	for id, resource := range root.get("Resources").pairs() {
		if kind := resource.get("Type"); kind != nil && kind.text == "AWS::SQS::Queue" {
			r.values[id+".QueueName"] = id
		}
	}
	for name, value := range values {
		if id, _, _ := strings.Cut(name, "."); root.get("Resources", id) != nil || r.values[name] != "" {
			r.values[name] = value
		}
	}
	for name, parameter := range root.get("Parameters").pairs() {
		value, given := values[name]
		fallback := parameter.get("Default")
		if !given && fallback == nil {
			return nil, fmt.Errorf("line %d: parameter %s has no default and no value is given", parameter.line, name)
		}
		if !given {
			value = fallback.text
		}
		if err := allowed(name, value, parameter.get("AllowedValues")); err != nil {
			return nil, err
		}
		r.parameters[name] = value
	}
	return r, nil
}

func allowed(name, value string, values *node) error {
	if values == nil {
		return nil
	}
	var texts []string
	for _, entry := range values.list() {
		if entry.text == value {
			return nil
		}
		texts = append(texts, entry.text)
	}
	return fmt.Errorf("parameter %s is %q, must be one of %s", name, value, strings.Join(texts, ", "))
}

// resolve returns the text of a scalar or of an intrinsic that gives one, "" when n is absent, null or AWS::NoValue.
func (r *resolver) resolve(n *node) (string, error) {
	if n == nil || n.kind == null {
		return "", nil
	}
	if n.kind == scalar {
		return n.text, nil
	}
	name, argument, ok := n.intrinsic()
	if !ok {
		return "", fmt.Errorf("line %d: want a text, found a mapping or a list", n.line)
	}
	switch name {
	case "Ref":
		return r.ref(argument.text, n.line)
	case "Fn::GetAtt":
		if len(argument.list()) == 2 {
			return r.ref(argument.elements[0].text+"."+argument.elements[1].text, n.line)
		}
	case "Fn::Sub":
		return r.sub(argument)
	case "Fn::If":
		if len(argument.list()) == 3 {
			return r.choose(argument.elements)
		}
	}
	return "", fmt.Errorf("line %d: cannot resolve %s", n.line, name)
}

// ref returns the value of a name: a parameter, a pseudo parameter, a resource ("Table") or an attribute of one
// ("Table.Arn").
func (r *resolver) ref(name string, line int) (string, error) {
	if name == "AWS::NoValue" {
		return "", nil
	}
	for _, known := range []map[string]string{r.parameters, r.values} {
		if value, ok := known[name]; ok {
			return value, nil
		}
	}
	if id, _, _ := strings.Cut(name, "."); r.root.get("Resources", id) != nil {
		return name, nil
	}
	return "", fmt.Errorf("line %d: %s is neither a parameter nor a resource", line, name)
}

// sub replaces ${name} in a text; ${!name} becomes ${name}.
func (r *resolver) sub(n *node) (string, error) {
	if n.kind != scalar {
		return "", fmt.Errorf("line %d: cannot resolve Fn::Sub with variables of its own", n.line)
	}
	var out strings.Builder
	rest := n.text
	for {
		before, after, found := strings.Cut(rest, "${")
		out.WriteString(before)
		if !found {
			return out.String(), nil
		}
		name, tail, closed := strings.Cut(after, "}")
		if !closed {
			return "", fmt.Errorf("line %d: ${ without }", n.line)
		}
		rest = tail
		if literal, ok := strings.CutPrefix(name, "!"); ok {
			out.WriteString("${" + literal + "}")
			continue
		}
		value, err := r.ref(name, n.line)
		if err != nil {
			return "", err
		}
		out.WriteString(value)
	}
}

func (r *resolver) choose(arguments []*node) (string, error) {
	holds, err := r.condition(r.root.get("Conditions", arguments[0].text), arguments[0].line)
	if err != nil {
		return "", err
	}
	if holds {
		return r.resolve(arguments[1])
	}
	return r.resolve(arguments[2])
}

func (r *resolver) condition(n *node, line int) (bool, error) {
	name, argument, ok := n.intrinsic()
	if !ok {
		return false, fmt.Errorf("line %d: no such condition", line)
	}
	switch {
	case name == "Condition":
		return r.condition(r.root.get("Conditions", argument.text), n.line)
	case name == "Fn::Equals" && len(argument.list()) == 2:
		left, err := r.resolve(argument.elements[0])
		if err != nil {
			return false, err
		}
		right, err := r.resolve(argument.elements[1])
		return left == right, err
	case name == "Fn::Not" && len(argument.list()) == 1:
		holds, err := r.condition(argument.elements[0], n.line)
		return !holds, err
	case name == "Fn::And", name == "Fn::Or":
		for _, entry := range argument.list() {
			holds, err := r.condition(entry, n.line)
			if err != nil || holds == (name == "Fn::Or") {
				return holds, err
			}
		}
		return name == "Fn::And", nil
	}
	return false, fmt.Errorf("line %d: cannot evaluate %s", n.line, name)
}
