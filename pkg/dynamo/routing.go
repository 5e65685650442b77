package dynamo

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/go-json-experiment/json"

	"github.com/commerce-integration/service/pkg/base/retry"
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
	was, err := encodeRouting(previous)
	if err != nil {
		return false, err
	}
	err = retry.Contended(ctx, maxRoutingTries, func() (done bool, err error) {
		u := endpointUpdate{conditions: []string{"attribute_exists(doc)"}, values: item{}}
		if err := u.reroute(was, previous, next, endpoint); err != nil {
			return false, err
		}
		var found item
		found, set, err = t.updateItem(ctx, "set an endpoint's routing", u.write(t, org, endpoint), types.ReturnValueNone)
		if set || err != nil || found == nil || getBool(found, attrDeleted) {
			return true, err
		}
		current, err := decodeRouting(found)
		if err != nil || !current.Equal(previous) {
			// A write whose answer was lost finds what it has written.
			set = err == nil && current.Equal(next)
			return true, err
		}
		was = getString(found, attrRouting)
		return false, nil
	})
	return set, err
}

// encodeRouting returns "" for the zero routing.
func encodeRouting(r webhook.Routing) (string, error) {
	if r.Equal(webhook.Routing{}) {
		return "", nil
	}
	text, err := json.Marshal(r)
	if err != nil {
		return "", fmt.Errorf("encode a routing: %w", err)
	}
	return string(text), nil
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
// decides; one that is "" is absent.
func routingAttributes(r webhook.Routing, endpoint value.ID) (map[string]string, error) {
	text, err := encodeRouting(r)
	attributes := map[string]string{attrRouting: text, attrAlert: r.Alert.Type, attrGSI1PK: "", attrGSI1SK: ""}
	if r.Circuit != nil {
		attributes[attrGSI1PK], attributes[attrGSI1SK] = duePartition(shardOf(endpoint)), circuitMark(circuitDue(r.Circuit), endpoint)
	}
	return attributes, err
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

// reroute replaces the routing previous, which is stored as the text was, with the
// due mark of its circuit. A circuit that stays keeps its mark, which may have been
// moved.
func (u *endpointUpdate) reroute(was string, previous, next webhook.Routing, endpoint value.ID) error {
	attributes, err := routingAttributes(next, endpoint)
	if err != nil {
		return err
	}
	if previous.Circuit.Equal(next.Circuit) {
		delete(attributes, attrGSI1PK)
		delete(attributes, attrGSI1SK)
	}
	for _, name := range slices.Sorted(maps.Keys(attributes)) {
		if attributes[name] == "" {
			u.removes = append(u.removes, name)
			continue
		}
		u.sets = append(u.sets, name+" = :"+name)
		u.values[":"+name] = str(attributes[name])
	}
	if was == "" {
		u.conditions = append(u.conditions, "attribute_not_exists(routing)")
		return nil
	}
	u.conditions = append(u.conditions, "routing = :was")
	u.values[":was"] = str(was)
	return nil
}

func (u *endpointUpdate) write(t *Table, org, endpoint value.ID) write {
	expression := ""
	if len(u.sets) > 0 {
		expression = "SET " + strings.Join(u.sets, ", ")
	}
	if len(u.removes) > 0 {
		expression += " REMOVE " + strings.Join(u.removes, ", ")
	}
	return t.update(endpointKey(org, endpoint), strings.TrimSpace(expression), strings.Join(u.conditions, " AND "), u.values)
}
