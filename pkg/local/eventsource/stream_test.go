package eventsource

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/aws/aws-lambda-go/events"
	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/aws/aws-sdk-go-v2/service/dynamodbstreams"
	"github.com/go-json-experiment/json"
	"github.com/google/go-cmp/cmp"

	"github.com/commerce-integration/service/pkg/local/tableserver"
)

const region = "eu-central-1"

// A table is a real one with a stream.
type table struct {
	server  *tableserver.Server
	db      *dynamodb.Client
	streams *dynamodbstreams.Client
	arn     string
}

func newTable(t testing.TB) *table {
	t.Helper()
	cache, err := tableserver.CacheDir()
	if err != nil {
		t.Fatal(err)
	}
	binary, err := tableserver.Install(t.Context(), cache)
	if errors.Is(err, tableserver.ErrNoPackage) || errors.Is(err, exec.ErrNotFound) {
		t.Skip(err)
	}
	if err != nil {
		t.Fatal(err)
	}
	server, err := tableserver.Start(t.Context(), binary, t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := server.Close(); err != nil {
			t.Errorf("closing the table server: %v", err)
		}
	})
	login := credentials.NewStaticCredentialsProvider("local", "local", "")
	made := &table{
		server:  server,
		db:      dynamodb.New(dynamodb.Options{Region: region, BaseEndpoint: aws.String(server.Endpoint()), Credentials: login}),
		streams: dynamodbstreams.New(dynamodbstreams.Options{Region: region, BaseEndpoint: aws.String(server.Endpoint()), Credentials: login}),
	}
	created, err := made.db.CreateTable(t.Context(), &dynamodb.CreateTableInput{
		TableName:            aws.String("commerce"),
		BillingMode:          types.BillingModePayPerRequest,
		AttributeDefinitions: []types.AttributeDefinition{{AttributeName: aws.String("PK"), AttributeType: types.ScalarAttributeTypeS}},
		KeySchema:            []types.KeySchemaElement{{AttributeName: aws.String("PK"), KeyType: types.KeyTypeHash}},
		StreamSpecification:  &types.StreamSpecification{StreamEnabled: aws.Bool(true), StreamViewType: types.StreamViewTypeNewAndOldImages},
	})
	if err != nil {
		t.Fatal(err)
	}
	made.arn = aws.ToString(created.TableDescription.LatestStreamArn)
	return made
}

func (b *table) put(t testing.TB, pk string, more map[string]types.AttributeValue) {
	t.Helper()
	item := map[string]types.AttributeValue{"PK": &types.AttributeValueMemberS{Value: pk}}
	for name, value := range more {
		item[name] = value
	}
	if _, err := b.db.PutItem(t.Context(), &dynamodb.PutItemInput{TableName: aws.String("commerce"), Item: item}); err != nil {
		t.Fatalf("putting %s: %v", pk, err)
	}
}

func (b *table) remove(t testing.TB, pk string) {
	t.Helper()
	_, err := b.db.DeleteItem(t.Context(), &dynamodb.DeleteItemInput{
		TableName: aws.String("commerce"), Key: map[string]types.AttributeValue{"PK": &types.AttributeValueMemberS{Value: pk}},
	})
	if err != nil {
		t.Fatalf("deleting %s: %v", pk, err)
	}
}

// A handler stands in for a function: it keeps what it is given and answers by a script.
type handler struct {
	answer func(call int, keys []string) (string, error)

	mu    sync.Mutex
	calls [][]string // the keys of each call
	raw   [][]byte
}

func (h *handler) function() Function {
	return Function{Name: "handler", Timeout: 10 * time.Second, Invoke: func(_ context.Context, payload []byte) ([]byte, error) {
		var event events.DynamoDBEvent
		if err := json.Unmarshal(payload, &event); err != nil {
			return nil, err
		}
		var keys []string
		for _, one := range event.Records {
			keys = append(keys, one.Change.Keys["PK"].String())
		}
		h.mu.Lock()
		h.calls, h.raw = append(h.calls, keys), append(h.raw, payload)
		call := len(h.calls)
		h.mu.Unlock()
		if h.answer == nil {
			return nil, nil
		}
		answer, err := h.answer(call, keys)
		return []byte(answer), err
	}}
}

func (h *handler) seen() [][]string {
	h.mu.Lock()
	defer h.mu.Unlock()
	return slices.Clone(h.calls)
}

func (h *handler) keys() []string { return slices.Concat(h.seen()...) }

// feed makes a feed of the table's stream.
func (b *table) feed(t testing.TB, cfg FeedConfig) *Feed {
	t.Helper()
	cfg.StreamARN, cfg.PartitionKey = b.arn, "PK"
	if cfg.IdlePoll == 0 {
		cfg.IdlePoll = 20 * time.Millisecond
	}
	made, err := NewFeed(b.streams, cfg)
	if err != nil {
		t.Fatal(err)
	}
	return made
}

// start runs a source of its own feed until the returned function is called, which waits for its end.
func start(t testing.TB, b *table, h *handler, cfg StreamConfig) (*Stream, func()) {
	t.Helper()
	return startHosted(t, b, h, Host{}, cfg)
}

func startHosted(t testing.TB, b *table, h *handler, host Host, cfg StreamConfig) (*Stream, func()) {
	t.Helper()
	return run(t, b.feed(t, FeedConfig{Host: host}), h.function(), cfg)
}

// run runs a source of a feed.
func run(t testing.TB, feed *Feed, f Function, cfg StreamConfig) (*Stream, func()) {
	t.Helper()
	if cfg.Checkpoints == "" {
		cfg.Checkpoints = filepath.Join(t.TempDir(), "checkpoints.json")
	}
	source, err := feed.Stream(f, cfg)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- source.Run(ctx) }()
	stop := sync.OnceFunc(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Errorf("Run: %v", err)
		}
	})
	t.Cleanup(stop)
	return source, stop
}

func waitUntil(t testing.TB, what string, done func() bool) {
	t.Helper()
	for deadline := time.Now().Add(time.Minute); !done(); time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("waited in vain for %s", what)
		}
	}
}

// numbered returns the keys from, from+1, … to-1.
func numbered(from, to int) []string {
	var keys []string
	for i := from; i < to; i++ {
		keys = append(keys, fmt.Sprintf("%03d", i))
	}
	return keys
}

// noWait records pauses instead of making them.
type noWait struct {
	mu     sync.Mutex
	pauses []time.Duration
}

func (w *noWait) wait(ctx context.Context, d time.Duration) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.pauses = append(w.pauses, d)
	return ctx.Err()
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
	h := &handler{}
	startHosted(t, b, h, Host{Region: region}, StreamConfig{})
	waitUntil(t, "three records", func() bool { return len(h.keys()) == 3 })

	var got struct{ Records []map[string]any }
	for _, payload := range h.raw {
		var part struct{ Records []map[string]any }
		if err := json.Unmarshal(payload, &part); err != nil {
			t.Fatalf("the event is no JSON: %v: %s", err, payload)
		}
		got.Records = append(got.Records, part.Records...)
	}
	for _, one := range got.Records {
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
	full := `{"PK":{"S":"a"},"n":{"N":"12.5"},"b":{"B":"AAH/"},"t":{"BOOL":true},"0":{"NULL":true},"ss":{"SS":["x"]},"ns":{"NS":["1"]},
		"bs":{"BS":["Bw=="]},"l":{"L":[{"M":{"k":{"S":"é<&>"}}}]},"e":{"M":{}},"el":{"L":[]}}`
	about := func(id, name string) string {
		return `"awsRegion":"eu-central-1","eventID":"` + id + `","eventName":"` + name + `","eventSource":"aws:dynamodb","eventVersion":"1.1","eventSourceARN":"` + b.arn + `"`
	}
	about2 := `"StreamViewType":"NEW_AND_OLD_IMAGES","Keys":{"PK":{"S":"a"}}`
	var want struct{ Records []map[string]any }
	expected := `{"Records":[
		{` + about("1", "INSERT") + `,"dynamodb":{` + about2 + `,"SequenceNumber":"1","NewImage":` + full + `}},
		{` + about("2", "MODIFY") + `,"dynamodb":{` + about2 + `,"SequenceNumber":"2","OldImage":` + full + `,"NewImage":{"PK":{"S":"a"}}}},
		{` + about("3", "REMOVE") + `,"dynamodb":{` + about2 + `,"SequenceNumber":"3","OldImage":{"PK":{"S":"a"}}}}]}`
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
	h := &handler{}
	run(t, b.feed(t, FeedConfig{TTLAttribute: "ttl"}), h.function(), StreamConfig{BatchSize: 1})
	waitUntil(t, "three deletions", func() bool { return len(h.keys()) == 6 })
	for i, want := range []*events.DynamoDBUserIdentity{nil, nil, nil, {Type: "Service", PrincipalID: "dynamodb.amazonaws.com"}, nil, nil} {
		var event events.DynamoDBEvent
		if err := json.Unmarshal(h.raw[i], &event); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, event.Records[0].UserIdentity); diff != "" {
			t.Errorf("userIdentity of the change of %v (-want +got):\n%s", h.seen()[i], diff)
		}
	}
}

func TestBatchesAreInOrderAndBounded(t *testing.T) {
	b := newTable(t)
	keys := numbered(0, 25)
	for _, pk := range keys {
		b.put(t, pk, nil)
	}
	h := &handler{}
	start(t, b, h, StreamConfig{BatchSize: 10})
	waitUntil(t, "25 records", func() bool { return len(h.keys()) >= 25 })
	want := [][]string{keys[:10], keys[10:20], keys[20:]}
	if diff := cmp.Diff(want, h.seen()); diff != "" {
		t.Errorf("batches (-want +got):\n%s", diff)
	}
}

func TestLargeRecordsMakeSmallBatches(t *testing.T) {
	b := newTable(t)
	keys := numbered(0, 20)
	for _, pk := range keys {
		b.put(t, pk, map[string]types.AttributeValue{"v": &types.AttributeValueMemberS{Value: strings.Repeat("x", 390_000)}})
	}
	h := &handler{}
	start(t, b, h, StreamConfig{})
	waitUntil(t, "20 records", func() bool { return len(h.keys()) >= 20 })
	if diff := cmp.Diff(keys, h.keys()); diff != "" {
		t.Errorf("records (-want +got):\n%s", diff)
	}
	for i, payload := range h.raw {
		if len(payload) > maxPayload {
			t.Errorf("event %d has %d bytes, want at most %d", i, len(payload), maxPayload)
		}
	}
}

func TestAWindowGathersABatch(t *testing.T) {
	b := newTable(t)
	h := &handler{}
	begun := time.Now()
	const window = 200 * time.Millisecond
	start(t, b, h, StreamConfig{BatchSize: 5, MaximumBatchingWindow: window})
	keys := numbered(0, 7)
	for _, pk := range keys {
		b.put(t, pk, nil)
	}
	waitUntil(t, "7 records", func() bool { return len(h.keys()) == 7 })
	if took := time.Since(begun); took < window {
		t.Errorf("the batch that was not full came after %v, want the window of %v", took, window)
	}
	if diff := cmp.Diff([][]string{keys[:5], keys[5:]}, h.seen()); diff != "" {
		t.Errorf("batches (-want +got):\n%s", diff)
	}
}

func TestFilteredRecordsAreSkippedAndPast(t *testing.T) {
	b := newTable(t)
	for i := range 6 {
		b.put(t, strconv.Itoa(i), map[string]types.AttributeValue{"t": &types.AttributeValueMemberS{Value: []string{"rec", "ctr"}[i%2]}})
	}
	h := &handler{}
	source, _ := start(t, b, h, StreamConfig{Filters: []string{`{"dynamodb":{"NewImage":{"t":{"S":["rec"]}}}}`}})
	waitUntil(t, "being past the last record", func() bool { return source.Position() == "6" })
	if diff := cmp.Diff([]string{"0", "2", "4"}, h.keys()); diff != "" {
		t.Errorf("records (-want +got):\n%s", diff)
	}
}

func TestTheCheckpointIsTheLowestFailure(t *testing.T) {
	b := newTable(t)
	keys := numbered(1, 7) // so that a key is its sequence number
	for _, pk := range keys {
		b.put(t, pk, nil)
	}
	pauses := &noWait{}
	h := &handler{answer: func(call int, _ []string) (string, error) {
		if call == 1 {
			return `{"batchItemFailures":[{"itemIdentifier":"5"},{"itemIdentifier":"3"}]}`, nil
		}
		return `{"batchItemFailures":[]}`, nil
	}}
	startHosted(t, b, h, Host{Wait: pauses.wait}, StreamConfig{ReportBatchItemFailures: true})
	waitUntil(t, "two calls", func() bool { return len(h.seen()) == 2 })
	if diff := cmp.Diff([][]string{keys, keys[2:]}, h.seen()); diff != "" {
		t.Errorf("batches (-want +got):\n%s", diff)
	}
}

func TestFailedBatchesAreRetriedWithGrowingPauses(t *testing.T) {
	b := newTable(t)
	b.put(t, "a", nil)
	pauses := &noWait{}
	h := &handler{answer: func(call int, _ []string) (string, error) {
		if call < 6 {
			return "", errors.New("table unreachable")
		}
		return "", nil
	}}
	source, _ := startHosted(t, b, h, Host{Wait: pauses.wait}, StreamConfig{RetryMin: time.Second, RetryMax: 5 * time.Second})
	waitUntil(t, "the success", func() bool { return source.Position() == "1" })
	want := []time.Duration{1 * time.Second, 2 * time.Second, 4 * time.Second, 5 * time.Second, 5 * time.Second}
	if diff := cmp.Diff(want, pauses.pauses); diff != "" {
		t.Errorf("pauses (-want +got):\n%s", diff)
	}
}

func TestBisectionIsolatesABadRecord(t *testing.T) {
	b := newTable(t)
	for _, pk := range numbered(0, 8) {
		b.put(t, pk, nil)
	}
	h := &handler{answer: func(call int, keys []string) (string, error) {
		if slices.Contains(keys, "005") && call < 7 {
			return "", errors.New("cannot be processed")
		}
		return "", nil
	}}
	source, _ := startHosted(t, b, h, Host{Wait: (&noWait{}).wait}, StreamConfig{BisectBatch: true})
	waitUntil(t, "the end of the batch", func() bool { return source.Position() == "8" })
	all := numbered(0, 8)
	want := [][]string{all, all[:4], all[4:], all[4:6], all[4:5], all[5:6], all[5:6], all[6:]}
	if diff := cmp.Diff(want, h.seen()); diff != "" {
		t.Errorf("batches (-want +got):\n%s", diff)
	}
}

func TestARestartGoesOnAtTheCheckpoint(t *testing.T) {
	b := newTable(t)
	file := filepath.Join(t.TempDir(), "sources", "checkpoints.json")
	b.put(t, "a", nil)
	first := &handler{}
	source, stop := start(t, b, first, StreamConfig{Checkpoints: file})
	waitUntil(t, "the first record", func() bool { return source.Position() == "1" })
	stop()
	b.put(t, "b", nil)
	second := &handler{}
	start(t, b, second, StreamConfig{Checkpoints: file})
	waitUntil(t, "the second record", func() bool { return len(second.keys()) > 0 })
	if diff := cmp.Diff([][]string{{"b"}}, second.seen()); diff != "" {
		t.Errorf("after the restart (-want +got):\n%s", diff)
	}
}

func TestAnUnfinishedBatchComesAgainAfterARestart(t *testing.T) {
	b := newTable(t)
	file := filepath.Join(t.TempDir(), "checkpoints.json")
	b.put(t, "a", nil)
	first := &handler{answer: func(int, []string) (string, error) { return "", errors.New("unreachable") }}
	_, stop := start(t, b, first, StreamConfig{Checkpoints: file})
	waitUntil(t, "a failed call", func() bool { return len(first.seen()) > 0 })
	stop()
	second := &handler{}
	start(t, b, second, StreamConfig{Checkpoints: file})
	waitUntil(t, "the record again", func() bool { return len(second.keys()) == 1 })
}

func TestReadingGoesOnWhereTheStreamWasTrimmed(t *testing.T) {
	b := newTable(t)
	for _, pk := range numbered(0, 10) {
		b.put(t, pk, nil)
	}
	h := &handler{}
	source, _ := start(t, b, h, StreamConfig{BatchSize: 3})
	waitUntil(t, "ten records", func() bool { return source.Position() == "10" })
	if err := b.server.Trim(t.Context(), "commerce", Lowest(source.Position())); err != nil {
		t.Fatalf("Trim: %v", err)
	}
	b.put(t, "last", nil)
	waitUntil(t, "the record after trimming", func() bool { return source.Position() == "11" })
	if got := h.keys(); len(got) != 11 || got[10] != "last" {
		t.Errorf("records %v, want each once and last at the end", got)
	}
}

func TestAnInvocationInProgressIsFinished(t *testing.T) {
	b := newTable(t)
	b.put(t, "a", nil)
	entered, leave := make(chan struct{}), make(chan struct{})
	h := &handler{answer: func(int, []string) (string, error) {
		close(entered)
		<-leave
		return "", nil
	}}
	file := filepath.Join(t.TempDir(), "checkpoints.json")
	source, stop := start(t, b, h, StreamConfig{Checkpoints: file})
	<-entered
	ended := make(chan struct{})
	go func() { stop(); close(ended) }()
	select {
	case <-ended:
		t.Fatal("Run ended with an invocation in progress")
	case <-time.After(20 * time.Millisecond):
	}
	close(leave)
	<-ended
	if got := source.Position(); got != "1" {
		t.Errorf("Position = %q after the invocation in progress succeeded, want 1", got)
	}
}

func TestTheSourceSurvivesAnUnreachableStream(t *testing.T) {
	for _, failures := range []int{1, 2, 3} { // each kind of request
		h := &handler{}
		stream := &scripted{records: []string{"1"}, failures: failures}
		run(t, stream.feed(t), h.function(), StreamConfig{RetryMin: time.Millisecond})
		waitUntil(t, "the record", func() bool { return len(h.keys()) == 1 })
	}
}

func TestUnusableStreamConfigurationsAreRefused(t *testing.T) {
	if _, err := NewFeed(nil, FeedConfig{}); err == nil {
		t.Error("NewFeed accepts no stream")
	}
	feed, err := NewFeed(nil, FeedConfig{StreamARN: "arn"})
	if err != nil {
		t.Fatal(err)
	}
	good := StreamConfig{Checkpoints: filepath.Join(t.TempDir(), "c")}
	for name, spoil := range map[string]func(*StreamConfig){
		"no checkpoints":                    func(c *StreamConfig) { c.Checkpoints = "" },
		"batch size":                        func(c *StreamConfig) { c.BatchSize = 10_001 },
		"window":                            func(c *StreamConfig) { c.MaximumBatchingWindow = time.Hour },
		"filter":                            func(c *StreamConfig) { c.Filters = []string{"{"} },
		"shard workers without a known key": func(c *StreamConfig) { c.ShardWorkers = 2 },
	} {
		cfg := good
		spoil(&cfg)
		if _, err := feed.Stream((&handler{}).function(), cfg); err == nil {
			t.Errorf("%s: Stream accepts %+v", name, cfg)
		}
	}
	if _, err := feed.Stream(Function{Name: "empty"}, good); err == nil {
		t.Error("Stream accepts a function without Invoke")
	}
}
