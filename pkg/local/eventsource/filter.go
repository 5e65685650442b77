package eventsource

import (
	"fmt"
	"slices"
	"strings"

	"github.com/go-json-experiment/json"
)

// maxFilters is how many patterns Lambda allows at most for one event source.
const maxFilters = 10

// A filter is a parsed FilterCriteria: a record passes when one of its patterns matches. Without patterns all pass.
type filter []pattern

// A pattern matches a value of decoded JSON, whose objects may be an [object]. What is absent is present == false: an object where a leaf is expected and
// an empty array are absent too, since only leaves count.
type pattern interface {
	match(value any, present bool) bool
}

// parseFilter parses patterns in Lambda's filter rule syntax.
func parseFilter(sources []string) (filter, error) {
	if len(sources) > maxFilters {
		return nil, fmt.Errorf("%d filters, at most %d are allowed", len(sources), maxFilters)
	}
	var parsed filter
	for _, source := range sources {
		var tree any
		if err := json.Unmarshal([]byte(source), &tree); err != nil {
			return nil, fmt.Errorf("parsing filter pattern %s: %w", source, err)
		}
		object, ok := tree.(map[string]any)
		if !ok {
			return nil, fmt.Errorf("parsing filter pattern %s: it is no object", source)
		}
		p, err := parseObject(object)
		if err != nil {
			return nil, fmt.Errorf("parsing filter pattern %s: %w", source, err)
		}
		parsed = append(parsed, p)
	}
	return parsed, nil
}

func (f filter) passes(record any) bool {
	return len(f) == 0 || slices.ContainsFunc(f, func(p pattern) bool { return p.match(record, true) })
}

// fields is a conjunction over the members of an object.
type fields map[string]pattern

func (f fields) match(value any, present bool) bool {
	if elements, ok := value.([]any); ok && len(elements) > 0 {
		return slices.ContainsFunc(elements, func(element any) bool { return f.match(element, true) })
	}
	for name, p := range f {
		if name == "$or" {
			if !p.match(value, present) {
				return false
			}
			continue
		}
		member, there := memberOf(value, name)
		if !p.match(member, there) {
			return false
		}
	}
	return true
}

func memberOf(value any, name string) (member any, present bool) {
	switch value := value.(type) {
	case map[string]any:
		member, present = value[name]
	case object:
		member, present = value.member(name)
	}
	if !present {
		return nil, false
	}
	return member, true
}

// alternatives is the disjunction that $or spells.
type alternatives []pattern

func (a alternatives) match(value any, present bool) bool {
	return slices.ContainsFunc(a, func(p pattern) bool { return p.match(value, present) })
}

// rules is the disjunction that an array in leaf position spells.
type rules []rule

func (r rules) match(value any, present bool) bool {
	leaves := leavesOf(value, present)
	return slices.ContainsFunc(r, func(one rule) bool { return one(leaves) })
}

// leavesOf returns the scalars at a place: none when nothing, an object or an empty array is there.
func leavesOf(value any, present bool) []any {
	if !present {
		return nil
	}
	elements, ok := value.([]any)
	if !ok {
		elements = []any{value}
	}
	var leaves []any
	for _, element := range elements {
		if isLeaf(element) {
			leaves = append(leaves, element)
		}
	}
	return leaves
}

func isLeaf(value any) bool {
	switch value.(type) {
	case map[string]any, []any, object:
		return false
	}
	return true
}

func parseObject(object map[string]any) (pattern, error) {
	if len(object) == 0 {
		return nil, fmt.Errorf("an object must name something")
	}
	parsed := make(fields, len(object))
	for name, value := range object {
		p, err := parseMember(name, value)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		parsed[name] = p
	}
	return parsed, nil
}

func parseMember(name string, value any) (pattern, error) {
	switch value := value.(type) {
	case map[string]any:
		return parseObject(value)
	case []any:
		if len(value) == 0 {
			return nil, fmt.Errorf("an array must name something")
		}
		if name == "$or" {
			return parseAlternatives(value)
		}
		parsed := make(rules, 0, len(value))
		for _, element := range value {
			one, err := parseRule(element)
			if err != nil {
				return nil, err
			}
			parsed = append(parsed, one)
		}
		return parsed, nil
	}
	return nil, fmt.Errorf("it must be an object or an array")
}

func parseAlternatives(value []any) (pattern, error) {
	if len(value) < 2 {
		return nil, fmt.Errorf("it needs at least two alternatives")
	}
	parsed := make(alternatives, 0, len(value))
	for _, element := range value {
		object, ok := element.(map[string]any)
		if !ok {
			return nil, fmt.Errorf("an alternative must be an object")
		}
		p, err := parseObject(object)
		if err != nil {
			return nil, err
		}
		parsed = append(parsed, p)
	}
	return parsed, nil
}

// A rule looks at the leaves at one place.
type rule func(leaves []any) bool

// anyLeaf is the rule that one leaf has the property.
func anyLeaf(has func(leaf any) bool) rule {
	return func(leaves []any) bool { return slices.ContainsFunc(leaves, has) }
}

func parseRule(element any) (rule, error) {
	if isLeaf(element) {
		return anyLeaf(func(leaf any) bool { return leaf == element }), nil
	}
	object, ok := element.(map[string]any)
	if !ok {
		return nil, fmt.Errorf("an array cannot be a rule")
	}
	operator, operand, err := onlyMember(object)
	if err != nil {
		return nil, err
	}
	parsed, err := parseOperator(operator, operand)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", operator, err)
	}
	return parsed, nil
}

func onlyMember(object map[string]any) (name string, value any, err error) {
	if len(object) != 1 {
		return "", nil, fmt.Errorf("a rule must have exactly one operator")
	}
	for name, value = range object {
	}
	return name, value, nil
}

func parseOperator(operator string, operand any) (rule, error) {
	switch operator {
	case "exists":
		want, ok := operand.(bool)
		if !ok {
			return nil, fmt.Errorf("it takes true or false")
		}
		return func(leaves []any) bool { return (len(leaves) > 0) == want }, nil
	case "numeric":
		return parseNumeric(operand)
	case "anything-but":
		return parseAnythingBut(operand)
	}
	has, err := parseText(operator, operand)
	if err != nil {
		return nil, err
	}
	return anyLeaf(has), nil
}

// parseText parses the operators on strings.
func parseText(operator string, operand any) (func(leaf any) bool, error) {
	compare, ok := map[string]func(text, operand string) bool{
		"prefix":             strings.HasPrefix,
		"suffix":             strings.HasSuffix,
		"equals-ignore-case": strings.EqualFold,
	}[operator]
	if !ok {
		return nil, fmt.Errorf("unknown operator")
	}
	if nested, isObject := operand.(map[string]any); isObject && operator != "equals-ignore-case" {
		folded, there := nested["equals-ignore-case"].(string)
		if !there || len(nested) != 1 {
			return nil, fmt.Errorf("it takes a string or {\"equals-ignore-case\": string}")
		}
		exact := compare
		operand, compare = folded, func(text, operand string) bool {
			return exact(strings.ToLower(text), strings.ToLower(operand))
		}
	}
	want, ok := operand.(string)
	if !ok {
		return nil, fmt.Errorf("it takes a string")
	}
	return func(leaf any) bool {
		text, isText := leaf.(string)
		return isText && compare(text, want)
	}, nil
}

// parseAnythingBut parses the negation: a leaf must be there and none of what is named.
func parseAnythingBut(operand any) (rule, error) {
	unwanted := func(one any) (func(leaf any) bool, error) {
		if !isLeaf(one) {
			return nil, fmt.Errorf("it takes scalars or one operator")
		}
		return func(leaf any) bool { return leaf == one }, nil
	}
	if object, ok := operand.(map[string]any); ok {
		operator, operands, err := onlyMember(object)
		if err != nil {
			return nil, err
		}
		operand = operands
		unwanted = func(one any) (func(leaf any) bool, error) { return parseText(operator, one) }
	}
	list, ok := operand.([]any)
	if !ok {
		list = []any{operand}
	}
	var named []func(leaf any) bool
	for _, one := range list {
		has, err := unwanted(one)
		if err != nil {
			return nil, err
		}
		named = append(named, has)
	}
	return anyLeaf(func(leaf any) bool {
		return !slices.ContainsFunc(named, func(has func(any) bool) bool { return has(leaf) })
	}), nil
}

// parseNumeric parses one or two comparisons: ["=", 5] or [">", 0, "<=", 5]. Numbers compare as binary doubles.
func parseNumeric(operand any) (rule, error) {
	list, ok := operand.([]any)
	if !ok || len(list) != 2 && len(list) != 4 {
		return nil, fmt.Errorf("it takes [operator, number] once or twice")
	}
	var holds []func(float64) bool
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
		holds = append(holds, compare)
	}
	return anyLeaf(func(leaf any) bool {
		x, isNumber := leaf.(float64)
		return isNumber && !slices.ContainsFunc(holds, func(hold func(float64) bool) bool { return !hold(x) })
	}), nil
}
