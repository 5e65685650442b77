package faults

import (
	"math/rand/v2"
	"net/http"
	"regexp"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// statement is one of a batch in PartiQL.
type statement struct {
	Statement  string
	Parameters []jsontext.Value
}

// insertion is the form of INSERT whose item the proxy can read: all of its
// values are parameters. What else is inserted is not remembered.
var insertion = regexp.MustCompile(`(?is)^\s*INSERT\s+INTO\s+"?([^"\s]+)"?\s+VALUE\s*\{(.*)\}\s*$`)

// target is the item that the statement creates.
func (s *statement) target() (t target, ok bool) {
	match := insertion.FindStringSubmatch(s.Statement)
	if match == nil {
		return t, false
	}
	t = target{table: match[1], item: object{}}
	for i, member := range strings.Split(match[2], ",") {
		name, value, _ := strings.Cut(member, ":")
		name = strings.TrimSpace(name)
		if strings.TrimSpace(value) != "?" || i >= len(s.Parameters) || len(name) < 3 {
			return t, false
		}
		t.item[strings.Trim(name, "'")] = s.Parameters[i]
	}
	return t, true
}

// statementError is how a statement of a batch fails on its own.
type statementError struct {
	Code    string
	Message string
}

// failing chooses some statements of a batch, or all, that are to fail on
// their own, and returns the batch without them, nil when none is left. There
// are no errors for what is no batch of statements.
func failing(body []byte, random *rand.Rand) (rest []byte, errors []*statementError) {
	request := object{}
	var statements []jsontext.Value
	if json.Unmarshal(body, &request) != nil || json.Unmarshal(request["Statements"], &statements) != nil || len(statements) == 0 {
		return nil, nil
	}
	errors = make([]*statementError, len(statements))
	for _, i := range random.Perm(len(statements))[:1+random.IntN(len(statements))] {
		errors[i] = &statementError{"ThrottlingError", "Throughput exceeds the current capacity of your table or index."}
		if random.IntN(2) == 0 {
			errors[i] = &statementError{"ProvisionedThroughputExceeded", "The level of configured provisioned throughput for the table was exceeded."}
		}
	}
	var left []jsontext.Value
	for i, s := range statements {
		if errors[i] == nil {
			left = append(left, s)
		}
	}
	if left == nil {
		return nil, errors
	}
	request["Statements"] = encode(left)
	return encode(request), errors
}

// addErrors puts the errors at their places among the answers to the
// statements that did not fail.
func addErrors(body []byte, errors []*statementError) ([]byte, error) {
	response := object{}
	var given, all []jsontext.Value
	if err := json.Unmarshal(body, &response); err != nil {
		return nil, err
	}
	if err := json.Unmarshal(response["Responses"], &given); err != nil {
		return nil, err
	}
	for _, e := range errors {
		switch {
		case e != nil:
			all = append(all, encode(map[string]any{"Error": e}))
		case len(given) > 0:
			all, given = append(all, given[0]), given[1:]
		}
	}
	response["Responses"] = encode(all)
	return encode(response), nil
}

// noStatement answers a batch of which nothing is left to be done.
func noStatement() *answer {
	return answerWith(http.StatusOK, map[string]any{"Responses": []any{}})
}
