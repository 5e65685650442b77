package tableserver

import (
	"reflect"
	"testing"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
)

func TestKeysOfEveryTypeAreRead(t *testing.T) {
	for text, want := range map[string]types.AttributeValue{
		`{"S":"a\"b\u0000ü"}`: &types.AttributeValueMemberS{Value: "a\"b\x00ü"},
		`{"N":"-1.50"}`:       &types.AttributeValueMemberN{Value: "-1.50"},
		`{"B":"AQL/"}`:        &types.AttributeValueMemberB{Value: []byte{1, 2, 255}},
	} {
		got, err := keyValue([]byte(text))
		if err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("keyValue(%s) = %v, %v; want %v", text, got, err, want)
		}
	}
	for _, bad := range []string{``, `{}`, `{"S":7}`, `{"BOOL":true}`} {
		if got, err := keyValue([]byte(bad)); err == nil {
			t.Errorf("keyValue(%s) = %v, want an error", bad, got)
		}
	}
}

func TestNamesThatSQLWouldHaveToEscapeAreRefused(t *testing.T) {
	for _, names := range [][3]string{{`a"b`, ttl, "PK"}, {table, `x'y`, "PK"}, {table, ttl, `P\K`}, {table, "", "PK"}} {
		if _, err := newExpiry(nil, names[0], names[1], names[2:]); err == nil {
			t.Errorf("newExpiry of %q works, want an error", names)
		}
	}
}
