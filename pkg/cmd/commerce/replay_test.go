package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-lambda-go/events"
	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/go-json-experiment/json"
	"github.com/rogpeppe/go-internal/testscript"

	"github.com/commerce-integration/service/pkg/base/value"
	"github.com/commerce-integration/service/pkg/commerce"
	"github.com/commerce-integration/service/pkg/delivery/dispatcher"
	"github.com/commerce-integration/service/pkg/dynamo"
	"github.com/commerce-integration/service/pkg/index"
	"github.com/commerce-integration/service/pkg/index/indexer"
	"github.com/commerce-integration/service/pkg/local/runner"
	"github.com/commerce-integration/service/pkg/ops"
	"github.com/commerce-integration/service/pkg/queue"
	"github.com/commerce-integration/service/pkg/testkit/servicetest"
	"github.com/commerce-integration/service/pkg/webhook"
)

// parkHarness is a table and queues without functions, one of which is the park.
type parkHarness struct {
	*tableHarness
	*queues
	parkURL string
	org     value.ID
	park    queue.Park
}

func newParkHarness(t *testing.T) *parkHarness {
	t.Helper()
	y := &parkHarness{tableHarness: newTableHarness(t), queues: newQueues(t), org: value.NewID()}
	y.file.DynamoDBEndpoint, y.file.TableName = y.info.DynamoDBEndpoint, y.info.TableName
	y.info, y.tableHarness.data = y.file, y.queues.data
	if err := runner.WriteInfo(y.queues.data, &y.file); err != nil {
		t.Fatal(err)
	}
	y.parkURL = y.queues.park(t)
	y.park = queue.NewPark(queue.New(y.queues.client, y.parkURL))
	return y
}

// park makes the park as the local runner names it.
func (q *queues) park(t testing.TB) (url string) {
	t.Helper()
	out, err := q.client.CreateQueue(context.Background(), &sqs.CreateQueueInput{QueueName: aws.String(ops.ParkQueueName)})
	if err != nil {
		t.Fatal(err)
	}
	return *out.QueueUrl
}

// replay runs the command and returns what it prints and its exit code.
func (y *parkHarness) replay(ctx context.Context, args ...string) (stdout string, code int) {
	stdout, stderr, err := runCommand(ctx, append([]string{"replay", "--data", y.queues.data}, args...)...)
	return stdout + stderr, exitCode(err)
}

// waiting counts the messages of a queue, those in flight apart.
func (q *queues) waiting(t *testing.T, queueURL string) (visible, hidden int) {
	t.Helper()
	attributes, err := ops.QueueAttributes(t.Context(), q.client, queueURL)
	if err != nil {
		t.Fatal(err)
	}
	visible, err = strconv.Atoi(attributes["ApproximateNumberOfMessages"])
	hidden, err2 := strconv.Atoi(attributes["ApproximateNumberOfMessagesNotVisible"])
	if err != nil || err2 != nil {
		t.Fatal(err, err2)
	}
	return visible, hidden
}

// change applies a message of one record and returns the stream record of its
// write, as it stands in the table.
func (y *parkHarness) change(t *testing.T, body string) events.DynamoDBEventRecord {
	t.Helper()
	changes, refusals := commerce.ParseMessage([]byte(body))
	if len(refusals) > 0 {
		t.Fatalf("%s: %+v", body, refusals)
	}
	id, err := commerce.Identify(changes[0])
	if err != nil {
		t.Fatal(err)
	}
	stored, err := y.table.Records(t.Context(), y.org, changes[0].Kind, []value.ID{id})
	if err != nil {
		t.Fatal(err)
	}
	before := y.item(t, id)
	next, err := commerce.Apply(stored[id], changes[0], value.TimeOf(time.Now()))
	if err != nil {
		t.Fatal(err)
	}
	if err := y.table.PutRecord(t.Context(), stored[id], next); err != nil {
		t.Fatal(err)
	}
	after := y.item(t, id)
	return events.DynamoDBEventRecord{EventName: "MODIFY", Change: events.DynamoDBStreamRecord{
		SequenceNumber: fmt.Sprint(next.Revision), OldImage: before, NewImage: after,
		Keys: map[string]events.DynamoDBAttributeValue{"PK": after["PK"], "SK": after["SK"]},
	}}
}

// product is the message that puts a product.
func (y *parkHarness) product(id value.ID, name string) string {
	return fmt.Sprintf(`{"organizationId":%q,"kind":"product","op":"put","record":{"id":%q,"name":%q}}`, y.org, id, name)
}

// item returns a record's item as the stream shows it, nil when there is none.
func (y *parkHarness) item(t *testing.T, id value.ID) map[string]events.DynamoDBAttributeValue {
	t.Helper()
	return recordImage(t, y.tableHarness.client, y.info.TableName, id)
}

func recordImage(t *testing.T, client *dynamodb.Client, table string, id value.ID) map[string]events.DynamoDBAttributeValue {
	t.Helper()
	out, err := client.Scan(t.Context(), &dynamodb.ScanInput{TableName: &table, ConsistentRead: aws.Bool(true)})
	if err != nil {
		t.Fatal(err)
	}
	for _, it := range out.Items {
		if text(it["SK"]) == id.String() && text(it["t"]) == "rec" {
			return image(t, it)
		}
	}
	return nil
}

func image(t *testing.T, it map[string]types.AttributeValue) map[string]events.DynamoDBAttributeValue {
	t.Helper()
	out := map[string]events.DynamoDBAttributeValue{}
	for name, v := range it {
		switch v := v.(type) {
		case *types.AttributeValueMemberS:
			out[name] = events.NewStringAttribute(v.Value)
		case *types.AttributeValueMemberN:
			out[name] = events.NewNumberAttribute(v.Value)
		case *types.AttributeValueMemberBOOL:
			out[name] = events.NewBooleanAttribute(v.Value)
		case *types.AttributeValueMemberB:
			out[name] = events.NewBinaryAttribute(v.Value)
		default:
			t.Fatalf("attribute %s is a %T", name, v)
		}
	}
	return out
}

// parks puts records into the park for the consumers.
func (y *parkHarness) parks(t *testing.T, cause string, consumers []string, records ...events.DynamoDBEventRecord) {
	t.Helper()
	for _, consumer := range consumers {
		for _, r := range records {
			if err := y.park.Park(t.Context(), consumer, r, errors.New(cause)); err != nil {
				t.Fatal(err)
			}
		}
	}
}

var both = []string{ops.Dispatcher, ops.Indexer}

// deliveries returns the deliveries by the id of their object.
func (y *parkHarness) deliveries(t *testing.T) map[value.ID]*webhook.Delivery {
	t.Helper()
	found := map[value.ID]*webhook.Delivery{}
	if err := ops.EachDelivery(t.Context(), y.table, y.org, func(r *webhook.Delivery) error {
		body, err := y.table.Payload(t.Context(), y.org, r.EventID)
		if err != nil || body == nil {
			return err // killed between the two, it was not sent
		}
		var payload struct {
			Data struct {
				Object struct {
					ID value.ID `json:"id"`
				} `json:"object"`
			} `json:"data"`
		}
		err = json.Unmarshal(body, &payload)
		found[payload.Data.Object.ID] = r
		return err
	}); err != nil {
		t.Fatal(err)
	}
	return found
}

// subscribed makes an endpoint that takes every event.
func (y *parkHarness) subscribed(t *testing.T) {
	t.Helper()
	servicetest.OnTable(t, y.table, y.org).Endpoint(t, "*")
}

// agree fails unless index and table do, about records.
func (y *parkHarness) agree(t *testing.T, when string) {
	t.Helper()
	for _, list := range []string{"products", "orders", "deletions"} {
		if got, code := y.verify(t, nothing, "--organization", y.org.String(), "--list", list); code != 0 {
			t.Errorf("%s: verify ends with %d: %s", when, code, got)
		}
	}
}

func TestReplayDoesWhatTheFunctionsWouldHaveDone(t *testing.T) {
	t.Parallel()
	y, id := newParkHarness(t), value.NewID()
	y.subscribed(t)
	y.reindex(t)
	record := y.change(t, y.product(id, "Tea"))
	y.parks(t, "it was broken", both, record)
	if got, code := y.replay(t.Context()); code != 0 || got != "replayed 2 records\n" {
		t.Fatalf("got %d, %q", code, got)
	}
	y.agree(t, "after the replay")
	delivery := y.deliveries(t)[id]
	if delivery == nil {
		t.Fatal("there is no delivery of the product's event")
	}
	sent, err := y.drain(t.Context(), y.file.DeliveriesQueueURL)
	if err != nil || len(sent) != 1 || *sent[0].Body != delivery.Ref().Body() {
		t.Errorf("sent to the worker: %v, %v; want the delivery", sent, err)
	}

	// A message that was not deleted in time is handed over once more.
	y.parks(t, "it was broken", both, record)
	if got, code := y.replay(t.Context()); code != 0 || got != "replayed 2 records\n" {
		t.Errorf("again: got %d, %q", code, got)
	}
	y.agree(t, "after two replays")
	if again := y.deliveries(t); len(again) != 1 || again[id].ID != delivery.ID {
		t.Errorf("deliveries after two replays: got %v, want the one there was", slices.Collect(maps.Keys(again)))
	}
	if got, code := y.replay(t.Context()); code != 0 || got != "replayed 0 records\n" {
		t.Errorf("an empty park: got %d, %q", code, got)
	}
}

// What the functions themselves park is what replay reads.
func TestReplayKnowsWhatTheFunctionsPark(t *testing.T) {
	t.Parallel()
	y := newParkHarness(t)
	record := y.change(t, y.product(value.NewID(), "Tea"))
	record.Change.NewImage["doc"] = events.NewStringAttribute("{broken")
	batch := events.DynamoDBEvent{Records: []events.DynamoDBEventRecord{record}}
	logger := slog.New(slog.DiscardHandler)
	if _, err := dispatcher.New(y.table, queue.Deliveries{}, y.park, time.Now, logger).Handle(t.Context(), batch); err != nil {
		t.Fatal(err)
	}
	if _, err := indexer.New(y.table, indexer.DecodeFor(index.NewLists(y.table, dynamo.Shards), dynamo.Stream{}), y.park, queue.IndexJobs{}, logger).Handle(t.Context(), batch); err != nil {
		t.Fatal(err)
	}
	got, code := y.replay(t.Context(), "--dry-run")
	for _, want := range []string{"dispatcher  1        ", "indexer     1        ", "2 parked records\n"} {
		if code != 0 || !strings.Contains(got, want) {
			t.Errorf("--dry-run: got %d, %q; want %q", code, got, want)
		}
	}
}

func TestWhatFailsAgainStaysParkedAndItsNeighboursDoNot(t *testing.T) {
	t.Parallel()
	y, good := newParkHarness(t), value.NewID()
	y.subscribed(t)
	y.reindex(t)
	broken := y.change(t, y.product(value.NewID(), "Cup"))
	y.lose(t, value.MustID(broken.Change.Keys["SK"].String()))
	broken.Change.NewImage["doc"] = events.NewStringAttribute("{broken\x1b[31m")
	name := broken.Change.Keys["PK"].String() + "/" + broken.Change.Keys["SK"].String()
	y.parks(t, "broken", both, broken, y.change(t, y.product(good, "Tea")))
	y.parks(t, "broken", []string{"nobody"}, broken)
	if _, err := y.queues.client.SendMessage(t.Context(), &sqs.SendMessageInput{QueueUrl: &y.parkURL, MessageBody: aws.String("no record")}); err != nil {
		t.Fatal(err)
	}
	for run, want := range []string{"replayed 2 records\n", "replayed 0 records\n"} {
		got, code := y.replay(t.Context())
		for _, want := range []string{
			"dispatcher " + name + ": ", "indexer " + name + ": ", ": read a parked record: ", `it says that "nobody" parked it`,
			want, "commerce: 4 records failed again and stay parked\n",
		} {
			if !strings.Contains(got, want) {
				t.Errorf("run %d: got %q, want %q in it", run+1, got, want)
			}
		}
		if lines := strings.Count(got, "\n"); code != 1 || lines != 6 || strings.Contains(got, "\x1b") {
			t.Errorf("run %d: got %d and %d lines, want 1 and 6, without what a terminal obeys: %q", run+1, code, lines, got)
		}
		if visible, hidden := y.waiting(t, y.parkURL); visible != 4 || hidden != 0 {
			t.Errorf("run %d: %d records wait in the park, %d are hidden; want 4 and 0", run+1, visible, hidden)
		}
	}
	y.agree(t, "after the replay")
	if deliveries := y.deliveries(t); len(deliveries) != 1 || deliveries[good] == nil {
		t.Errorf("deliveries: got %v, want one of the good record", deliveries)
	}
}

func TestARecordFailsWhileTheTableIsAwayAndIsReplayedLater(t *testing.T) {
	t.Parallel()
	y := newParkHarness(t)
	y.subscribed(t)
	y.reindex(t)
	y.parks(t, "broken", both, y.change(t, y.product(value.NewID(), "Tea")))
	away := y.file
	away.TableName = "another"
	if err := runner.WriteInfo(y.queues.data, &away); err != nil {
		t.Fatal(err)
	}
	got, code := y.replay(t.Context())
	if code != 1 || strings.Count(got, "ResourceNotFound") != 2 || !strings.Contains(got, "2 records failed again") {
		t.Errorf("another table: got %d, %q; want both to fail with the table's reason", code, got)
	}
	if err := runner.WriteInfo(y.queues.data, &y.file); err != nil {
		t.Fatal(err)
	}
	if got, code := y.replay(t.Context()); code != 0 || got != "replayed 2 records\n" {
		t.Errorf("the table is back: got %d, %q", code, got)
	}
	y.agree(t, "after the replay")
}

// The index forgets within days what it removed, so that a parked change must
// not bring it back.
func TestAParkedChangeDoesNotBringBackWhatALaterOneRemoved(t *testing.T) {
	t.Parallel()
	order := func(y *parkHarness, id value.ID, month int) string {
		return fmt.Sprintf(`{"organizationId":%q,"kind":"order","op":"put","record":{"id":%q,"orderNumber":"1","currency":"EUR","createdAt":"2026-%02d-02T00:00:00Z"}}`, y.org, id, month)
	}
	for name, changes := range map[string]func(y *parkHarness, id value.ID) []string{
		"deleted": func(y *parkHarness, id value.ID) []string {
			return []string{y.product(id, "a"), y.product(id, "b"), fmt.Sprintf(`{"organizationId":%q,"kind":"product","op":"delete","record":{"id":%q}}`, y.org, id)}
		},
		"moved": func(y *parkHarness, id value.ID) []string {
			return []string{order(y, id, 1), order(y, id, 2), order(y, id, 3)}
		},
		"moved back": func(y *parkHarness, id value.ID) []string {
			return []string{order(y, id, 1), order(y, id, 2), order(y, id, 1)}
		},
		"made again": func(y *parkHarness, id value.ID) []string {
			return []string{y.product(id, "a"), fmt.Sprintf(`{"organizationId":%q,"kind":"product","op":"delete","record":{"id":%q}}`, y.org, id), y.product(id, "b")}
		},
	} {
		for _, forgotten := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, forgotten by the index: %t", name, forgotten), func(t *testing.T) {
				t.Parallel()
				y, id := newParkHarness(t), value.NewID()
				say := changes(y, id)
				y.change(t, say[0])
				y.reindex(t)
				late, last := y.change(t, say[1]), y.change(t, say[2])
				y.parks(t, "not yet", []string{ops.Indexer}, last)
				if got, code := y.replay(t.Context()); code != 0 {
					t.Fatalf("the last change: %d, %q", code, got)
				}
				if forgotten {
					y.reindex(t) // which makes the index without what was removed
				}
				y.parks(t, "not yet", []string{ops.Indexer}, late)
				if got, code := y.replay(t.Context()); code != 0 || got != "replayed 1 record\n" {
					t.Errorf("got %d, %q", code, got)
				}
				y.agree(t, "after the replay")
			})
		}
	}
}

func TestReplayTakesOnlyWhatWasAskedFor(t *testing.T) {
	t.Parallel()
	y := newParkHarness(t)
	y.subscribed(t)
	y.reindex(t)
	var records []events.DynamoDBEventRecord
	for i := range 5 {
		records = append(records, y.change(t, y.product(value.NewID(), fmt.Sprint("Tea ", i))))
	}
	y.parks(t, "broken", both, records...)
	for _, step := range []struct {
		args       string
		want       string
		deliveries int
		left       int
	}{
		{"--consumer dispatcher --limit 2", "replayed 2 records\n", 2, 8},
		{"--consumer dispatcher", "replayed 3 records\n", 5, 5},
		{"--consumer dispatcher", "replayed 0 records\n", 5, 5},
		{"--limit 1", "replayed 1 record\n", 5, 4},
		{"--consumer indexer", "replayed 4 records\n", 5, 0},
	} {
		got, code := y.replay(t.Context(), strings.Fields(step.args)...)
		visible, hidden := y.waiting(t, y.parkURL)
		if deliveries := len(y.deliveries(t)); code != 0 || got != step.want || deliveries != step.deliveries || visible != step.left || hidden != 0 {
			t.Errorf("%s: got %d, %q, %d deliveries, %d left and %d hidden; want 0, %q, %d, %d and 0",
				step.args, code, got, deliveries, visible, hidden, step.want, step.deliveries, step.left)
		}
	}
	y.agree(t, "at the end")
}

func TestAnInterruptedReplayGivesBackWhatItHasNotDone(t *testing.T) {
	t.Parallel()
	y := newParkHarness(t)
	y.subscribed(t)
	const records = 400
	ids := y.manyParked(t, records)
	ctx, interrupt := context.WithCancel(t.Context())
	defer interrupt()
	ended := make(chan string, 1)
	go func() {
		got, code := y.replay(ctx, "--consumer", "dispatcher")
		ended <- fmt.Sprint(code, " ", got)
	}()
	await(t, "some of the records", func() bool {
		visible, hidden := y.waiting(t, y.parkURL)
		return visible+hidden < records
	})
	interrupt()
	if got := <-ended; !strings.HasPrefix(got, "1 replayed ") || !strings.HasSuffix(got, " records\ncommerce: interrupted\n") {
		t.Errorf("got %q", got)
	}
	left, hidden := y.waiting(t, y.parkURL)
	if hidden != 0 || left == 0 || left == records {
		t.Errorf("%d records wait and %d are hidden; want some of %d and none", left, hidden, records)
	}
	if got, code := y.replay(t.Context()); code != 0 || got != fmt.Sprintf("replayed %d records\n", left) {
		t.Errorf("the next run: got %d, %q; want the %d that were left", code, got, left)
	}
	y.allArrived(t, ids)
}

// It sets the environment by which commands find AWS, so that it cannot run
// beside others.
func TestReplayInAWSIsToldEverythingByFlags(t *testing.T) {
	y := newParkHarness(t)
	y.subscribed(t)
	y.reindex(t)
	y.parks(t, "broken", both, y.change(t, y.product(value.NewID(), "Tea")))
	t.Setenv("AWS_ENDPOINT_URL_DYNAMODB", y.info.DynamoDBEndpoint)
	for _, name := range []string{"AWS_REGION", "AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"} {
		t.Setenv(name, "us-east-1")
	}
	nowhere := t.TempDir()
	replay := func(args string) string {
		t.Helper()
		stdout, stderr, err := runCommand(t.Context(), append([]string{"replay", "--data", nowhere, "--endpoint", y.file.SQSEndpoint}, strings.Fields(args)...)...)
		if err != nil {
			t.Errorf("%s: %s", args, stderr)
		}
		return stdout
	}
	park, table := "--queue-url "+y.parkURL, " --table "+y.info.TableName
	if got := replay(park + " --dry-run"); !strings.HasSuffix(got, "\n2 parked records\n") {
		t.Errorf("--dry-run: got %q", got)
	}
	for consumer, queue := range map[string]string{
		ops.Dispatcher: " --deliveries-queue-url " + y.file.DeliveriesQueueURL + " --slow-deliveries-queue-url " + y.file.SlowDeliveriesQueueURL,
		ops.Indexer:    " --index-jobs-queue-url " + y.file.IndexJobsQueueURL,
	} {
		if got := replay(park + table + queue + " --consumer " + consumer); got != "replayed 1 record\n" {
			t.Errorf("%s: got %q", consumer, got)
		}
	}
	y.agree(t, "after the replay")
}

// manyParked parks new products for the dispatcher.
func (y *parkHarness) manyParked(t *testing.T, n int) (ids []value.ID) {
	t.Helper()
	template := y.change(t, y.product(value.NewID(), "Tea"))
	doc, was := template.Change.NewImage["doc"].String(), template.Change.Keys["SK"].String()
	for range n {
		id := value.NewID()
		record := template
		record.Change.NewImage = maps.Clone(template.Change.NewImage)
		record.Change.NewImage["SK"] = events.NewStringAttribute(id.String())
		record.Change.NewImage["doc"] = events.NewStringAttribute(strings.ReplaceAll(doc, was, id.String()))
		record.Change.Keys = map[string]events.DynamoDBAttributeValue{"PK": record.Change.NewImage["PK"], "SK": record.Change.NewImage["SK"]}
		y.parks(t, "broken", []string{ops.Dispatcher}, record)
		ids = append(ids, id)
	}
	return ids
}

func (y *parkHarness) allArrived(t *testing.T, ids []value.ID) {
	t.Helper()
	deliveries := y.deliveries(t)
	for _, id := range ids {
		if deliveries[id] == nil {
			t.Errorf("the event of product %s has no delivery", id)
		}
	}
}

// scriptPark parks an empty stream record: park CONSUMER CAUSE.
func scriptPark(ts *testscript.TestScript, _ bool, args []string) {
	q := ts.Value("queues").(*queues)
	url, err := ops.QueueURL(context.Background(), q.client, ops.ParkQueueName)
	ts.Check(err)
	record := events.DynamoDBEventRecord{Change: events.DynamoDBStreamRecord{SequenceNumber: "1"}}
	ts.Check(queue.NewPark(queue.New(q.client, url)).Park(context.Background(), args[0], record, errors.New(args[1])))
}
