package ingest_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/commerce-integration/service/pkg/base/value"
	"github.com/commerce-integration/service/pkg/commerce/receipt"
	"github.com/commerce-integration/service/pkg/dynamo"
	"github.com/commerce-integration/service/pkg/queue"
	"github.com/commerce-integration/service/pkg/testkit/dynamotest"
)

// withSenderKeys is a harness whose organization has keys of signed senders, and
// what deletes them as OPERATING says.
func withSenderKeys(t *testing.T) (f *queueHarness, remove func()) {
	t.Helper()
	f = newQueueHarness(t)
	client, name := dynamotest.Client(t)
	f.table.Table = dynamo.New(client, name, time.Now)
	key := map[string]types.AttributeValue{
		"PK": &types.AttributeValueMemberS{Value: "ORG#" + f.org.String() + "#SENDERS"}, "SK": &types.AttributeValueMemberS{Value: "KEYS"},
	}
	if _, err := client.PutItem(t.Context(), &dynamodb.PutItemInput{TableName: &name, Item: key}); err != nil {
		t.Fatal(err)
	}
	return f, func() {
		t.Helper()
		if _, err := client.DeleteItem(t.Context(), &dynamodb.DeleteItemInput{TableName: &name, Key: key}); err != nil {
			t.Fatal(err)
		}
	}
}

func TestSenderKeys(t *testing.T) {
	t.Run("refuse_queue_messages_until_deleted", func(t *testing.T) {
		f, remove := withSenderKeys(t)
		id, other, free := idAt(0), value.NewID(), value.NewID() // the first looks new
		f.send(t, f.one(id, "Tea", 1), strings.ReplaceAll(f.one(other, "Tea", 1), f.org.String(), free.String()))
		reasons, messages := f.refused(t)
		if !slices.Equal(reasons, []string{"sender_keys"}) || f.product(t, id) != nil {
			t.Fatalf("refused for %q, stored %v; want the message of the organization with keys refused", reasons, f.product(t, id))
		}
		if why := aws.ToString(messages[0].MessageAttributes["message"].StringValue); !strings.Contains(why, "POST /ingest/records") || !strings.Contains(why, "OPERATING.md") {
			t.Errorf("the message %q does not name both ways out", why)
		}
		if stored, err := f.table.Record(t.Context(), free, "product", other); err != nil || stored == nil {
			t.Errorf("the record of an organization without keys is %v, %v", stored, err)
		}
		remove()
		f.send(t, messages[0].Body)
		if f.product(t, id) == nil {
			t.Error("the refused message is refused again after the keys are deleted")
		}
	})
	t.Run("leave_posted_records_alone", func(t *testing.T) {
		f, _ := withSenderKeys(t)
		id := value.NewID()
		s := f.post(t, put(id, "Posted"), put(value.NewID(), ""))
		f.send(t)
		wants(t, f.receipt(t, s), 1, "records[1].record.name")
		if p := f.product(t, id); p == nil || p.Name != "Posted" {
			t.Errorf("stored %+v", p)
		}
	})
	t.Run("are_not_passed_by_a_receipt_of_another_message", func(t *testing.T) {
		f, _ := withSenderKeys(t)
		s := f.post(t, put(value.NewID(), "Posted"))
		f.send(t)
		queued := receipt.NewQueued(f.org, []byte(f.many(put(value.NewID(), ""))), 1, value.TimeOf(f.now), value.TimeOf(f.now))
		if err := f.table.CreateReceipt(t.Context(), queued); err != nil {
			t.Fatal(err)
		}
		for what, id := range map[string]string{
			"another message": s.Receipt.ID.String(), "a message of the queue": queued.Receipt.ID.String(),
			"nobody": value.NewID().String(), "no id": "x",
		} {
			m := queue.Message{Body: f.many(put(value.NewID(), "Forged")), Attributes: map[string]string{receipt.Attribute: id}}
			if err := f.queues.Queue("RecordsQueue").Send(t.Context(), m); err != nil {
				t.Fatal(err)
			}
			f.send(t)
			if reasons, _ := f.refused(t); !slices.Equal(reasons, []string{"sender_keys"}) {
				t.Errorf("with a receipt of %s: refused for %v", what, reasons)
			}
		}
	})
}
