package dynamo

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/aws/aws-lambda-go/events"
	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/go-json-experiment/json"

	"github.com/commerce-integration/service/pkg/account"
	"github.com/commerce-integration/service/pkg/fault"
	"github.com/commerce-integration/service/pkg/value"
	"github.com/commerce-integration/service/pkg/webhook"
)

// Attributes of an endpoint, beside its doc, its applicationId and rev, which
// is its updatedAt: attrStatus repeats the status for conditions, and
// attrRecovery is the recovery that runs. A deleted endpoint's item stays as
// a mark, without them, until its rows are cancelled. attrEndpointCount of an
// application is the number of its endpoints; it changes, with the item's
// version, in the transaction that makes or deletes one.
const (
	attrStatus        = "status"
	attrRecovery      = "recovery"
	attrEndpointCount = "endpointCount"
)

// StreamEndpoint is the item type of endpoints in the stream.
const StreamEndpoint = typeEndpoint

// CreateEndpoint stores a new endpoint. Faults: not_found
// when its application is absent, limit_reached when the application or the
// organization has all the endpoints that it can have.
func (t *EndpointStore) CreateEndpoint(ctx context.Context, e *webhook.Endpoint) error {
	it, err := encodeEndpoint(e)
	if err != nil {
		return err
	}
	org := e.OrganizationID
	err = t.transact(ctx, "create an endpoint",
		write{Put: &types.Put{TableName: &t.name, Item: it, ConditionExpression: aws.String("attribute_not_exists(PK)")}},
		write{Update: &types.Update{
			TableName: &t.name, Key: applicationKey(org, e.ApplicationID).item(),
			UpdateExpression:          aws.String("ADD itemVersion :one, endpointCount :one"),
			ConditionExpression:       aws.String("attribute_exists(PK) AND (attribute_not_exists(endpointCount) OR endpointCount < :max)"),
			ExpressionAttributeValues: item{":one": num(1), ":max": num(webhook.MaxEndpointsPerApplication)},
		}},
		write{Update: &types.Update{
			TableName: &t.name, Key: countKey(org).item(),
			UpdateExpression:          aws.String("SET t = :type ADD endpoints :one"),
			ConditionExpression:       aws.String("attribute_not_exists(endpoints) OR endpoints < :max"),
			ExpressionAttributeValues: item{":type": str(typeCount), ":one": num(1), ":max": num(webhook.MaxEndpoints)},
		}},
	)
	var failed refused
	switch {
	case !errors.As(err, &failed):
		return err
	case failed.has(1):
		return t.refusedEndpoint(ctx, e)
	case failed.has(2):
		return fault.New(fault.Conflict, fault.CodeLimitReached,
			"an organization can have %d endpoints: delete one first", webhook.MaxEndpoints)
	}
	return fmt.Errorf("create endpoint %s: %w", e.ID, err)
}

// refusedEndpoint tells an absent application from a full one.
func (t *EndpointStore) refusedEndpoint(ctx context.Context, e *webhook.Endpoint) error {
	app, err := t.get(ctx, applicationKey(e.OrganizationID, e.ApplicationID))
	if err != nil {
		return err
	}
	if app == nil {
		return fault.Missing("application")
	}
	return fault.New(fault.Conflict, fault.CodeLimitReached,
		"an application can have %d endpoints: delete one first", webhook.MaxEndpointsPerApplication)
}

// Endpoint reads one endpoint, strongly consistent; nil when the
// organization has none with the id.
func (t *EndpointStore) Endpoint(ctx context.Context, org, id value.ID) (*webhook.Endpoint, error) {
	it, err := t.get(ctx, endpointKey(org, id))
	if err != nil {
		return nil, err
	}
	return decodeEndpoint(it)
}

// Endpoints reads every endpoint of the organization, in the order of their
// ids.
func (t *EndpointStore) Endpoints(ctx context.Context, org value.ID) ([]*webhook.Endpoint, error) {
	var found []*webhook.Endpoint
	err := t.query(ctx, partition(developerPartition(org), endpointPrefix), func(it item) (bool, error) {
		e, err := decodeEndpoint(it)
		if e != nil {
			found = append(found, e)
		}
		return true, err
	})
	return found, err
}

// Directory reads the organization's endpoints and the state of its
// applications in one query, strongly consistent.
func (t *EndpointStore) Directory(ctx context.Context, org value.ID) (*webhook.Directory, error) {
	in := partition(developerPartition(org), "")
	in.KeyConditionExpression = aws.String("PK = :pk AND SK BETWEEN :first AND :last")
	in.ExpressionAttributeValues[":first"] = str(applicationPrefix)
	in.ExpressionAttributeValues[":last"] = str(endpointPrefix + "g") // behind every id
	d := &webhook.Directory{Applications: map[value.ID]webhook.ApplicationState{}}
	err := t.query(ctx, in, func(it item) (bool, error) {
		switch getString(it, attrType) {
		case typeApplication:
			app, err := decodeApplication(it)
			if err != nil {
				return false, err
			}
			d.Applications[app.ID] = stateOf(app)
		case typeEndpoint:
			e, err := decodeEndpoint(it)
			if err != nil {
				return false, err
			}
			if e != nil {
				d.Endpoints = append(d.Endpoints, e)
			}
		}
		return true, nil
	})
	if err != nil {
		return nil, err
	}
	return d, nil
}

func stateOf(app *account.Application) webhook.ApplicationState {
	if app.Status == account.Suspended {
		return webhook.ApplicationSuspended
	}
	return webhook.ApplicationActive
}

// ChangeEndpoint stores what change makes of the endpoint, unless that is the
// endpoint itself, and returns it as it is then; nil when there is none.
// Change may be called again with a fresher endpoint; an error of its own
// ends the attempt. The endpoint's condition changes with it only when change
// alters it.
func (t *EndpointStore) ChangeEndpoint(ctx context.Context, org, id value.ID, change func(*webhook.Endpoint) (*webhook.Endpoint, error)) (*webhook.Endpoint, error) {
	for range changeAttempts {
		e, err := t.Endpoint(ctx, org, id)
		if err != nil || e == nil {
			return nil, err
		}
		next, err := change(e)
		if err != nil || next == e {
			return e, err
		}
		update, err := changeOf(e, next)
		if err != nil {
			return nil, err
		}
		err = t.transact(ctx, "change an endpoint", write{Update: &types.Update{
			TableName: &t.name, Key: update.key.item(), UpdateExpression: update.expression(),
			ConditionExpression: update.requirement(), ExpressionAttributeValues: update.values,
			ExpressionAttributeNames: map[string]string{"#status": attrStatus},
		}})
		if failed := refused(nil); !errors.As(err, &failed) {
			return next, err
		}
	}
	return nil, errEndpointContended
}

// changeOf is the change from an endpoint as it was read to the next. The
// condition, which deliveries change meanwhile, is left alone unless the
// change is of it.
func changeOf(e, next *webhook.Endpoint) (*endpointUpdate, error) {
	doc, err := json.Marshal(next)
	if err != nil {
		return nil, fmt.Errorf("encode endpoint %s: %w", e.ID, err)
	}
	u := newEndpointUpdate(e.OrganizationID, e.ID)
	u.sets = []string{"doc = :doc", "#status = :status", "rev = :next"}
	u.values = item{
		":doc": str(string(doc)), ":status": str(string(next.Status)),
		":next": num(int64(next.UpdatedAt)), ":read": num(int64(e.UpdatedAt)),
	}
	u.require("rev = :read")
	if e.Routing().Equal(next.Routing()) {
		return u, nil
	}
	was, err := encodeCondition(e.Routing())
	if err != nil {
		return nil, err
	}
	u.standsAs(was)
	return u, u.become(was, next.Routing(), e.ID)
}

var errEndpointContended = fault.New(fault.Conflict, fault.CodeConflict,
	"others are changing the endpoint at the same time: read it again and repeat the request")

// DeleteEndpoint deletes the endpoint and reports whether there was one. Its
// rows are cancelled by the sweeper, which finds the mark that stays. An
// error of check, which sees the endpoint first, ends the attempt.
func (t *EndpointStore) DeleteEndpoint(ctx context.Context, org, id value.ID, check func(*webhook.Endpoint) error) (bool, error) {
	for range changeAttempts {
		e, err := t.Endpoint(ctx, org, id)
		if err != nil || e == nil {
			return false, err
		}
		if err := check(e); err != nil {
			return false, err
		}
		bury := t.buryEndpoint(org, id)
		bury.Put.ConditionExpression = aws.String("rev = :read")
		bury.Put.ExpressionAttributeValues = item{":read": num(int64(e.UpdatedAt))}
		err = t.transact(ctx, "delete an endpoint", bury,
			write{Update: &types.Update{
				TableName: &t.name, Key: applicationKey(org, e.ApplicationID).item(),
				UpdateExpression:          aws.String("ADD itemVersion :one, endpointCount :less"),
				ConditionExpression:       aws.String("attribute_exists(PK)"),
				ExpressionAttributeValues: item{":one": num(1), ":less": num(-1)},
			}},
			write{Update: &types.Update{
				TableName: &t.name, Key: countKey(org).item(),
				UpdateExpression:          aws.String("ADD endpoints :less"),
				ExpressionAttributeValues: item{":less": num(-1)},
			}},
		)
		if failed := refused(nil); errors.As(err, &failed) {
			continue // changed, or deleted with its application
		}
		return err == nil, err
	}
	return false, errEndpointContended
}

// ForgetEndpoint removes what is left of a deleted endpoint: its tallies, its
// slots and the mark of its deletion. Its finished hours go by age.
func (t *EndpointStore) FinishEndpointDeletion(ctx context.Context, org, id value.ID) error {
	var left []key
	in := partition(countersPartition(org), id.String())
	in.ProjectionExpression = aws.String("PK, SK")
	err := t.query(ctx, in, func(it item) (bool, error) {
		left = append(left, keyOf(it))
		return true, nil
	})
	if err != nil {
		return err
	}
	for _, k := range append(left, endpointKey(org, id)) {
		in := &dynamodb.DeleteItemInput{TableName: &t.name, Key: k.item()}
		if k == endpointKey(org, id) {
			in.ConditionExpression = aws.String("attribute_exists(del)")
		}
		_, err := t.client.DeleteItem(ctx, in)
		if _, failed := conditionFailed(err); err != nil && !failed {
			return wrap("remove a deleted endpoint", err)
		}
	}
	return nil
}

// endpointsOf lists the application's endpoints.
func (t *db) endpointsOf(ctx context.Context, org, application value.ID) ([]value.ID, error) {
	in := partition(developerPartition(org), endpointPrefix)
	in.FilterExpression = aws.String(attrApplication + " = :application")
	in.ExpressionAttributeValues[":application"] = str(application.String())
	in.ProjectionExpression = aws.String("SK")
	var ids []value.ID
	err := t.query(ctx, in, func(it item) (bool, error) {
		id, err := value.ParseID(strings.TrimPrefix(getString(it, attrSK), endpointPrefix))
		ids = append(ids, id)
		return true, err
	})
	return ids, err
}

// buryDelay is when the rows of a deleted endpoint are looked for: after all
// that read it before its deletion have ended.
const buryDelay = 2 * time.Minute

// buryEndpoint is the write that replaces an endpoint by the mark of its
// deletion.
func (t *db) buryEndpoint(org, id value.ID) write {
	now := value.TimeOf(t.now())
	it := endpointKey(org, id).item()
	it[attrType], it[attrDeleted], it[attrRevision] = str(typeEndpoint), boolean(true), num(int64(now))
	markDue(it, id, now.Add(buryDelay))
	return write{Put: &types.Put{TableName: &t.name, Item: it}}
}

func encodeEndpoint(e *webhook.Endpoint) (item, error) {
	doc, err := json.Marshal(e)
	if err != nil {
		return nil, fmt.Errorf("encode endpoint %s: %w", e.ID, err)
	}
	it := endpointKey(e.OrganizationID, e.ID).item()
	it[attrType], it[attrDoc], it[attrApplication] = str(typeEndpoint), str(string(doc)), str(e.ApplicationID.String())
	it[attrStatus], it[attrRevision] = str(string(e.Status)), num(int64(e.UpdatedAt))
	c, err := encodeCondition(e.Routing())
	if err != nil {
		return nil, err
	}
	if c.lane != "" {
		it[attrLane] = str(c.lane)
	}
	if c.circuit != "" {
		it[attrCircuit] = str(c.circuit)
		it[attrGSI1PK], it[attrGSI1SK] = str(duePartition(shardOf(e.ID))), str(circuitMark(circuitDue(e.Circuit), e.ID))
	}
	return it, nil
}

// decodeEndpoint returns nil for what is absent or deleted.
func decodeEndpoint(it item) (*webhook.Endpoint, error) {
	if it == nil || getBool(it, attrDeleted) {
		return nil, nil
	}
	var e webhook.Endpoint
	if err := json.Unmarshal([]byte(getString(it, attrDoc)), &e); err != nil {
		return nil, fmt.Errorf("decode %s: %w", getString(it, attrSK), err)
	}
	c, err := decodeCondition(it)
	if err != nil {
		return nil, err
	}
	e.Circuit, e.Lane = c.Circuit, c.Lane
	return &e, nil
}

// DecodeEndpointChange reads a stream record of an endpoint: what it was and
// what it is, nil when there was none or it was deleted.
func DecodeEndpointChange(r *events.DynamoDBEventRecord) (old, next *webhook.Endpoint, err error) {
	if old, err = decodeEndpoint(imageItem(r.Change.OldImage)); err != nil {
		return nil, nil, err
	}
	next, err = decodeEndpoint(imageItem(r.Change.NewImage))
	return old, next, err
}
