package eventsource

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/go-json-experiment/json"
)

// maxFilters is how many patterns Lambda allows at most for one event source.
const maxFilters = 10

// A filter is a parsed FilterCriteria: a record passes when one of its patterns matches. Without patterns all pass.
type filter []pattern

// A pattern matches a value of decoded JSON, or of the types that [memberOf] reads as JSON.
type pattern func(value any) bool

// absent is the value of a member that an object does not have. Only scalars count where a rule expects one: objects
// and empty arrays are absent too.
type absent struct{}

// parseFilter parses patterns in Lambda's filter rule syntax.
func parseFilter(sources []string) (filter, error) {
	if len(sources) > maxFilters {
		return nil, fmt.Errorf("%d filters, at most %d are allowed", len(sources), maxFilters)
	}
	var parsed filter
	for _, source := range sources {
		var tree any
		err := json.Unmarshal([]byte(source), &tree)
		var p pattern
		if err == nil {
			p, err = parseObject(tree)
		}
		if err != nil {
			return nil, fmt.Errorf("parsing filter pattern %s: %w", source, err)
		}
		parsed = append(parsed, p)
	}
	return parsed, nil
}

func (f filter) passes(record any) bool { return len(f) == 0 || anyOf(f, record) }

func anyOf(patterns []pattern, value any) bool {
	return slices.ContainsFunc(patterns, func(p pattern) bool { return p(value) })
}

// parseAll parses every element of a list with one parser.
func parseAll(elements []any, parse func(any) (pattern, error)) ([]pattern, error) {
	parsed := make([]pattern, len(elements))
	var err error
	for i, element := range elements {
		if parsed[i], err = parse(element); err != nil {
			return nil, err
		}
	}
	return parsed, nil
}

// parseObject parses an object, all of whose members must match. An array matches when one of its elements does.
func parseObject(source any) (pattern, error) {
	object, ok := source.(map[string]any)
	if !ok || len(object) == 0 {
		return nil, errors.New("it must be an object with a member")
	}
	members := make(map[string]pattern, len(object))
	for name, value := range object {
		var err error
		if members[name], err = parseMember(name, value); err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
	}
	var match pattern
	match = func(value any) bool {
		if elements, ok := value.([]any); ok && len(elements) > 0 {
			return slices.ContainsFunc(elements, match)
		}
		for name, p := range members {
			member := value
			if name != "$or" {
				member = memberOf(value, name)
			}
			if !p(member) {
				return false
			}
		}
		return true
	}
	return match, nil
}

func parseMember(name string, value any) (pattern, error) {
	elements, ok := value.([]any)
	switch {
	case !ok:
		return parseObject(value)
	case len(elements) == 0:
		return nil, errors.New("an array must have an element")
	case name == "$or":
		if len(elements) < 2 {
			return nil, errors.New("it needs at least two alternatives")
		}
		alternatives, err := parseAll(elements, parseObject)
		return func(value any) bool { return anyOf(alternatives, value) }, err
	}
	rules, err := parseAll(elements, parseRule)
	return func(value any) bool {
		return slices.ContainsFunc(scalarsOf(value), func(scalar any) bool { return anyOf(rules, scalar) })
	}, err
}

// scalarsOf returns the scalars of a value: itself, the elements of an array, or absent.
func scalarsOf(value any) []any {
	elements, ok := value.([]any)
	if !ok {
		elements = []any{value}
	}
	var scalars []any
	for _, element := range elements {
		if isScalar(element) {
			scalars = append(scalars, element)
		}
	}
	if len(scalars) == 0 {
		return []any{absent{}}
	}
	return scalars
}

// parseRule parses a rule for one scalar: a scalar that it must equal, or an operator with its operand.
func parseRule(source any) (pattern, error) {
	if isScalar(source) {
		return equals(source)
	}
	operator, operand, err := onlyMember(source)
	if err != nil {
		return nil, err
	}
	parse := func(operand any) (pattern, error) { return parseText(operator, operand) }
	switch operator {
	case "exists":
		parse = parseExists
	case "numeric":
		parse = parseNumeric
	case "anything-but":
		parse = parseAnythingBut
	}
	parsed, err := parse(operand)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", operator, err)
	}
	return parsed, nil
}

func equals(want any) (pattern, error) {
	if !isScalar(want) {
		return nil, errors.New("it takes scalars or one operator")
	}
	return func(scalar any) bool { return scalar == want }, nil
}

func onlyMember(source any) (name string, value any, err error) {
	object, _ := source.(map[string]any)
	if len(object) != 1 {
		return "", nil, errors.New("a rule must be a scalar or an object with exactly one operator")
	}
	for name, value = range object {
	}
	return name, value, nil
}

func parseExists(operand any) (pattern, error) {
	want, ok := operand.(bool)
	if !ok {
		return nil, errors.New("it takes true or false")
	}
	return func(scalar any) bool { return (scalar != absent{}) == want }, nil
}

// parseText parses the operators on strings.
func parseText(operator string, operand any) (pattern, error) {
	compare, ok := map[string]func(text, operand string) bool{
		"prefix":             strings.HasPrefix,
		"suffix":             strings.HasSuffix,
		"equals-ignore-case": strings.EqualFold,
	}[operator]
	if !ok {
		return nil, errors.New("unknown operator")
	}
	if nested, ok := operand.(map[string]any); ok && operator != "equals-ignore-case" && len(nested) == 1 {
		exact := compare
		operand = nested["equals-ignore-case"]
		compare = func(text, operand string) bool { return exact(strings.ToLower(text), strings.ToLower(operand)) }
	}
	want, ok := operand.(string)
	if !ok {
		return nil, errors.New("it takes a string, prefix and suffix also {\"equals-ignore-case\": string}")
	}
	return func(scalar any) bool {
		text, isText := scalar.(string)
		return isText && compare(text, want)
	}, nil
}

// parseAnythingBut parses the negation: there must be a scalar, and it must match none of the operands.
func parseAnythingBut(operand any) (pattern, error) {
	parse := equals
	if _, ok := operand.(map[string]any); ok {
		operator, operands, err := onlyMember(operand)
		if err != nil {
			return nil, err
		}
		operand, parse = operands, func(one any) (pattern, error) { return parseText(operator, one) }
	}
	operands, ok := operand.([]any)
	if !ok {
		operands = []any{operand}
	}
	unwanted, err := parseAll(operands, parse)
	return func(scalar any) bool { return scalar != absent{} && !anyOf(unwanted, scalar) }, err
}

// parseNumeric parses one or two comparisons: ["=", 5] or [">", 0, "<=", 5]. Numbers compare as binary doubles.
func parseNumeric(operand any) (pattern, error) {
	list, ok := operand.([]any)
	if !ok || len(list) != 2 && len(list) != 4 {
		return nil, errors.New("it takes [operator, number] once or twice")
	}
	var comparisons []func(float64) bool
	for i := 0; i < len(list); i += 2 {
		bound, ok := list[i+1].(float64)
		if !ok {
			return nil, fmt.Errorf("%v is no number", list[i+1])
		}
		name, _ := list[i].(string)
		compare, ok := map[string]func(float64) bool{
			"=":  func(x float64) bool { return x == bound },
			"<":  func(x float64) bool { return x < bound },
			"<=": func(x float64) bool { return x <= bound },
			">":  func(x float64) bool { return x > bound },
			">=": func(x float64) bool { return x >= bound },
		}[name]
		if !ok {
			return nil, fmt.Errorf("%v is no comparison", list[i])
		}
		comparisons = append(comparisons, compare)
	}
	return func(scalar any) bool {
		x, isNumber := scalar.(float64)
		return isNumber && !slices.ContainsFunc(comparisons, func(holds func(float64) bool) bool { return !holds(x) })
	}, nil
}
