package dynamo

import (
	"fmt"
	"strconv"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/go-json-experiment/json"

	"github.com/commerce-integration/service/pkg/base/value"
)

// item is an item as the SDK gives it.
type item = map[string]types.AttributeValue

func str(s string) types.AttributeValue { return &types.AttributeValueMemberS{Value: s} }

func num[N int | int64 | value.Time](n N) types.AttributeValue {
	return &types.AttributeValueMemberN{Value: strconv.FormatInt(int64(n), 10)}
}

func boolean(b bool) types.AttributeValue { return &types.AttributeValueMemberBOOL{Value: b} }

func binary(b []byte) types.AttributeValue { return &types.AttributeValueMemberB{Value: b} }

// expiry is the time to live of an item, in the seconds that the table wants.
func expiry(at value.Time) types.AttributeValue { return num(at.Std().Unix()) }

func getString(it item, name string) string {
	if v, ok := it[name].(*types.AttributeValueMemberS); ok {
		return v.Value
	}
	return ""
}

func getNumber(it item, name string) int64 {
	if v, ok := it[name].(*types.AttributeValueMemberN); ok {
		n, err := strconv.ParseInt(v.Value, 10, 64)
		if err == nil {
			return n
		}
	}
	return 0
}

func getTime(it item, name string) value.Time { return value.Time(getNumber(it, name)) }

func getBool(it item, name string) bool {
	v, ok := it[name].(*types.AttributeValueMemberBOOL)
	return ok && v.Value
}

func getBinary(it item, name string) []byte {
	if v, ok := it[name].(*types.AttributeValueMemberB); ok {
		return v.Value
	}
	return nil
}

// encodeDoc makes the attribute that holds a value as JSON.
func encodeDoc(v any, options ...json.Options) (types.AttributeValue, error) {
	doc, err := json.Marshal(v, options...)
	if err != nil {
		return nil, fmt.Errorf("encode a %T: %w", v, err)
	}
	return str(string(doc)), nil
}

// decodeDoc reads the JSON of an item; nil of an absent one.
func decodeDoc[T any](it item) (*T, error) {
	if it == nil {
		return nil, nil
	}
	v := new(T)
	if err := json.Unmarshal([]byte(getString(it, attrDoc)), v); err != nil {
		return nil, fmt.Errorf("decode the %T %s of %s: %w", *v, getString(it, attrSK), getString(it, attrPK), err)
	}
	return v, nil
}
