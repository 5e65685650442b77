package dynamo

import (
	"context"
	"fmt"

	"github.com/go-json-experiment/json"

	"github.com/commerce-integration/service/pkg/base/value"
	"github.com/commerce-integration/service/pkg/webhook"
)

// An endpoint's routing changes with deliveries, and leaves the doc and rev alone,
// which change with the configuration. attrRouting is the routing as JSON, absent
// for the zero one. A circuit has a due mark, from which the sweeper looks at it.
// attrAlert is the type of the last alert, by which the stream's filter finds what
// is announced, also on a delivery that FAILED.
const (
	attrRouting = "routing"
	attrAlert   = "alert"
)

// maxRoutingTries bounds the tries at a routing that is stored in another form than
// this release writes.
const maxRoutingTries = 3

// SetRouting stores the endpoint's next routing if previous is the stored one,
// and reports whether next is stored then; false means that another writer was
// faster or that the endpoint was deleted.
func (t *Table) SetRouting(ctx context.Context, org, endpoint value.ID, previous, next webhook.Routing) (set bool, err error) {
	was := encodeRouting(previous)
	for range maxRoutingTries {
		found, set, err := t.updateItem(ctx, "set an endpoint's routing", t.reroute(org, endpoint, was, previous, next))
		if set || err != nil || found == nil || getBool(found, attrDeleted) {
			return set, err
		}
		current, err := decodeRouting(found)
		if err != nil || !current.Equal(previous) {
			// A write whose answer was lost finds what it has written.
			return err == nil && current.Equal(next), err
		}
		was = getString(found, attrRouting)
	}
	return false, nil
}

// encodeRouting returns "" for the zero routing.
func encodeRouting(r webhook.Routing) string {
	if r.Equal(webhook.Routing{}) {
		return ""
	}
	return encodeJSON(r)
}

func decodeRouting(it item) (r webhook.Routing, err error) {
	text := getString(it, attrRouting)
	if text == "" {
		return r, nil
	}
	if err := json.Unmarshal([]byte(text), &r); err != nil {
		return r, fmt.Errorf("decode the routing of %s: %w", getString(it, attrSK), err)
	}
	return r, nil
}

// routingAttributes are the attributes of an endpoint's item that its routing
// decides; one that is absent is nil.
func routingAttributes(r webhook.Routing, endpoint value.ID) item {
	attributes := item{attrRouting: nil, attrAlert: nil, attrGSI1PK: nil, attrGSI1SK: nil}
	if text := encodeRouting(r); text != "" {
		attributes[attrRouting] = str(text)
	}
	if r.Alert.Type != "" {
		attributes[attrAlert] = str(r.Alert.Type)
	}
	if r.Circuit != nil {
		attributes[attrGSI1PK], attributes[attrGSI1SK] = str(duePartition(shardOf(endpoint))), str(circuitMark(r.Circuit.LookAt(), endpoint))
	}
	return attributes
}

// reroute is the write of an endpoint's next routing, as [rerouting] makes it.
func (t *Table) reroute(org, endpoint value.ID, was string, previous, next webhook.Routing) write {
	attributes, ifRouted := rerouting(endpoint, was, previous, next)
	return t.set(endpointKey(org, endpoint), attributes, ifRouted.and(when("attribute_exists(doc)", nil)))
}

// rerouting is the change of an endpoint's item from the routing previous, which is
// stored as the text was, to the next, with the due mark of its circuit. A circuit
// that stays keeps its mark, which may have been moved.
func rerouting(endpoint value.ID, was string, previous, next webhook.Routing) (attributes item, ifRouted condition) {
	attributes = routingAttributes(next, endpoint)
	if previous.Circuit.Equal(next.Circuit) {
		delete(attributes, attrGSI1PK)
		delete(attributes, attrGSI1SK)
	}
	if was == "" {
		return attributes, when("attribute_not_exists(routing)", nil)
	}
	return attributes, when("routing = :was", item{":was": str(was)})
}
