package shop

import (
	"cmp"
	"errors"
	"fmt"
	"strings"
	"unicode"

	"github.com/commerce-integration/service/pkg/base/value"
	"github.com/commerce-integration/service/pkg/commerce"
	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// node is an object of a webhook's body. Its numbers are texts, as they were
// written: amounts are never binary floats, and ids have up to 64 bits. A nil node
// is one that is absent.
type node map[string]any

func parse(body []byte) (n node, err error) {
	numbers := json.UnmarshalFromFunc(func(dec *jsontext.Decoder, v *any) error {
		if dec.PeekKind() != '0' {
			return errors.ErrUnsupported
		}
		raw, err := dec.ReadValue()
		*v = string(raw)
		return err
	})
	err = json.Unmarshal(body, (*map[string]any)(&n), json.WithUnmarshalers(numbers),
		jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true))
	return n, err
}

// event is the event of an object, or of a level of an inventory item.
func (n node) event(kind commerce.Kind) (*Event, error) {
	field := "id"
	if kind == commerce.KindStock {
		field = "inventory_item_id"
	}
	id, err := n.id(field)
	if err == nil && id == "" {
		err = fmt.Errorf("%s is required", field)
	}
	return &Event{Kind: kind, Object: id, Changed: cmp.Or(n.at("updated_at"), n.at("date_modified_gmt"))}, err
}

// maxID bounds an id of a shop, which becomes part of a key.
const maxID = 100

// id is an id of the shop, "" where there is none.
func (n node) id(field string) (string, error) {
	id := n.text(field)
	if len(id) > maxID {
		return "", fmt.Errorf("%s must be an id of the shop, at most %d bytes", field, maxID)
	}
	return id, nil
}

// text is the first text that is not empty, without control characters.
func (n node) text(names ...string) string {
	for _, name := range names {
		s, _ := n[name].(string)
		if s = strings.TrimSpace(strings.Map(printable, s)); s != "" {
			return s
		}
	}
	return ""
}

func printable(r rune) rune {
	if unicode.IsControl(r) && !strings.ContainsRune("\t\r\n", r) {
		return -1
	}
	return r
}

// get is text, nil where that is empty.
func (n node) get(names ...string) any { return orNil(n.text(names...)) }

func orNil[T comparable](v T) any {
	if v == *new(T) {
		return nil
	}
	return v
}

func (n node) is(name, text string) bool { return strings.EqualFold(n.text(name), text) }

// flag reports whether the member is true.
func (n node) flag(name string) bool { v, _ := n[name].(bool); return v }

func (n node) object(name string) node { v, _ := n[name].(map[string]any); return v }

// list are the objects of a list.
func (n node) list(name string) (all []node) {
	entries, _ := n[name].([]any)
	for _, entry := range entries {
		if o, ok := entry.(map[string]any); ok {
			all = append(all, o)
		}
	}
	return all
}

// texts are the texts of a list.
func (n node) texts(name string) (all []string) {
	entries, _ := n[name].([]any)
	for _, entry := range entries {
		s, _ := entry.(string)
		all = append(all, s)
	}
	return Texts(all)
}

// Texts are the distinct texts, trimmed, that are not blank.
func Texts(entries []string) (all []string) {
	known := map[string]bool{}
	for _, s := range entries {
		if s = strings.TrimSpace(s); s != "" && !known[s] {
			known[s] = true
			all = append(all, s)
		}
	}
	return all
}

// of are the texts of a field of each node.
func of(nodes []node, field string) (all []string) {
	for _, n := range nodes {
		all = append(all, n.text(field))
	}
	return all
}

// amount is a number as it was written, or a text that is none.
func (n node) amount(names ...string) any {
	text := n.text(names...)
	if a, err := value.ParseAmount(text); err == nil {
		return a
	}
	return orNil(text)
}

// number is amount for arithmetic: 0 of what is none.
func (n node) number(names ...string) value.Amount {
	a, _ := value.ParseAmount(n.text(names...))
	return a
}

// sum adds a field of the nodes.
func sum(nodes []node, field string) (total value.Amount) {
	for _, n := range nodes {
		total += n.number(field)
	}
	return total
}

// percent is a rate such as 0.19 in percent.
func (n node) percent(name string) any {
	text := n.text(name)
	if a, err := value.ParseAmount(text + "e2"); err == nil {
		return a
	}
	return orNil(text)
}

// time is a time as the service writes it. One without an offset is in UTC.
func (n node) time(name string) any {
	if at := n.at(name); at != 0 {
		return at
	}
	return n.get(name)
}

// at is the time of a field; 0 of what is none.
func (n node) at(name string) value.Time {
	text := n.text(name)
	at, err := value.ParseTime(text)
	if err != nil {
		at, err = value.ParseTime(text + "Z")
	}
	if err != nil {
		return 0
	}
	return at
}

// country is a code such as DE.
func (n node) country(name string) any {
	if code := n.text(name); len(code) == len("DE") {
		return code
	}
	return nil
}

// word is the service's word for one of the shop's, or another one.
func (n node) word(name string, words map[string]any, otherwise string) any {
	return cmp.Or(words[strings.ToLower(n.text(name))], any(otherwise))
}
