package bench

import (
	"bytes"
	"context"
	"fmt"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// stub stands for table and queues before the worker: it answers reads of
// items with bytes that are ready, and takes every write without looking at
// it. Whatever the worker writes, what it reads stays as it was, so that the
// same events can be delivered again and again.
type stub struct {
	*wire
	items map[string][]byte // by PK and SK
	table string

	plain   []byte // answer to what has nothing to tell
	nothing []byte // answer to a query
}

// newStub answers with the items, as the protocol writes them.
func newStub(ctx context.Context, table string, items []jsontext.Value) (*stub, error) {
	const mediaType = "application/x-amz-json-1.0"
	s := &stub{
		table: table, items: make(map[string][]byte, len(items)),
		plain: ok(mediaType, []byte("{}")), nothing: ok(mediaType, []byte(`{"Items":[],"Count":0,"ScannedCount":0}`)),
	}
	for _, item := range items {
		var key attributes
		if err := json.Unmarshal(item, &key); err != nil {
			return nil, fmt.Errorf("read an item: %w", err)
		}
		s.items[key.text("PK")+key.text("SK")] = item
	}
	var err error
	s.wire, err = newWire(ctx, s.respond)
	return s, err
}

func (s *stub) respond(r *wireRequest) []byte {
	_, operation, _ := bytes.Cut(r.target, []byte("."))
	switch string(operation) {
	case "BatchGetItem":
		return s.batch(r.body)
	case "GetItem":
		return s.one(r.body)
	case "Query":
		return s.nothing
	}
	return s.plain
}

// batch answers with those of the asked items that there are.
func (s *stub) batch(body []byte) []byte {
	const head = "HTTP/1.1 200 OK\r\nContent-Type: application/x-amz-json-1.0\r\nContent-Length: %8d\r\n\r\n"
	answer := make([]byte, 0, 32<<10)
	answer = fmt.Appendf(answer, head, 0)
	start := len(answer)
	answer = append(answer, `{"Responses":{"`+s.table+`":[`...)
	none := true
	eachKey(body, func(key string) {
		item, found := s.items[key]
		if !found {
			return
		}
		if !none {
			answer = append(answer, ',')
		}
		answer, none = append(answer, item...), false
	})
	answer = append(answer, `]},"UnprocessedKeys":{}}`...)
	_ = fmt.Appendf(answer[:0], head, len(answer)-start) // in its place
	return answer
}

// one answers with an item, or with nothing.
func (s *stub) one(body []byte) (answer []byte) {
	answer = s.plain
	eachKey(body, func(key string) {
		if item, found := s.items[key]; found {
			answer = ok("application/x-amz-json-1.0", fmt.Appendf(nil, `{"Item":%s}`, item))
		}
	})
	return answer
}

// eachKey finds the keys in a request without parsing it: PK and SK of a key
// stand together, in any order, and their values need no escapes.
func eachKey(body []byte, each func(key string)) {
	var pk, sk []byte
	for {
		at := bytes.Index(body, []byte(`K":{"S":"`))
		if at < 1 {
			return
		}
		name := body[at-1]
		body = body[at+len(`K":{"S":"`):]
		end := bytes.IndexByte(body, '"')
		if end < 0 {
			return
		}
		if name == 'P' {
			pk = body[:end]
		} else {
			sk = body[:end]
		}
		body = body[end:]
		if pk != nil && sk != nil {
			each(string(pk) + string(sk))
			pk, sk = nil, nil
		}
	}
}
