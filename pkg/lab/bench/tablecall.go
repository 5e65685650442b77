package bench

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/commerce-integration/service/pkg/lab/meter"
)

// attributes are an item, or its key, as the protocol writes it.
type attributes map[string]map[string]jsontext.Value

// text is the value of an attribute that is a string.
func (a attributes) text(name string) string {
	var s string
	if v := a[name]["S"]; v != nil {
		_ = json.Unmarshal(v, &s) // what is no string is no key
	}
	return s
}

// size is about how many bytes the item has, as the table counts them.
func (a attributes) size() (sum int) {
	for name, v := range a {
		sum += len(name)
		for kind, content := range v {
			n := len(content)
			if kind == "B" {
				n = n * 3 / 4
			}
			sum += n
		}
	}
	return sum
}

// tableRequest is a request of any operation that reads or writes items.
type tableRequest struct {
	Key, Item                 attributes
	KeyConditionExpression    string
	ExpressionAttributeValues attributes
	TransactItems             []struct {
		Put                            *struct{ Item attributes }
		Update, Delete, ConditionCheck *struct{ Key attributes }
	}
	// RequestItems holds what BatchGetItem reads or BatchWriteItem writes.
	RequestItems map[string]jsontext.Value
	Statements   []struct {
		Statement  string
		Parameters []map[string]jsontext.Value
	}
}

// touched is one item of a request.
type touched struct {
	pk, sk string
	units  float64 // of 1 KB, as far as the request tells
}

func touchedBy(item attributes) touched {
	const unit = 1024
	return touched{pk: item.text("PK"), sk: item.text("SK"), units: float64(max(1, (item.size()+unit-1)/unit))}
}

// touches lists the items that a request reads or writes, at least one; a
// query is its partition.
func touches(operation string, body []byte) (all []touched, err error) {
	defer func() {
		if err == nil && len(all) == 0 {
			err = fmt.Errorf("a request %s without items: %.300s", operation, body)
		}
	}()
	var r tableRequest
	if err := json.Unmarshal(body, &r); err != nil {
		return nil, fmt.Errorf("read a request %s: %w", operation, err)
	}
	switch {
	case operation == "Query":
		_, name, _ := strings.Cut(r.KeyConditionExpression, ":")
		name, _, _ = strings.Cut(name, " ")
		return []touched{{pk: r.ExpressionAttributeValues.text(":" + name), units: 1}}, nil
	case r.Item != nil:
		return []touched{touchedBy(r.Item)}, nil
	case r.Key != nil:
		return []touched{touchedBy(r.Key)}, nil
	case r.TransactItems != nil:
		return r.transacted(), nil
	case r.Statements != nil:
		return r.inserted(), nil
	}
	return r.batched()
}

func (r *tableRequest) transacted() (all []touched) {
	for _, w := range r.TransactItems {
		switch {
		case w.Put != nil:
			all = append(all, touchedBy(w.Put.Item))
		case w.Update != nil:
			all = append(all, touchedBy(w.Update.Key))
		case w.Delete != nil:
			all = append(all, touchedBy(w.Delete.Key))
		case w.ConditionCheck != nil:
			all = append(all, touchedBy(w.ConditionCheck.Key))
		}
	}
	return all
}

// inserted reads statements such as INSERT INTO "t" VALUE {'PK': ?, 'SK': ?}.
func (r *tableRequest) inserted() (all []touched) {
	names := regexp.MustCompile(`'([^']+)'\s*:\s*\?`)
	for _, s := range r.Statements {
		item := attributes{}
		for i, found := range names.FindAllStringSubmatch(s.Statement, -1) {
			if i < len(s.Parameters) {
				item[found[1]] = s.Parameters[i]
			}
		}
		all = append(all, touchedBy(item))
	}
	return all
}

func (r *tableRequest) batched() (all []touched, err error) {
	for _, asked := range r.RequestItems {
		var reads struct{ Keys []attributes }
		var writes []struct {
			PutRequest    *struct{ Item attributes }
			DeleteRequest *struct{ Key attributes }
		}
		if asked.Kind() == '{' {
			err = json.Unmarshal(asked, &reads)
		} else {
			err = json.Unmarshal(asked, &writes)
		}
		if err != nil {
			return nil, fmt.Errorf("read the items of a batch: %w", err)
		}
		for _, k := range reads.Keys {
			all = append(all, touchedBy(k))
		}
		for _, w := range writes {
			if w.PutRequest != nil {
				all = append(all, touchedBy(w.PutRequest.Item))
			} else if w.DeleteRequest != nil {
				all = append(all, touchedBy(w.DeleteRequest.Key))
			}
		}
	}
	return all, nil
}

// The kinds of item that a delivery meets.
const (
	kindRecord   = "record"
	kindIndex    = "index of lists"
	kindRow      = "event's row"
	kindPayload  = "payload"
	kindTally    = "tally, counters"
	kindEndpoint = "endpoint, application"
	kindOther    = "other"
)

// kind tells an item's kind from its key.
func (t *touched) kind() string {
	kind := meter.KindOf(t.pk, t.sk)
	switch kind {
	case meter.RecordItem:
		return kindRecord
	case meter.RowItem:
		return kindRow
	case meter.PayloadItem:
		return kindPayload
	case meter.CountersItem, meter.HourItem:
		return kindTally
	case meter.ApplicationItem:
		return kindEndpoint
	}
	if slices.Contains(meter.IndexItems(), kind) {
		return kindIndex
	}
	return kindOther
}
