package eventsource

import (
	"errors"
	"fmt"
	"slices"

	"github.com/aws/aws-sdk-go-v2/service/dynamodbstreams/types"

	"github.com/go-json-experiment/json"
)

// A filter is a parsed FilterCriteria: a record passes when one of its patterns matches. Without patterns all pass. Of
// Lambda's rules it knows the texts that attributes of the new image must equal, and refuses the others.
type filter []pattern

// A pattern has, by the name of an attribute, the texts of which it must equal one.
type pattern map[string][]string

// parseFilter parses patterns in Lambda's filter rule syntax: {"dynamodb":{"NewImage":{"name":{"S":["text"]}}}}.
func parseFilter(sources []string) (filter, error) {
	var parsed filter
	for _, source := range sources {
		p, err := parsePattern(source)
		if err != nil {
			return nil, fmt.Errorf("parsing filter pattern %s: %w", source, err)
		}
		parsed = append(parsed, p)
	}
	return parsed, nil
}

func parsePattern(source string) (pattern, error) {
	var rule struct {
		Dynamodb struct {
			NewImage map[string]struct{ S []string }
		} `json:"dynamodb"`
	}
	if err := json.Unmarshal([]byte(source), &rule, json.RejectUnknownMembers(true)); err != nil {
		return nil, fmt.Errorf("only texts of the new image can be filtered by: %w", err)
	}
	p := pattern{}
	for name, wanted := range rule.Dynamodb.NewImage {
		if p[name] = wanted.S; len(wanted.S) == 0 {
			return nil, fmt.Errorf("the attribute %s has no text", name)
		}
	}
	if len(p) == 0 {
		return nil, errors.New("it names no attribute")
	}
	return p, nil
}

func (f filter) passes(image map[string]types.AttributeValue) bool {
	return len(f) == 0 || slices.ContainsFunc(f, func(p pattern) bool { return p.matches(image) })
}

func (p pattern) matches(image map[string]types.AttributeValue) bool {
	for name, wanted := range p {
		text, ok := image[name].(*types.AttributeValueMemberS)
		if !ok || !slices.Contains(wanted, text.Value) {
			return false
		}
	}
	return true
}
