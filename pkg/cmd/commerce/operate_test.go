//go:build unix

package main

import (
	"fmt"
	"regexp"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"

	"github.com/commerce-integration/service/pkg/base/value"
	"github.com/commerce-integration/service/pkg/webhook"
)

func TestListenShowsWhatTheServiceDeliversAndGoesWithoutTrace(t *testing.T) {
	t.Parallel()
	s := newOwnService(t)
	s.start(t)
	p := launch(t, nil, "listen", "--addr", "127.0.0.1:0", "--data", s.data, "--subscribe", "order.*,payment.completed")
	await(t, "the listener", func() bool { return strings.Contains(p.output.String(), "listening on ") })
	var endpoints page
	s.history(t, "/developers/webhooks/endpoints", &endpoints)
	if endpoints.Meta.Total != 1 || fmt.Sprint(endpoints.Data[0]["subscribedEvents"]) != "[order.* payment.completed]" {
		t.Errorf("endpoints: got %v, want one with what was subscribed to", endpoints.Data)
	}
	id := value.NewID()
	s.send(t, s.order(id, "CONFIRMED"))
	for _, event := range []string{"order.created", "order.confirmed"} {
		line := regexp.MustCompile(`(?m)^\S+Z  ` + regexp.QuoteMeta(event) + ` +\S+  ` + id.String() + `  verified$`)
		await(t, event, func() bool { return line.MatchString(p.output.String()) })
	}
	p.interrupt(t)
	if code := p.exit(t); code != 0 {
		t.Errorf("exit code %d, want 0\n%s", code, &p.output)
	}
	s.history(t, "/developers/webhooks/endpoints", &endpoints)
	if endpoints.Meta.Total != 0 {
		t.Errorf("endpoints after the end: got %v, want none", endpoints.Data)
	}
	s.stop(t)
	if said := refused(t, nil, "listen", "--addr", "127.0.0.1:0", "--data", s.data, "--subscribe", "*"); !strings.Contains(said, "no local service runs here") {
		t.Errorf("without a service: got %q", said)
	}
}

// peek reads the messages of a queue and leaves them there.
func (s *service) peek(t *testing.T, queueURL string) []types.Message {
	t.Helper()
	out, err := s.sqs(t).ReceiveMessage(t.Context(), &sqs.ReceiveMessageInput{
		QueueUrl: &queueURL, MaxNumberOfMessages: 10, MessageAttributeNames: []string{"All"},
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range out.Messages {
		_, err := s.sqs(t).ChangeMessageVisibility(t.Context(), &sqs.ChangeMessageVisibilityInput{QueueUrl: &queueURL, ReceiptHandle: m.ReceiptHandle})
		if err != nil {
			t.Fatal(err)
		}
	}
	return out.Messages
}

func TestRefusedRecordsWaitWithTheirReasonUntilTheyAreMovedBack(t *testing.T) {
	t.Parallel()
	s := newOwnService(t)
	s.start(t)
	dead := strings.Replace(s.RecordsQueueURL, "RecordsQueue", "RecordsDLQ", 1)
	good, bad := value.NewID(), value.NewID()
	s.send(t, fmt.Sprintf(`{"organizationId":%q,"records":[
		{"kind":"product","op":"put","record":{"id":%q,"name":"Tea"}},
		{"kind":"product","op":"put","record":{"id":%q,"name":"Cup","sellingPrice":1.23456}}]}`, s.OrganizationID, good, bad))
	await(t, "the refused record", func() bool { return s.messages(t, dead) == 1 })
	await(t, "its neighbour", func() bool { return s.total(t, "/api/products") == 1 })
	refusedOnce := func() {
		t.Helper()
		found := s.peek(t, dead)
		if len(found) != 1 {
			t.Fatalf("got %d messages, want the refused record", len(found))
		}
		got := map[string]string{}
		for name, attribute := range found[0].MessageAttributes {
			got[name] = aws.ToString(attribute.StringValue)
		}
		if got["field"] != "record.sellingPrice" || got["reason"] != "validation_failed" ||
			!strings.Contains(got["message"], "at most 4 decimals") || got["sourceMessageId"] == "" {
			t.Errorf("attributes: got %+v", got)
		}
		if body := *found[0].Body; !strings.Contains(body, bad.String()) || strings.Contains(body, good.String()) {
			t.Errorf("body: got %s, want the refused record alone", body)
		}
	}
	refusedOnce()

	// An operator puts a mended record beside it and moves both.
	s.sendTo(t, dead, fmt.Sprintf(`{"organizationId":%q,"kind":"product","op":"put","record":{"id":%q,"name":"Pot"}}`, s.OrganizationID, value.NewID()))
	if got := s.commerce(t, "redrive", "records"); !strings.HasPrefix(got, "moved 2 messages from ") {
		t.Errorf("redrive: got %q, want both moved", got)
	}
	await(t, "the mended record", func() bool { return s.total(t, "/api/products") == 2 })
	await(t, "the record that is still bad", func() bool { return s.messages(t, dead) == 1 })
	refusedOnce()
	s.stop(t)
}

func TestADeliveryIsMadeAfterItIsMovedBack(t *testing.T) {
	t.Parallel()
	s := newOwnService(t)
	s.start(t)
	r := s.subscribe(t, "order.created")
	delivery := s.storeDelivery(t, r, func(*webhook.Delivery) {})
	dead := strings.Replace(s.DeliveriesQueueURL, "DeliveriesQueue", "DeliveriesDLQ", 1)
	s.sendTo(t, dead, delivery.Ref().Body())
	if got := s.commerce(t, "redrive", "deliveries"); !strings.HasPrefix(got, "moved 1 messages from ") {
		t.Errorf("redrive: got %q, want one moved", got)
	}
	await(t, "the event", func() bool { return len(r.Events()) == 1 })
	await(t, "the queues' end", func() bool { return s.messages(t, s.DeliveriesQueueURL)+s.messages(t, dead) == 0 })
	s.stop(t)
}
