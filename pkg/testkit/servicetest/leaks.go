package servicetest

import (
	"context"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/commerce-integration/service/pkg/testkit/leaks"
)

// maxPages is how many pages of 1 MB are read of a table.
const maxPages = 20

// WatchLeaks returns a watch that fails the test, when it ends, if a secret is
// where it may not be: in the log, in an answer or in an item of the table. It
// looks at the first 20 MB of a table; few tests have more.
func WatchLeaks(t testing.TB, client *dynamodb.Client, table string) *leaks.Watch {
	t.Helper()
	w := leaks.New()
	t.Cleanup(func() {
		ctx := context.WithoutCancel(t.Context())
		pages := dynamodb.NewScanPaginator(client, &dynamodb.ScanInput{TableName: &table})
		for range maxPages {
			if !pages.HasMorePages() {
				break
			}
			page, err := pages.NextPage(ctx)
			if err != nil {
				t.Error(err)
				return
			}
			for _, item := range page.Items {
				var text strings.Builder
				writeAttribute(&text, &types.AttributeValueMemberM{Value: item})
				w.Stored(itemName(item), text.String())
			}
		}
		for _, leak := range w.Leaks() {
			t.Error(leak)
		}
	})
	return w
}

func itemName(item map[string]types.AttributeValue) string {
	pk, _ := item["PK"].(*types.AttributeValueMemberS)
	sk, _ := item["SK"].(*types.AttributeValueMemberS)
	if pk == nil || sk == nil {
		return "without a key"
	}
	return pk.Value + " " + sk.Value
}

// writeAttribute writes the texts and bytes of an attribute, one in a line.
func writeAttribute(out *strings.Builder, v types.AttributeValue) {
	switch v := v.(type) {
	case *types.AttributeValueMemberS:
		out.WriteString(v.Value + "\n")
	case *types.AttributeValueMemberB:
		out.WriteString(string(v.Value) + "\n")
	case *types.AttributeValueMemberL:
		for _, e := range v.Value {
			writeAttribute(out, e)
		}
	case *types.AttributeValueMemberM:
		for name, e := range v.Value {
			out.WriteString(name + "\n")
			writeAttribute(out, e)
		}
	}
}
