package faults

import (
	"maps"
	"net/http"
	"slices"

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

// do has the server do a request, and reads the members of its answer; nil if that is an error.
func (t transport) do(c call, request members) (a *http.Response, said members, err error) {
	c.body = encode(request)
	if a, err = t.forward(c); err != nil || a.StatusCode != http.StatusOK {
		return a, nil, err
	}
	return a, said, json.UnmarshalRead(a.Body, &said)
}

// someStatements has a run of statements fail on their own, at times all of them.
func (t transport) someStatements(c call, request members) (*http.Response, error) {
	var asked, given, failed []jsontext.Value
	if err := json.Unmarshal(request["Statements"], &asked); err != nil {
		return nil, err
	}
	from, to := c.window(len(asked))
	for range to - from {
		code := [2]string{"ThrottlingError", "ProvisionedThroughputExceeded"}[c.coin.IntN(2)]
		failed = append(failed, encode(map[string]any{"Error": reason{code, tooMuch}}))
	}
	a, said := answer(http.StatusOK, nil), members{}
	if len(failed) < len(asked) {
		request["Statements"] = encode(slices.Concat(asked[:from], asked[to:]))
		var err error
		if a, said, err = t.do(c, request); err != nil || said == nil {
			return a, err
		}
		if err := json.Unmarshal(said["Responses"], &given); err != nil {
			return nil, err
		}
	}
	said["Responses"] = encode(slices.Insert(given, from, failed...))
	return withBody(a, said), nil
}

// window draws a run of one of so many items at least.
func (c call) window(n int) (from, to int) {
	from = c.coin.IntN(n)
	return from, from + 1 + c.coin.IntN(n-from)
}

// someItems leaves a run of a batch's keys unread, and has at least the last one read: DynamoDB throttles a batch of which
// it can do nothing. The server may leave some itself.
func (t transport) someItems(c call, request members) (*http.Response, error) {
	tables, left, own := map[string]members{}, map[string]members{}, map[string]members{}
	if err := json.Unmarshal(request["RequestItems"], &tables); err != nil {
		return nil, err
	}
	for table, asked := range tables {
		if keys := keysOf(asked); len(keys) > 1 {
			from, to := c.window(len(keys) - 1)
			left[table] = withKeys(asked, keys[from:to])
			tables[table] = withKeys(asked, slices.Concat(keys[:from], keys[to:]))
		}
	}
	request["RequestItems"] = encode(tables)
	a, said, err := t.do(c, request)
	if err != nil || said == nil {
		return a, err
	}
	_ = json.Unmarshal(said["UnprocessedKeys"], &own) // absent: none
	for table, asked := range own {
		left[table] = withKeys(asked, append(keysOf(left[table]), keysOf(asked)...))
	}
	said["UnprocessedKeys"] = encode(left)
	return withBody(a, said), nil
}

// keysOf are the keys that a batch asks of one table.
func keysOf(asked members) (keys []jsontext.Value) {
	_ = json.Unmarshal(asked["Keys"], &keys) // the server refuses what is malformed
	return keys
}

func withKeys(asked members, keys []jsontext.Value) members {
	asked = maps.Clone(asked)
	asked["Keys"] = encode(keys)
	return asked
}
