package eventsource

import (
	"errors"
	"fmt"
	"slices"

	"github.com/go-json-experiment/json"
)

// maxFilters is how many patterns Lambda allows at most for one event source.
const maxFilters = 10

// A filter is a parsed FilterCriteria: a record passes when one of its patterns matches. Without patterns all pass. Of
// Lambda's rules it knows the values that a scalar must equal, and refuses the operators.
type filter []pattern

// A pattern matches a value of decoded JSON, or of the types that [memberOf] reads as JSON.
type pattern func(value any) bool

// absent is the value of a member that an object does not have.
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

func (f filter) passes(record any) bool {
	return len(f) == 0 || slices.ContainsFunc(f, func(p pattern) bool { return p(record) })
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
		if members[name], err = parseMember(value); err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
	}
	var match pattern
	match = func(value any) bool {
		if elements, ok := value.([]any); ok && len(elements) > 0 {
			return slices.ContainsFunc(elements, match)
		}
		for name, p := range members {
			if !p(memberOf(value, name)) {
				return false
			}
		}
		return true
	}
	return match, nil
}

// parseMember parses a nested object, or the values of which a scalar must equal one.
func parseMember(value any) (pattern, error) {
	wanted, ok := value.([]any)
	switch {
	case !ok:
		return parseObject(value)
	case len(wanted) == 0:
		return nil, errors.New("an array must have an element")
	case slices.ContainsFunc(wanted, func(one any) bool { return !isScalar(one) }):
		return nil, errors.New("only values to equal are supported, no operators")
	}
	return func(value any) bool {
		return slices.ContainsFunc(scalarsOf(value), func(scalar any) bool { return slices.Contains(wanted, scalar) })
	}, nil
}

// scalarsOf returns the scalars of a value: itself, or the elements of an array.
func scalarsOf(value any) []any {
	elements, ok := value.([]any)
	if !ok {
		elements = []any{value}
	}
	return slices.DeleteFunc(slices.Clone(elements), func(element any) bool { return !isScalar(element) })
}
