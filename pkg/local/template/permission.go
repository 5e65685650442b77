package template

import (
	"errors"
	"fmt"
	"strings"
)

// Permission lets a function take an action on a resource.
type Permission struct {
	Action   string // such as dynamodb:GetItem
	Resource string // as it resolves: "Table.Arn" unless a value is given for it
	// LeadingKeys are patterns of the partition keys that the action may name,
	// separated by spaces; "" is any. A star matches any text.
	LeadingKeys string
}

type policy struct {
	Statement []struct {
		Effect           string
		Action, Resource oneOrMore
		Condition        map[string]map[string]oneOrMore
	}
}

// permissions reads the statements of a function's policies. A managed policy is an error, because its text is not here.
func permissions(policies []policy) ([]Permission, error) {
	var all []Permission
	for _, p := range policies {
		if len(p.Statement) == 0 {
			return nil, errors.New("a policy without statements is not supported")
		}
		for _, statement := range p.Statement {
			if statement.Effect != "Allow" {
				return nil, fmt.Errorf("effect %q is not supported, only Allow", statement.Effect)
			}
			keys := statement.Condition["ForAllValues:StringLike"]["dynamodb:LeadingKeys"]
			if len(keys) == 0 && statement.Condition != nil {
				return nil, errors.New("a condition is not supported, only ForAllValues:StringLike of dynamodb:LeadingKeys")
			}
			for _, action := range statement.Action {
				for _, resource := range statement.Resource {
					all = append(all, Permission{action, resource, strings.Join(keys, " ")})
				}
			}
		}
	}
	return all, nil
}
