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

// split parts a batch: what is to be done, and by table what is left undone,
// in the form in which the answer says so. At least one item is done, since
// DynamoDB throttles a batch of which it can do nothing; a batch of one is
// not parted. Only batches of the form that the service's reference gives
// are parted.
func split(body []byte, writes bool, random *rand.Rand) (rest []byte, undone object) {
	request, tables := object{}, object{}
	if json.Unmarshal(body, &request) != nil || json.Unmarshal(request["RequestItems"], &tables) != nil {
		return nil, nil
	}
	batches := make(map[string]*part, len(tables))
	total := 0
	for name, value := range tables {
		p := &part{}
		if !p.parse(value, writes) {
			return nil, nil
		}
		batches[name] = p
		total += len(p.items)
	}
	if total < 2 {
		return nil, nil
	}
	left := random.Perm(total)[:1+random.IntN(total-1)]
	chosen := make([]bool, total)
	for _, i := range left {
		chosen[i] = true
	}
	undone, at := object{}, 0
	for _, name := range slices.Sorted(maps.Keys(batches)) {
		p := batches[name]
		done, not := p.split(chosen[at : at+len(p.items)])
		at += len(p.items)
		if delete(tables, name); len(done) > 0 {
			tables[name] = p.with(done)
		}
		if len(not) > 0 {
			undone[name] = p.with(not)
		}
	}
	request["RequestItems"] = encode(tables)
	return encode(request), undone
}

// part is what a batch asks of one table.
type part struct {
	around object // of keys: what stands beside them; nil of writes
	items  []jsontext.Value
}

func (p *part) parse(value jsontext.Value, writes bool) bool {
	if writes {
		return json.Unmarshal(value, &p.items) == nil
	}
	return json.Unmarshal(value, &p.around) == nil && json.Unmarshal(p.around["Keys"], &p.items) == nil
}

func (p *part) split(leave []bool) (done, undone []jsontext.Value) {
	for i, item := range p.items {
		if leave[i] {
			undone = append(undone, item)
		} else {
			done = append(done, item)
		}
	}
	return done, undone
}

func (p *part) with(items []jsontext.Value) jsontext.Value {
	if p.around == nil {
		return encode(items)
	}
	p.around["Keys"] = encode(items)
	return encode(p.around)
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
		if known, ok := given[table]; ok {
			value = join(known, value, writes)
		}
		given[table] = value
	}
	response[member] = encode(given)
	return encode(response), nil
}

// join makes one of two lists of the same table.
func join(a, b jsontext.Value, writes bool) jsontext.Value {
	var first, second part
	if !first.parse(a, writes) || !second.parse(b, writes) {
		return b
	}
	return first.with(append(first.items, second.items...))
}

// encode writes what was made of JSON that was read.
func encode(v any) jsontext.Value {
	body, err := json.Marshal(v, json.Deterministic(true))
	if err != nil {
		panic("JSON that was read cannot be written: " + err.Error())
	}
	return body
}
