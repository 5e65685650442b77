package faults

import (
	"maps"
	"math/rand/v2"
	"net/http"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// members are those of a JSON object. They stay as they are.
type members = map[string]jsontext.Value

// partly has the server do some of a batch, and reports the rest as undone.
func (t transport) partly(c call) (*http.Response, error) {
	request := members{}
	if err := json.Unmarshal(c.body, &request); err != nil {
		return nil, err
	}
	if c.op == statements {
		return t.someStatements(c, request)
	}
	return t.someItems(c, request)
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
func (t transport) someStatements(c call, request members) (*http.Response, error) {
	var asked, given, told []jsontext.Value
	if err := json.Unmarshal(request["Statements"], &asked); err != nil {
		return nil, err
	}
	fails, done, _ := split(asked, c.coin)
	a, response := answer(http.StatusOK, nil), members{}
	if len(done) > 0 {
		request["Statements"] = encode(done)
		var err error
		if a, err = t.forward(c.Request, encode(request)); err != nil || a.StatusCode != http.StatusOK {
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
			code := [2]string{"ThrottlingError", "ProvisionedThroughputExceeded"}[c.coin.IntN(2)]
			told = append(told, encode(map[string]any{"Error": reason{code, tooMuch}}))
		} else {
			told, given = append(told, given[0]), given[1:]
		}
	}
	response["Responses"] = encode(told)
	return withBody(a, response), nil
}

// someItems leaves items of a batch undone, and has at least the last one done: DynamoDB throttles a batch of which it
// can do nothing. The server may leave some undone itself.
func (t transport) someItems(c call, request members) (*http.Response, error) {
	tables, left := map[string]part{}, map[string]part{}
	if err := json.Unmarshal(request["RequestItems"], &tables); err != nil {
		return nil, err
	}
	for table, p := range tables {
		if end := len(p.items) - 1; end > 0 {
			_, done, undone := split(p.items[:end], c.coin)
			tables[table] = p.of(append(done, p.items[end]))
			left[table] = p.of(undone)
		}
	}
	request["RequestItems"] = encode(tables)
	a, err := t.forward(c.Request, encode(request))
	if err != nil || a.StatusCode != http.StatusOK {
		return a, err
	}
	response, own := members{}, map[string]part{}
	if err := json.UnmarshalRead(a.Body, &response); err != nil {
		return nil, err
	}
	member := "UnprocessedKeys"
	if operations[c.op].writes {
		member = "UnprocessedItems"
	}
	_ = json.Unmarshal(response[member], &own) // absent: none
	for table, p := range own {
		left[table] = p.of(append(left[table].items, p.items...))
	}
	response[member] = encode(left)
	return withBody(a, response), nil
}

// part is what a batch asks of one table: a list of writes, or an object with the keys to read.
type part struct {
	read  members // the object's members; nil for writes
	items []jsontext.Value
}

func (p part) of(items []jsontext.Value) part { return part{maps.Clone(p.read), items} }

// UnmarshalJSON reads either form.
func (p *part) UnmarshalJSON(text []byte) error {
	if text[0] == '[' {
		return json.Unmarshal(text, &p.items)
	}
	if err := json.Unmarshal(text, &p.read); err != nil {
		return err
	}
	return json.Unmarshal(p.read["Keys"], &p.items)
}

// MarshalJSON writes the form that was read.
func (p part) MarshalJSON() ([]byte, error) {
	if p.read == nil {
		return json.Marshal(p.items)
	}
	p.read["Keys"] = encode(p.items)
	return json.Marshal(p.read)
}
