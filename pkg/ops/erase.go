package ops

import (
	"bytes"
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/go-json-experiment/json"

	"github.com/commerce-integration/service/pkg/base/value"
	"github.com/commerce-integration/service/pkg/commerce"
	"github.com/commerce-integration/service/pkg/commerce/receipt"
	"github.com/commerce-integration/service/pkg/dynamo"
	"github.com/commerce-integration/service/pkg/dynamo/chart"
	"github.com/commerce-integration/service/pkg/index"
	"github.com/commerce-integration/service/pkg/index/compactor"
)

const (
	// maxErasePasses bounds the passes over the table, of which the last finds
	// nothing: the service may write while one runs.
	maxErasePasses = 5
	// eraseBatch is how many items are deleted together.
	eraseBatch = 250
	// maxLeft bounds the lines that tell what is left.
	maxLeft = 20
)

// Erasure erases an organization or one customer of it from the table and from
// the queues that nothing takes from. To repeat it is safe: after a kill it goes
// on with what the checkpoint knows.
type Erasure struct {
	Table        *dynamo.Table
	Lists        *index.Lists
	Compactor    *compactor.Compactor
	Organization value.ID
	Customer     value.ID // zero erases the whole organization
	Checkpoint   Checkpoint
	Pause        func(context.Context, time.Duration) error
	Progress     func(erased int)

	eraser *dynamo.Eraser
	erased int
	known  erasedIDs
}

// EraseCounts counts items by what the chart of the table calls them.
type EraseCounts map[string]int

func (c EraseCounts) add(i *dynamo.OwnedItem) {
	for _, f := range chart.Forms() {
		if f.Type == i.Type {
			c[f.Item]++
			return
		}
	}
	c["other"]++
}

type idSet = map[value.ID]bool

// erasedIDs identify what is to be erased, as far as items told it.
type erasedIDs struct {
	Objects      idSet `json:"objects"` // records of the personal kinds, deleted ones included
	Events       idSet `json:"events"`
	Deliveries   idSet `json:"deliveries"`
	Applications idSet `json:"applications"` // of an organization
}

// personal are the kinds of records that a customer may own.
var personal = []commerce.Kind{commerce.KindCustomer, commerce.KindOrder, commerce.KindInvoice}

// Open reads what an interrupted run has learnt.
func (e *Erasure) Open() error {
	e.eraser = dynamo.NewEraser(e.Table)
	e.known = erasedIDs{Objects: idSet{}, Events: idSet{}, Deliveries: idSet{}, Applications: idSet{}}
	if !e.all() {
		e.known.Objects[e.Customer] = true
	}
	return e.Checkpoint.Load(&e.known)
}

// all reports whether the whole organization is erased.
func (e *Erasure) all() bool { return e.Customer.IsZero() }

// Find counts what Erase would delete.
func (e *Erasure) Find(ctx context.Context) (EraseCounts, error) {
	counts := EraseCounts{}
	_, err := e.pass(ctx, counts, false)
	return counts, err
}

// Erase deletes, and returns the counts of what it deleted. It looks again until
// it finds nothing.
func (e *Erasure) Erase(ctx context.Context) (EraseCounts, error) {
	counts := EraseCounts{}
	for range maxErasePasses {
		n, err := e.pass(ctx, counts, true)
		if err != nil {
			return counts, err
		}
		if n == 0 {
			break
		}
	}
	if e.all() {
		return counts, nil
	}
	return counts, e.eraseIndex(ctx)
}

// pass goes through the table once, counts what belongs to the erasure, deletes
// it on demand, and returns how many items that were.
func (e *Erasure) pass(ctx context.Context, counts EraseCounts, erase bool) (n int, err error) {
	if err := e.learn(ctx); err != nil {
		return 0, err
	}
	var refs []dynamo.ItemRef
	take := func(i *dynamo.OwnedItem) error {
		selected, err := e.selects(i)
		if err != nil || !selected {
			return err
		}
		counts.add(i)
		n++
		refs = append(refs, i.Ref())
		if !erase || !e.all() || len(refs) < eraseBatch {
			return nil
		}
		batch := refs
		refs = nil
		return e.remove(ctx, batch)
	}
	if err := e.each(ctx, take); err != nil || !erase {
		return n, err
	}
	if err := e.Checkpoint.Save(e.known); err != nil {
		return n, err
	}
	return n, e.remove(ctx, refs)
}

// each passes every item of the organization on, and of its applications those
// that count requests.
func (e *Erasure) each(ctx context.Context, do func(*dynamo.OwnedItem) error) error {
	if err := e.eraser.EachItem(ctx, e.Organization, do); err != nil {
		return err
	}
	for _, application := range slices.SortedFunc(maps.Keys(e.known.Applications), value.ID.Compare) {
		if err := e.eraser.EachRequestDay(ctx, application, do); err != nil {
			return err
		}
	}
	return nil
}

func (e *Erasure) remove(ctx context.Context, refs []dynamo.ItemRef) error {
	n, err := e.eraser.Remove(ctx, refs, !e.all()) // an order may have got another customer
	e.erased += n
	e.Progress(e.erased)
	return err
}

// learn reads the identifiers that tell what belongs to the erasure, and keeps
// them before anything is deleted that told them.
func (e *Erasure) learn(ctx context.Context) error {
	told := idSet{} // objects of events that name the customer
	err := e.eraser.EachItem(ctx, e.Organization, func(i *dynamo.OwnedItem) error {
		if e.all() {
			i.Applications(e.known.Applications)
			return nil
		}
		s, err := i.Record()
		if err != nil {
			return err
		}
		if s != nil && e.owns(s) {
			e.known.Objects[s.ID] = true
		}
		event, p, err := e.payload(i)
		if p != nil && p.names(e.Customer) {
			e.known.Events[event] = true
			if p.of(e.Customer) {
				told[p.Data.Object.ID] = true
			}
		}
		return err
	})
	if err != nil {
		return err
	}
	if err := e.learnDeleted(ctx, told); err != nil {
		return err
	}
	return e.Checkpoint.Save(e.known)
}

// learnDeleted adds the objects of the customer's events that are records no
// more: a tombstone does not name the customer. One that lives on belongs to
// somebody else now.
func (e *Erasure) learnDeleted(ctx context.Context, told idSet) error {
	for id := range told {
		var refs []dynamo.RecordRef
		for _, kind := range personal {
			refs = append(refs, dynamo.RecordRef{OrganizationID: e.Organization, Kind: kind, ID: id})
		}
		lives := false
		for _, f := range e.Table.ReadRecords(ctx, refs) {
			if f.Err != nil {
				return f.Err
			}
			lives = lives || f.Stored != nil && !f.Stored.Deleted
		}
		if !lives {
			e.known.Objects[id] = true
		}
	}
	return nil
}

// owns reports whether a live record is the customer, or an order or invoice
// whose customerId names the customer.
func (e *Erasure) owns(s *commerce.Stored) bool {
	if s.Deleted || !slices.Contains(personal, s.Kind) {
		return false
	}
	if s.Kind == commerce.KindCustomer {
		return s.ID == e.Customer
	}
	var of struct {
		CustomerID value.ID `json:"customerId"`
	}
	return json.Unmarshal(s.Doc, &of) == nil && of.CustomerID == e.Customer
}

// eventPayload is what a payload tells of its object.
type eventPayload struct {
	Type string `json:"type"`
	Data struct {
		Object struct {
			ID         value.ID `json:"id"`
			CustomerID value.ID `json:"customerId"`
		} `json:"object"`
	} `json:"data"`

	body []byte
}

// isPersonal reports whether the object can be of a kind that a customer owns.
func isPersonal(eventType string) bool {
	return !strings.HasPrefix(eventType, string(commerce.KindProduct)+".") && !strings.HasPrefix(eventType, string(commerce.KindCategory)+".")
}

func (p *eventPayload) of(customer value.ID) bool {
	return isPersonal(p.Type) && (p.Data.Object.ID == customer || p.Data.Object.CustomerID == customer)
}

func (p *eventPayload) names(id value.ID) bool { return bytes.Contains(p.body, []byte(id.String())) }

// payload decodes a payload; nil for another item.
func (e *Erasure) payload(i *dynamo.OwnedItem) (event value.ID, p *eventPayload, err error) {
	event, body, err := i.Payload()
	if err != nil || body == nil {
		return event, nil, err
	}
	p = &eventPayload{body: body}
	// An object of another shape, such as an endpoint, tells nothing.
	_ = json.Unmarshal(body, p)
	return event, p, nil
}

// selects reports whether an item belongs to the erasure.
func (e *Erasure) selects(i *dynamo.OwnedItem) (bool, error) {
	if e.all() {
		return true, nil
	}
	if s, err := i.Record(); s != nil || err != nil {
		if err != nil {
			return false, err
		}
		return e.owns(s) || s.Deleted && slices.Contains(personal, s.Kind) && e.known.Objects[s.ID], nil
	}
	if r, err := i.Receipt(); r != nil || err != nil {
		return err == nil && (names(i, e.Customer) || e.refused(r.Receipt.Refusals)), err
	}
	event, p, err := e.payload(i)
	if err != nil {
		return false, err
	}
	if p != nil && (p.names(e.Customer) || isPersonal(p.Type) && e.known.Objects[p.Data.Object.ID]) {
		e.known.Events[event] = true
		return true, nil
	}
	d, err := i.Delivery()
	if err != nil || d == nil {
		return false, err
	}
	if e.known.Events[d.EventID] || isPersonal(d.Type) && e.known.Objects[d.ObjectID] || names(i, e.Customer) {
		e.known.Deliveries[d.ID] = true
		return true, nil
	}
	return false, nil
}

// refused reports whether one of the refusals is of a record of the erasure.
func (e *Erasure) refused(all []receipt.Refusal) bool {
	return slices.ContainsFunc(all, func(r receipt.Refusal) bool { return r.RecordID != nil && e.known.Objects[*r.RecordID] })
}

// names reports whether a text of the item has the id.
func names(i *dynamo.OwnedItem, id value.ID) bool {
	return slices.ContainsFunc(i.Texts(), func(text string) bool { return strings.Contains(text, id.String()) })
}

// Left looks once more, and says what is left, a line each, at most 20: items
// that belong to the erasure or name the customer, and what the index still has.
func (e *Erasure) Left(ctx context.Context) ([]string, error) {
	left := EraseCounts{}
	var lines []string
	look := func(i *dynamo.OwnedItem) error {
		selected, err := e.selects(i)
		if err != nil {
			return err
		}
		if selected {
			left.add(i)
			return nil
		}
		if e.all() || !names(i, e.Customer) {
			return nil
		}
		s, err := i.Record()
		switch {
		case s == nil:
			left.add(i)
		case len(lines) < maxLeft:
			lines = append(lines, fmt.Sprintf("%s %s names the customer, but not as its customerId", s.Kind, s.ID))
		}
		return err
	}
	if err := e.each(ctx, look); err != nil {
		return nil, err
	}
	for _, what := range slices.Sorted(maps.Keys(left)) {
		lines = append(lines, fmt.Sprintf("%s: %d", what, left[what]))
	}
	if e.all() {
		return lines, nil
	}
	indexed, err := e.leftInIndex(ctx)
	return append(lines, indexed...), err
}
