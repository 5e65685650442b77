package dynamo_test

import (
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/commerce-integration/service/pkg/base/value"
	"github.com/commerce-integration/service/pkg/dynamo"
	"github.com/commerce-integration/service/pkg/lab/faults"
	"github.com/commerce-integration/service/pkg/testkit/dynamotest"
	"github.com/commerce-integration/service/pkg/webhook/source"
)

func TestASourceThatIsNotThereTakesAsManyReads(t *testing.T) {
	client, name := dynamotest.Client(t)
	m := faults.NewMeter()
	table := dynamo.New(dynamodb.New(client.Options(), m.Measure), name, time.Now)
	shop := &source.Source{ID: value.NewID(), OrganizationID: value.NewID()}
	must(t, table.CreateSource(t.Context(), shop, nil))
	reads := map[bool]float64{}
	for there, id := range map[bool]value.ID{true: shop.ID, false: value.NewID()} {
		m.Reset()
		got, err := table.SourceByID(t.Context(), id)
		if err != nil || (got != nil) != there {
			t.Fatalf("got %v, %v", got, err)
		}
		reads[there] = m.Total().Reads
	}
	if reads[true] == 0 || reads[true] != reads[false] {
		t.Errorf("got %v read units, want the same", reads)
	}
}
