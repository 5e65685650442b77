package eventsource

import (
	"maps"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-lambda-go/events"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/aws/aws-sdk-go-v2/service/dynamodbstreams"
	"github.com/go-json-experiment/json"
	"github.com/google/go-cmp/cmp"

	"github.com/commerce-integration/service/pkg/testkit/dynamotest"
)

// A table is a real one with a stream.
type table struct {
	db      *dynamodb.Client
	name    string
	streams *dynamodbstreams.Client
	arn     string
}

func newTable(t testing.TB) *table {
	t.Helper()
	b := &table{}
	b.db, b.name = dynamotest.Client(t)
	described, err := b.db.DescribeTable(t.Context(), &dynamodb.DescribeTableInput{TableName: &b.name})
	if err != nil {
		t.Fatal(err)
	}
	b.streams, b.arn = streamsAt(*b.db.Options().BaseEndpoint), *described.Table.LatestStreamArn
	return b
}

func streamsAt(endpoint string) *dynamodbstreams.Client {
	return dynamodbstreams.New(dynamodbstreams.Options{
		Region: region, BaseEndpoint: &endpoint, Credentials: credentials.NewStaticCredentialsProvider("local", "local", ""),
	})
}

func keyOf(pk string) map[string]types.AttributeValue {
	return map[string]types.AttributeValue{"PK": &types.AttributeValueMemberS{Value: pk}, "SK": &types.AttributeValueMemberS{Value: "-"}}
}

func (b *table) put(t testing.TB, pk string, more map[string]types.AttributeValue) {
	t.Helper()
	item := keyOf(pk)
	maps.Copy(item, more)
	if _, err := b.db.PutItem(t.Context(), &dynamodb.PutItemInput{TableName: &b.name, Item: item}); err != nil {
		t.Fatalf("putting %s: %v", pk, err)
	}
}

func (b *table) remove(t testing.TB, pk string) {
	t.Helper()
	if _, err := b.db.DeleteItem(t.Context(), &dynamodb.DeleteItemInput{TableName: &b.name, Key: keyOf(pk)}); err != nil {
		t.Fatalf("deleting %s: %v", pk, err)
	}
}

// read has a source read the table's stream until it has n records.
func (b *table) read(t *testing.T, n int, cfg FeedConfig) *handler {
	t.Helper()
	cfg.StreamARN = b.arn
	feed, h := NewFeed(b.streams, cfg), &handler{}
	if err := feed.Add(h.function(), StreamConfig{Checkpoints: filepath.Join(t.TempDir(), "c")}); err != nil {
		t.Fatal(err)
	}
	runFeed(t, feed)
	waitUntil(t, "the records", func() bool { return len(h.keys()) == n })
	return h
}

// records are those that the handler got.
func (h *handler) records(t *testing.T) (all []events.DynamoDBEventRecord) {
	t.Helper()
	for _, payload := range h.raw {
		var event events.DynamoDBEvent
		if err := json.Unmarshal(payload, &event); err != nil {
			t.Fatal(err)
		}
		all = append(all, event.Records...)
	}
	return all
}

func waitUntil(t testing.TB, what string, done func() bool) {
	t.Helper()
	for deadline := time.Now().Add(time.Minute); !done(); <-time.After(time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("waited in vain for %s", what)
		}
	}
}

func TestChangesArriveAsLambdaGivesThem(t *testing.T) {
	b := newTable(t)
	b.put(t, "a", map[string]types.AttributeValue{
		"n": &types.AttributeValueMemberN{Value: "12.50"}, "b": &types.AttributeValueMemberB{Value: []byte{0, 1, 255}},
		"t": &types.AttributeValueMemberBOOL{Value: true}, "0": &types.AttributeValueMemberNULL{Value: true},
		"ss": &types.AttributeValueMemberSS{Value: []string{"x"}}, "ns": &types.AttributeValueMemberNS{Value: []string{"1"}},
		"bs": &types.AttributeValueMemberBS{Value: [][]byte{{7}}},
		"l":  &types.AttributeValueMemberL{Value: []types.AttributeValue{&types.AttributeValueMemberM{Value: map[string]types.AttributeValue{"k": &types.AttributeValueMemberS{Value: "é<&>"}}}}},
		"e":  &types.AttributeValueMemberM{Value: map[string]types.AttributeValue{}}, "el": &types.AttributeValueMemberL{Value: []types.AttributeValue{}},
	})
	b.put(t, "a", nil)
	b.remove(t, "a")
	var got []map[string]any
	for _, payload := range b.read(t, 3, FeedConfig{Host: Host{Region: region}}).raw {
		var part struct{ Records []map[string]any }
		if err := json.Unmarshal(payload, &part); err != nil {
			t.Fatalf("the event is no JSON: %v: %s", err, payload)
		}
		got = append(got, part.Records...)
	}
	for _, one := range got {
		change := one["dynamodb"].(map[string]any)
		if created, _ := change["ApproximateCreationDateTime"].(float64); time.Since(time.Unix(int64(created), 0)).Abs() > time.Minute {
			t.Errorf("ApproximateCreationDateTime = %v, want now in seconds", change["ApproximateCreationDateTime"])
		}
		if size, _ := change["SizeBytes"].(float64); size <= 0 {
			t.Errorf("SizeBytes = %v, want a size", change["SizeBytes"])
		}
		delete(change, "ApproximateCreationDateTime")
		delete(change, "SizeBytes")
	}
	full := `{"PK":{"S":"a"},"SK":{"S":"-"},"n":{"N":"12.5"},"b":{"B":"AAH/"},"t":{"BOOL":true},"0":{"NULL":true},"ss":{"SS":["x"]},"ns":{"NS":["1"]},
		"bs":{"BS":["Bw=="]},"l":{"L":[{"M":{"k":{"S":"é<&>"}}}]},"e":{"M":{}},"el":{"L":[]}}`
	about := func(id, name string) string {
		return `"awsRegion":"eu-central-1","eventID":"` + id + `","eventName":"` + name + `","eventSource":"aws:dynamodb","eventVersion":"1.1","eventSourceARN":"` + b.arn + `",
			"dynamodb":{"StreamViewType":"NEW_AND_OLD_IMAGES","Keys":{"PK":{"S":"a"},"SK":{"S":"-"}},"SequenceNumber":"` + id + `"`
	}
	var want []map[string]any
	expected := `[{` + about("1", "INSERT") + `,"NewImage":` + full + `}},
		{` + about("2", "MODIFY") + `,"OldImage":` + full + `,"NewImage":{"PK":{"S":"a"},"SK":{"S":"-"}}}},
		{` + about("3", "REMOVE") + `,"OldImage":{"PK":{"S":"a"},"SK":{"S":"-"}}}}]`
	if err := json.Unmarshal([]byte(expected), &want); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("events differ from Lambda's (-want +got):\n%s", diff)
	}
}

func TestExpiredItemsAreDeletedByDynamoDB(t *testing.T) {
	b := newTable(t)
	at := func(d time.Duration) map[string]types.AttributeValue {
		return map[string]types.AttributeValue{"ttl": &types.AttributeValueMemberN{Value: strconv.FormatInt(time.Now().Add(d).Unix(), 10)}}
	}
	b.put(t, "expired", at(-time.Minute))
	b.put(t, "live", at(time.Hour))
	b.put(t, "forever", nil)
	for _, pk := range []string{"expired", "live", "forever"} {
		b.remove(t, pk)
	}
	records := b.read(t, 6, FeedConfig{TTLAttribute: "ttl"}).records(t)
	for i, want := range []*events.DynamoDBUserIdentity{nil, nil, nil, {Type: "Service", PrincipalID: "dynamodb.amazonaws.com"}, nil, nil} {
		if diff := cmp.Diff(want, records[i].UserIdentity); diff != "" {
			t.Errorf("userIdentity of change %d (-want +got):\n%s", i+1, diff)
		}
	}
}

func TestLargeRecordsMakeSmallBatches(t *testing.T) {
	b := newTable(t)
	keys := numbered(0, 20)
	for i, pk := range keys {
		b.put(t, pk, map[string]types.AttributeValue{"v": &types.AttributeValueMemberS{Value: strings.Repeat([]string{"x", `"`}[i%2], 390_000)}})
	}
	h := b.read(t, 20, FeedConfig{})
	if diff := cmp.Diff(keys, h.keys()); diff != "" {
		t.Errorf("records (-want +got):\n%s", diff)
	}
	for i, payload := range h.raw {
		if len(payload) > maxPayload {
			t.Errorf("event %d has %d bytes, want at most %d", i, len(payload), maxPayload)
		}
	}
}
