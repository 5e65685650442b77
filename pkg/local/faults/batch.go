package faults

import (
	"maps"
	"math/rand/v2"
	"slices"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// object is a JSON object whose members stay as they are.
type object = map[string]jsontext.Value

// split divides a batch into what the server is to do, nil for nothing, and
// what it leaves undone, which complete writes into the server's answer.
// complete is nil for a body that is not divided: a batch of one, or one in a
// form that the DynamoDB reference does not give.
func split(body []byte, o operation, random *rand.Rand) (rest []byte, complete func(answer []byte) ([]byte, error)) {
	if o.statements {
		return splitStatements(body, random)
	}
	return splitItems(body, o.writes, random)
}

// splitItems has at least one item done, since DynamoDB throttles a batch of
// which it can do nothing.
func splitItems(body []byte, writes bool, random *rand.Rand) (rest []byte, complete func([]byte) ([]byte, error)) {
	request, tables := object{}, object{}
	if json.Unmarshal(body, &request) != nil || json.Unmarshal(request["RequestItems"], &tables) != nil {
		return nil, nil
	}
	batches := make(map[string]*tableBatch, len(tables))
	total := 0
	for name, value := range tables {
		b := &tableBatch{}
		if !b.parse(value, writes) {
			return nil, nil
		}
		batches[name] = b
		total += len(b.items)
	}
	if total < 2 {
		return nil, nil
	}
	leave := make([]bool, total)
	for _, i := range random.Perm(total)[:1+random.IntN(total-1)] {
		leave[i] = true
	}
	undone := object{}
	for _, name := range slices.Sorted(maps.Keys(batches)) {
		b := batches[name]
		var done, not []jsontext.Value
		for i, item := range b.items {
			if leave[i] {
				not = append(not, item)
			} else {
				done = append(done, item)
			}
		}
		leave = leave[len(b.items):]
		if delete(tables, name); len(done) > 0 {
			tables[name] = b.with(done)
		}
		if len(not) > 0 {
			undone[name] = b.with(not)
		}
	}
	request["RequestItems"] = encode(tables)
	return encode(request), func(answer []byte) ([]byte, error) { return addUndone(answer, writes, undone) }
}

// tableBatch is what a batch asks of one table.
type tableBatch struct {
	read  object // a read's members beside its keys; nil for a write
	items []jsontext.Value
}

func (b *tableBatch) parse(value jsontext.Value, writes bool) bool {
	if writes {
		return json.Unmarshal(value, &b.items) == nil
	}
	return json.Unmarshal(value, &b.read) == nil && json.Unmarshal(b.read["Keys"], &b.items) == nil
}

func (b *tableBatch) with(items []jsontext.Value) jsontext.Value {
	if b.read == nil {
		return encode(items)
	}
	b.read["Keys"] = encode(items)
	return encode(b.read)
}

// addUndone writes into the answer to a batch what was left undone, beside
// what the server has left undone itself.
func addUndone(body []byte, writes bool, undone object) ([]byte, error) {
	response, given := object{}, object{}
	if err := json.Unmarshal(body, &response); err != nil {
		return nil, err
	}
	member := "UnprocessedKeys"
	if writes {
		member = "UnprocessedItems"
	}
	if known, ok := response[member]; ok {
		if err := json.Unmarshal(known, &given); err != nil {
			return nil, err
		}
	}
	for table, value := range undone {
		var first, second tableBatch
		if known, ok := given[table]; ok && first.parse(known, writes) && second.parse(value, writes) {
			value = first.with(append(first.items, second.items...))
		}
		given[table] = value
	}
	response[member] = encode(given)
	return encode(response), nil
}

// splitStatements has some statements of a batch, or all, fail on their own.
func splitStatements(body []byte, random *rand.Rand) (rest []byte, complete func([]byte) ([]byte, error)) {
	request := object{}
	var statements, left []jsontext.Value
	if json.Unmarshal(body, &request) != nil || json.Unmarshal(request["Statements"], &statements) != nil || len(statements) == 0 {
		return nil, nil
	}
	failures := make([]*reason, len(statements))
	for _, i := range random.Perm(len(statements))[:1+random.IntN(len(statements))] {
		failures[i] = &reason{"ThrottlingError", "Throughput exceeds the current capacity of your table or index."}
		if random.IntN(2) == 0 {
			failures[i] = &reason{"ProvisionedThroughputExceeded", "The level of configured provisioned throughput for the table was exceeded."}
		}
	}
	for i, s := range statements {
		if failures[i] == nil {
			left = append(left, s)
		}
	}
	if left != nil {
		request["Statements"] = encode(left)
		rest = encode(request)
	}
	return rest, func(answer []byte) ([]byte, error) { return addFailures(answer, failures) }
}

// addFailures puts the failures at their positions among the answers to the
// statements that did not fail.
func addFailures(body []byte, failures []*reason) ([]byte, error) {
	response := object{}
	var given, all []jsontext.Value
	if err := json.Unmarshal(body, &response); err != nil {
		return nil, err
	}
	if err := json.Unmarshal(response["Responses"], &given); err != nil {
		return nil, err
	}
	for _, f := range failures {
		switch {
		case f != nil:
			all = append(all, encode(map[string]any{"Error": f}))
		case len(given) > 0:
			all, given = append(all, given[0]), given[1:]
		}
	}
	response["Responses"] = encode(all)
	return encode(response), nil
}

// encode writes JSON that was read or made here.
func encode(v any) jsontext.Value {
	body, err := json.Marshal(v, json.Deterministic(true))
	if err != nil {
		panic("JSON that was made here cannot be written: " + err.Error())
	}
	return body
}
