package faults

import (
	"math/rand/v2"
	"net/http"
	"slices"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// object is a JSON object whose members stay as they are.
type object = map[string]jsontext.Value

// partly has the server do some of a batch, and reports the rest as undone. What it cannot divide is done whole.
func (t transport) partly(r *http.Request, body []byte, coin *rand.Rand, o operation) (*http.Response, error) {
	request := object{}
	if json.Unmarshal(body, &request) != nil {
		return t.forward(r, body)
	}
	if o.statements {
		return t.someStatements(r, request, coin)
	}
	tables := object{}
	if json.Unmarshal(request["RequestItems"], &tables) == nil {
		for table, value := range tables {
			if b, err := parseBatch(value, o); err == nil && len(tables) == 1 && len(b.items) > 1 {
				return t.someItems(r, request, table, b, coin, o)
			}
		}
	}
	return t.forward(r, body)
}

// split divides items at random and keeps their order. At least one is left.
func split(items []jsontext.Value, coin *rand.Rand) (isLeft []bool, done, left []jsontext.Value) {
	isLeft = make([]bool, len(items))
	for _, i := range coin.Perm(len(items))[:1+coin.IntN(len(items))] {
		isLeft[i] = true
	}
	for i, item := range items {
		if isLeft[i] {
			left = append(left, item)
		} else {
			done = append(done, item)
		}
	}
	return isLeft, done, left
}

// someStatements has statements fail on their own, all of them at times.
func (t transport) someStatements(r *http.Request, request object, coin *rand.Rand) (*http.Response, error) {
	var statements, given, all []jsontext.Value
	if err := json.Unmarshal(request["Statements"], &statements); err != nil || len(statements) == 0 {
		return t.forward(r, encode(request))
	}
	fails, done, _ := split(statements, coin)
	a, response := answer(http.StatusOK, nil), object{}
	if len(done) > 0 {
		request["Statements"] = encode(done)
		var err error
		if a, err = t.forward(r, encode(request)); err != nil || a.StatusCode != http.StatusOK {
			return a, err
		}
		if err := json.UnmarshalRead(a.Body, &response); err != nil {
			return nil, err
		}
		if err := json.Unmarshal(response["Responses"], &given); err != nil {
			return nil, err
		}
	}
	for _, fail := range fails {
		if fail {
			code := [2]string{"ThrottlingError", "ProvisionedThroughputExceeded"}[coin.IntN(2)]
			all = append(all, encode(map[string]any{"Error": reason{code, tooMuch}}))
		} else {
			all, given = append(all, given[0]), given[1:]
		}
	}
	response["Responses"] = encode(all)
	return withBody(a, response), nil
}

// someItems leaves items undone, and has at least the last one done: DynamoDB throttles a batch of which it can do
// nothing. The server may leave some undone itself.
func (t transport) someItems(r *http.Request, request object, table string, b *batch, coin *rand.Rand, o operation) (*http.Response, error) {
	end := len(b.items) - 1
	_, done, left := split(b.items[:end], coin)
	request["RequestItems"] = encode(object{table: b.with(append(done, b.items[end]))})
	a, err := t.forward(r, encode(request))
	if err != nil || a.StatusCode != http.StatusOK {
		return a, err
	}
	response, given := object{}, object{}
	if err := json.UnmarshalRead(a.Body, &response); err != nil {
		return nil, err
	}
	member := "UnprocessedKeys"
	if o.writes {
		member = "UnprocessedItems"
	}
	_ = json.Unmarshal(response[member], &given) // absent: none
	if own, err := parseBatch(given[table], o); err == nil {
		left = slices.Concat(left, own.items)
	}
	response[member] = encode(object{table: b.with(left)})
	return withBody(a, response), nil
}

// batch is what a request asks of one table.
type batch struct {
	read  object // a read's members besides its keys; nil for a write
	items []jsontext.Value
}

func parseBatch(value jsontext.Value, o operation) (*batch, error) {
	b := &batch{}
	if o.writes {
		return b, json.Unmarshal(value, &b.items)
	}
	if err := json.Unmarshal(value, &b.read); err != nil {
		return nil, err
	}
	return b, json.Unmarshal(b.read["Keys"], &b.items)
}

func (b *batch) with(items []jsontext.Value) jsontext.Value {
	if b.read == nil {
		return encode(items)
	}
	b.read["Keys"] = encode(items)
	return encode(b.read)
}
