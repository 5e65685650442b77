package faults

import (
	"context"
	"fmt"
	"net/http"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// ask makes a request of the proxy's own, with the credentials of the
// client's.
func (q *request) ask(ctx context.Context, op string, in, out any) error {
	header := q.header.Clone()
	header.Set(headerTarget, "DynamoDB_20120810."+op)
	a, err := q.proxy.try(ctx, http.MethodPost, header, encode(in))
	if err != nil {
		return fmt.Errorf("%s for the fault proxy: %w", op, err)
	}
	if !a.ok() {
		return fmt.Errorf("%s for the fault proxy: %s", op, a.body)
	}
	return json.Unmarshal(a.body, out)
}

type keySchema []struct{ AttributeName, KeyType string }

func (k keySchema) names() []string {
	names := make([]string, 0, len(k))
	for _, e := range k {
		if e.KeyType == "HASH" {
			names = append([]string{e.AttributeName}, names...)
		} else {
			names = append(names, e.AttributeName)
		}
	}
	return names
}

// schema reads the key of a table, once.
func (q *request) schema(ctx context.Context, table string) *schema {
	p := q.proxy.past
	p.mu.Lock()
	s := p.schemas[table]
	p.mu.Unlock()
	if s != nil {
		return s
	}
	var described struct {
		Table struct {
			KeySchema              keySchema
			GlobalSecondaryIndexes []struct {
				IndexName string
				KeySchema keySchema
			}
			LocalSecondaryIndexes []struct {
				IndexName string
				KeySchema keySchema
			}
		}
	}
	if q.ask(ctx, "DescribeTable", map[string]string{"TableName": table}, &described) != nil {
		return nil
	}
	s = &schema{key: described.Table.KeySchema.names(), indexes: map[string][]string{}}
	for _, index := range append(described.Table.GlobalSecondaryIndexes, described.Table.LocalSecondaryIndexes...) {
		s.indexes[index.IndexName] = index.KeySchema.names()
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.schemas[table] = s
	return s
}

// target is an item that a request writes.
type target struct {
	table string
	item  object // at least its key
}

// write is the part of a write that names its item.
type write struct {
	TableName string
	Item, Key object
}

func (w write) target() target {
	if w.Item != nil {
		return target{w.TableName, w.Item}
	}
	return target{w.TableName, w.Key}
}

// targets lists the items that a request writes.
func (q *request) targets(body []byte) []target {
	var in struct {
		write
		TransactItems []map[string]write
		Statements    []statement
		RequestItems  map[string][]map[string]write
	}
	if json.Unmarshal(body, &in) != nil {
		return nil
	}
	var found []target
	switch q.op {
	case "TransactWriteItems":
		for _, item := range in.TransactItems {
			for does, w := range item {
				if does != "ConditionCheck" {
					found = append(found, w.target())
				}
			}
		}
	case "BatchWriteItem":
		for table, items := range in.RequestItems {
			for _, item := range items {
				for _, w := range item {
					w.TableName = table
					found = append(found, w.target())
				}
			}
		}
	case "BatchExecuteStatement":
		for _, s := range in.Statements {
			if t, ok := s.target(); ok {
				found = append(found, t)
			}
		}
	default:
		found = append(found, in.target())
	}
	return found
}

// keep remembers what a write is going to replace. finish is told the answer,
// nil when there was none: a write that was refused has not happened.
func (q *request) keep(ctx context.Context, body []byte) (finish func(*answer)) {
	type item struct {
		target
		schema *schema
		place  place
	}
	var items []item
	var places []place
	for _, t := range q.targets(body) {
		s := q.schema(ctx, t.table)
		if s == nil {
			continue
		}
		if at, ok := s.place(t.table, t.item); ok {
			items, places = append(items, item{t, s, at}), append(places, at)
		}
	}
	p := q.proxy.past
	unlock := p.lock(places)
	changes := make([]*change, len(items))
	for i, it := range items {
		var found struct{ Item jsontext.Value }
		err := q.ask(ctx, "GetItem", map[string]any{
			"TableName": it.table, "Key": it.schema.keyOf(it.item), "ConsistentRead": true,
		}, &found)
		if err == nil {
			changes[i] = p.add(it.place, found.Item)
		}
	}
	return func(a *answer) {
		defer unlock()
		for i, c := range changes {
			if c != nil && a != nil && a.status/100 == 4 {
				p.forget(places[i].partition, c)
			}
		}
	}
}

// age turns the answer to a read into what it would have been a moment ago,
// and reports whether that makes a difference. Items that a query has lost
// since do not come back.
func (q *request) age(ctx context.Context, body []byte, a *answer) bool {
	then := q.proxy.past.moment(q.plan.coin)
	response := object{}
	if json.Unmarshal(a.body, &response) != nil {
		return false
	}
	var in read
	if json.Unmarshal(body, &in) != nil {
		return false
	}
	changed := false
	switch q.op {
	case "GetItem":
		changed = q.ageItem(ctx, then, &in, response)
	case "BatchGetItem":
		changed = q.ageBatch(ctx, then, in.RequestItems, response)
	default:
		changed = q.ageQuery(ctx, then, &in, response)
	}
	if changed {
		a.setBody(encode(response))
	}
	return changed
}

// read is the part of a read that says of what and how.
type read struct {
	TableName, IndexName     string
	ConsistentRead           bool
	Key                      object
	Keys                     []object
	RequestItems             map[string]read
	FilterExpression         string
	ProjectionExpression     string
	AttributesToGet          []string
	ExpressionAttributeNames map[string]string
}

// project leaves of a state what the read asks for. It fails for paths into
// attributes.
func (r *read) project(item jsontext.Value) (jsontext.Value, bool) {
	names := r.AttributesToGet
	for name := range strings.SplitSeq(r.ProjectionExpression, ",") {
		if name = strings.TrimSpace(name); name == "" {
			continue
		}
		if strings.ContainsAny(name, ".[") {
			return nil, false
		}
		if strings.HasPrefix(name, "#") {
			name = r.ExpressionAttributeNames[name]
		}
		names = append(names, name)
	}
	if names == nil {
		return item, true
	}
	all, some := object{}, object{}
	if json.Unmarshal(item, &all) != nil {
		return nil, false
	}
	for _, name := range names {
		if value, ok := all[name]; ok {
			some[name] = value
		}
	}
	return encode(some), true
}

// earlier returns what the item of a key was then, nil when there was none.
// known is false when it was what it is now.
func (q *request) earlier(ctx context.Context, then *moment, in *read, table string, key object) (item jsontext.Value, known bool) {
	s := q.schema(ctx, table)
	if s == nil || in.ConsistentRead {
		return nil, false
	}
	at, ok := s.place(table, key)
	if !ok {
		return nil, false
	}
	return then.was(at)
}

func (q *request) ageItem(ctx context.Context, then *moment, in *read, response object) bool {
	before, known := q.earlier(ctx, then, in, in.TableName, in.Key)
	if known && before != nil {
		before, known = in.project(before)
	}
	if !known {
		return false
	}
	delete(response, "Item")
	if before != nil {
		response["Item"] = before
	}
	return true
}

func (q *request) ageBatch(ctx context.Context, then *moment, in map[string]read, response object) bool {
	found := map[string][]jsontext.Value{}
	if json.Unmarshal(response["Responses"], &found) != nil {
		return false
	}
	changed := false
	for table, asked := range in {
		s := q.schema(ctx, table)
		if s == nil {
			continue
		}
		var old []jsontext.Value
		replaced := map[place]bool{}
		for _, key := range asked.Keys {
			before, known := q.earlier(ctx, then, &asked, table, key)
			if known && before != nil {
				before, known = asked.project(before)
			}
			if known {
				at, _ := s.place(table, key)
				replaced[at], changed = true, true
				if before != nil {
					old = append(old, before)
				}
			}
		}
		for _, item := range found[table] {
			values := object{}
			if err := json.Unmarshal(item, &values); err != nil {
				return false
			}
			if at, ok := s.place(table, values); !ok || !replaced[at] {
				old = append(old, item)
			}
		}
		found[table] = old
	}
	response["Responses"] = encode(found)
	return changed
}

func (q *request) ageQuery(ctx context.Context, then *moment, in *read, response object) bool {
	var items []jsontext.Value
	if in.ConsistentRead || json.Unmarshal(response["Items"], &items) != nil {
		return false
	}
	s := q.schema(ctx, in.TableName)
	if s == nil {
		return false
	}
	changed := false
	kept := []jsontext.Value{}
	for _, item := range items {
		was, known := q.listedThen(ctx, then, in, s, item)
		switch {
		case !known:
			kept = append(kept, item)
			continue
		case was != nil:
			kept = append(kept, was)
		}
		changed = true
	}
	if changed {
		response["Items"], response["Count"] = encode(kept), encode(len(kept))
	}
	return changed
}

// listedThen returns what stood in a query's answer where the item stands
// now, nil for nothing. known is false when it is the same, or when it cannot
// be told: whether an earlier state passed a filter, say.
func (q *request) listedThen(ctx context.Context, then *moment, in *read, s *schema, item jsontext.Value) (was jsontext.Value, known bool) {
	values, old := object{}, object{}
	if json.Unmarshal(item, &values) != nil {
		return nil, false
	}
	was, known = q.earlier(ctx, then, in, in.TableName, values)
	if !known || was == nil {
		return nil, known
	}
	if in.FilterExpression != "" || json.Unmarshal(was, &old) != nil {
		return nil, false
	}
	if !s.sameIn(in.IndexName, old, values) {
		return nil, true
	}
	return in.project(was)
}
