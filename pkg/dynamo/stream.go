package dynamo

import (
	"fmt"

	"github.com/aws/aws-lambda-go/events"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/commerce-integration/service/pkg/commerce"
	"github.com/commerce-integration/service/pkg/value"
)

// StreamType returns the item type of a stream record, such as "rec" of a
// record or "evt" of a delivery; "" of a removal, which no consumer acts on.
func StreamType(r *events.DynamoDBEventRecord) string {
	if r.Change.NewImage == nil {
		return ""
	}
	if v, ok := r.Change.NewImage[attrType]; ok && v.DataType() == events.DataTypeString {
		return v.String()
	}
	return ""
}

// Types of items that reach the stream's consumers.
const (
	StreamRecord = typeRecord
	StreamEvent  = typeDelivery
)

// RecordChange is one write of a record: what it was, nil when there was
// none, and what it is.
type RecordChange struct {
	OrganizationID value.ID
	Old, New       *commerce.Stored
}

// DecodeRecordChange reads a stream record of a record. An old image that had
// expired counts as absent.
func DecodeRecordChange(r *events.DynamoDBEventRecord) (RecordChange, error) {
	org, err := streamOrganization(r)
	if err != nil {
		return RecordChange{}, err
	}
	change := RecordChange{OrganizationID: org}
	if change.New, err = decodeRecord(org, imageItem(r.Change.NewImage)); err != nil {
		return RecordChange{}, err
	}
	if old := imageItem(r.Change.OldImage); old != nil {
		if change.Old, err = decodeRecord(org, old); err != nil {
			return RecordChange{}, err
		}
	}
	return change, nil
}

// streamOrganization reads the organization from the partition key.
func streamOrganization(r *events.DynamoDBEventRecord) (value.ID, error) {
	pk := r.Change.Keys[attrPK]
	if pk.DataType() != events.DataTypeString {
		return value.ID{}, fmt.Errorf("a stream record without a key")
	}
	org, err := organizationOf(pk.String())
	if err != nil {
		return value.ID{}, fmt.Errorf("a stream record: %w", err)
	}
	return org, nil
}

// imageItem turns a stream image into an item; nil stays nil. Types that
// no consumer reads are left out.
func imageItem(image map[string]events.DynamoDBAttributeValue) item {
	if image == nil {
		return nil
	}
	it := make(item, len(image))
	for name, v := range image {
		if converted := imageValue(v); converted != nil {
			it[name] = converted
		}
	}
	return it
}

func imageValue(v events.DynamoDBAttributeValue) types.AttributeValue {
	switch v.DataType() {
	case events.DataTypeString:
		return str(v.String())
	case events.DataTypeNumber:
		return &types.AttributeValueMemberN{Value: v.Number()}
	case events.DataTypeBoolean:
		return boolean(v.Boolean())
	case events.DataTypeBinary:
		return binary(v.Binary())
	case events.DataTypeList:
		list := make([]types.AttributeValue, 0, len(v.List()))
		for _, e := range v.List() {
			if converted := imageValue(e); converted != nil {
				list = append(list, converted)
			}
		}
		return &types.AttributeValueMemberL{Value: list}
	default:
		return nil
	}
}
