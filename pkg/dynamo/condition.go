package dynamo

import (
	"context"
	"fmt"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/go-json-experiment/json"

	"github.com/commerce-integration/service/pkg/value"
	"github.com/commerce-integration/service/pkg/webhook"
)

// Attributes of an endpoint's condition: it changes with deliveries, and
// leaves the doc and rev alone, which change with the configuration. A
// circuit lies under a due mark, from which the sweeper looks at it.
const (
	attrCircuit = "circuit"
	attrLane    = "lane"
)

// conditionTries bounds the tries at a condition whose stored form is not the
// one that this release writes.
const conditionTries = 3

// SetRouting stores the endpoint's next condition if it still stands as
// previous, and reports whether it then does; false means that somebody else
// was faster or that the endpoint was deleted.
func (t *EndpointStore) SetRouting(ctx context.Context, org, endpoint value.ID, previous, next webhook.Routing) (bool, error) {
	was, err := encodeCondition(previous)
	if err != nil {
		return false, err
	}
	for range conditionTries {
		u := newEndpointUpdate(org, endpoint)
		u.require("attribute_exists(doc)")
		u.standsAs(was)
		if err := u.become(was, next, endpoint); err != nil {
			return false, err
		}
		_, err = t.client.UpdateItem(ctx, &dynamodb.UpdateItemInput{
			TableName: &t.name, Key: u.key.item(),
			UpdateExpression: u.expression(), ConditionExpression: u.requirement(), ExpressionAttributeValues: u.values,
			ReturnValuesOnConditionCheckFailure: types.ReturnValuesOnConditionCheckFailureAllOld,
		})
		found, failed := conditionFailed(err)
		switch {
		case !failed && err != nil:
			return false, wrap("set an endpoint's condition", err)
		case !failed:
			return true, nil
		case found == nil || getBool(found, attrDeleted):
			return false, nil
		}
		stands, err := decodeCondition(found)
		if err != nil || !stands.Equal(previous) {
			// A write whose answer was lost finds what it has written.
			return err == nil && stands.Equal(next), err
		}
		was = storedCondition(found)
	}
	return false, nil
}

// condition is a condition as it is stored: "" stands for what is absent.
type condition struct{ circuit, lane string }

func encodeCondition(c webhook.Routing) (condition, error) {
	stored := condition{lane: string(c.Lane)}
	if c.Circuit == nil {
		return stored, nil
	}
	circuit, err := json.Marshal(c.Circuit)
	if err != nil {
		return stored, fmt.Errorf("encode a circuit: %w", err)
	}
	stored.circuit = string(circuit)
	return stored, nil
}

func storedCondition(it item) condition {
	return condition{circuit: getString(it, attrCircuit), lane: getString(it, attrLane)}
}

func decodeCondition(it item) (webhook.Routing, error) {
	stored := storedCondition(it)
	c := webhook.Routing{Lane: webhook.Lane(stored.lane)}
	if stored.circuit == "" {
		return c, nil
	}
	c.Circuit = &webhook.Circuit{}
	if err := json.Unmarshal([]byte(stored.circuit), c.Circuit); err != nil {
		return c, fmt.Errorf("decode the circuit of %s: %w", getString(it, attrSK), err)
	}
	return c, nil
}

// circuitDue is when the sweeper looks at a circuit.
func circuitDue(c *webhook.Circuit) value.Time {
	if !c.Open() && c.ClosedAt != nil {
		return *c.ClosedAt
	}
	return c.ProbeAt
}

// endpointUpdate is a conditional change of some attributes of an endpoint.
type endpointUpdate struct {
	key        key
	sets       []string
	removes    []string
	conditions []string
	values     item
}

func newEndpointUpdate(org, endpoint value.ID) *endpointUpdate {
	return &endpointUpdate{key: endpointKey(org, endpoint), values: item{}}
}

func (u *endpointUpdate) require(condition string) { u.conditions = append(u.conditions, condition) }

// set gives an attribute a value, or removes it when that is nil.
func (u *endpointUpdate) set(name string, v types.AttributeValue) {
	if v == nil {
		u.removes = append(u.removes, name)
		return
	}
	u.sets = append(u.sets, name+" = :"+name)
	u.values[":"+name] = v
}

// standsAs requires the condition to stand as it was read.
func (u *endpointUpdate) standsAs(was condition) {
	for name, text := range map[string]string{attrCircuit: was.circuit, attrLane: was.lane} {
		if text == "" {
			u.require("attribute_not_exists(" + name + ")")
			continue
		}
		u.require(name + " = :was" + name)
		u.values[":was"+name] = str(text)
	}
}

// become stores the condition in the place of another, with the mark of its
// circuit. One that stays keeps its mark, which may have been moved since.
func (u *endpointUpdate) become(was condition, next webhook.Routing, endpoint value.ID) error {
	stored, err := encodeCondition(next)
	if err != nil {
		return err
	}
	u.set(attrLane, present(stored.lane))
	if stored.circuit == was.circuit {
		return nil
	}
	u.set(attrCircuit, present(stored.circuit))
	if next.Circuit == nil {
		u.removes = append(u.removes, attrGSI1PK, attrGSI1SK)
		return nil
	}
	u.set(attrGSI1PK, str(duePartition(shardOf(endpoint))))
	u.set(attrGSI1SK, str(circuitMark(circuitDue(next.Circuit), endpoint)))
	return nil
}

func present(text string) types.AttributeValue {
	if text == "" {
		return nil
	}
	return str(text)
}

func (u *endpointUpdate) expression() *string {
	text := ""
	if len(u.sets) > 0 {
		text = "SET " + strings.Join(u.sets, ", ")
	}
	if len(u.removes) > 0 {
		text += " REMOVE " + strings.Join(u.removes, ", ")
	}
	return aws.String(strings.TrimSpace(text))
}

func (u *endpointUpdate) requirement() *string {
	return aws.String(strings.Join(u.conditions, " AND "))
}
