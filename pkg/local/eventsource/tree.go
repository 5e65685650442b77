package eventsource

import (
	"encoding/base64"

	"github.com/aws/aws-lambda-go/events"
	"github.com/aws/aws-sdk-go-v2/service/dynamodbstreams/types"
)

// An object is a JSON object that is made only as far as a filter looks.
type object interface {
	member(name string) (value any, present bool)
}

// member implements [object]: a change is the record of the event.
func (c *change) member(name string) (any, bool) {
	switch name {
	case "awsRegion":
		return c.event.AWSRegion, true
	case "dynamodb":
		return (*changed)(c), true
	case "eventID":
		return c.event.EventID, true
	case "eventName":
		return c.event.EventName, true
	case "eventSource":
		return c.event.EventSource, true
	case "eventVersion":
		return c.event.EventVersion, true
	case "eventSourceARN":
		return c.event.EventSourceArn, true
	case "userIdentity":
		return (*identity)(c.event.UserIdentity), c.event.UserIdentity != nil
	}
	return nil, false
}

// identity is the member userIdentity.
type identity events.DynamoDBUserIdentity

func (i *identity) member(name string) (any, bool) {
	switch name {
	case "type":
		return i.Type, true
	case "principalId":
		return i.PrincipalID, true
	}
	return nil, false
}

// changed is the member dynamodb.
type changed change

func (c *changed) member(name string) (any, bool) {
	switch name {
	case "ApproximateCreationDateTime":
		return float64(c.event.Change.ApproximateCreationDateTime.UnixNano()) / 1e9, true
	case "Keys":
		return image(c.from.Keys), len(c.from.Keys) > 0
	case "NewImage":
		return image(c.from.NewImage), len(c.from.NewImage) > 0
	case "OldImage":
		return image(c.from.OldImage), len(c.from.OldImage) > 0
	case "SequenceNumber":
		return c.event.Change.SequenceNumber, true
	case "SizeBytes":
		return float64(c.event.Change.SizeBytes), true
	case "StreamViewType":
		return c.event.Change.StreamViewType, true
	}
	return nil, false
}

// image is attributes by their names.
type image map[string]types.AttributeValue

func (i image) member(name string) (any, bool) {
	value, there := i[name]
	return attribute{value}, there
}

// attribute is a value as DynamoDB's JSON has it, whose only member names its type.
type attribute struct{ types.AttributeValue }

func (a attribute) member(name string) (any, bool) {
	kind, value := "", any(nil)
	switch of := a.AttributeValue.(type) {
	case *types.AttributeValueMemberS:
		kind, value = "S", of.Value
	case *types.AttributeValueMemberN:
		kind, value = "N", of.Value
	case *types.AttributeValueMemberB:
		kind, value = "B", base64.StdEncoding.EncodeToString(of.Value)
	case *types.AttributeValueMemberBOOL:
		kind, value = "BOOL", of.Value
	case *types.AttributeValueMemberNULL:
		kind, value = "NULL", true
	case *types.AttributeValueMemberSS:
		kind, value = "SS", list(of.Value, func(s string) any { return s })
	case *types.AttributeValueMemberNS:
		kind, value = "NS", list(of.Value, func(s string) any { return s })
	case *types.AttributeValueMemberBS:
		kind, value = "BS", list(of.Value, func(b []byte) any { return base64.StdEncoding.EncodeToString(b) })
	case *types.AttributeValueMemberM:
		kind, value = "M", image(of.Value)
	case *types.AttributeValueMemberL:
		kind, value = "L", list(of.Value, func(v types.AttributeValue) any { return attribute{v} })
	}
	return value, kind == name
}

func list[E any](of []E, as func(E) any) []any {
	values := make([]any, len(of))
	for i, one := range of {
		values[i] = as(one)
	}
	return values
}
