package index_test

import (
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"log/slog"
	"maps"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/aws/aws-lambda-go/events"
	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/aws/retry"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/commerce-integration/service/pkg/base/fault"
	"github.com/commerce-integration/service/pkg/base/value"
	"github.com/commerce-integration/service/pkg/commerce"
	"github.com/commerce-integration/service/pkg/dynamo"
	"github.com/commerce-integration/service/pkg/index"
	"github.com/commerce-integration/service/pkg/index/compactor"
	"github.com/commerce-integration/service/pkg/index/indexer"
	"github.com/commerce-integration/service/pkg/index/views"
	"github.com/commerce-integration/service/pkg/lab/faults"
	"github.com/commerce-integration/service/pkg/lists"
	"github.com/commerce-integration/service/pkg/lists/columnar"
	"github.com/commerce-integration/service/pkg/ops"
	"github.com/commerce-integration/service/pkg/testkit/dynamotest"
)

// recordKey names a record of the model.
type recordKey struct {
	org  value.ID
	kind commerce.Kind
	id   value.ID
}

// written is one write of a record.
type written struct {
	stored *commerce.Stored
	row    *plainRow // in the list of its kind; nil of a tombstone
	gone   *plainRow // in the list of deletions; nil of what lives
}

// shown is what a list shows of the write.
func (w written) shown(deletions bool) *plainRow {
	if deletions {
		return w.gone
	}
	return w.row
}

// modelLists are the lists, whose partitions are divided as soon as they have a few
// documents.
func modelLists(table *dynamo.Table) *index.Lists {
	l := index.NewLists(table, dynamo.Shards)
	for _, list := range l.All() {
		list.PartRows = 3
	}
	return l
}

// streamed is a record of the stream.
type streamed struct {
	record   events.DynamoDBEventRecord
	key      recordKey
	revision value.Time
	at       time.Time
}

// acknowledged says that an indexer has taken a revision.
type acknowledged struct {
	revision value.Time
	at       time.Time
}

const (
	modelShards  = 3
	modelWriters = 3
	staleness    = 300 * time.Millisecond
)

// trial is two organizations with the same ids in a real table behind a fault
// proxy, the stream of what was written, and what lists may show of it.
type trial struct {
	t       testing.TB
	proxy   *faults.Proxy
	replica *replica         // what eventually consistent reads meet; nil for the table itself
	client  *dynamodb.Client // past the proxy
	name    string
	direct  *dynamo.Table
	orgs    []value.ID
	names   []string // of the lists
	log     *recordedLog

	mu        sync.Mutex // guards what follows
	now       time.Time
	history   map[recordKey][]written
	shards    [modelShards][]streamed
	done      [modelShards]int // how far the indexers are
	tables    map[string]*dynamo.Table
	processes map[string]*process
	acks      map[recordKey][]acknowledged
}

// recordedLog keeps what is logged as an error.
type recordedLog struct {
	slog.Handler
	mu     sync.Mutex
	errors []string
}

func (l *recordedLog) Enabled(_ context.Context, level slog.Level) bool {
	return level >= slog.LevelWarn
}

func (l *recordedLog) Handle(_ context.Context, r slog.Record) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	text := r.Message
	r.Attrs(func(a slog.Attr) bool {
		text += " " + a.String()
		return true
	})
	l.errors = append(l.errors, text)
	return nil
}

// with returns what was logged with the text in it.
func (l *recordedLog) with(text string) []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.DeleteFunc(slices.Clone(l.errors), func(s string) bool { return !strings.Contains(s, text) })
}

// newTrial returns a trial in the table. Trials in one table do not meet.
func newTrial(t testing.TB, client *dynamodb.Client, name string, cfg faults.Config) *trial {
	t.Helper()
	tr := &trial{
		t: t, client: client, name: name, now: time.Date(2026, 11, 21, 6, 0, 0, 0, time.UTC), orgs: []value.ID{value.NewID(), value.NewID()},
		history: map[recordKey][]written{}, acks: map[recordKey][]acknowledged{}, tables: map[string]*dynamo.Table{}, processes: map[string]*process{}, log: &recordedLog{Handler: slog.DiscardHandler},
	}
	var err error
	if tr.proxy, err = faults.New(*client.Options().BaseEndpoint, cfg); err != nil {
		t.Fatal(err)
	}
	if err := tr.proxy.Start("127.0.0.1:0"); err != nil {
		t.Fatal(err)
	}
	tr.direct = dynamo.New(client, name, tr.clock)
	tr.names = []string{"orders", "products", "deletions"}
	return tr
}

func (tr *trial) clock() time.Time {
	tr.mu.Lock()
	defer tr.mu.Unlock()
	return tr.now
}

func (tr *trial) advance(d time.Duration) {
	tr.mu.Lock()
	defer tr.mu.Unlock()
	tr.now = tr.now.Add(d)
}

// process is the process of a name.
func (tr *trial) process(name string) *process {
	tr.mu.Lock()
	defer tr.mu.Unlock()
	if tr.processes[name] == nil {
		tr.processes[name] = &process{}
	}
	return tr.processes[name]
}

// table is the table as one process of its own sees it. The processes that end
// a trial, drain and settle, meet no faults.
func (tr *trial) table(process string) *dynamo.Table {
	if process == "drain" || process == "settle" {
		return tr.direct
	}
	own := tr.process(process)
	tr.mu.Lock()
	defer tr.mu.Unlock()
	if tr.tables[process] == nil {
		client := dynamodb.New(tr.client.Options(), func(o *dynamodb.Options) {
			o.BaseEndpoint = aws.String(tr.proxy.Endpoint())
			o.Retryer = retry.NewStandard(func(o *retry.StandardOptions) {
				o.MaxAttempts, o.Backoff = 3, retry.BackoffDelayerFunc(func(int, error) (time.Duration, error) { return time.Millisecond, nil })
			})
			own.install(o)
			if tr.replica != nil {
				tr.replica.install(o)
			}
		})
		skew := skewOf(process)
		tr.tables[process] = dynamo.New(client, tr.name, func() time.Time { return tr.clock().Add(skew) })
	}
	return tr.tables[process]
}

const (
	// maxSkew is how wrong the clock of a process is at most.
	maxSkew = 7 * time.Second
	// maxAhead is how far a list is ahead of the right time at most: entries of
	// one millisecond take the next ones.
	maxAhead = maxSkew + time.Second
)

// skewOf is how wrong the clock of a process is, if it is an indexer.
func skewOf(process string) time.Duration {
	if !strings.HasPrefix(process, "writer") && !strings.HasPrefix(process, "churner") {
		return 0
	}
	return []time.Duration{-maxSkew, 0, maxSkew}[process[len(process)-1]%3]
}

// listNamed returns the plain form of a list over the table.
func listNamed(table *dynamo.Table, name string) *plainList {
	list := modelLists(table).Named(name)
	switch name {
	case "orders":
		return plainOrders(list)
	case "products":
		return plainProducts(list)
	default:
		return plainDeletions(list)
	}
}

// content is what the model varies in a record. Zero values are left out.
type content struct {
	site            value.ID
	state           string
	number, name    string
	ref             string
	amount          int64 // whole units; less than 0 is none
	active, bulk    bool
	created, placed time.Time
}

// put stores a record as ingestion does, and adds it to the stream.
func (tr *trial) put(org value.ID, kind commerce.Kind, id value.ID, c content) {
	tr.t.Helper()
	record := map[string]any{"id": id, "createdAt": value.TimeOf(c.created)}
	r := &plainRow{id: id, keywords: map[string][]string{}, numbers: map[string]int64{"createdAt": c.created.UnixMilli()}, texts: map[string]string{}}
	text := func(name, v string) {
		if v != "" {
			record[name], r.texts[name] = v, v
		}
	}
	change := commerce.Change{Kind: kind, Op: commerce.OpPut, OrganizationID: org}
	if kind == commerce.KindOrder {
		record["currency"], record["status"], record["placedAt"], record["total"] = "EUR", c.state, value.TimeOf(c.placed), max(c.amount, 0)
		r.keywords["status"], r.numbers["placedAt"], r.numbers["total"] = []string{c.state}, c.placed.UnixMilli(), max(c.amount, 0)*10_000
		text("orderNumber", c.number)
		text("customerName", c.name)
		text("externalRef", c.ref)
		if !c.site.IsZero() {
			record["siteId"], r.keywords["siteId"] = c.site, []string{string(c.site[:])}
		}
	} else {
		record["isActive"], r.numbers["isActive"] = c.active, map[bool]int64{true: 1}[c.active]
		text("name", c.number)
		text("sku", c.ref)
		if c.amount >= 0 {
			record["sellingPrice"], r.numbers["sellingPrice"] = c.amount, c.amount*10_000
		}
		if c.bulk {
			record["tags"] = bulkTags(id)
		}
		change.Sites.Given = true
		if !c.site.IsZero() {
			change.Sites.Value, r.keywords["siteIds"] = []value.ID{c.site}, []string{string(c.site[:])}
		}
	}
	var err error
	if change.Record, err = json.Marshal(record); err != nil {
		tr.t.Fatal(err)
	}
	tr.apply(change, r)
}

// bulkTags are 20 KB that do not compress well.
func bulkTags(id value.ID) []string {
	random := rand.New(rand.NewPCG(uint64(id[15]), 0))
	tags := make([]string, 80)
	for i := range tags {
		for len(tags[i]) < 230 {
			tags[i] += strconv.FormatUint(random.Uint64(), 10)
		}
	}
	return tags
}

// remove deletes a record.
func (tr *trial) remove(org value.ID, kind commerce.Kind, id value.ID) {
	tr.t.Helper()
	tr.apply(commerce.Change{
		Kind: kind, Op: commerce.OpDelete, OrganizationID: org, Record: jsontext.Value(`{"id":"` + id.String() + `"}`),
	}, nil)
}

// apply makes a change. Every write has a moment of its own, so that a
// revision names one record of one organization.
func (tr *trial) apply(c commerce.Change, r *plainRow) {
	tr.t.Helper()
	tr.advance(time.Millisecond)
	id, err := commerce.Identify(c)
	if err != nil {
		tr.t.Fatalf("identify %s: %v", c.Record, err)
	}
	key := recordKey{c.OrganizationID, c.Kind, id}
	var old *commerce.Stored
	if writes := tr.history[key]; len(writes) > 0 {
		old = writes[len(writes)-1].stored
	}
	next, err := commerce.Apply(old, c, value.TimeOf(tr.clock()))
	if err != nil {
		tr.t.Fatalf("apply %s %s: %v", c.Op, c.Record, err)
	}
	if next == nil || old == nil && next.Deleted {
		return
	}
	if err := tr.direct.PutRecord(context.Background(), old, next); err != nil {
		tr.t.Fatalf("store %s: %v", c.Record, err)
	}
	w := written{stored: next, row: r}
	if next.Deleted {
		w.gone = &plainRow{
			id: id, sub: uint8(slices.Index(commerce.Kinds(), c.Kind) + 1), revision: int64(next.Revision),
			keywords: map[string][]string{"kind": {string(c.Kind)}}, numbers: map[string]int64{"deletedAt": int64(next.Revision)},
		}
	} else {
		r.revision = int64(next.Revision)
		r.numbers["updatedAt"] = r.revision
	}
	tr.mu.Lock()
	defer tr.mu.Unlock()
	tr.history[key] = append(tr.history[key], w)
	shard := key.shard()
	tr.shards[shard] = append(tr.shards[shard], streamed{
		record: streamRecord(strconv.Itoa(len(tr.shards[shard])+1), old, next), key: key, revision: next.Revision, at: tr.now,
	})
}

func (k recordKey) shard() int {
	h := fnv.New32a()
	fmt.Fprint(h, k)
	return int(h.Sum32() % modelShards)
}

// streamRecord is what the table's stream says of a write.
func streamRecord(sequence string, old, next *commerce.Stored) events.DynamoDBEventRecord {
	image := streamImage(next)
	r := events.DynamoDBEventRecord{EventName: "INSERT", Change: events.DynamoDBStreamRecord{
		Keys: map[string]events.DynamoDBAttributeValue{
			"PK": image["PK"], "SK": image["SK"],
		},
		NewImage: image, SequenceNumber: sequence,
	}}
	if old != nil {
		r.EventName, r.Change.OldImage = "MODIFY", streamImage(old)
	}
	return r
}

// streamImage is a stored record as the stream shows its item.
func streamImage(s *commerce.Stored) map[string]events.DynamoDBAttributeValue {
	m := map[string]events.DynamoDBAttributeValue{
		"PK": events.NewStringAttribute("ORG#" + s.OrganizationID.String() + "#" + strings.ToUpper(string(s.Kind)) + "#0"),
		"SK": events.NewStringAttribute(s.ID.String()), "t": events.NewStringAttribute("rec"),
		"k":   events.NewStringAttribute(string(s.Kind)),
		"rev": events.NewNumberAttribute(strconv.FormatInt(int64(s.Revision), 10)),
	}
	if at, deleted := s.ExpiresAt(); deleted {
		m["del"] = events.NewBooleanAttribute(true)
		m["expiresAtEpoch"] = events.NewNumberAttribute(strconv.FormatInt(at.Std().Unix(), 10))
		return m
	}
	m["doc"] = events.NewStringAttribute(string(s.Doc))
	if len(s.SiteIDs) > 0 {
		sites := make([]events.DynamoDBAttributeValue, len(s.SiteIDs))
		for i, id := range s.SiteIDs {
			sites[i] = events.NewStringAttribute(id.String())
		}
		m["sites"] = events.NewListAttribute(sites)
	}
	return m
}

// refusing is a park that must stay empty, and a queue that loses every
// message: that a job is wanted stands in the table.
type refusing struct{ tr *trial }

func (r refusing) Park(_ context.Context, _ string, _ events.DynamoDBEventRecord, cause error) error {
	return fmt.Errorf("parked: %w", cause)
}

func (refusing) Send(context.Context, value.ID, string) error { return nil }

// index has a process take n records of a shard, beginning with some that were
// taken before. It may fail, and then what is due stays due.
func (tr *trial) index(process string, shard, again, n int) error {
	tr.mu.Lock()
	pending := tr.shards[shard]
	from := max(tr.done[shard]-again, 0)
	for from < tr.done[shard] && tr.now.Sub(pending[from].at) > 23*time.Hour {
		from++ // what the stream has dropped does not come again
	}
	to := min(from+n, len(pending))
	batch := slices.Clone(pending[from:to])
	tr.mu.Unlock()
	var in events.DynamoDBEvent
	for _, s := range batch {
		in.Records = append(in.Records, s.record)
	}
	table := tr.table(process)
	lists := modelLists(table)
	writer := indexer.New(table, indexer.DecodeFor(lists, dynamo.Stream{}, table), refusing{tr}, refusing{tr}, slog.New(slog.DiscardHandler))
	response, err := writer.Handle(context.Background(), in)
	if err != nil || len(response.BatchItemFailures) > 0 {
		return errors.Join(err, errors.New("the batch is to come again"))
	}
	tr.mu.Lock()
	defer tr.mu.Unlock()
	tr.done[shard] = max(tr.done[shard], to)
	for _, s := range batch {
		tr.acks[s.key] = append(tr.acks[s.key], acknowledged{s.revision, tr.now})
	}
	return nil
}

// job has a process do one job of a list.
func (tr *trial) job(process string, org value.ID, list string) (more bool, err error) {
	if err := tr.direct.RequestJob(context.Background(), org, list, value.TimeOf(tr.clock())); err != nil {
		tr.t.Error(err)
	}
	table := tr.table(process)
	return tr.compactor(table).Run(context.Background(), org, list)
}

func (tr *trial) compactor(table *dynamo.Table) *compactor.Compactor {
	return compactor.New(table, modelLists(table).All(), tr.clock, slog.New(tr.log))
}

// tinyMemory has room for a long tail and few views, so that they leave.
const tinyMemory = 4 << 20

// reader is an instance of a function with its views.
type reader struct {
	name  string
	views *views.Cache
	lists map[string]*plainList
}

func (tr *trial) reader(name string, bytes int64) *reader {
	table := tr.table(name)
	r := &reader{name: name, lists: map[string]*plainList{}}
	for _, list := range tr.names {
		r.lists[list] = listNamed(table, list)
	}
	r.views = views.NewCache(table, views.Config{MaxBytes: bytes, Clock: tr.clock, Start: refusing{tr}, Logger: slog.New(tr.log)})
	return r
}

func (r *reader) ask(org value.ID, list string, q plainQuery) (columnar.Result, error) {
	answer, err := r.askNow(org, list, q, false)
	return answer.Result, err
}

func (r *reader) askNow(org value.ID, list string, q plainQuery, now bool) (lists.Answer, error) {
	return r.views.Query(context.Background(), org, r.lists[list].List, q.query, now)
}

// rows are what a list is to show now: of every record the newest write.
func (tr *trial) rows(org value.ID, list string) []*plainRow {
	var rows []*plainRow
	for _, key := range tr.keys(org, list) {
		writes := tr.history[key]
		if r := writes[len(writes)-1].shown(list == "deletions"); r != nil {
			rows = append(rows, r)
		}
	}
	return rows
}

// keys are the records that a list is about, in an order of their own.
func (tr *trial) keys(org value.ID, list string) []recordKey {
	var keys []recordKey
	for key := range tr.history {
		if key.org == org && (list == "deletions" || key.kind.Plural() == list) {
			keys = append(keys, key)
		}
	}
	slices.SortFunc(keys, func(a, b recordKey) int { return strings.Compare(fmt.Sprint(a), fmt.Sprint(b)) })
	return keys
}

// promised is how far lists must have come: by record the newest revision
// that was indexed so long ago that every reader shows it.
func (tr *trial) promised() map[recordKey]value.Time {
	tr.mu.Lock()
	defer tr.mu.Unlock()
	floor := map[recordKey]value.Time{}
	for key, acks := range tr.acks {
		for _, a := range acks {
			if tr.now.Sub(a.at) >= views.Freshness+staleness {
				floor[key] = max(floor[key], a.revision)
			}
		}
	}
	return floor
}

// judge holds a list's whole answer to a query against what it may show: every
// hit is a write of this organization for which the query holds, none is there
// twice, and nothing is missing that was promised.
func (tr *trial) judge(org value.ID, list string, q plainQuery, floor map[recordKey]value.Time, got columnar.Result) error {
	if got.Total != len(got.Hits) {
		return fmt.Errorf("total %d of %d hits", got.Total, len(got.Hits))
	}
	tr.mu.Lock()
	defer tr.mu.Unlock()
	deletions := list == "deletions"
	known := map[int64]recordKey{}
	for _, key := range tr.keys(org, list) {
		for _, w := range tr.history[key] {
			known[int64(w.stored.Revision)] = key
		}
	}
	shown := map[recordKey]int64{}
	for _, hit := range got.Hits {
		key, ours := known[hit.Revision]
		if !ours || key.id != value.ID(hit.ID) {
			return fmt.Errorf("%s@%d is no write of the organization", value.ID(hit.ID), hit.Revision)
		}
		if other, twice := shown[key]; twice {
			return fmt.Errorf("%s is there twice, @%d and @%d", key.id, other, hit.Revision)
		}
		if row := tr.at(key, hit.Revision).shown(deletions); row == nil || row.sub != hit.Sub || !q.holds(row) {
			return fmt.Errorf("%s@%d was %v, which is not asked for", key.id, hit.Revision, row)
		}
		if hit.Visible > tr.now.Add(maxAhead).UnixMilli() || hit.Visible < hit.Revision-maxSkew.Milliseconds() {
			return fmt.Errorf("%s@%d became visible at %d, now is %d", key.id, hit.Revision, hit.Visible, tr.now.UnixMilli())
		}
		shown[key] = hit.Revision
	}
	for _, key := range slices.SortedFunc(maps.Keys(floor), func(a, b recordKey) int { return strings.Compare(fmt.Sprint(a), fmt.Sprint(b)) }) {
		if key.org != org || !deletions && key.kind.Plural() != list {
			continue
		}
		least := floor[key]
		if r, is := shown[key]; is {
			if r < int64(least) {
				return fmt.Errorf("%s is shown @%d although @%d was indexed", key.id, r, least)
			}
			continue
		}
		if !slices.ContainsFunc(tr.history[key], func(w written) bool {
			row := w.shown(deletions)
			return w.stored.Revision >= least && (row == nil || !q.holds(row))
		}) {
			return fmt.Errorf("%s is missing, although @%d was indexed: %v", key.id, least, tr.at(key, int64(least)).shown(deletions))
		}
	}
	return nil
}

func (tr *trial) at(key recordKey, revision int64) written {
	for _, w := range tr.history[key] {
		if int64(w.stored.Revision) == revision {
			return w
		}
	}
	return written{}
}

// unavailable reports whether an error is one that a client may see: 503.
func unavailable(err error) bool { return fault.Is(err, fault.Unavailable) }

// quietTrial is a trial without faults.
func quietTrial(t *testing.T) *trial {
	t.Helper()
	client, name := dynamotest.Client(t)
	tr := newTrial(t, client, name, faults.Config{})
	t.Cleanup(func() { tr.proxy.Close() })
	return tr
}

// indexAll has all that is due indexed.
func (tr *trial) indexAll() {
	tr.t.Helper()
	tr.indexWith("indexer", 0)
}

// indexWith has a process index all that is due, after so many records of each
// shard that were indexed before.
func (tr *trial) indexWith(process string, again int) {
	tr.t.Helper()
	for shard := range modelShards {
		if err := tr.index(process, shard, again, 1000); err != nil {
			tr.t.Fatal(err)
		}
	}
}

func (tr *trial) reindex(list string) {
	tr.t.Helper()
	err := ops.Rebuild(tr.t.Context(), tr.direct, tr.compactor(tr.direct), index.Key{Org: tr.orgs[0], List: listNamed(tr.direct, list).List}, func(int, int) {})
	if err != nil {
		tr.t.Fatal(err)
	}
}
