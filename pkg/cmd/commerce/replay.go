package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/aws/aws-lambda-go/events"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/spf13/cobra"

	"github.com/commerce-integration/service/pkg/dispatcher"
	"github.com/commerce-integration/service/pkg/dynamo"
	"github.com/commerce-integration/service/pkg/lists/index"
	"github.com/commerce-integration/service/pkg/lists/indexer"
	"github.com/commerce-integration/service/pkg/local/runner"
	"github.com/commerce-integration/service/pkg/sqsqueue"
	"github.com/commerce-integration/service/pkg/value"
)

// Who parks stream records, as it signs them.
const (
	dispatcherConsumer = "dispatcher"
	indexerConsumer    = "indexer"
)

// localPark is the park's name beside the local runner.
const localPark = "ParkQueue"

// replayTarget says where the park and what its records are handed to are, by
// flags: either all of the local runner, or all in AWS.
type replayTarget struct {
	tableTarget
	endpoint, parkURL, deliveriesURL, slowDeliveriesURL, indexJobsURL string
}

func (t *replayTarget) flags(cmd *cobra.Command) {
	t.tableTarget.flags(cmd)
	cmd.Flags().StringVar(&t.endpoint, "endpoint", "", "SQS endpoint (default: the local runner's, or AWS)")
	cmd.Flags().StringVar(&t.parkURL, "queue-url", "", "URL of the park in AWS, instead of the local runner's")
	cmd.Flags().StringVar(&t.deliveriesURL, "deliveries-queue-url", "", "URL of the deliveries queue in AWS, for the dispatcher")
	cmd.Flags().StringVar(&t.slowDeliveriesURL, "slow-deliveries-queue-url", "", "URL of the slow deliveries queue in AWS, for the dispatcher")
	cmd.Flags().StringVar(&t.indexJobsURL, "index-jobs-queue-url", "", "URL of the queue of index jobs in AWS, for the indexer")
}

// resolve settles where the queues are. In AWS it fails when a flag is missing
// that the consumers need.
func (t *replayTarget) resolve(ctx context.Context, only string, dryRun bool) (*sqs.Client, error) {
	if t.table+t.parkURL+t.deliveriesURL+t.slowDeliveriesURL+t.indexJobsURL != "" {
		if missing := t.missing(only, dryRun); len(missing) > 0 {
			return nil, fmt.Errorf("the park in AWS needs %s, too", strings.Join(missing, ", "))
		}
		return newSQSClient(ctx, t.endpoint)
	}
	file, err := runner.ReadInfo(t.data)
	if err != nil {
		return nil, fmt.Errorf("%w, or name the park with --queue-url", err)
	}
	if t.endpoint == "" {
		t.endpoint = file.SQSEndpoint
	}
	client, err := newSQSClient(ctx, t.endpoint)
	if err != nil {
		return nil, err
	}
	t.deliveriesURL, t.slowDeliveriesURL, t.indexJobsURL = file.DeliveriesQueueURL, file.SlowDeliveriesQueueURL, file.IndexJobsQueueURL
	t.parkURL, err = namedQueue(ctx, client, localPark, "")
	return client, err
}

// missing returns the flags that are needed in AWS and were not given.
func (t *replayTarget) missing(only string, dryRun bool) (names []string) {
	for _, f := range []struct {
		name, value string
		needed      bool
	}{
		{"--queue-url", t.parkURL, true},
		{"--table", t.table, !dryRun},
		{"--deliveries-queue-url", t.deliveriesURL, !dryRun && only != indexerConsumer},
		{"--slow-deliveries-queue-url", t.slowDeliveriesURL, !dryRun && only != indexerConsumer},
		{"--index-jobs-queue-url", t.indexJobsURL, !dryRun && only != dispatcherConsumer},
	} {
		if f.needed && f.value == "" {
			names = append(names, f.name)
		}
	}
	return names
}

// replayCommand is one run of commerce replay.
type replayCommand struct {
	target replayTarget
	only   string
	dryRun bool
	limit  int
}

func newReplayCommand() *cobra.Command {
	c := &replayCommand{}
	cmd := &cobra.Command{
		Use: "replay", Short: "Hand the parked changes to their consumers again", Args: cobra.NoArgs,
		Long: `Replay takes the stream records that the dispatcher or the indexer could not
process out of the park and does with each, in this process, what its function
would have done, with the table and the queues that it is pointed at. What
succeeds is deleted from the park. What fails again stays there, with a line
that says why, and makes the exit code 1. Mend the cause first, and run the
command of the version that is deployed.

Replaying is safe to repeat and to interrupt: what was done already is done
again without effect. A record that has changed since is indexed as of its last
change. --dry-run counts what is parked, by consumer and reason, and does
nothing; as SQS has no other way to look, messages are hidden for the moment,
and for 5 minutes when the command is killed. The park keeps a record for 14
days.`,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return unlessInterrupted(c.run(cmd.Context(), cmd.OutOrStdout()))
		},
	}
	c.target.flags(cmd)
	cmd.Flags().StringVar(&c.only, "consumer", "", "dispatcher or indexer (default: both)")
	cmd.Flags().BoolVar(&c.dryRun, "dry-run", false, "count what is parked by consumer and reason")
	cmd.Flags().IntVar(&c.limit, "limit", 0, fmt.Sprintf("most records to replay (default: all, of %d messages at most)", passMost))
	cmd.MarkFlagsMutuallyExclusive("dry-run", "limit")
	return cmd
}

func (c *replayCommand) run(ctx context.Context, out io.Writer) error {
	switch c.only {
	case "", dispatcherConsumer, indexerConsumer:
	default:
		return fmt.Errorf("--consumer %s: must be dispatcher or indexer", c.only)
	}
	if c.limit < 0 {
		return fmt.Errorf("--limit %d: must be positive", c.limit)
	}
	client, err := c.target.resolve(ctx, c.only, c.dryRun)
	if err != nil {
		return err
	}
	p := &pass{client: client, queueURL: c.target.parkURL, workers: passWorkers}
	if c.dryRun {
		return c.count(ctx, p, out)
	}
	table, _, err := c.target.connect(ctx)
	if err != nil {
		return err
	}
	r := &replay{
		consumers: newConsumers(table,
			sqsqueue.NewDeliveries(sqsqueue.New(client, c.target.deliveriesURL), sqsqueue.New(client, c.target.slowDeliveriesURL)),
			sqsqueue.NewIndexJobs(sqsqueue.New(client, c.target.indexJobsURL))),
		only: c.only, left: c.limit, pass: p, out: out,
	}
	if c.limit == 0 {
		r.left = passMost
	}
	p.each = r.each
	return r.run(ctx)
}

// parkedGroup is what --dry-run counts by.
type parkedGroup struct{ consumer, reason string }

func (c *replayCommand) count(ctx context.Context, p *pass, out io.Writer) error {
	found := tally[parkedGroup]{other: parkedGroup{reason: "others"}}
	id := regexp.MustCompile(`[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}`)
	p.each = func(_ context.Context, batch []received) ([]received, error) {
		for _, m := range batch {
			consumer, cause := sqsqueue.ParkedBy(m.attributes)
			if c.only == "" || c.only == consumer {
				found.add(parkedGroup{consumer, id.ReplaceAllLiteralString(firstLine(cause), "…")}, m.sent)
			}
		}
		return nil, nil
	}
	if err := p.run(ctx); err != nil {
		return err
	}
	rows := [][]string{{"CONSUMER", "RECORDS", "OLDEST", "REASON"}}
	for _, g := range found.sorted(func(a, b parkedGroup) int { return strings.Compare(a.consumer+a.reason, b.consumer+b.reason) }) {
		counts := found.groups[g]
		rows = append(rows, []string{g.consumer, fmt.Sprint(counts.n), timeCell(counts.oldest), g.reason})
	}
	if len(rows) > 1 {
		if err := writeTable(out, rows); err != nil {
			return err
		}
	}
	fmt.Fprintf(out, "%s parked\n", counted(found.all, "record"))
	tellFull(out, p)
	return nil
}

// tellFull says that a pass may have left something.
func tellFull(out io.Writer, p *pass) {
	if p.full() {
		fmt.Fprintf(out, "this is of the first %d messages; there may be more\n", p.seen)
	}
}

// replay is the handing of parked records to their consumers.
type replay struct {
	*consumers
	only string // "" for every consumer
	pass *pass
	out  io.Writer

	mu               sync.Mutex
	left             int // how many more records may be handed over
	replayed, failed int
}

func (r *replay) run(ctx context.Context) error {
	err := r.pass.run(ctx)
	fmt.Fprintf(r.out, "replayed %s\n", counted(r.replayed, "record"))
	tellFull(r.out, r.pass)
	if r.failed > 0 {
		err = errors.Join(err, fmt.Errorf("%s failed again and %s parked", counted(r.failed, "record"), stay(r.failed)))
	}
	return err
}

func stay(n int) string {
	if n == 1 {
		return "stays"
	}
	return "stay"
}

// parked is a record on its way to its consumer.
type parked struct {
	received
	consumer string
	record   events.DynamoDBEventRecord
}

// each hands the records of a batch to their consumers.
func (r *replay) each(ctx context.Context, batch []received) (done []received, err error) {
	for consumer, records := range r.read(batch) {
		done = append(done, r.settle(ctx, consumer, records)...)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.replayed += len(done)
	return done, ctx.Err()
}

// settle hands records over together and, if that fails, one by one, which
// tells who fails and why. It returns the messages of those that are done.
func (r *replay) settle(ctx context.Context, consumer string, records []parked) (done []received) {
	batch := make([]events.DynamoDBEventRecord, len(records))
	for i, p := range records {
		batch[i] = p.record
		done = append(done, p.received)
	}
	err := r.handle(ctx, consumer, batch)
	switch {
	case err == nil:
		return done
	case ctx.Err() != nil: // what was interrupted has not failed
		return nil
	case len(records) == 1:
		r.fail(consumer+" "+nameOf(&batch[0]), err)
		return nil
	}
	done = nil
	for i := range records {
		done = append(done, r.settle(ctx, consumer, records[i:i+1])...)
	}
	return done
}

func (r *replay) fail(what string, err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.failed++
	fmt.Fprintln(r.out, visible(what)+": "+visible(firstLine(err.Error())))
}

// read returns the records of a batch by their consumers, as many as may be
// handed over. The others are left in the park.
func (r *replay) read(batch []received) map[string][]parked {
	by := map[string][]parked{}
	for _, m := range batch {
		consumer, _ := sqsqueue.ParkedBy(m.attributes)
		if r.only != "" && consumer != r.only {
			continue
		}
		if !r.take() {
			break
		}
		_, record, err := sqsqueue.Unpark(m.body, m.attributes)
		if err == nil && consumer != dispatcherConsumer && consumer != indexerConsumer {
			err = fmt.Errorf("it says that %q parked it, which must be dispatcher or indexer", consumer)
		}
		if err != nil {
			r.fail("message "+m.id, err)
			continue
		}
		by[consumer] = append(by[consumer], parked{m, consumer, record})
	}
	return by
}

// take tells whether one more record may be handed over.
func (r *replay) take() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.left--; r.left <= 0 {
		r.pass.end()
	}
	return r.left >= 0
}

// nameOf names the item whose change a stream record is.
func nameOf(r *events.DynamoDBEventRecord) string {
	var names []string
	for _, key := range []string{"PK", "SK"} {
		if v, ok := r.Change.Keys[key]; ok && v.DataType() == events.DataTypeString {
			names = append(names, v.String())
		}
	}
	if len(names) == 0 {
		return "sequence " + r.Change.SequenceNumber
	}
	return strings.Join(names, "/")
}

// consumers are the functions that read the stream, made as their processes
// make them, but for what they do with a record that fails.
type consumers struct {
	table      *dynamo.Table
	deliveries sqsqueue.Deliveries
	indexJobs  sqsqueue.IndexJobs
	lists      *index.Lists
}

func newConsumers(table *dynamo.Table, deliveries sqsqueue.Deliveries, indexJobs sqsqueue.IndexJobs) *consumers {
	return &consumers{table, deliveries, indexJobs, index.NewLists(table, dynamo.Shards)}
}

// handTime bounds one call of a consumer. A batch and then each of its records
// are through before their messages can come again.
const handTime = 20 * time.Second

// handle has a consumer process records. An error says that one of them, at
// least, failed; doing them again is safe.
func (c *consumers) handle(ctx context.Context, consumer string, records []events.DynamoDBEventRecord) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("panic: %v", p)
		}
	}()
	ctx, cancel := context.WithTimeout(ctx, handTime)
	defer cancel()
	v := &verdict{}
	handle := dispatcher.New(c.table, c.deliveries, v, time.Now, slog.New(v)).Handle
	if consumer == indexerConsumer {
		handle = indexer.New(c.table, c.lasting(ctx), v, c.indexJobs, slog.New(v)).Handle
	}
	response, err := handle(ctx, events.DynamoDBEvent{Records: records})
	switch {
	case err != nil:
		return err
	case v.parked != nil:
		return v.parked
	case len(response.BatchItemFailures) > 0:
		return cmp.Or(v.logged, errors.New("the consumer failed"))
	}
	return nil
}

// lasting decodes as the indexer does, but leaves out a document that a later
// change of its record has taken the place of. The stream brings changes in
// order and within a day, so the index forgets soon what it removed; a parked
// change may come days later, and would bring it back. What the change removed
// is removed all the same: no other change does that.
func (c *consumers) lasting(ctx context.Context) indexer.Decoder {
	return func(r *events.DynamoDBEventRecord) ([]indexer.ListChange, error) {
		found, err := indexer.DecodeFor(c.lists)(r)
		if err != nil || dynamo.StreamType(r) != dynamo.StreamRecord {
			return found, err
		}
		change, err := dynamo.DecodeRecordChange(r)
		if err != nil {
			return nil, err
		}
		is := change.New
		stored, err := c.table.Records(ctx, change.OrganizationID, is.Kind, []value.ID{is.ID})
		if err != nil {
			return nil, fmt.Errorf("read the record as it is now: %w", err)
		}
		if now := stored[is.ID]; now != nil && now.Revision <= is.Revision {
			return found, nil
		}
		return slices.DeleteFunc(found, func(e indexer.ListChange) bool { return !e.Document.Deleted }), nil
	}
}

// verdict takes the place of the park and of the log in one call of a
// consumer, and so learns why a record failed.
type verdict struct {
	mu             sync.Mutex
	parked, logged error
}

// Park implements the consumers' Parker. The record is in the park already.
func (v *verdict) Park(_ context.Context, _ string, _ events.DynamoDBEventRecord, cause error) error {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.parked = cause
	return nil
}

// Enabled implements [slog.Handler].
func (v *verdict) Enabled(_ context.Context, level slog.Level) bool { return level >= slog.LevelError }

// Handle implements [slog.Handler].
func (v *verdict) Handle(_ context.Context, r slog.Record) error {
	r.Attrs(func(a slog.Attr) bool {
		if err, ok := a.Value.Any().(error); ok {
			v.mu.Lock()
			defer v.mu.Unlock()
			v.logged = err
		}
		return true
	})
	return nil
}

// WithAttrs implements [slog.Handler].
func (v *verdict) WithAttrs([]slog.Attr) slog.Handler { return v }

// WithGroup implements [slog.Handler].
func (v *verdict) WithGroup(string) slog.Handler { return v }
