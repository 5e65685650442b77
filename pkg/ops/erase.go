package ops

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/go-json-experiment/json"

	"github.com/commerce-integration/service/pkg/base/fault"
	"github.com/commerce-integration/service/pkg/base/value"
	"github.com/commerce-integration/service/pkg/commerce"
	"github.com/commerce-integration/service/pkg/commerce/receipt"
	"github.com/commerce-integration/service/pkg/dynamo"
	"github.com/commerce-integration/service/pkg/dynamo/chart"
	"github.com/commerce-integration/service/pkg/index"
	"github.com/commerce-integration/service/pkg/index/compactor"
	"github.com/commerce-integration/service/pkg/webhook"
	"github.com/commerce-integration/service/pkg/webhook/source"
)

const (
	// maxErasePasses bounds the passes over the table, of which the last finds
	// nothing: the service may write while one runs.
	maxErasePasses = 5
	// eraseBatch is how many items are deleted together.
	eraseBatch = 250
	// maxLeft bounds the records that are told to be left.
	maxLeft = 20
	// messageLooks, each after messagePause, is how often the queues of deliveries are
	// looked at for messages that no worker has received; workTime is how long a worker
	// works on those that it has.
	messageLooks = 240
	messagePause = 5 * time.Second
	workTime     = time.Minute
)

// Erasure erases an organization or one customer of it from the table and from
// the queues that nothing takes from. A customer's records become tombstones, as
// any delete makes, and its lists are built anew. The records go last, because
// they tell what else is the customer's: a run that was killed is repeated.
type Erasure struct {
	Table        *dynamo.Table
	Lists        *index.Lists
	Compactor    *compactor.Compactor
	Client       *sqs.Client
	Queues       []*QueueStatus
	Organization value.ID
	Customer     value.ID // zero erases the whole organization
	Clock        func() time.Time
	Pause        func(context.Context, time.Duration) error

	known erasedIDs
}

// Erased is what an erasure has found or erased.
type Erased struct {
	Items    EraseCounts
	Messages map[string]int // by queue
	Left     []string       // what is left, a line each
}

// EraseCounts counts items by what the chart of the table calls them.
type EraseCounts map[string]int

// add counts an item, and returns its name in the chart.
func (c EraseCounts) add(i *dynamo.OwnedItem) string {
	name := "other"
	for _, f := range chart.Forms() {
		if f.Type == i.Type() {
			name = f.Item
			break
		}
	}
	c[name]++
	return name
}

type idSet = map[value.ID]bool

// erasedIDs identify what is to be erased, as far as items told it.
type erasedIDs struct {
	Objects      idSet // live records of the personal kinds
	Events       idSet
	Deliveries   idSet
	Applications idSet // of an organization
}

// personal are the kinds of records that a customer may own.
var personal = []commerce.Kind{commerce.KindCustomer, commerce.KindOrder, commerce.KindInvoice}

// all reports whether the whole organization is erased.
func (e *Erasure) all() bool { return e.Customer.IsZero() }

// Find counts what Erase would erase.
func (e *Erasure) Find(ctx context.Context) (*Erased, error) {
	if err := e.learn(ctx); err != nil {
		return nil, err
	}
	found := &Erased{Items: EraseCounts{}, Messages: map[string]int{}}
	err := e.each(ctx, func(i *dynamo.OwnedItem) error {
		selected, err := e.selects(i)
		if selected {
			found.Items.add(i)
		}
		return err
	})
	if err == nil {
		_, err = e.eraseMessages(ctx, found.Messages, false)
	}
	return found, err
}

// Erase waits for the deliveries that only messages have, erases until it finds
// nothing, and looks for what is left.
func (e *Erasure) Erase(ctx context.Context) (*Erased, error) {
	done := &Erased{Items: EraseCounts{}, Messages: map[string]int{}}
	gone, err := e.awaitMessages(ctx)
	if err != nil {
		return nil, err
	}
	for range maxErasePasses {
		n, err := e.pass(ctx, done)
		if err != nil {
			return nil, err
		}
		if n == 0 {
			break
		}
	}
	if !e.all() {
		if err := e.rebuildLists(ctx); err != nil {
			return nil, err
		}
	}
	done.Left, err = e.left(ctx)
	if !gone {
		done.Left = append(done.Left, "messages of deliveries that no worker has received since: run the command again")
	}
	return done, err
}

// pass goes through the table and the queues once, erases what belongs to the
// erasure, and returns how many items that were.
func (e *Erasure) pass(ctx context.Context, done *Erased) (n int, err error) {
	if err := e.learn(ctx); err != nil {
		return 0, err
	}
	var items, payloads []dynamo.ItemRef
	var records []*commerce.Stored
	err = e.each(ctx, func(i *dynamo.OwnedItem) error {
		selected, err := e.selects(i)
		if err != nil || !selected {
			return err
		}
		n++
		name := done.Items.add(i)
		switch {
		case e.all() && len(items) == eraseBatch: // nothing is learnt of them
			full := items
			items = []dynamo.ItemRef{i.Ref()}
			return e.Table.RemoveItems(ctx, full)
		case e.all() || name != "record" && name != "payload":
			items = append(items, i.Ref())
		case name == "payload": // which tell the deliveries
			payloads = append(payloads, i.Ref())
		default:
			content, err := i.Content()
			if s, is := content.(*commerce.Stored); is {
				records = append(records, s)
			}
			return err
		}
		return nil
	})
	if err == nil {
		_, err = e.eraseMessages(ctx, done.Messages, true)
	}
	if err == nil {
		err = e.Table.RemoveItems(ctx, append(items, payloads...))
	}
	if err == nil && n > 0 { // a worker that has read a payload stores its delivery, which the next pass finds
		err = e.Pause(ctx, workTime)
	}
	for _, s := range records {
		if err == nil {
			err = e.bury(ctx, s)
		}
	}
	return n, err
}

// bury puts a tombstone in a record's place. A record that has changed since it
// was read is left to the next pass: it may be another customer's.
func (e *Erasure) bury(ctx context.Context, s *commerce.Stored) error {
	next, err := commerce.Apply(s, commerce.Change{
		OrganizationID: e.Organization, Kind: s.Kind, Op: commerce.OpDelete, Record: []byte(`{"id":"` + s.ID.String() + `"}`), Silent: true,
	}, value.TimeOf(e.Clock()))
	if err == nil {
		err = e.Table.PutRecord(ctx, s, next)
	}
	if errors.Is(err, fault.ErrChanged) {
		return nil
	}
	return err
}

// each passes every item of the organization on, after those of its applications
// that count requests.
func (e *Erasure) each(ctx context.Context, do func(*dynamo.OwnedItem) error) error {
	for _, application := range slices.SortedFunc(maps.Keys(e.known.Applications), value.ID.Compare) {
		if err := e.Table.EachRequestDay(ctx, application, do); err != nil {
			return err
		}
	}
	return e.Table.EachItem(ctx, e.Organization, do)
}

// learn reads the identifiers that tell what belongs to the erasure.
func (e *Erasure) learn(ctx context.Context) error {
	if e.known.Objects == nil {
		e.known = erasedIDs{Objects: idSet{e.Customer: true}, Events: idSet{}, Deliveries: idSet{}, Applications: idSet{}}
	}
	return e.Table.EachItem(ctx, e.Organization, func(i *dynamo.OwnedItem) error {
		if e.all() {
			if id := i.Application(); !id.IsZero() {
				e.known.Applications[id] = true
			}
			return nil
		}
		content, err := i.Content()
		switch content := content.(type) {
		case *commerce.Stored:
			if e.owns(content) {
				e.known.Objects[content.ID] = true
			}
		case *webhook.Payload:
			e.learnEvent(content)
		}
		return err
	})
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
			ID value.ID `json:"id"`
		} `json:"object"`
	} `json:"data"`
}

// isPersonal reports whether the object can be of a kind that a customer owns.
func isPersonal(eventType string) bool {
	return slices.Contains(personal, commerce.RecordKind(eventType)) || commerce.RecordKind(eventType) == ""
}

// learnEvent keeps the event of a payload that names the customer or is of one of
// its records, and reports whether it is such a payload.
func (e *Erasure) learnEvent(payload *webhook.Payload) bool {
	var p eventPayload
	_ = json.Unmarshal(payload.Body, &p) // an object of another shape, such as an endpoint, tells nothing
	if !bytes.Contains(payload.Body, []byte(e.Customer.String())) && !(isPersonal(p.Type) && e.known.Objects[p.Data.Object.ID]) {
		return false
	}
	e.known.Events[payload.EventID] = true
	return true
}

// selects reports whether an item belongs to the erasure.
func (e *Erasure) selects(i *dynamo.OwnedItem) (bool, error) {
	if e.all() {
		return true, nil
	}
	content, err := i.Content()
	if err != nil {
		return false, err
	}
	switch content := content.(type) {
	case *commerce.Stored:
		return e.owns(content), nil
	case *receipt.Stored:
		return i.Names(e.Customer) || e.refused(content.Receipt.Refusals), nil
	case *source.Object:
		return slices.ContainsFunc(content.Parts, func(p source.Part) bool { return e.known.Objects[p.ID] }), nil
	case *webhook.Payload:
		return e.learnEvent(content), nil
	case *webhook.Delivery:
		if e.known.Events[content.EventID] || isPersonal(content.Type) && e.known.Objects[content.ObjectID] || i.Names(e.Customer) {
			e.known.Deliveries[content.ID] = true
			return true, nil
		}
	}
	return false, nil
}

// refused reports whether one of the refusals is of a record of the erasure.
func (e *Erasure) refused(all []receipt.Refusal) bool {
	return slices.ContainsFunc(all, func(r receipt.Refusal) bool { return r.RecordID != nil && e.known.Objects[*r.RecordID] })
}

// left looks once more, and says what is left: messages, items that belong to the
// erasure or name the customer, and parts of the index.
func (e *Erasure) left(ctx context.Context) ([]string, error) {
	found := map[string]int{}
	mixed, err := e.eraseMessages(ctx, found, false)
	if err != nil {
		return nil, err
	}
	lines, items, err := e.leftItems(ctx)
	if err != nil {
		return nil, err
	}
	lines = append(lines, countLines(mixed, "messages in %s with records of others too, which have to be redriven first: %d")...)
	lines = append(lines, countLines(found, "messages in %s: %d")...)
	lines = append(lines, countLines(items, "%s: %d")...)
	if e.all() {
		return lines, nil
	}
	chunks, err := e.unnamedChunks(ctx)
	if len(chunks) > 0 {
		lines = append(lines, fmt.Sprintf("chunks of the index that nothing names: %d", len(chunks)))
	}
	return lines, err
}

// leftItems counts the items that are left. A record that names the customer
// elsewhere than in its customerId has a line.
func (e *Erasure) leftItems(ctx context.Context) (lines []string, items EraseCounts, err error) {
	items = EraseCounts{}
	err = e.each(ctx, func(i *dynamo.OwnedItem) error {
		selected, err := e.selects(i)
		if err != nil || !selected && (e.all() || !i.Names(e.Customer)) {
			return err
		}
		content, err := i.Content()
		s, isRecord := content.(*commerce.Stored)
		switch {
		case selected || !isRecord:
			items.add(i)
		case !s.Deleted && len(lines) < maxLeft:
			lines = append(lines, fmt.Sprintf("%s %s names the customer, but not as its customerId", s.Kind, s.ID))
		}
		return err
	})
	return lines, items, err
}

func countLines(counts map[string]int, format string) (lines []string) {
	for _, name := range slices.Sorted(maps.Keys(counts)) {
		lines = append(lines, fmt.Sprintf(format, name, counts[name]))
	}
	return lines
}
