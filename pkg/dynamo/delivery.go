package dynamo

import (
	"context"
	"errors"
	"fmt"

	"github.com/commerce-integration/service/pkg/account"
	"github.com/commerce-integration/service/pkg/base/fault"
	"github.com/commerce-integration/service/pkg/base/value"
	"github.com/commerce-integration/service/pkg/commerce"
	"github.com/commerce-integration/service/pkg/webhook"
)

// A delivery is its doc; rev is its updatedAt, on which writes are
// conditional. GSI1 holds it under its due mark while it waits for the
// sweeper, and under a shard of its endpoint while it is HELD or FAILED.

// CreateDeliveries stores new deliveries, and in the same calls payloads of events,
// each event once, as PutPayload does. By index it returns the deliveries that
// existed already, of which nothing is written, and nil for the created ones, and
// of which events the payload existed. An item whose creation was not answered may
// be found to exist.
func (t *Table) CreateDeliveries(ctx context.Context, deliveries []*webhook.Delivery, payloads ...webhook.Payload) (
	existing []*webhook.Delivery, known map[value.ID]bool, err error,
) {
	items := make([]item, len(deliveries), len(deliveries)+len(payloads))
	for i, d := range deliveries {
		items[i] = encodeDelivery(d)
	}
	for _, p := range payloads {
		items = append(items, t.encodePayload(p.OrganizationID, p.EventID, p.Body))
	}
	var keys []key
	known = map[value.ID]bool{}
	errs := t.insert(ctx, "create deliveries", items, maxInsertParallel)
	for i, err := range errs {
		switch {
		case err != nil && !errors.Is(err, errRefused):
			return nil, nil, err
		case err != nil && i < len(deliveries):
			keys = append(keys, keyOf(items[i]))
		case err != nil:
			known[payloads[i-len(deliveries)].EventID] = true
		}
	}
	stored, err := t.batchGet(ctx, keys, true) // expired ones too
	if err != nil {
		return nil, nil, err
	}
	found := map[key]*webhook.Delivery{}
	for _, it := range stored {
		if found[keyOf(it)], err = decodeDelivery(it); err != nil {
			return nil, nil, err
		}
	}
	existing = make([]*webhook.Delivery, len(deliveries))
	for i, d := range deliveries {
		if errs[i] == nil {
			continue
		}
		if existing[i] = found[keyOf(items[i])]; existing[i] == nil {
			return nil, nil, fault.Busy(fmt.Errorf("create deliveries: %s existed, and was removed meanwhile", d.ID))
		}
	}
	return existing, known, nil
}

// PutDelivery replaces previous, which may not be stored yet, by next. When another
// writer was faster it returns the delivery as it is, nil when it has expired, with
// [fault.ErrChanged]. A write that met its own earlier try has succeeded.
func (t *Table) PutDelivery(ctx context.Context, previous, next *webhook.Delivery) (current *webhook.Delivery, err error) {
	found, done, err := t.putOnce(ctx, "put a delivery", encodeDelivery(next), newToken(), ifLast(attrRevision, previous.UpdatedAt))
	switch {
	case err != nil:
		return nil, err
	case done:
		return next, nil
	}
	if current, err = decodeDelivery(found); err != nil {
		return nil, err
	}
	return current, fault.ErrChanged
}

// Redeliver stores, both or neither, what change makes of a delivery and of its
// endpoint's circuit, which may stay, and returns the delivery; nil when there is
// none or its endpoint is gone. Change may be called again with fresher ones; an
// error of its own ends the attempt.
func (t *Table) Redeliver(ctx context.Context, org, endpoint, id value.ID,
	change func(*webhook.Endpoint, *webhook.Delivery) (*webhook.Circuit, *webhook.Delivery, error),
) (next *webhook.Delivery, err error) {
	_, err = changeItem(ctx, t, "endpoint", endpointKey(org, endpoint), decodeEndpoint, func(e *webhook.Endpoint, stored item) ([]write, error) {
		d, err := t.Delivery(ctx, org, id)
		if next = d; err != nil || d == nil {
			return nil, err
		}
		routing := e.Routing()
		if routing.Circuit, next, err = change(e, d); err != nil {
			return nil, err
		}
		writes := []write{t.put(encodeDelivery(next), ifRevision(d.UpdatedAt))}
		if routing.Equal(e.Routing()) {
			return writes, nil
		}
		return append(writes, t.reroute(org, endpoint, getString(stored, attrRouting), e.Routing(), routing)), nil
	})
	if err != nil {
		return nil, err
	}
	return next, nil
}

// Delivery reads one delivery, strongly consistent; nil when there is none.
func (t *Table) Delivery(ctx context.Context, org, id value.ID) (*webhook.Delivery, error) {
	return read(ctx, t, deliveryKey(org, id), decodeDelivery)
}

// Deliveries reads those deliveries of the ids that exist, strongly consistent.
func (t *Table) Deliveries(ctx context.Context, org value.ID, ids []value.ID) (map[value.ID]*webhook.Delivery, error) {
	return lookup[*webhook.Delivery](ctx, t, ids, true, func(id value.ID) key { return deliveryKey(org, id) })
}

// EventualDeliveries is Deliveries for half of the read units, eventually consistent.
func (t *Table) EventualDeliveries(ctx context.Context, org value.ID, ids []value.ID) (map[value.ID]*webhook.Delivery, error) {
	return lookup[*webhook.Delivery](ctx, t, ids, false, func(id value.ID) key { return deliveryKey(org, id) })
}

// DeliveriesPage reads one page of a shard of the organization's deliveries,
// as [Table.RecordsPage] does of records; there are [Shards] of them.
func (t *Table) DeliveriesPage(ctx context.Context, org value.ID, shard int, from string, limit int) (deliveries []*webhook.Delivery, next string, err error) {
	return page(ctx, t, after(recordPartition(org, deliveryKind, shard), from, limit), decodeDelivery)
}

// encodeDelivery leaves out of the doc what the key says.
func encodeDelivery(d *webhook.Delivery) item {
	stored := *d
	stored.ID, stored.OrganizationID = value.ID{}, value.ID{}
	it := docItem(deliveryKey(d.OrganizationID, d.ID), typeDelivery, &stored)
	it[attrRevision], it[attrExpires] = num(d.UpdatedAt), expiry(d.ExpiresAt())
	if d.Announces() {
		it[attrAlert] = str(commerce.EventEventFailed)
	}
	switch {
	case d.Pending() && d.DueAt != nil:
		markDue(it, d.ID, *d.DueAt)
	case d.Unsent():
		prefix := unsentPrefix
		if d.HeldReason == webhook.HeldCircuitOpen {
			prefix = heldPrefix
		}
		it[attrGSI1PK] = str(unsentPartition(prefix, d.EndpointID, shardOf(d.ID)))
		it[attrGSI1SK] = str(timedSort(d.CreatedAt, d.ID))
	}
	return it
}

// decodeDelivery returns nil for an absent item.
func decodeDelivery(it item) (*webhook.Delivery, error) {
	d, err := decodeDoc[webhook.Delivery](it)
	if err != nil || d == nil {
		return nil, err
	}
	if d.ID, err = value.ParseID(getString(it, attrSK)); err != nil {
		return nil, fmt.Errorf("decode delivery %q: %w", getString(it, attrSK), err)
	}
	if d.OrganizationID, err = organizationOf(getString(it, attrPK)); err != nil {
		return nil, fmt.Errorf("decode delivery %s: %w", d.ID, err)
	}
	return d, nil
}

// DeliveryInputs reads what the attempts of the deliveries need, strongly
// consistent, and answers in the order of the references. Several may share an
// endpoint and a payload, which must not be changed.
func (t *Table) DeliveryInputs(ctx context.Context, refs []webhook.DeliveryRef) ([]webhook.DeliveryInput, error) {
	const ofOne = 4
	keys := make([]key, 0, ofOne*len(refs))
	for _, r := range refs {
		org := r.OrganizationID
		keys = append(keys, deliveryKey(org, r.DeliveryID), payloadKey(org, r.EventID), endpointKey(org, r.EndpointID), applicationKey(org, r.ApplicationID))
	}
	found, err := t.readMixed(ctx, keys, true)
	if err != nil {
		return nil, err
	}
	inputs := make([]webhook.DeliveryInput, len(refs))
	for i, r := range refs {
		k := keys[ofOne*i:]
		d := of[*webhook.Delivery](found, k[0])
		if d != nil && !r.Names(d) {
			return nil, fmt.Errorf("a message of delivery %s names another event than it", r.DeliveryID)
		}
		inputs[i] = webhook.DeliveryInput{
			Delivery: d, Payload: of[[]byte](found, k[1]), Endpoint: of[*webhook.Endpoint](found, k[2]),
			Application: webhook.StateOf(of[*account.Application](found, k[3])),
		}
	}
	return inputs, nil
}

// Origin reads in one batch, eventually consistent, what events came from: the
// object's record, nil when there is none, and the payloads of the events. The
// record is of one of the kinds, and the one changed last where several kinds have
// one of that id. An expired payload is not in the answer.
func (t *Table) Origin(
	ctx context.Context, org, object value.ID, kinds []commerce.Kind, events []value.ID,
) (record *commerce.Stored, payloads map[value.ID][]byte, err error) {
	var keys []key
	for _, kind := range kinds {
		keys = append(keys, recordKey(org, string(kind), object))
	}
	for _, event := range events {
		keys = append(keys, payloadKey(org, event))
	}
	found, err := t.readMixed(ctx, keys, false)
	if err != nil {
		return nil, nil, err
	}
	for _, k := range keys[:len(kinds)] {
		if r := of[*commerce.Stored](found, k); r != nil && (record == nil || r.Revision > record.Revision) {
			record = r
		}
	}
	payloads = map[value.ID][]byte{}
	for i, event := range events {
		if body := of[[]byte](found, keys[len(kinds)+i]); body != nil {
			payloads[event] = body
		}
	}
	return record, payloads, nil
}
