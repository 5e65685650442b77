package dynamo

import (
	"context"
	"slices"
	"time"

	"github.com/commerce-integration/service/pkg/account"
	"github.com/commerce-integration/service/pkg/api/idempotency"
	"github.com/commerce-integration/service/pkg/base/fault"
	"github.com/commerce-integration/service/pkg/base/value"
	"github.com/commerce-integration/service/pkg/webhook"
)

// Attributes of an endpoint, besides its doc, its applicationId and rev, which
// is its updatedAt: attrStatus repeats the status for conditions, and recovery
// is the recovery that runs. The item of a deleted endpoint keeps only a deletion
// mark until its deliveries are cancelled. An application's endpointCount changes,
// with the item's version, in the transaction that makes or deletes one of its
// endpoints. Its attrAlertURL is the endpoint of its alerts.
const (
	attrStatus   = "status"
	attrRecovery = "recovery"
	attrAlertURL = "alertURL"
)

// CreateEndpoint stores a new endpoint, and the answer that shows it, if one is
// kept. Faults: not_found when its application is absent, limit_reached when the
// application or the organization has all the endpoints that it can have,
// conflict for a second alert URL.
func (t *Table) CreateEndpoint(ctx context.Context, e *webhook.Endpoint, kept ...*idempotency.Kept) error {
	org := e.OrganizationID
	ofApplication := "ADD Version :one, endpointCount :one"
	condition := "attribute_exists(PK) AND (attribute_not_exists(endpointCount) OR endpointCount < :max)"
	values := item{":one": num(1)}
	if e.Alerts {
		ofApplication, condition = "SET alertURL = :id "+ofApplication, condition+" AND attribute_not_exists(alertURL)"
		values[":id"] = str(e.ID.String())
	}
	writes := []write{
		t.put(encodeEndpoint(e), ifAbsent),
		t.update(applicationKey(org, e.ApplicationID), ofApplication, when(condition, item{":max": num(webhook.MaxEndpointsPerApplication)}), values),
		t.countOne(countKey(org), "endpoints", webhook.MaxEndpoints),
	}
	refused, err := t.transact(ctx, "create an endpoint", t.withAnswers(writes, kept)...)
	switch {
	case refused.has(1) && refused[1] == nil:
		return fault.Missing("application")
	case refused.has(1) && e.Alerts && getString(refused[1], attrAlertURL) != "":
		return fault.New(fault.Conflict, fault.CodeConflict, "another request has made the application's alert URL: send this one again")
	case refused.has(1):
		return fault.New(fault.Conflict, fault.CodeLimitReached,
			"an application can have %d endpoints: delete one first", webhook.MaxEndpointsPerApplication)
	case refused.has(2):
		return fault.New(fault.Conflict, fault.CodeLimitReached,
			"an organization can have %d endpoints: delete one first", webhook.MaxEndpoints)
	}
	return orLost(refused, len(writes), kept, err)
}

// Endpoint reads one endpoint, strongly consistent; nil when the
// organization has none with the id.
func (t *Table) Endpoint(ctx context.Context, org, id value.ID) (*webhook.Endpoint, error) {
	return read(ctx, t, endpointKey(org, id), decodeEndpoint)
}

// AlertURL reads the endpoint of the application's alerts, strongly consistent;
// nil when there is none.
func (t *Table) AlertURL(ctx context.Context, org, application value.ID) (*webhook.Endpoint, error) {
	stored, err := read(ctx, t, applicationKey(org, application), decode[struct {
		AlertURL value.ID `dynamodbav:"alertURL"`
	}])
	if err != nil || stored.AlertURL.IsZero() {
		return nil, err
	}
	return t.Endpoint(ctx, org, stored.AlertURL)
}

// Endpoints reads every endpoint of the organization, in the order of their
// ids.
func (t *Table) Endpoints(ctx context.Context, org value.ID) ([]*webhook.Endpoint, error) {
	found, err := collect(ctx, t, partition(developerPartition(org), endpointPrefix), 0, decodeEndpoint)
	return slices.DeleteFunc(found, func(e *webhook.Endpoint) bool { return e == nil }), err // deleted
}

// Directory reads the organization's endpoints and the state of its
// applications in one query, strongly consistent.
func (t *Table) Directory(ctx context.Context, org value.ID) (*webhook.Directory, error) {
	d := &webhook.Directory{Applications: map[value.ID]webhook.ApplicationState{}}
	in := between(developerPartition(org), applicationPrefix, endpointPrefix+"g") // behind every id
	err := t.query(ctx, in, func(it item) (bool, error) {
		switch getString(it, attrType) {
		case typeApplication:
			app, err := docOf[account.Application](it)
			d.Applications[app.ID] = webhook.StateOf(&app)
			return true, err
		case typeEndpoint:
			e, err := decodeEndpoint(it)
			if e != nil {
				d.Endpoints = append(d.Endpoints, e)
			}
			return true, err
		}
		return true, nil
	})
	return d, err
}

// ChangeEndpoint stores what change makes of the endpoint, unless that is the
// endpoint itself, and returns it as it is then; nil when there is none.
// Change may be called again with a fresher endpoint; an error of its own
// ends the attempt. The endpoint's routing changes only when change alters it.
func (t *Table) ChangeEndpoint(ctx context.Context, org, id value.ID, change func(*webhook.Endpoint) (*webhook.Endpoint, error)) (*webhook.Endpoint, error) {
	var next *webhook.Endpoint
	found, err := changeItem(ctx, t, "endpoint", endpointKey(org, id), decodeEndpoint,
		func(e *webhook.Endpoint, stored item) (_ []write, err error) {
			if next, err = change(e); err != nil || next == e {
				return nil, err
			}
			return []write{t.endpointChange(e, next, getString(stored, attrRouting))}, nil
		})
	if !found {
		return nil, err
	}
	return next, nil
}

// endpointChange is the write from an endpoint as it was read to the next. The
// routing, which deliveries change meanwhile and which is stored as the text, is
// left alone unless the change is of it.
func (t *Table) endpointChange(e, next *webhook.Endpoint, routing string) write {
	attributes, based := item{}, ifRevision(e.UpdatedAt)
	if !e.Routing().Equal(next.Routing()) {
		rerouted, ifRouted := rerouting(e.ID, routing, e.Routing(), next.Routing())
		attributes, based = rerouted, based.and(ifRouted)
	}
	attributes[attrDoc], attributes[attrStatus], attributes[attrRevision] = encodeDoc(next), str(string(next.Status)), num(next.UpdatedAt)
	return t.set(endpointKey(e.OrganizationID, e.ID), authored(attributes, next.ChangedBy), based)
}

// DeleteEndpoint deletes the endpoint and reports whether there was one. The
// sweeper finds the deletion mark and cancels its deliveries. check sees the
// endpoint first and sets who deletes it; an error of it ends the attempt.
func (t *Table) DeleteEndpoint(ctx context.Context, org, id value.ID, check func(*webhook.Endpoint) error) (bool, error) {
	return changeItem(ctx, t, "endpoint", endpointKey(org, id), decodeEndpoint,
		func(e *webhook.Endpoint, _ item) ([]write, error) {
			if err := check(e); err != nil {
				return nil, err
			}
			ofApplication := "ADD Version :one, endpointCount :less"
			if e.Alerts {
				ofApplication = "REMOVE alertURL " + ofApplication
			}
			return []write{ // refused when it was changed, or deleted with its application
				t.deletionMark(org, id, e.ChangedBy, ifRevision(e.UpdatedAt)),
				t.update(applicationKey(org, e.ApplicationID), ofApplication, ifExists, item{":one": num(1), ":less": num(-1)}),
				t.update(countKey(org), "ADD endpoints :less", always, item{":less": num(-1)}),
			}, nil
		})
}

// FinishEndpointDeletion removes the rest of a deleted endpoint: its tally, its
// permits and its deletion mark. Its finished hours expire.
func (t *Table) FinishEndpointDeletion(ctx context.Context, org, id value.ID) error {
	err := t.RemoveItems(ctx, []ItemRef{{tallyKey(org, id)}, {permitsKey(org, id)}})
	if err == nil {
		_, _, err = t.removeItem(ctx, "remove a deleted endpoint", t.remove(endpointKey(org, id), when("attribute_exists(del)", nil)))
	}
	return err
}

// endpointsOf lists the application's endpoints.
func (t *Table) endpointsOf(ctx context.Context, org, application value.ID) ([]value.ID, error) {
	all, err := t.Endpoints(ctx, org)
	var ids []value.ID
	for _, e := range all {
		if e.ApplicationID == application {
			ids = append(ids, e.ID)
		}
	}
	return ids, err
}

// deletionDelay is when the deliveries of a deleted endpoint are looked for:
// after every reader that saw the endpoint has ended.
const deletionDelay = 2 * time.Minute

// deletionMark is the write that replaces an endpoint by its deletion mark.
func (t *Table) deletionMark(org, id value.ID, by *account.AuditEntry, c condition) write {
	now := value.TimeOf(t.now())
	it := authored(endpointKey(org, id).newItem(typeEndpoint), by)
	it[attrDeleted], it[attrRevision] = boolean(true), num(now)
	markDue(it, id, now.Add(deletionDelay))
	return t.put(it, c)
}

func encodeEndpoint(e *webhook.Endpoint) item {
	it := authored(docItem(endpointKey(e.OrganizationID, e.ID), typeEndpoint, e), e.ChangedBy)
	it[attrApplication], it[attrStatus], it[attrRevision] = str(e.ApplicationID.String()), str(string(e.Status)), num(e.UpdatedAt)
	for name, v := range routingAttributes(e.Routing(), e.ID) {
		if v != nil {
			it[name] = v
		}
	}
	return it
}

// decodeEndpoint returns nil for an absent or deleted item.
func decodeEndpoint(it item) (*webhook.Endpoint, error) {
	if it == nil || getBool(it, attrDeleted) {
		return nil, nil
	}
	e, err := decodeDoc[webhook.Endpoint](it)
	if err != nil {
		return nil, err
	}
	r, err := decodeRouting(it)
	e.Circuit, e.Lane, e.Alert = r.Circuit, r.Lane, r.Alert
	return e, err
}
