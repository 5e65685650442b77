//go:build unix

package main

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/aws/aws-sdk-go-v2/service/sqs"

	"github.com/commerce-integration/service/pkg/base/value"
	"github.com/commerce-integration/service/pkg/ops"
)

// limitReceives makes a message that the worker cannot process a dead letter
// after its second receive. A start of the service resets that.
func (s *ownService) limitReceives(t *testing.T) {
	t.Helper()
	dlq := strings.Replace(s.DeliveriesQueueURL, "DeliveriesQueue", "DeliveriesDLQ", 1)
	attributes, err := ops.QueueAttributes(t.Context(), s.sqs(t), dlq)
	if err != nil {
		t.Fatal(err)
	}
	policy := fmt.Sprintf(`{"deadLetterTargetArn":%q,"maxReceiveCount":2}`, attributes["QueueArn"])
	for _, url := range []string{s.DeliveriesQueueURL, s.SlowDeliveriesQueueURL} {
		_, err := s.sqs(t).SetQueueAttributes(t.Context(), &sqs.SetQueueAttributesInput{QueueUrl: &url, Attributes: map[string]string{"RedrivePolicy": policy}})
		if err != nil {
			t.Fatal(err)
		}
	}
}

// tableClient is DynamoDB's own client of the service's table.
func (s *service) tableClient() *dynamodb.Client {
	return dynamodb.New(dynamodb.Options{
		BaseEndpoint: &s.DynamoDBEndpoint, Region: "us-east-1",
		Credentials: aws.NewCredentialsCache(credentials.NewStaticCredentialsProvider("local", "local", "")),
	})
}

type tableItem = map[string]types.AttributeValue

func tableKey(pk, sk string) tableItem {
	return tableItem{"PK": &types.AttributeValueMemberS{Value: pk}, "SK": &types.AttributeValueMemberS{Value: sk}}
}

// takeItem returns an item of the table, which must be there.
func (s *service) takeItem(t *testing.T, key tableItem) tableItem {
	t.Helper()
	out, err := s.tableClient().GetItem(t.Context(), &dynamodb.GetItemInput{TableName: &s.TableName, Key: key, ConsistentRead: aws.Bool(true)})
	if err != nil || out.Item == nil {
		t.Fatalf("item %v: %v, %v", key, out, err)
	}
	return out.Item
}

func (s *service) putItem(t *testing.T, item tableItem) {
	t.Helper()
	if _, err := s.tableClient().PutItem(t.Context(), &dynamodb.PutItemInput{TableName: &s.TableName, Item: item}); err != nil {
		t.Fatal(err)
	}
}

// status runs commerce status and returns the line of a queue and the exit
// code. It is asked about in a context of its own, so that it may be polled.
func (s *service) status(ctx context.Context, queue string) (cells string, code int) {
	stdout, _, err := runCommand(ctx, "status", "--data", s.data)
	return line(stdout, queue), codeOf(err)
}

// dies waits until the only delivery is a dead letter, of which commerce
// status tells what to run.
func (s *service) dies(t *testing.T) {
	t.Helper()
	await(t, "a dead letter", func() bool {
		cells, code := s.status(t.Context(), "DeliveriesDLQ")
		return code == 1 && strings.HasPrefix(cells, "1 0 0 ") && strings.HasSuffix(cells, " commerce redrive deliveries")
	})
}

// returns does what commerce status says, and waits for the event.
func (s *service) returns(t *testing.T, r *receiver) {
	t.Helper()
	if got := s.commerce(t, "redrive", "deliveries"); !strings.HasPrefix(got, "moved 1 messages ") {
		t.Fatalf("redrive: got %q, want one message moved", got)
	}
	await(t, "the event at its receiver", func() bool { return len(r.Events()) == 1 })
	await(t, "its delivery to be DELIVERED", func() bool {
		time.Sleep(100 * time.Millisecond)
		var found page
		s.history(t, "/developers/webhooks/events?status=DELIVERED&endpointId="+r.endpoint, &found)
		return found.Meta.Total == 1
	})
	await(t, "nothing that waits", func() bool {
		_, code := s.status(t.Context(), "")
		return code == 0
	})
}

func TestDeliveryFailedByOurFaultEndsByARedrive(t *testing.T) {
	t.Parallel()
	s := newOwnService(t)
	s.start(t)
	s.limitReceives(t)
	for name, spoil := range map[string]func(o *service, r *receiver, event string) (mend func()){
		"a payload that is missing": func(o *service, _ *receiver, event string) func() {
			key := tableKey("ORG#"+o.OrganizationID+"#PAYLOAD#"+event, "PAYLOAD")
			item := o.takeItem(t, key)
			if _, err := o.tableClient().DeleteItem(t.Context(), &dynamodb.DeleteItemInput{TableName: &o.TableName, Key: key}); err != nil {
				t.Fatal(err)
			}
			return func() { o.putItem(t, item) }
		},
		"a secret that cannot be opened": func(o *service, r *receiver, _ string) func() {
			sealed := o.reseal(t, r, "rubbish")
			return func() { o.reseal(t, r, sealed) }
		},
	} {
		o := s.newOrganization(t)
		r := o.subscribe(t, "order.created")
		held := o.hold(t, r)
		mend := spoil(o, r, held)
		o.recover(t, r)
		o.dies(t)
		if n := len(r.Events()); n != 0 {
			t.Fatalf("%s: %d events received, want none", name, n)
		}
		mend()
		o.returns(t, r)
	}
	s.stop(t)
}

// reseal replaces the sealed secret of an endpoint and returns the one before.
func (s *service) reseal(t *testing.T, r *receiver, sealed string) (before string) {
	t.Helper()
	item := s.takeItem(t, tableKey("ORG#"+s.OrganizationID+"#DEV", "ENDPOINT#"+r.endpoint))
	doc := item["doc"].(*types.AttributeValueMemberS).Value
	start, rest, found := strings.Cut(doc, `"sealed":"`)
	before, end, closed := strings.Cut(rest, `"`)
	if !found || !closed {
		t.Fatalf("endpoint %s: no sealed secret in %s", r.endpoint, doc)
	}
	item["doc"] = &types.AttributeValueMemberS{Value: start + `"sealed":"` + sealed + `"` + end}
	s.putItem(t, item)
	return before
}

// hold has an event of an order wait for its endpoint and returns its id.
func (s *service) hold(t *testing.T, r *receiver) (event string) {
	t.Helper()
	path := "/developers/webhooks/endpoints/" + r.endpoint
	if resp, answer := s.user(t, http.MethodPatch, path, `{"status":"PAUSED"}`); resp.StatusCode != http.StatusOK {
		t.Fatalf("pause: %d %s", resp.StatusCode, answer)
	}
	s.send(t, s.order(value.NewID(), "PENDING"))
	await(t, "a delivery that is HELD", func() bool {
		time.Sleep(100 * time.Millisecond)
		var found page
		s.history(t, "/developers/webhooks/events?status=HELD&endpointId="+r.endpoint, &found)
		if found.Meta.Total == 1 {
			event = found.Data[0]["eventId"].(string)
		}
		return event != ""
	})
	return event
}

// recover has what waits for the endpoint sent.
func (s *service) recover(t *testing.T, r *receiver) {
	t.Helper()
	path := "/developers/webhooks/endpoints/" + r.endpoint
	if resp, answer := s.user(t, http.MethodPatch, path, `{"status":"ACTIVE"}`); resp.StatusCode != http.StatusOK {
		t.Fatalf("activate: %d %s", resp.StatusCode, answer)
	}
	s.create(t, path+"/recover", `{"since":"2020-01-01T00:00:00Z"}`)
}

func TestDeliveryOlderThanItsItemEndsByARedrive(t *testing.T) {
	t.Parallel()
	s := newOwnService(t)
	s.start(t)
	r := (&s.service).subscribe(t, "order.created")
	// The message waits until the service runs with a table that refuses all.
	_, err := s.sqs(t).SetQueueAttributes(t.Context(), &sqs.SetQueueAttributesInput{QueueUrl: &s.DeliveriesQueueURL, Attributes: map[string]string{"DelaySeconds": "5"}})
	if err != nil {
		t.Fatal(err)
	}
	s.send(t, s.order(value.NewID(), "PENDING"))
	await(t, "a message that waits", func() bool {
		cells, _ := s.status(t.Context(), "DeliveriesQueue")
		return strings.HasPrefix(cells, "0 0 1 ")
	})
	s.stop(t)

	s.start(t, "--faults", "throttle=100", "--seed", "1")
	s.limitReceives(t)
	s.dies(t)
	s.stop(t)

	s.start(t)
	if cells, code := s.status(t.Context(), "DeliveriesDLQ"); code != 1 || !strings.HasPrefix(cells, "1 0 0 ") {
		t.Errorf("after a start: got %q and exit code %d, want the dead letter still", cells, code)
	}
	s.returns(t, r)
	s.stop(t)
}
