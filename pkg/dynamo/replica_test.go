package dynamo_test

import (
	"context"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/aws/smithy-go/middleware"
)

// replica answers eventually consistent reads of single items and of batches as
// the table was when it last caught up, by the key of the item.
type replica struct {
	client, direct *dynamodb.Client // with the replica and without
	table          string
	items          map[[2]string]map[string]types.AttributeValue
	strong         int // keys that were read strongly consistent
}

func newReplica(client *dynamodb.Client, table string) *replica {
	r := &replica{direct: client, table: table}
	r.client = dynamodb.New(client.Options(), func(o *dynamodb.Options) {
		o.APIOptions = append(o.APIOptions, func(stack *middleware.Stack) error {
			return stack.Initialize.Add(middleware.InitializeMiddlewareFunc("Replica", r.call), middleware.After)
		})
	})
	return r
}

func keyText(it map[string]types.AttributeValue) [2]string {
	var k [2]string
	for i, name := range []string{"PK", "SK"} {
		if s, ok := it[name].(*types.AttributeValueMemberS); ok {
			k[i] = s.Value
		}
	}
	return k
}

// catchUp has the replica know everything that is in the table now.
func (r *replica) catchUp(t *testing.T) {
	t.Helper()
	out, err := r.direct.Scan(t.Context(), &dynamodb.ScanInput{TableName: &r.table, ConsistentRead: aws.Bool(true)})
	must(t, err)
	r.items, r.strong = map[[2]string]map[string]types.AttributeValue{}, 0
	for _, it := range out.Items {
		r.items[keyText(it)] = it
	}
}

func (r *replica) call(ctx context.Context, in middleware.InitializeInput, next middleware.InitializeHandler) (
	out middleware.InitializeOutput, metadata middleware.Metadata, err error,
) {
	switch call := in.Parameters.(type) {
	case *dynamodb.GetItemInput:
		if !aws.ToBool(call.ConsistentRead) {
			out.Result = &dynamodb.GetItemOutput{Item: r.items[keyText(call.Key)]}
			return out, metadata, nil
		}
		r.strong++
	case *dynamodb.BatchGetItemInput:
		wanted := call.RequestItems[r.table]
		if !aws.ToBool(wanted.ConsistentRead) {
			var found []map[string]types.AttributeValue
			for _, key := range wanted.Keys {
				if it := r.items[keyText(key)]; it != nil {
					found = append(found, it)
				}
			}
			out.Result = &dynamodb.BatchGetItemOutput{Responses: map[string][]map[string]types.AttributeValue{r.table: found}}
			return out, metadata, nil
		}
		r.strong += len(wanted.Keys)
	}
	return next.HandleInitialize(ctx, in)
}
