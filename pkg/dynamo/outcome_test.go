package dynamo_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/smithy-go/middleware"
	"github.com/google/go-cmp/cmp"

	"github.com/commerce-integration/service/pkg/base/fault"
	"github.com/commerce-integration/service/pkg/base/value"
	"github.com/commerce-integration/service/pkg/dynamo"
	"github.com/commerce-integration/service/pkg/lab/faults"
	"github.com/commerce-integration/service/pkg/testkit/dynamotest"
	"github.com/commerce-integration/service/pkg/webhook"
)

// recorded is what one worker has on its hands: rows of an endpoint that it
// has attempted, and a shard of its own.
type recorded struct {
	t     testing.TB
	table *dynamo.Table
	e     *webhook.Endpoint
	now   value.Time
	rows  []*webhook.Delivery
}

// newRecorded stores rows of an endpoint.
func newRecorded(t testing.TB, table *dynamo.Table, rows int) *recorded {
	t.Helper()
	org := value.NewID()
	r := &recorded{t: t, table: table, e: makeEndpoint(org, value.NewID()), now: value.TimeOf(time.Now())}
	for range rows {
		r.rows = append(r.rows, makeRow(org, r.e, "", r.now))
	}
	if existing, err := table.CreateDeliveries(t.Context(), r.rows); err != nil || cmp.Diff(existing, make([]*webhook.Delivery, rows)) != "" {
		t.Fatalf("CreateRows: %v, %v", existing, err)
	}
	return r
}

// attempted is the row after an attempt that took 40 ms, and the attempt.
func attempted(r *webhook.Delivery, succeeded bool, now value.Time) (*webhook.Delivery, webhook.Attempt) {
	status, body := 200, "ok"
	o := webhook.Outcome{Attempt: webhook.Attempt{At: now.Add(-40 * time.Millisecond), DurationMs: 40, ResponseStatus: &status, ResponseBody: &body}}
	if !succeeded {
		reason := "answered 500"
		status, o.Result, o.Attempt.Error = 500, webhook.AttemptFailed, &reason
	}
	return r.Record(o, "message", 8, 0.5, now), o.Attempt
}

// outcomes are those of the rows at the indexes, all successes.
func (r *recorded) outcomes(indexes ...int) []webhook.DeliveryChange {
	var outcomes []webhook.DeliveryChange
	for _, i := range indexes {
		next, _ := attempted(r.rows[i], true, r.now)
		outcomes = append(outcomes, webhook.DeliveryChange{Previous: r.rows[i], Next: next})
	}
	return outcomes
}

// counted is a shard's write that counts so many successes more.
func (r *recorded) counted(from webhook.StoredCounterShard, successes int) []webhook.CounterShardWrite {
	var attempts []webhook.Attempt
	for range successes {
		_, a := attempted(&webhook.Delivery{}, true, r.now)
		attempts = append(attempts, a)
	}
	w := webhook.CounterShardWrite{OrganizationID: r.e.OrganizationID, EndpointID: r.e.ID, Number: from.Number, Revision: from.Revision}
	w.Next, w.Finished = from.Shard.Add(attempts, webhook.Health{}, r.now)
	return []webhook.CounterShardWrite{w}
}

func emptyShard(shard int) webhook.StoredCounterShard {
	return webhook.StoredCounterShard{Number: shard, Shard: &webhook.CounterShard{}}
}

// record expects that all of it is written.
func (r *recorded) record(outcomes []webhook.DeliveryChange, shards []webhook.CounterShardWrite) {
	r.t.Helper()
	if clash, err := r.table.RecordOutcomes(r.t.Context(), outcomes, shards); clash != nil || err != nil {
		r.t.Fatalf("RecordOutcomes: %+v, %v; want it written", clash, err)
	}
}

// check compares the rows, by index, and the sum of the counters with what
// they are to be.
func (r *recorded) check(successes int64, want map[int]*webhook.Delivery) {
	r.t.Helper()
	for i, row := range want {
		if got, err := r.table.Delivery(r.t.Context(), r.e.OrganizationID, r.rows[i].ID); err != nil || cmp.Diff(got, row) != "" {
			r.t.Errorf("row %d: %v\n%s", i, err, cmp.Diff(got, row))
		}
	}
	counters, err := r.table.Counters(r.t.Context(), r.e.OrganizationID, r.e.ID)
	if err != nil || counters[r.e.ID].SuccessCount != successes {
		r.t.Errorf("Counters: %+v, %v; want %d successes", counters[r.e.ID], err, successes)
	}
}

func TestOutcomesAndTheirShardAreWrittenTogether(t *testing.T) {
	r := newRecorded(t, dynamotest.NewTable(t), 10)
	outcomes := r.outcomes(0, 1, 2, 3, 4, 5, 6, 7, 8, 9)
	want := map[int]*webhook.Delivery{}
	for i, o := range outcomes {
		want[i] = o.Next
	}
	r.record(outcomes, r.counted(emptyShard(3), 10))
	r.check(10, want)
	stored, err := r.table.CounterShard(t.Context(), r.e.OrganizationID, r.e.ID, 3)
	if err != nil || stored.Revision != 1 || stored.Number != 3 {
		t.Errorf("Shard: %+v, %v; want revision 1", stored, err)
	}
	r.record(nil, r.counted(stored, 2))
	r.check(12, want)
	r.record(nil, nil)
}

func TestNothingIsWrittenWhenARowHasChanged(t *testing.T) {
	r := newRecorded(t, dynamotest.NewTable(t), 3)
	held := r.rows[1].Hold(webhook.HeldPaused, r.now+5)
	if _, err := r.table.PutDelivery(t.Context(), r.rows[1], held); err != nil {
		t.Fatal(err)
	}
	absent := *r.rows[2]
	absent.ID = value.NewID()
	outcomes := append(r.outcomes(0, 1), webhook.DeliveryChange{Previous: &absent, Next: absent.Cancel(r.now)})
	clash, err := r.table.RecordOutcomes(t.Context(), outcomes, r.counted(emptyShard(0), 3))
	want := &webhook.WriteConflict{Deliveries: map[int]*webhook.Delivery{1: held, 2: nil}, Recorded: map[int]bool{}, Shards: map[int]webhook.StoredCounterShard{}}
	if err != nil || cmp.Diff(clash, want) != "" {
		t.Errorf("RecordOutcomes: %v\n%s", err, cmp.Diff(clash, want))
	}
	r.check(0, map[int]*webhook.Delivery{0: r.rows[0], 1: held})
}

func TestNothingIsWrittenWhenAShardHasAnotherRevision(t *testing.T) {
	r := newRecorded(t, dynamotest.NewTable(t), 1)
	r.record(nil, r.counted(emptyShard(5), 1))
	outdated, gone := r.counted(emptyShard(5), 7), r.counted(webhook.StoredCounterShard{Number: 6, Revision: 4, Shard: &webhook.CounterShard{}}, 1)
	clash, err := r.table.RecordOutcomes(t.Context(), r.outcomes(0), append(outdated, gone...))
	if err != nil || clash == nil || len(clash.Deliveries)+len(clash.Recorded) > 0 || len(clash.Shards) != 2 {
		t.Fatalf("RecordOutcomes: %+v, %v; want both shards", clash, err)
	}
	there, none := clash.Shards[0], clash.Shards[1]
	if there.Number != 5 || there.Revision != 1 || there.Shard.Counters().SuccessCount != 1 {
		t.Errorf("the shard that is there: %+v, want revision 1 with one success", there)
	}
	if none.Number != 6 || none.Revision != 0 || none.Shard.Counters().SuccessCount != 0 {
		t.Errorf("the shard that is gone: %+v, want an empty one of revision 0", none)
	}
	r.check(1, map[int]*webhook.Delivery{0: r.rows[0]})
	r.record(r.outcomes(0), r.counted(there, 1))
	r.check(2, nil)
}

func TestTooManyOutcomesAreRefused(t *testing.T) {
	r := newRecorded(t, dynamotest.NewTable(t), webhook.MaxOutcomeWrites)
	var all []int
	for i := range r.rows {
		all = append(all, i)
	}
	if clash, err := r.table.RecordOutcomes(t.Context(), r.outcomes(all...), r.counted(emptyShard(0), 1)); clash != nil || err == nil {
		t.Errorf("101 writes: %+v, %v; want an error", clash, err)
	}
	r.record(r.outcomes(all[1:]...), r.counted(emptyShard(0), 1))
	r.check(1, map[int]*webhook.Delivery{0: r.rows[0]})
}

func TestOutcomesOfAnotherOrganizationAreAsGoodAsAbsent(t *testing.T) {
	r := newRecorded(t, dynamotest.NewTable(t), 1)
	r.record(nil, r.counted(emptyShard(0), 1))
	outcomes, shards := r.outcomes(0), r.counted(webhook.StoredCounterShard{Revision: 1, Shard: &webhook.CounterShard{}}, 1)
	foreign := *outcomes[0].Next
	foreign.OrganizationID = value.NewID()
	outcomes[0].Next, shards[0].OrganizationID = &foreign, foreign.OrganizationID
	clash, err := r.table.RecordOutcomes(t.Context(), outcomes, shards)
	if err != nil || clash == nil || cmp.Diff(clash.Deliveries, map[int]*webhook.Delivery{0: nil}) != "" || clash.Shards[0].Revision != 0 {
		t.Errorf("RecordOutcomes: %+v, %v; want neither to be there", clash, err)
	}
	r.check(1, map[int]*webhook.Delivery{0: r.rows[0]})
}

func TestOutcomesWhoseAnswerIsLostAreRecordedOnce(t *testing.T) {
	table, b := breakingTable(t, "TransactWriteItems")
	r := newRecorded(t, table, 2)
	b.armed.Store(true)
	r.record(r.outcomes(0, 1), r.counted(emptyShard(0), 2))
	if b.armed.Load() {
		t.Error("no answer was lost")
	}
	r.check(2, nil)
}

// lose has an outcome recorded by a call that never learns of it.
func (r *recorded) lose(proxy *faults.Proxy, outcomes []webhook.DeliveryChange, shards []webhook.CounterShardWrite) {
	r.t.Helper()
	proxy.SetOperation("TransactWriteItems", faults.Rates{faults.FalseError: 1})
	if clash, err := r.table.RecordOutcomes(r.t.Context(), outcomes, shards); clash != nil || !fault.Is(err, fault.Unavailable) {
		r.t.Fatalf("RecordOutcomes without an answer: %+v, %v; want it unavailable", clash, err)
	}
	proxy.SetRates(nil)
}

func TestACallMadeAnewMeetsItsOwnWrite(t *testing.T) {
	for _, c := range []struct {
		name         string
		first, again []int
		written      bool
		recorded     []int // by index of the second call
	}{
		{name: "the same", first: []int{0, 1}, again: []int{0, 1}, written: true},
		{name: "more", first: []int{0, 1}, again: []int{0, 1, 2}, recorded: []int{0, 1}},
		{name: "fewer", first: []int{0, 1}, again: []int{1}, recorded: []int{0}},
		{name: "others", first: []int{0, 1}, again: []int{2, 1}, recorded: []int{1}},
	} {
		t.Run(c.name, func(t *testing.T) {
			table, proxy := faultyTable(t, nil)
			r := newRecorded(t, table, 3)
			r.lose(proxy, r.outcomes(c.first...), r.counted(emptyShard(0), len(c.first)))
			again := r.outcomes(c.again...)
			clash, err := table.RecordOutcomes(t.Context(), again, r.counted(emptyShard(0), len(c.again)))
			if err != nil || (clash == nil) != c.written {
				t.Fatalf("RecordOutcomes: %+v, %v; want it written: %t", clash, err, c.written)
			}
			r.check(2, map[int]*webhook.Delivery{0: r.outcomes(0)[0].Next, 1: r.outcomes(1)[0].Next, 2: r.rows[2]})
			if c.written {
				return
			}
			want := map[int]bool{}
			for _, i := range c.recorded {
				want[i] = true
			}
			stored := clash.Shards[0]
			if cmp.Diff(clash.Recorded, want) != "" || len(clash.Deliveries) > 0 || stored.Revision != 1 || stored.Shard.Counters().SuccessCount != 2 {
				t.Errorf("clash: %+v; want recorded %v, no rows, and the shard that counts both", clash, want)
			}
		})
	}
}

func TestAWholeCallIsKnownThoughARowHasChangedSince(t *testing.T) {
	table, proxy := faultyTable(t, nil)
	r := newRecorded(t, table, 2)
	outcomes, shards := r.outcomes(0, 1), r.counted(emptyShard(0), 2)
	r.lose(proxy, outcomes, shards)
	requeued := outcomes[0].Next.Requeue(r.now + 9)
	if _, err := table.PutDelivery(t.Context(), outcomes[0].Next, requeued); err != nil {
		t.Fatal(err)
	}
	r.record(outcomes, shards)
	r.check(2, map[int]*webhook.Delivery{0: requeued, 1: outcomes[1].Next})
}

func TestTheSameOutcomeOfAnotherProcessIsAnothers(t *testing.T) {
	client, name := dynamotest.Client(t)
	r := newRecorded(t, dynamo.New(client, name, time.Now), 1)
	other := dynamo.New(client, name, time.Now)
	r.record(r.outcomes(0), r.counted(emptyShard(0), 1))
	clash, err := other.RecordOutcomes(t.Context(), r.outcomes(0), r.counted(emptyShard(1), 1))
	if err != nil || clash == nil || clash.Deliveries[0] == nil || len(clash.Recorded) > 0 {
		t.Errorf("RecordOutcomes: %+v, %v; want the row as another's", clash, err)
	}
	r.check(1, nil)
}

func TestOutcomesWaitForConflictsAndThrottles(t *testing.T) {
	for _, f := range []faults.Fault{faults.Conflict, faults.Throttle, faults.InternalError, faults.LostAnswer, faults.LostRequest} {
		t.Run(string(f), func(t *testing.T) {
			table, proxy := faultyTable(t, nil)
			r := newRecorded(t, table, 20)
			proxy.SetOperation("TransactWriteItems", faults.Rates{f: 0.4})
			shard := emptyShard(0)
			for i := range r.rows {
				outcomes, w := r.outcomes(i), r.counted(shard, 1)
				clash, err := table.RecordOutcomes(t.Context(), outcomes, w)
				for fault.Is(err, fault.Unavailable) { // every try met a fault: the worker makes the call again
					clash, err = table.RecordOutcomes(t.Context(), outcomes, w)
				}
				if clash != nil || err != nil {
					t.Fatalf("RecordOutcomes: %+v, %v; want it written", clash, err)
				}
				shard = webhook.StoredCounterShard{Revision: shard.Revision + 1, Shard: w[0].Next}
			}
			r.check(20, nil)
			if proxy.Counts().Of(f) == 0 {
				t.Errorf("nothing failed:\n%s", proxy.Counts())
			}
		})
	}
}

func TestAFinishedHourIsKept(t *testing.T) {
	r := newRecorded(t, dynamotest.NewTable(t), 0)
	const hour = value.Time(3_600_000)
	first := r.now - r.now%hour
	r.now = first + 5
	var stored []webhook.StoredCounterShard
	for shard := range 2 {
		w := r.counted(emptyShard(shard), 1)
		r.record(nil, w)
		stored = append(stored, webhook.StoredCounterShard{Number: shard, Revision: 1, Shard: w[0].Next})
	}
	r.now += hour
	w := r.counted(stored[0], 2)
	if w[0].Finished == nil {
		t.Fatal("no hour was finished")
	}
	r.record(nil, w)
	for _, row := range []struct {
		from, to value.Time
		want     []int64 // successes by hour
	}{
		{first, first + 2*hour, []int64{2, 2}},
		{first, first + hour, []int64{2}},
		{first + 1, first + 2*hour, []int64{2}},
		{first + hour, first + hour, nil},
	} {
		hours, err := r.table.Stats(t.Context(), r.e.OrganizationID, r.e.ID, row.from, row.to)
		var got []int64
		for i, h := range hours {
			got = append(got, h.SuccessCount)
			if ms := h.Percentile(50); ms == nil || *ms < 36 || *ms > 44 || i > 0 && hours[i-1].Start >= h.Start {
				t.Errorf("hour %d from %s: median %v ms; want 40 ms", i, h.Start, ms)
			}
		}
		if err != nil || cmp.Diff(got, row.want) != "" {
			t.Errorf("Stats from %s to %s: %v, %v; want %v", row.from, row.to, got, err, row.want)
		}
	}
	if hours, err := r.table.Stats(t.Context(), value.NewID(), r.e.ID, first, first+2*hour); len(hours) > 0 || err != nil {
		t.Errorf("Stats of another organization: %+v, %v", hours, err)
	}
}

// An hour that is finished while it is being read is neither missed nor
// counted twice.
func TestAnHourIsReadOnceThoughItIsFinishedMeanwhile(t *testing.T) {
	client, name := dynamotest.Client(t)
	var hold atomic.Bool
	var calls atomic.Int64
	reached, release := make(chan struct{}), make(chan struct{})
	table := dynamo.New(dynamodb.New(client.Options(), func(o *dynamodb.Options) {
		o.APIOptions = append(o.APIOptions, func(stack *middleware.Stack) error {
			return stack.Initialize.Add(middleware.InitializeMiddlewareFunc("Hold", func(ctx context.Context, in middleware.InitializeInput, next middleware.InitializeHandler) (
				middleware.InitializeOutput, middleware.Metadata, error,
			) {
				if hold.Load() && calls.Add(1) == 2 {
					close(reached)
					<-release
				}
				return next.HandleInitialize(ctx, in)
			}), middleware.After)
		})
	}), name, time.Now)
	r := newRecorded(t, table, 0)
	const hour = value.Time(3_600_000)
	first := r.now - r.now%hour
	r.now = first
	w := r.counted(emptyShard(0), 3)
	r.record(nil, w)
	hold.Store(true) // between the counter shards and the finished hours
	read := make(chan []*webhook.HourStats)
	go func() {
		hours, err := table.Stats(t.Context(), r.e.OrganizationID, r.e.ID, first, first+hour)
		if err != nil {
			t.Errorf("Stats: %v", err)
		}
		read <- hours
	}()
	<-reached
	r.now += hour
	r.record(nil, r.counted(webhook.StoredCounterShard{Revision: 1, Shard: w[0].Next}, 1))
	close(release)
	if hours := <-read; len(hours) != 1 || hours[0].SuccessCount != 3 {
		t.Errorf("Stats: %+v, want one hour with 3 successes", hours)
	}
}

// Workers record what they attempted of the same rows while the table fails,
// each as the receiver of its message would: again after an error, and anew
// after a clash. In the end the counters equal what the rows say.
func TestCountersEqualTheOutcomesWhateverFails(t *testing.T) {
	client, name := dynamotest.Client(t)
	proxy, err := faults.New(*client.Options().BaseEndpoint, faults.Config{
		Seed: rand.Uint64(), Rates: faults.Every(0.06, append(broken, faults.Conflict)...),
	})
	must(t, err)
	must(t, proxy.Start("127.0.0.1:0"))
	t.Cleanup(func() { proxy.Close() })
	r := newRecorded(t, dynamo.New(client, name, time.Now), 30)
	var wg sync.WaitGroup
	for process := range 4 {
		endpoint := proxy.Endpoint(fmt.Sprint(process))
		table := dynamo.New(dynamodb.New(client.Options(), func(o *dynamodb.Options) {
			o.BaseEndpoint, o.Retryer = &endpoint, promptRetryer()
		}), name, time.Now)
		wg.Go(func() { r.work(table, process) })
	}
	wg.Wait()
	proxy.Off()
	attempts := int64(0)
	rows, err := r.table.Deliveries(t.Context(), r.e.OrganizationID, idsOf(r.rows))
	if err != nil || len(rows) != len(r.rows) {
		t.Fatalf("%d rows, %v", len(rows), err)
	}
	for _, row := range rows {
		attempts += int64(row.AttemptCount)
		if row.Pending() {
			t.Errorf("row %s is pending after %d attempts", row.ID, row.AttemptCount)
		}
	}
	counters, err := r.table.Counters(t.Context(), r.e.OrganizationID, r.e.ID)
	if c := counters[r.e.ID]; err != nil || c.SuccessCount+c.FailureCount != attempts || c.SuccessCount != int64(len(rows)) {
		t.Errorf("counted %d and %d, %v; the rows have %d attempts, %d of them successes\n%s",
			c.SuccessCount, c.FailureCount, err, attempts, len(rows), proxy.Counts())
	}
}

func idsOf(rows []*webhook.Delivery) []value.ID {
	ids := make([]value.ID, len(rows))
	for i, r := range rows {
		ids[i] = r.ID
	}
	return ids
}

// work attempts the rows, four at a time, until each is delivered at its
// third attempt, by whatever process.
func (r *recorded) work(table *dynamo.Table, process int) {
	shard := emptyShard(process)
	for start := 0; start < len(r.rows); start += 4 {
		ids := idsOf(r.rows[start:min(start+4, len(r.rows))])
		for pending := true; pending; {
			var err error
			if pending, err = r.attempt(table, ids, &shard); err != nil && !fault.Is(err, fault.Unavailable) {
				r.t.Error(err)
				return
			}
		}
	}
}

// attempt makes one attempt of each row that is pending.
func (r *recorded) attempt(table *dynamo.Table, ids []value.ID, shard *webhook.StoredCounterShard) (pending bool, err error) {
	rows, err := table.Deliveries(r.t.Context(), r.e.OrganizationID, ids)
	if err != nil {
		return true, err
	}
	var outcomes []webhook.DeliveryChange
	var attempts []webhook.Attempt
	for _, row := range rows {
		if row.Pending() {
			next, a := attempted(row, row.AttemptCount == 2, row.UpdatedAt)
			outcomes, attempts = append(outcomes, webhook.DeliveryChange{Previous: row, Next: next}), append(attempts, a)
		}
	}
	for len(outcomes) > 0 {
		pending = true
		next, _ := shard.Shard.Add(attempts, webhook.Health{}, r.now)
		clash, err := table.RecordOutcomes(r.t.Context(), outcomes, []webhook.CounterShardWrite{{
			OrganizationID: r.e.OrganizationID, EndpointID: r.e.ID, Number: shard.Number, Revision: shard.Revision, Next: next,
		}})
		switch {
		case err != nil && !fault.Is(err, fault.Unavailable):
			return false, err
		case err != nil:
			continue
		case clash == nil:
			shard.Revision, shard.Shard = shard.Revision+1, next
			return true, nil
		}
		if stored, changed := clash.Shards[0]; changed {
			*shard = stored
		}
		outcomes, attempts = without(outcomes, attempts, clash)
	}
	return pending, nil
}

// without leaves out what is recorded, by this process or another.
func without(outcomes []webhook.DeliveryChange, attempts []webhook.Attempt, clash *webhook.WriteConflict) ([]webhook.DeliveryChange, []webhook.Attempt) {
	var left []webhook.DeliveryChange
	var counted []webhook.Attempt
	for i := range outcomes {
		if _, changed := clash.Deliveries[i]; !changed && !clash.Recorded[i] {
			left, counted = append(left, outcomes[i]), append(counted, attempts[i])
		}
	}
	return left, counted
}

// recordEach writes outcomes, and expects the conflict.
func (r *recorded) recordEach(outcomes []webhook.DeliveryChange, want *webhook.WriteConflict) {
	r.t.Helper()
	conflict, err := r.table.RecordEach(r.t.Context(), outcomes)
	if err != nil || cmp.Diff(conflict, want) != "" {
		r.t.Fatalf("RecordEach: %v\n%s", err, cmp.Diff(conflict, want))
	}
}

func TestOutcomesForTheStreamAreWrittenEachOnItsOwn(t *testing.T) {
	for name, rows := range map[string]int{"none": 0, "one": 1, "several": 30} {
		t.Run(name, func(t *testing.T) {
			r := newRecorded(t, dynamotest.NewTable(t), rows)
			var all []int
			for i := range rows {
				all = append(all, i)
			}
			outcomes, want := r.outcomes(all...), map[int]*webhook.Delivery{}
			for i, o := range outcomes {
				want[i] = o.Next
			}
			r.recordEach(outcomes, nil)
			r.check(0, want) // the stream counts them
			r.recordEach(outcomes, nil)
		})
	}
}

func TestOutcomeForTheStreamLeavesWhatOthersHaveChanged(t *testing.T) {
	for name, others := range map[string][]int{"alone": nil, "with others": {0, 3, 4}} {
		t.Run(name, func(t *testing.T) {
			r := newRecorded(t, dynamotest.NewTable(t), 5)
			held := r.rows[1].Hold(webhook.HeldPaused, r.now+5)
			if _, err := r.table.PutDelivery(t.Context(), r.rows[1], held); err != nil {
				t.Fatal(err)
			}
			outcomes := r.outcomes(append([]int{1}, others...)...)
			absent := *r.rows[2]
			absent.ID = value.NewID()
			if others != nil {
				outcomes = append(outcomes, webhook.DeliveryChange{Previous: &absent, Next: absent.Cancel(r.now)})
			}
			want := &webhook.WriteConflict{Deliveries: map[int]*webhook.Delivery{0: held}, Recorded: map[int]bool{}, Shards: map[int]webhook.StoredCounterShard{}}
			for i := range others {
				want.Recorded[i+1], want.Deliveries[len(others)+1] = true, nil
			}
			r.recordEach(outcomes, want)
			r.check(0, map[int]*webhook.Delivery{1: held})
		})
	}
}

func TestOutcomeForTheStreamWhoseAnswerIsLostIsRecordedOnce(t *testing.T) {
	for operation, rows := range map[string][]int{"PutItem": {0}, "BatchExecuteStatement": {0, 1}} {
		t.Run(operation, func(t *testing.T) {
			table, proxy := faultyTable(t, nil)
			r := newRecorded(t, table, 3)
			proxy.SetOperation(operation, faults.Rates{faults.FalseError: 1})
			// The SDK repeats a put, which then meets its own write.
			conflict, err := r.table.RecordEach(t.Context(), r.outcomes(rows...))
			if conflict != nil || err != nil && !fault.Is(err, fault.Unavailable) {
				t.Fatalf("RecordEach without an answer: %+v, %v", conflict, err)
			}
			proxy.SetRates(nil)
			r.recordEach(r.outcomes(append(rows, 2)...), map[bool]*webhook.WriteConflict{
				true:  {Deliveries: map[int]*webhook.Delivery{}, Recorded: map[int]bool{0: true, 1: true}, Shards: map[int]webhook.StoredCounterShard{}},
				false: {Deliveries: map[int]*webhook.Delivery{}, Recorded: map[int]bool{0: true, 1: true, 2: true}, Shards: map[int]webhook.StoredCounterShard{}},
			}[len(rows) == 1])
			r.check(0, map[int]*webhook.Delivery{0: r.outcomes(0)[0].Next, 2: r.outcomes(2)[0].Next})
		})
	}
}
