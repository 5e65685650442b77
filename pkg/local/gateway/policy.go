package gateway

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// policy is the IAM policy of an authorizer's answer.
type policy struct {
	Version   string      `json:"Version"`
	Statement []statement `json:"Statement"`
}

type statement struct {
	Sid       string         `json:"Sid"`
	Effect    string         `json:"Effect"`
	Action    texts          `json:"Action"`
	Resource  texts          `json:"Resource"`
	Condition jsontext.Value `json:"Condition"`
}

// texts is one string or a list of them.
type texts []string

func (t *texts) UnmarshalJSON(from []byte) error {
	if jsontext.Value(from).Kind() == '"' {
		*t = texts{""}
		return json.Unmarshal(from, &(*t)[0])
	}
	return json.Unmarshal(from, (*[]string)(t))
}

// check refuses policies that API Gateway refuses, and conditions, which are not evaluated here.
func (p policy) check() error {
	if len(p.Statement) == 0 {
		return errors.New("policyDocument has no statement")
	}
	for i, s := range p.Statement {
		if s.Effect != "Allow" && s.Effect != "Deny" {
			return fmt.Errorf("statement %d: effect is %q", i, s.Effect)
		}
		if len(s.Action) == 0 || len(s.Resource) == 0 {
			return fmt.Errorf("statement %d lacks an action or a resource", i)
		}
		if len(s.Condition) > 0 && string(s.Condition) != "null" {
			return fmt.Errorf("statement %d has a condition, which is not supported", i)
		}
	}
	return nil
}

// allows reports whether some statement allows the request and none denies it.
func (p policy) allows(methodARN string) bool {
	allowed := false
	for _, s := range p.Statement {
		if !s.Action.match("execute-api:Invoke") || !s.Resource.match(methodARN) {
			continue
		}
		if s.Effect == "Deny" {
			return false
		}
		allowed = true
	}
	return allowed
}

func (t texts) match(name string) bool {
	return slices.ContainsFunc(t, func(pattern string) bool { return wildcard(pattern, name) })
}

// wildcard matches a name with a pattern in which * matches any text and ? one character. It backtracks to the last
// star only, which is enough.
func wildcard(pattern, name string) bool {
	star, starName := -1, 0
	p, n := 0, 0
	for n < len(name) {
		switch {
		case p < len(pattern) && pattern[p] == '*':
			star, starName = p, n
			p++
		case p < len(pattern) && (pattern[p] == '?' || pattern[p] == name[n]):
			p, n = p+1, n+1
		case star >= 0:
			starName++
			p, n = star+1, starName
		default:
			return false
		}
	}
	return strings.Trim(pattern[p:], "*") == ""
}
