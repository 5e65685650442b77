//go:build unix

package main

import (
	"bytes"
	"errors"
	"fmt"
	"net/http"
	"regexp"
	"strings"
	"testing"

	"github.com/aws/aws-lambda-go/events"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/google/go-cmp/cmp"

	"github.com/commerce-integration/service/pkg/base/value"
	"github.com/commerce-integration/service/pkg/ops"
	"github.com/commerce-integration/service/pkg/queue"
	"github.com/commerce-integration/service/pkg/webhook"
)

// TestOperatingAService uses the commands that move messages on a service of its
// own: they take what a queue has, whose ever it is.
func TestOperatingAService(t *testing.T) {
	t.Parallel()
	s := newOwnService(t)
	s.start(t)
	t.Run("redrive deliveries", s.aDeliveryIsMovedBack)
	t.Run("replay", s.aParkedChangeIsReplayed)
	t.Run("listen", s.listenLeavesNothingBehind)
	s.stop(t)
	if said := refused(t, nil, "listen", "--addr", "127.0.0.1:0", "--data", s.data, "--subscribe", "*"); !strings.Contains(said, "no local service runs here") {
		t.Errorf("without a service: got %q", said)
	}
}

func (s *ownService) aDeliveryIsMovedBack(t *testing.T) {
	r := s.subscribe(t, "order.created")
	delivery := s.storeDelivery(t, r, func(*webhook.Delivery) {})
	dead := strings.Replace(s.DeliveriesQueueURL, "DeliveriesQueue", "DeliveriesDLQ", 1)
	s.sendTo(t, dead, delivery.Ref().Body())
	if got := s.commerce(t, "redrive", "deliveries"); !strings.HasPrefix(got, "moved 1 messages from ") {
		t.Errorf("redrive: got %q, want one moved", got)
	}
	await(t, "the event", func() bool { return len(r.Events()) == 1 })
	await(t, "the queues' end", func() bool { return s.messages(t, s.DeliveriesQueueURL)+s.messages(t, dead) == 0 })
}

func (s *ownService) aParkedChangeIsReplayed(t *testing.T) {
	r, id := s.subscribe(t, "category.created"), value.NewID()
	s.send(t, fmt.Sprintf(`{"organizationId":%q,"kind":"category","op":"put","silent":true,"record":{"id":%q,"name":"Teas"}}`, s.OrganizationID, id))
	await(t, "the category", func() bool { return s.total(t, "/api/categories") == 1 })
	stored := s.record(t, id)
	delete(stored, "silent")
	parkURL, err := ops.QueueURL(t.Context(), s.sqs(t), ops.ParkQueueName)
	if err != nil {
		t.Fatal(err)
	}
	change := events.DynamoDBEventRecord{Change: events.DynamoDBStreamRecord{
		SequenceNumber: "1", NewImage: stored, Keys: map[string]events.DynamoDBAttributeValue{"PK": stored["PK"], "SK": stored["SK"]},
	}}
	if err := queue.NewPark(queue.New(s.sqs(t), parkURL)).Park(t.Context(), ops.Dispatcher, change, errors.New("broken")); err != nil {
		t.Fatal(err)
	}
	if got := s.commerce(t, "replay"); got != "replayed 1 record\n" {
		t.Errorf("replay: got %q", got)
	}
	await(t, "the event", func() bool { return len(r.Events()) == 1 })
	if got := r.Events()[0]; got.ObjectID != id.String() || s.messages(t, parkURL) != 0 {
		t.Errorf("received an event of %s, want one of %s, and an empty park", got.ObjectID, id)
	}
	// What fails again is named, and makes the exit code 1.
	s.sendTo(t, parkURL, "no record")
	stdout, stderr, err := runCommand(t.Context(), "replay", "--data", s.data)
	if exitCode(err) != exitFailed || !strings.HasSuffix(stdout, "\nreplayed 0 records\n") || stderr != "commerce: 1 record failed again and stays parked\n" {
		t.Errorf("replay of no record: got %q, %q, %v", stdout, stderr, err)
	}
}

// record returns a record's item as the stream shows it.
func (s *service) record(t *testing.T, id value.ID) map[string]events.DynamoDBAttributeValue {
	t.Helper()
	item := s.item(t, id)
	image := map[string]events.DynamoDBAttributeValue{}
	for name, v := range item {
		switch v := v.(type) {
		case *types.AttributeValueMemberS:
			image[name] = events.NewStringAttribute(v.Value)
		case *types.AttributeValueMemberN:
			image[name] = events.NewNumberAttribute(v.Value)
		case *types.AttributeValueMemberBOOL:
			image[name] = events.NewBooleanAttribute(v.Value)
		default:
			t.Fatalf("attribute %s is a %T", name, v)
		}
	}
	return image
}

// item returns a record's item.
func (s *service) item(t *testing.T, id value.ID) map[string]types.AttributeValue {
	t.Helper()
	for pages := dynamodb.NewScanPaginator(s.dynamo(), &dynamodb.ScanInput{TableName: &s.TableName}); pages.HasMorePages(); {
		page, err := pages.NextPage(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		for _, it := range page.Items {
			if text(it["SK"]) == id.String() && text(it["t"]) == "rec" {
				return it
			}
		}
	}
	t.Fatalf("there is no record %s", id)
	return nil
}

func (s *ownService) listenLeavesNothingBehind(t *testing.T) {
	var endpoints page
	s.history(t, "/developers/webhooks/endpoints", &endpoints)
	before := endpoints.Meta.Total
	args := []string{"listen", "--addr", "127.0.0.1:" + freePort(t), "--data", s.data, "--subscribe", "order.*,payment.completed"}
	listening := func(p *process) func() bool {
		return func() bool { return strings.Contains(p.output.String(), "listening on ") }
	}
	killed := launch(t, nil, args...)
	await(t, "the listener", listening(killed))
	killed.kill(t)
	p := launch(t, nil, args...)
	await(t, "another listener", listening(p))
	if !strings.Contains(p.output.String(), " that a killed listen left\n") {
		t.Errorf("got %q, want that it deleted what a killed one left", &p.output)
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
	if endpoints.Meta.Total != before {
		t.Errorf("endpoints after the end: got %v, want those before", endpoints.Data)
	}
}

func TestEraseFindsTheTableAndTheQueues(t *testing.T) {
	t.Parallel()
	s := newOrganization(t)
	s.send(t, s.order(value.NewID(), "PENDING"))
	s.send(t, fmt.Sprintf(`{"organizationId":%q,"kind":"customer","op":"put","record":{"id":%q,"age":1}}`, s.OrganizationID, value.NewID()))
	await(t, "the order", func() bool { return s.total(t, "/api/orders") == 1 })
	await(t, "the refused record", func() bool {
		return strings.HasSuffix(s.commerce(t, "rejects", "--organization", s.OrganizationID), "\n1 message\n")
	})
	args := []string{"erase", "--organization", s.OrganizationID}
	var found eraseResult
	s.object(t, &found, args...)
	if found.Erased || found.Items["record"] != 1 || found.Messages["RecordsDLQ"] != 1 {
		t.Errorf("without --yes: %+v", found)
	}
	got := s.commerce(t, append(args, "--yes")...)
	if !strings.HasSuffix(got, "nothing is left\n") || !regexp.MustCompile(`\nmessage in RecordsDLQ +1\n`).MatchString(got) {
		t.Errorf("erase: got %q", got)
	}
}

func TestVerifyAndReindexAreOfTheRunningService(t *testing.T) {
	t.Parallel()
	s := newOrganization(t)
	const products = 150
	s.send(t, s.products(products))
	await(t, "the products", func() bool { return s.total(t, "/api/products") == products })
	before := s.all(t, "/api/products")
	org := []string{"--organization", s.OrganizationID}
	if got := s.commerce(t, append(org, "reindex")...); got != "reindexed 7 lists of 1 organization\n" {
		t.Errorf("reindex: got %q", got)
	}
	if diff := cmp.Diff(before, s.all(t, "/api/products")); diff != "" {
		t.Errorf("the list changed (-before +after):\n%s", diff)
	}

	// A record that is lost without a trace.
	lost := value.MustID(before[0]["id"].(string))
	item := s.item(t, lost)
	key := map[string]types.AttributeValue{"PK": item["PK"], "SK": item["SK"]}
	if _, err := s.dynamo().DeleteItem(t.Context(), &dynamodb.DeleteItemInput{TableName: &s.TableName, Key: key}); err != nil {
		t.Fatal(err)
	}
	for format, want := range map[string]string{
		"--json=false": fmt.Sprintf("%s products %s: in the index at revision ", s.OrganizationID, lost),
		"--json":       fmt.Sprintf(`{"organizations":[%q],"lists":["products"],"differences":[{"organizationId":%q,"list":"products","id":%q,`, s.OrganizationID, s.OrganizationID, lost),
	} {
		cmd := verifyCommand(ops.Verifier{})
		var out bytes.Buffer
		cmd.SetOut(&out)
		cmd.SetErr(&out)
		cmd.SilenceErrors, cmd.SilenceUsage = true, true
		cmd.SetArgs(append(org, "--list", "products", "--data", s.data, format))
		if err := cmd.ExecuteContext(t.Context()); exitCode(err) != exitFound || !strings.HasPrefix(out.String(), want) {
			t.Errorf("verify %s: got %q, %v; want %q", format, &out, err, want)
		}
	}
	if resp, body := s.do(t, http.MethodGet, "/api/products/"+lost.String(), "", map[string]string{"X-API-Key": s.APIKey}); resp.StatusCode != http.StatusNotFound {
		t.Errorf("the lost product: %d %s", resp.StatusCode, body)
	}
}
