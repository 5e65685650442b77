// Package shop reads what shop systems say of their products, orders and
// customers: it maps the bodies of their webhooks to records, each field in one
// place. Ids derive from what the importer's formats derive them from, so that a
// product of an export file and of a webhook is one record. A field that is wrong
// stays as it was sent, and ingest refuses the record by the field's name. Who
// sent a body, and whether it is newer than another, is left to the caller.
package shop

import (
	"slices"
	"strings"

	"github.com/commerce-integration/service/pkg/base/value"
	"github.com/commerce-integration/service/pkg/commerce"
	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// Namespace is what derived identifiers are version 5 UUIDs in. It is part of what
// senders rely on.
var Namespace = value.MustID("6f1d3b0e-5f0c-5c55-8a0d-2f6c1b9d4e73")

// System is a shop system.
type System string

// The systems.
const (
	Shopify     System = "SHOPIFY"
	WooCommerce System = "WOOCOMMERCE"
)

// Values lists what the type accepts.
func (System) Values() []string { return []string{string(Shopify), string(WooCommerce)} }

// Event is what a webhook says: of an object of the shop, or of an inventory level.
type Event struct {
	Kind    commerce.Kind
	Object  string     // its id in the shop
	Changed value.Time // when the body says that it was changed; 0 where it does not
	Deleted bool
	Parts   []Part // the records that the object is: of a product a record for each variant
	// Category is the path of a product's main category, "" without one.
	Category string
	Level    *Level // nil: it is about the object
}

// Part is one record of an object. Its record is nil where the webhook only says
// that it is still there.
type Part struct {
	Key    string // its id in the shop
	ID     value.ID
	Record jsontext.Value
	Item   string // of a variant: the id by which inventory levels name it
	// OnHand is how much of a product is there, as its own webhook says; nil where it
	// does not.
	OnHand jsontext.Value
}

// Level is how much of an item is at a location.
type Level struct {
	Item, Location string
	Available      jsontext.Value // nil: the item is not kept there
}

// Read maps the body of a webhook. The prefix keeps the ids of two shops of a system
// apart; without one they are those of imported files. The event is nil where the topic
// changes no record. An error says that the body is not one of the topic.
func Read(system System, prefix, topic string, body []byte) (*Event, error) {
	at := slices.IndexFunc(topics[system], func(t topicsOf) bool { return slices.Contains(strings.Fields(t.names), topic) })
	if at < 0 {
		return nil, nil
	}
	n, err := parse(body)
	if err != nil {
		return nil, err
	}
	ns := ids(Namespace)
	if prefix != "" {
		ns = ids(derive(prefix))
	}
	t := topics[system][at]
	e, err := n.event(t.kind)
	if err == nil {
		err = t.read(e, ns, n)
	}
	return e, err
}

// topicsOf are topics whose bodies are read alike.
type topicsOf struct {
	kind  commerce.Kind
	read  func(e *Event, ns ids, n node) error // fills the event
	names string
}

// topics are those that change records. refunds/create does not, as orders/updated has
// the refunds of the order.
var topics = map[System][]topicsOf{
	Shopify: {
		{commerce.KindProduct, shopifyProduct, "products/create products/update"},
		{commerce.KindProduct, deleted, "products/delete"},
		{
			commerce.KindOrder, shopifyOrder,
			"orders/create orders/updated orders/paid orders/cancelled orders/fulfilled orders/partially_fulfilled",
		},
		{commerce.KindOrder, deleted, "orders/delete"},
		{commerce.KindCustomer, shopifyCustomer, "customers/create customers/update customers/enable customers/disable"},
		{commerce.KindCustomer, deleted, "customers/delete"},
		{commerce.KindStock, shopifyLevel, "inventory_levels/connect inventory_levels/update"},
		{commerce.KindStock, shopifyNoLevel, "inventory_levels/disconnect"},
	},
	WooCommerce: {
		{commerce.KindProduct, wooProduct, "product.created product.updated product.restored"},
		{commerce.KindProduct, wooDeleted, "product.deleted"},
		{commerce.KindOrder, wooOrder, "order.created order.updated order.restored"},
		{commerce.KindOrder, wooDeleted, "order.deleted"},
		{commerce.KindCustomer, wooCustomer, "customer.created customer.updated"},
		{commerce.KindCustomer, wooDeleted, "customer.deleted"},
	},
}

// deleted reads the webhook of a deletion, which has the object's id.
func deleted(e *Event, _ ids, _ node) error {
	e.Deleted = true
	return nil
}

// ids is the namespace of the ids of a shop's objects.
type ids value.ID

// derive makes the id of what the parts name together.
func (ns ids) derive(parts ...string) value.ID {
	return value.DeriveID(value.ID(ns), strings.Join(parts, "\x1f"))
}

// derive makes an id that all shops share, such as a brand's.
func derive(name string) value.ID { return ids(Namespace).derive(name) }

// record is a record as it is sent. Members that are nil are left out, so that the
// service derives them or takes their default.
type record map[string]any

func (r record) encode() jsontext.Value {
	withoutNil(r)
	text, err := json.Marshal(map[string]any(r), json.Deterministic(true))
	if err != nil {
		panic("shop: texts and numbers are always JSON: " + err.Error())
	}
	return text
}

func withoutNil(r record) {
	for name, v := range r {
		switch v := v.(type) {
		case nil:
			delete(r, name)
		case record:
			withoutNil(v)
		case []record:
			for _, entry := range v {
				withoutNil(entry)
			}
		}
	}
}

// branded gives a product its brand, and its attributes the name, as the importer's
// formats do.
func (r record) branded(attributes record, vendor string) {
	if vendor != "" {
		r["brandId"] = derive("brand/" + vendor)
		attributes["vendor"] = vendor
	}
}

// categorized gives a product its categories, the main one first.
func (r record) categorized(attributes record, paths []string) {
	if len(paths) > 0 {
		r["categoryId"] = derive("category/" + paths[0])
	}
	if len(paths) > 1 {
		attributes["categories"] = paths
	}
}

const (
	pathSeparator = " > "
	// maxLevels bounds the categories of a path. The name of the last one is the rest.
	maxLevels = 20
)

// Categories are the records of a category path, from the top.
func Categories(path string) (all []Part) {
	if path == "" {
		return nil
	}
	names := strings.SplitN(path, pathSeparator, maxLevels)
	var parent any
	for i, name := range names {
		id := derive("category/" + strings.Join(names[:i+1], pathSeparator))
		all = append(all, Part{ID: id, Record: record{"id": id, "name": name, "parentId": parent}.encode()})
		parent = id
	}
	return all
}
