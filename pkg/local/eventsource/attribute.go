package eventsource

import (
	"bytes"
	"fmt"
	"strings"

	"github.com/aws/aws-lambda-go/events"
	"github.com/aws/aws-sdk-go-v2/service/dynamodbstreams/types"
)

// convertMap converts an image. It keeps nil, which leaves the image out of the event.
func convertMap(from map[string]types.AttributeValue) (map[string]events.DynamoDBAttributeValue, error) {
	if from == nil {
		return nil, nil
	}
	to := make(map[string]events.DynamoDBAttributeValue, len(from))
	for name, value := range from {
		converted, err := convertValue(value)
		if err != nil {
			return nil, fmt.Errorf("attribute %s: %w", name, err)
		}
		to[name] = converted
	}
	return to, nil
}

func convertValue(from types.AttributeValue) (events.DynamoDBAttributeValue, error) {
	switch value := from.(type) {
	case *types.AttributeValueMemberS:
		return events.NewStringAttribute(value.Value), nil
	case *types.AttributeValueMemberN:
		return events.NewNumberAttribute(value.Value), nil
	case *types.AttributeValueMemberB:
		return events.NewBinaryAttribute(value.Value), nil
	case *types.AttributeValueMemberBOOL:
		return events.NewBooleanAttribute(value.Value), nil
	case *types.AttributeValueMemberNULL:
		return events.NewNullAttribute(), nil
	case *types.AttributeValueMemberSS:
		return events.NewStringSetAttribute(value.Value), nil
	case *types.AttributeValueMemberNS:
		return events.NewNumberSetAttribute(value.Value), nil
	case *types.AttributeValueMemberBS:
		return events.NewBinarySetAttribute(value.Value), nil
	case *types.AttributeValueMemberM:
		converted, err := convertMap(value.Value)
		return events.NewMapAttribute(converted), err
	case *types.AttributeValueMemberL:
		list := make([]events.DynamoDBAttributeValue, 0, len(value.Value))
		for i, element := range value.Value {
			converted, err := convertValue(element)
			if err != nil {
				return events.DynamoDBAttributeValue{}, fmt.Errorf("element %d: %w", i, err)
			}
			list = append(list, converted)
		}
		return events.NewListAttribute(list), nil
	}
	return events.DynamoDBAttributeValue{}, fmt.Errorf("unknown attribute type %T", from)
}

// weigh estimates the bytes of attributes as JSON, in which quotes are escaped.
func weigh(attributes map[string]types.AttributeValue) int {
	sum := 0
	for name, value := range attributes {
		sum += len(name) + len(`"":{"S":""},`) + weighValue(value)
	}
	return sum
}

func weighValue(of types.AttributeValue) int {
	sum := 0
	switch value := of.(type) {
	case *types.AttributeValueMemberS:
		sum = len(value.Value) + strings.Count(value.Value, `"`)
	case *types.AttributeValueMemberN:
		sum = len(value.Value)
	case *types.AttributeValueMemberB:
		sum = len(value.Value) * 4 / 3
	case *types.AttributeValueMemberSS:
		sum = len(strings.Join(value.Value, `"",`))
	case *types.AttributeValueMemberNS:
		sum = len(strings.Join(value.Value, `"",`))
	case *types.AttributeValueMemberBS:
		sum = len(bytes.Join(value.Value, []byte(`"",`))) * 4 / 3
	case *types.AttributeValueMemberM:
		sum = weigh(value.Value)
	case *types.AttributeValueMemberL:
		for _, one := range value.Value {
			sum += len(`{"S":""},`) + weighValue(one)
		}
	}
	return sum
}
