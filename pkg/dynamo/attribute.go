package dynamo

import (
	"fmt"
	"maps"
	"strconv"

	"github.com/aws/aws-sdk-go-v2/feature/dynamodb/attributevalue"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/commerce-integration/service/pkg/base/value"
)

// item is an item as the SDK gives it.
type item = map[string]types.AttributeValue

func str(s string) types.AttributeValue { return &types.AttributeValueMemberS{Value: s} }

type number interface {
	int | int64 | uint64 | value.Time
}

func num[N number](n N) types.AttributeValue {
	return &types.AttributeValueMemberN{Value: fmt.Sprintf("%d", n)}
}

func boolean(b bool) types.AttributeValue { return &types.AttributeValueMemberBOOL{Value: b} }

// binary also takes nil, which the SDK would send as no value.
func binary(b []byte) types.AttributeValue {
	if b == nil {
		b = []byte{}
	}
	return &types.AttributeValueMemberB{Value: b}
}

// expiry is the time to live of an item, in the seconds that the table wants.
func expiry(at value.Time) types.AttributeValue { return num(at.Std().Unix()) }

func getString(it item, name string) string {
	if v, ok := it[name].(*types.AttributeValueMemberS); ok {
		return v.Value
	}
	return ""
}

// numberOf is a number as the table writes it; "" where it is absent.
func numberOf(it item, name string) string {
	if v, ok := it[name].(*types.AttributeValueMemberN); ok {
		return v.Value
	}
	return ""
}

// getNumber reads a whole number; 0 where it is absent.
func getNumber(it item, name string) int64 {
	n, _ := strconv.ParseInt(numberOf(it, name), 10, 64)
	return n
}

// getUnsigned is getNumber for numbers of 64 bits without a sign.
func getUnsigned(it item, name string) uint64 {
	n, _ := strconv.ParseUint(numberOf(it, name), 10, 64)
	return n
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

// encode makes an item of the type under the key, with the fields of a struct by
// their names or tags; ids and times are texts.
func encode(k key, itemType string, fields any) item {
	it, ok := attribute(fields).(*types.AttributeValueMemberM)
	if !ok {
		panic(fmt.Sprintf("a %T is no struct", fields))
	}
	maps.Copy(it.Value, k.newItem(itemType))
	return it.Value
}

// attribute is a value as [encode] writes it.
func attribute(v any) types.AttributeValue {
	encoded, err := attributevalue.MarshalWithOptions(v, func(o *attributevalue.EncoderOptions) { o.UseEncodingMarshalers = true })
	if err != nil {
		panic(err) // what is stored has fields of types that can be encoded
	}
	return encoded
}

// decode reads the fields of a struct as [encode] writes them; an absent attribute
// leaves its field zero.
func decode[T any](it item) (v T, err error) {
	err = attributevalue.UnmarshalMapWithOptions(it, &v, func(o *attributevalue.DecoderOptions) { o.UseEncodingUnmarshalers = true })
	if err != nil {
		err = fmt.Errorf("decode the %T %s: %w", v, keyOf(it), err)
	}
	return v, err
}

// decodeFound is decode into a pointer, nil of an absent item.
func decodeFound[T any](it item) (*T, error) {
	if it == nil {
		return nil, nil
	}
	v, err := decode[T](it)
	return &v, err
}

// docItem makes an item of the type under the key that holds a value as JSON.
func docItem(k key, itemType string, v any) item {
	it := k.newItem(itemType)
	it[attrDoc] = encodeDoc(v)
	return it
}

// encodeDoc makes the attribute that holds a value as JSON.
func encodeDoc(v any) types.AttributeValue { return str(encodeJSON(v)) }

// encodeJSON replaces what is not UTF-8.
func encodeJSON(v any) string {
	text, err := json.Marshal(v, json.Deterministic(true), jsontext.AllowInvalidUTF8(true))
	if err != nil {
		panic(err) // what is stored has fields of types that can be encoded
	}
	return string(text)
}

// docOf reads the JSON of an item.
func docOf[T any](it item) (v T, err error) {
	if err = json.Unmarshal([]byte(getString(it, attrDoc)), &v); err != nil {
		err = fmt.Errorf("decode the %T %s: %w", v, keyOf(it), err)
	}
	return v, err
}

// decodeDoc is docOf into a pointer, nil of an absent item.
func decodeDoc[T any](it item) (*T, error) {
	if it == nil {
		return nil, nil
	}
	v, err := docOf[T](it)
	return &v, err
}
