package eventsource

import (
	"encoding/base64"

	"github.com/aws/aws-sdk-go-v2/service/dynamodbstreams/types"
)

// memberOf returns a member of an object, absent when it has none. A change is the record of the event, and an
// attribute value is DynamoDB's JSON, an object whose only member names its type; a filter reads both without making
// JSON of them.
func memberOf(of any, name string) any {
	var member any
	present := false
	switch of := of.(type) {
	case map[string]any:
		member, present = of[name]
	case *change:
		member, present = of.members()[name]
	case map[string]types.AttributeValue:
		member, present = of[name]
	case types.AttributeValue:
		var typeName string
		typeName, member = typed(of)
		present = typeName == name
	}
	if !present {
		return absent{}
	}
	return member
}

func isScalar(value any) bool {
	switch value.(type) {
	case map[string]any, []any, *change, map[string]types.AttributeValue, types.AttributeValue:
		return false
	}
	return true
}

// listMembers returns the members that the record has in the event.
func (c *change) listMembers() map[string]any {
	from := &c.event.Change
	inner := map[string]any{
		"ApproximateCreationDateTime": float64(from.ApproximateCreationDateTime.UnixNano()) / 1e9,
		"SequenceNumber":              from.SequenceNumber,
		"SizeBytes":                   float64(from.SizeBytes),
		"StreamViewType":              from.StreamViewType,
	}
	for name, image := range map[string]map[string]types.AttributeValue{
		"Keys": c.from.Keys, "NewImage": c.from.NewImage, "OldImage": c.from.OldImage,
	} {
		if len(image) > 0 {
			inner[name] = image
		}
	}
	members := map[string]any{
		"awsRegion": c.event.AWSRegion, "dynamodb": inner, "eventID": c.event.EventID, "eventName": c.event.EventName,
		"eventSource": c.event.EventSource, "eventVersion": c.event.EventVersion, "eventSourceARN": c.event.EventSourceArn,
	}
	if identity := c.event.UserIdentity; identity != nil {
		members["userIdentity"] = map[string]any{"type": identity.Type, "principalId": identity.PrincipalID}
	}
	return members
}

// typed returns the name of a value's type and the value in it.
func typed(of types.AttributeValue) (name string, value any) {
	switch of := of.(type) {
	case *types.AttributeValueMemberS:
		return "S", of.Value
	case *types.AttributeValueMemberN:
		return "N", of.Value
	case *types.AttributeValueMemberB:
		return "B", base64.StdEncoding.EncodeToString(of.Value)
	case *types.AttributeValueMemberBOOL:
		return "BOOL", of.Value
	case *types.AttributeValueMemberNULL:
		return "NULL", true
	case *types.AttributeValueMemberSS:
		return "SS", list(of.Value, func(s string) any { return s })
	case *types.AttributeValueMemberNS:
		return "NS", list(of.Value, func(s string) any { return s })
	case *types.AttributeValueMemberBS:
		return "BS", list(of.Value, func(b []byte) any { return base64.StdEncoding.EncodeToString(b) })
	case *types.AttributeValueMemberM:
		return "M", of.Value
	case *types.AttributeValueMemberL:
		return "L", list(of.Value, func(v types.AttributeValue) any { return v })
	}
	return "", nil
}

func list[E any](of []E, as func(E) any) []any {
	values := make([]any, len(of))
	for i, one := range of {
		values[i] = as(one)
	}
	return values
}
