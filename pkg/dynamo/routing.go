package dynamo

import (
	"context"
	"fmt"
	"strings"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/go-json-experiment/json"

	"github.com/commerce-integration/service/pkg/base/value"
	"github.com/commerce-integration/service/pkg/webhook"
)

// Attributes of an endpoint's routing: it changes with deliveries, and leaves
// the doc and rev alone, which change with the configuration. A circuit has a
// due mark, from which the sweeper looks at it. attrAlert is the type of its
// last alert, by which the stream's filter finds what is announced, also on a
// delivery that FAILED.
const (
	attrCircuit = "circuit"
	attrLane    = "lane"
	attrAlert   = "alert"
	attrAlertAt = "alertAt"
)

// maxRoutingTries bounds the tries at a routing whose stored form is not the
// one that this release writes.
const maxRoutingTries = 3

// SetRouting stores the endpoint's next routing if previous is the stored one,
// and reports whether next is stored then; false means that another writer was
// faster or that the endpoint was deleted.
func (t *EndpointStore) SetRouting(ctx context.Context, org, endpoint value.ID, previous, next webhook.Routing) (bool, error) {
	stored, err := encodeRouting(previous)
	if err != nil {
		return false, err
	}
	for range maxRoutingTries {
		u := endpointUpdate{conditions: []string{"attribute_exists(doc)"}, values: item{}}
		if err := u.reroute(stored, next, endpoint); err != nil {
			return false, err
		}
		found, done, err := t.updateItem(ctx, "set an endpoint's routing", u.write(t.db, org, endpoint), types.ReturnValueNone)
		if err != nil || done {
			return done, err
		}
		if found == nil || getBool(found, attrDeleted) {
			return false, nil
		}
		current, err := decodeRouting(found)
		if err != nil || !current.Equal(previous) {
			// A write whose answer was lost finds what it has written.
			return err == nil && current.Equal(next), err
		}
		stored = storedRouting(found)
	}
	return false, nil
}

// routing is a routing as it is stored; "" means absent.
type routing struct{ circuit, lane, alert, alertAt string }

func encodeRouting(r webhook.Routing) (routing, error) {
	stored := routing{lane: string(r.Lane), alert: r.Alert.Type}
	if r.Alert.Type != "" {
		stored.alertAt = r.Alert.At.String()
	}
	if r.Circuit == nil {
		return stored, nil
	}
	circuit, err := json.Marshal(r.Circuit)
	if err != nil {
		return stored, fmt.Errorf("encode a circuit: %w", err)
	}
	stored.circuit = string(circuit)
	return stored, nil
}

func storedRouting(it item) routing {
	return routing{
		circuit: getString(it, attrCircuit), lane: getString(it, attrLane), alert: getString(it, attrAlert), alertAt: getString(it, attrAlertAt),
	}
}

func decodeRouting(it item) (webhook.Routing, error) {
	stored := storedRouting(it)
	r := webhook.Routing{Lane: webhook.Lane(stored.lane)}
	if stored.alert != "" {
		at, err := value.ParseTime(stored.alertAt)
		if err != nil {
			return r, fmt.Errorf("decode the alert of %s: %w", getString(it, attrSK), err)
		}
		r.Alert = webhook.Alert{Type: stored.alert, At: at}
	}
	if stored.circuit == "" {
		return r, nil
	}
	r.Circuit = &webhook.Circuit{}
	if err := json.Unmarshal([]byte(stored.circuit), r.Circuit); err != nil {
		return r, fmt.Errorf("decode the circuit of %s: %w", getString(it, attrSK), err)
	}
	return r, nil
}

// circuitDue is when the sweeper looks at a circuit: at one whose probe comes
// soon, in case that was lost.
func circuitDue(c *webhook.Circuit) value.Time {
	switch {
	case !c.Open() && c.ClosedAt != nil:
		return *c.ClosedAt
	case c.Soon():
		return c.ProbeAt.Add(webhook.ProbeInterval)
	}
	return c.ProbeAt
}

// endpointUpdate collects a conditional change of some attributes of an
// endpoint.
type endpointUpdate struct {
	sets, removes, conditions []string
	values                    item
}

// set gives an attribute a value, or removes it when that is "".
func (u *endpointUpdate) set(name, text string) {
	if text == "" {
		u.removes = append(u.removes, name)
		return
	}
	u.sets = append(u.sets, name+" = :"+name)
	u.values[":"+name] = str(text)
}

// require wants an attribute to have a value, or to be absent when that is "".
func (u *endpointUpdate) require(name, text string) {
	if text == "" {
		u.conditions = append(u.conditions, "attribute_not_exists("+name+")")
		return
	}
	u.conditions = append(u.conditions, name+" = :was"+name)
	u.values[":was"+name] = str(text)
}

// reroute replaces the routing that is stored, with the due mark of its
// circuit. A circuit that stays keeps its mark, which may have been moved.
func (u *endpointUpdate) reroute(was routing, next webhook.Routing, endpoint value.ID) error {
	u.require(attrCircuit, was.circuit)
	u.require(attrLane, was.lane)
	u.require(attrAlertAt, was.alertAt)
	stored, err := encodeRouting(next)
	if err != nil {
		return err
	}
	u.set(attrLane, stored.lane)
	u.set(attrAlert, stored.alert)
	u.set(attrAlertAt, stored.alertAt)
	if stored.circuit == was.circuit {
		return nil
	}
	u.set(attrCircuit, stored.circuit)
	partition, mark := "", ""
	if next.Circuit != nil {
		partition, mark = duePartition(shardOf(endpoint)), circuitMark(circuitDue(next.Circuit), endpoint)
	}
	u.set(attrGSI1PK, partition)
	u.set(attrGSI1SK, mark)
	return nil
}

func (u *endpointUpdate) write(t *db, org, endpoint value.ID) write {
	expression := ""
	if len(u.sets) > 0 {
		expression = "SET " + strings.Join(u.sets, ", ")
	}
	if len(u.removes) > 0 {
		expression += " REMOVE " + strings.Join(u.removes, ", ")
	}
	return t.update(endpointKey(org, endpoint), strings.TrimSpace(expression), strings.Join(u.conditions, " AND "), u.values)
}
