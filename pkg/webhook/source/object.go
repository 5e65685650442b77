package source

import (
	"maps"
	"slices"
	"time"

	"github.com/commerce-integration/service/pkg/base/value"
	"github.com/commerce-integration/service/pkg/commerce"
	"github.com/commerce-integration/service/pkg/commerce/shop"
	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// maxDeletions is how many deliveries of deletions an object remembers.
const maxDeletions = 16

// Object is what is known of an object of a shop: which records it is, so that
// those that it is no more are deleted, and by ids that its shop has not given to
// them. A webhook's changes are queued between two writes of it. After the first it
// has the parts of before and after, and is unsettled; the second leaves those of
// after. Whatever ends the work between, the next webhook repeats what is missing.
type Object struct {
	Version   *int64   `json:"version,omitzero"` // of the last webhook
	Parts     []Part   `json:"parts,omitempty"`
	Category  string   `json:"category,omitzero"`
	Deleted   bool     `json:"deleted,omitzero"` // and nothing brought it back
	Unsettled bool     `json:"unsettled,omitzero"`
	Mark      value.ID `json:"mark"` // changes with every webhook
	// Deletions are deliveries that deleted it and have no time. One of them that comes
	// again after the object came back says nothing new.
	Deletions []string `json:"deletions,omitempty"`
}

// Part is a record of an object, by the ids in the shop and in the service.
type Part struct {
	Key  string   `json:"key"`
	ID   value.ID `json:"id"`
	Item string   `json:"item,omitzero"` // by which inventory levels name it
}

// Change is a change as a message of many has it.
type Change struct {
	Kind    commerce.Kind  `json:"kind"`
	Op      commerce.Op    `json:"op"`
	Version *int64         `json:"version,omitzero"`
	Record  jsontext.Value `json:"record"`
	// ExternalRef is the shop's id of a product, which its record has no field for.
	ExternalRef string `json:"externalRef,omitzero"`
	Key         string `json:"-"` // of a deletion: the part's
}

// Plan is what a webhook does to an object.
type Plan struct {
	Next    Object   // before the changes are queued
	Settled Object   // and after
	Changes []Change // in order
	New     []Part   // that inventory levels may wait for
}

// Plan returns what follows from an event of the version, nil if it has none, in a
// delivery; nil when the event is older than the object.
func (o *Object) Plan(e *shop.Event, version *int64, delivery string) *Plan {
	next := *o
	next.Mark, next.Deleted = value.NewRandomID(), e.Deleted
	switch {
	case version != nil && o.Version != nil && *version < *o.Version:
		return nil
	case version != nil:
		next.Version = version
	case e.Deleted && !o.Deleted && slices.Contains(o.Deletions, delivery):
		return nil
	case e.Deleted && !slices.Contains(o.Deletions, delivery):
		all := append(slices.Clone(o.Deletions), delivery)
		next.Deletions = all[max(0, len(all)-maxDeletions):]
	}
	if e.Category != "" {
		next.Category = e.Category
	}
	p := &Plan{}
	if next.Category != o.Category || o.Unsettled {
		for _, c := range shop.Categories(e.Category) {
			p.Changes = append(p.Changes, Change{Kind: commerce.KindCategory, Op: commerce.OpPut, Record: c.Record})
		}
	}
	stay := p.put(o, e, next.Version)
	known := slices.Concat(o.Parts, stay)
	if e.Deleted {
		stay = nil
	}
	var all []Part
	for _, part := range known {
		if containsID(all, part.ID) {
			continue
		}
		all = append(all, part)
		if !containsID(stay, part.ID) {
			gone := Change{Kind: e.Kind, Op: commerce.OpDelete, Version: next.Version, Record: jsontext.Value(`{"id":"` + part.ID.String() + `"}`), Key: part.Key}
			p.Changes = append(p.Changes, gone)
		}
	}
	p.Settled, p.Next = next, next
	p.Settled.Parts, p.Settled.Unsettled = stay, false
	p.Next.Parts = all
	p.Next.Unsettled = o.Unsettled || next.Category != o.Category || !slices.Equal(o.Parts, stay)
	return p
}

// put adds the changes that put records, and returns the parts that the object has
// by the event. Of a part that the event only names what is known stays.
func (p *Plan) put(o *Object, e *shop.Event, version *int64) (stay []Part) {
	for _, s := range e.Parts {
		part := Part{s.Key, s.ID, s.Item}
		if s.ID.IsZero() {
			if known := slices.IndexFunc(o.Parts, func(k Part) bool { return k.Key == s.Key }); known >= 0 {
				stay = append(stay, o.Parts[known])
			}
			continue
		}
		stay = append(stay, part)
		if s.Record != nil {
			c := Change{Kind: e.Kind, Op: commerce.OpPut, Version: version, Record: s.Record}
			if e.Kind == commerce.KindProduct {
				c.ExternalRef = s.Key
			}
			p.Changes = append(p.Changes, c)
		}
		if s.OnHand != nil {
			p.Changes = append(p.Changes, Level{version, s.OnHand}.change(s.ID, ""))
		}
		if part.Item != "" && (o.Unsettled || !slices.Contains(o.Parts, part)) {
			p.New = append(p.New, part)
		}
	}
	return stay
}

func containsID(parts []Part, id value.ID) bool {
	return slices.ContainsFunc(parts, func(p Part) bool { return p.ID == id })
}

const (
	// LevelsWait is for how long inventory levels wait for their variant.
	LevelsWait = 7 * 24 * time.Hour
	// maxLevels is how many locations of an item are remembered.
	maxLevels = 1_000
)

// Item is an inventory item of a shop: the product that it is the stock of, nil while
// that is not known, and the latest level of each location, for the product's next id:
// the first one, or one that follows from another handle.
type Item struct {
	ProductID *value.ID        `json:"productId"`
	Levels    map[string]Level `json:"levels,omitempty"`
}

// Level is an inventory level at a location.
type Level struct {
	Version   *int64         `json:"version,omitzero"`
	Available jsontext.Value `json:"available,omitzero"` // nil: the item is not kept there
}

// Take returns the change that a level makes: none while the product is not known,
// and none where a later level came before.
func (i *Item) Take(location string, l Level) (changes []Change, changed bool) {
	switch before, known := i.Levels[location]; {
	case known && before.Version != nil && l.Version != nil && *l.Version < *before.Version:
		return nil, false
	case known || len(i.Levels) < maxLevels:
		if i.Levels == nil {
			i.Levels = map[string]Level{}
		}
		i.Levels[location], changed = l, true
	}
	if i.ProductID != nil {
		changes = []Change{l.change(*i.ProductID, location)}
	}
	return changes, changed
}

// Link names the item's product, and returns the changes of the levels that came
// before. They stay, as the webhook may come again.
func (i *Item) Link(product value.ID) (changes []Change, changed bool) {
	for _, location := range slices.Sorted(maps.Keys(i.Levels)) {
		changes = append(changes, i.Levels[location].change(product, location))
	}
	changed = i.ProductID == nil || *i.ProductID != product
	i.ProductID = &product
	return changes, changed
}

// change is the change of the product's stock at a location.
func (l Level) change(product value.ID, location string) Change {
	row := struct {
		ProductID   value.ID       `json:"productId"`
		LocationRef string         `json:"locationRef"`
		OnHand      jsontext.Value `json:"onHand,omitzero"`
	}{product, location, l.Available}
	c := Change{Kind: commerce.KindStock, Op: commerce.OpDelete, Version: l.Version}
	if l.Available != nil {
		c.Op = commerce.OpPut
	}
	c.Record, _ = json.Marshal(row) // texts and JSON are always JSON
	return c
}
