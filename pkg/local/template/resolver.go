package template

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// resolver evaluates the intrinsic functions of both templates.
type resolver struct {
	root   tree              // of the service, with the state's resources, conditions and parameters
	state  tree              // its outputs are parameters of the service
	values map[string]string // of parameters, pseudo parameters, resources and their attributes
}

// newResolver reads both templates.
func newResolver(service, state []byte, values map[string]string) (*resolver, error) {
	// CloudFormation's own parameters.
	r := &resolver{values: map[string]string{
		"AWS::AccountId": "000000000000",
		"AWS::Partition": "aws",
		"AWS::Region":    "local",
		"AWS::StackName": "local",
		"AWS::URLSuffix": "amazonaws.com",
	}}
	var err error
	if r.state, err = parse(state); err != nil {
		return nil, fmt.Errorf("state: %w", err)
	}
	if r.root, err = parse(service); err != nil {
		return nil, err
	}
	for _, section := range []string{"Parameters", "Conditions", "Resources"} {
		both := maps.Clone(below(r.state, section))
		if both == nil {
			both = tree{}
		}
		maps.Copy(both, below(r.root, section))
		r.root[section] = both
	}
	for name, value := range values {
		if r.values[name] == "" && !r.declares(name) && at(r.root, "Parameters", name) == nil {
			return nil, fmt.Errorf("a value is given for %s, which no template names", name)
		}
		r.values[name] = value
	}
	return r, nil
}

// declares reports whether a name is that of a resource ("Table"), an attribute of one ("Table.Arn") or the role that SAM
// makes for a function.
func (r *resolver) declares(name string) bool {
	id, _, _ := strings.Cut(name, ".")
	return at(r.root, "Resources", id) != nil || at(r.root, "Resources", strings.TrimSuffix(id, "Role")) != nil
}

// resolve returns the value with its intrinsic functions evaluated. Keys and elements without a value are left out.
func (r *resolver) resolve(v any) (any, error) {
	switch v := v.(type) {
	case tree:
		if name, argument, ok := intrinsic(v); ok {
			return r.evaluate(name, argument)
		}
		return r.tree(v)
	case []any:
		return r.list(v)
	}
	return v, nil
}

func (r *resolver) tree(from tree) (tree, error) {
	to := make(tree, len(from))
	for _, key := range slices.Sorted(maps.Keys(from)) {
		v, err := r.resolve(from[key])
		if err != nil {
			return nil, fmt.Errorf("%s: %w", key, err)
		}
		if v != nil {
			to[key] = v
		}
	}
	return to, nil
}

func (r *resolver) list(from []any) ([]any, error) {
	to := make([]any, 0, len(from))
	for _, entry := range from {
		v, err := r.resolve(entry)
		if err != nil {
			return nil, err
		}
		if v != nil {
			to = append(to, v)
		}
	}
	return to, nil
}

// intrinsic returns the function's name and argument when a tree is one.
func intrinsic(t tree) (name string, argument any, ok bool) {
	if len(t) != 1 {
		return "", nil, false
	}
	for name, argument = range t {
		ok = name == "Ref" || name == "Condition" || strings.HasPrefix(name, "Fn::")
	}
	return name, argument, ok
}

// evaluate returns the value of a function, that of a condition as a bool.
func (r *resolver) evaluate(name string, argument any) (any, error) {
	text, _ := argument.(string)
	arguments, _ := argument.([]any)
	switch {
	case name == "Ref", name == "Fn::GetAtt" && text != "":
		return r.ref(text)
	case name == "Fn::Sub" && text != "":
		return r.sub(text)
	case name == "Condition":
		if condition := at(r.root, "Conditions", text); condition != nil {
			return r.resolve(condition)
		}
		return nil, fmt.Errorf("no such condition: %s", text)
	case name == "Fn::If" && len(arguments) == 3:
		holds, err := r.evaluate("Condition", arguments[0])
		if err != nil {
			return nil, err
		}
		if holds == true {
			return r.resolve(arguments[1])
		}
		return r.resolve(arguments[2])
	case name == "Fn::Equals" && len(arguments) == 2:
		operands, err := r.list(arguments)
		return err == nil && len(operands) == 2 && operands[0] == operands[1], err
	case name == "Fn::Not" && len(arguments) == 1:
		holds, err := r.resolve(arguments[0])
		return holds == false, err
	}
	return nil, fmt.Errorf("cannot resolve %s of %v", name, argument)
}

// ref returns the value of a parameter, a pseudo parameter, a resource or an attribute of one. The name of a queue is its
// logical id. Another resource or attribute whose value is not given has its own name as its value.
func (r *resolver) ref(name string) (any, error) {
	if name == "AWS::NoValue" {
		return nil, nil //nolint:nilnil // that is its meaning
	}
	if value, ok := r.values[name]; ok {
		return value, nil
	}
	if parameter := at(r.root, "Parameters", name); parameter != nil {
		if output := at(r.state, "Outputs", name, "Value"); output != nil {
			return r.resolve(output)
		}
		if value, ok := at(parameter, "Default").(string); ok {
			return value, nil
		}
		return nil, fmt.Errorf("parameter %s has no default and no value is given", name)
	}
	if r.declares(name) {
		return strings.TrimSuffix(name, ".QueueName"), nil
	}
	return nil, fmt.Errorf("%s is neither a parameter nor a resource", name)
}

// sub replaces ${name} in a text.
func (r *resolver) sub(text string) (string, error) {
	before, rest, found := strings.Cut(text, "${")
	if !found {
		return text, nil
	}
	name, rest, _ := strings.Cut(rest, "}")
	value, err := r.ref(name)
	if err != nil {
		return "", err
	}
	after, err := r.sub(rest)
	return fmt.Sprint(before, value, after), err
}
