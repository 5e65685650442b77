//go:build unix

package main

import (
	"errors"
	"fmt"
	"testing"

	"github.com/aws/aws-lambda-go/events"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/commerce-integration/service/pkg/base/value"
	"github.com/commerce-integration/service/pkg/ops"
	"github.com/commerce-integration/service/pkg/queue"
)

func TestAReplayThatIsKilledLosesNothing(t *testing.T) {
	t.Parallel()
	y := newParkHarness(t)
	y.subscribed(t)
	const records = 400
	ids := y.manyParked(t, records)
	p := launch(t, nil, "replay", "--data", y.queues.data)
	await(t, "some of the records", func() bool {
		visible, hidden := y.waiting(t, y.parkURL)
		return visible+hidden < records
	})
	p.kill(t)
	visible, hidden := y.waiting(t, y.parkURL)
	done := len(y.deliveries(t))
	t.Logf("killed with %d records waiting, %d in its hands and %d done", visible, hidden, done)
	if visible+hidden == 0 || visible+hidden+done < records {
		t.Errorf("%d of %d records are in the park and %d were done; want none lost, and some left", visible+hidden, records, done)
	}
	// What the command held comes back when its time is over, and so does what
	// the queue was still handing to it when it died.
	await(t, "the rest", func() bool {
		if _, err := y.server.Release(y.parkURL); err != nil {
			t.Fatal(err)
		}
		if got, code := y.replay(t.Context()); code != 0 {
			t.Fatalf("the next run: got %d, %q", code, got)
		}
		visible, hidden := y.waiting(t, y.parkURL)
		return visible+hidden == 0
	})
	y.allArrived(t, ids)
}

func TestAParkedChangeIsDeliveredOnceItIsReplayed(t *testing.T) {
	t.Parallel()
	s := newOwnService(t)
	s.start(t)
	r, id := s.subscribe(t, "product.created"), value.NewID()
	s.send(t, fmt.Sprintf(`{"organizationId":%q,"kind":"product","op":"put","silent":true,"record":{"id":%q,"name":"Tea"}}`, s.OrganizationID, id))
	await(t, "the product", func() bool { return s.total(t, "/api/products") == 1 })
	table := dynamodb.New(dynamodb.Options{
		BaseEndpoint: &s.DynamoDBEndpoint, Region: "us-east-1", Credentials: credentials.NewStaticCredentialsProvider("local", "local", ""),
	})
	after := recordImage(t, table, s.TableName, id)
	delete(after, "silent")
	parkURL, err := ops.QueueURL(t.Context(), s.sqs(t), ops.ParkQueueName)
	if err != nil {
		t.Fatal(err)
	}
	park := queue.NewPark(queue.New(s.sqs(t), parkURL))
	if err := park.Park(t.Context(), ops.Dispatcher, events.DynamoDBEventRecord{Change: events.DynamoDBStreamRecord{
		SequenceNumber: "1", NewImage: after,
		Keys: map[string]events.DynamoDBAttributeValue{"PK": after["PK"], "SK": after["SK"]},
	}}, errors.New("broken")); err != nil {
		t.Fatal(err)
	}
	if got := s.commerce(t, "replay"); got != "replayed 1 record\n" {
		t.Errorf("replay: got %q", got)
	}
	await(t, "the event", func() bool { return len(r.Events()) == 1 })
	if got := r.Events()[0]; got.ObjectID != id.String() {
		t.Errorf("received an event of %s, want one of %s", got.ObjectID, id)
	}
	if left := s.messages(t, parkURL); left != 0 {
		t.Errorf("%d records are in the park, want none", left)
	}
	s.stop(t)
}
