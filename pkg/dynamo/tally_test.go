package dynamo_test

import (
	"context"
	"errors"
	"net/http"
	"strconv"
	"strings"
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

const hour = value.Time(3_600_000)

// attempted is the row after an attempt that took 40 ms and whose texts are long.
func attempted(r *webhook.Delivery, succeeded bool, now value.Time) *webhook.Delivery {
	long := strings.Repeat("\"", 2000)
	x := webhook.Exchange{
		URL: "https://example.com/" + strings.Repeat("a", 400), Signature: webhook.Sign("", now.Std(), nil, nil, nil),
		OwnHeaders: []string{"Authorization", "X-Shop"}, Status: 200, Header: http.Header{"Server": {"nginx"}, "X-Long": {long}}, Body: []byte(long),
	}
	o := webhook.Outcome{}
	if !succeeded {
		x.Status, o.Result = 500, webhook.AttemptFailed
	}
	if o.Attempt = x.Keep(now.Add(-40*time.Millisecond), 40*time.Millisecond); !succeeded {
		o.Attempt.Error = new("answered 500")
	}
	return r.Record(o, "message", 8, 0.5, now)
}

// counting counts outcomes of one endpoint.
type counting struct {
	t     testing.TB
	table *dynamo.Table
	d     *webhook.Delivery // names the endpoint
	first value.Time        // the start of an hour
}

func newCounting(t testing.TB, table *dynamo.Table) *counting {
	now := value.TimeOf(time.Now())
	return &counting{t, table, &webhook.Delivery{OrganizationID: value.NewID(), ApplicationID: value.NewID(), EndpointID: value.NewID()}, now - now%hour}
}

// next is the tally after so many successes more, recorded at the time.
func (c *counting) next(from *webhook.Tally, successes int, at value.Time) (*webhook.Tally, webhook.Finished) {
	outcomes := make([]webhook.StreamOutcome, successes)
	for i := range outcomes {
		outcomes[i] = webhook.StreamOutcome{
			Previous: c.d, Next: attempted(c.d, true, at), Shard: from.Revision + 1, Sequence: strconv.Itoa(i + 1), At: at,
		}
	}
	return from.Count(outcomes, 0)
}

// count writes the tally after so many successes more.
func (c *counting) count(from *webhook.Tally, successes int, at value.Time) *webhook.Tally {
	c.t.Helper()
	next, finished := c.next(from, successes, at)
	if _, done, err := c.table.PutTally(c.t.Context(), c.d, next, finished); !done || err != nil {
		c.t.Fatalf("PutTally: %t, %v; want it written", done, err)
	}
	return next
}

func (c *counting) check(successes int64) {
	c.t.Helper()
	counters, err := c.table.Counters(c.t.Context(), c.d.OrganizationID, c.d.EndpointID)
	if got := counters[c.d.EndpointID].SuccessCount; got != successes || err != nil {
		c.t.Errorf("%d successes, %v; want %d", got, err, successes)
	}
}

func TestATallyIsWrittenAfterItsLastRevisionOnly(t *testing.T) {
	c := newCounting(t, dynamotest.NewTable(t))
	first := c.count(&webhook.Tally{}, 3, c.first)
	c.check(3)
	for _, from := range []*webhook.Tally{{}, c.count(first, 1, c.first)} {
		if from.Revision > 0 {
			from = first
		}
		next, finished := c.next(from, 5, c.first)
		current, done, err := c.table.PutTally(t.Context(), c.d, next, finished)
		if done || err != nil || current.Revision != 2 || current.Counters().SuccessCount != 4 {
			t.Errorf("after revision %d: %+v, %t, %v; want that of the faster writer", from.Revision, current, done, err)
		}
	}
	c.check(4)
	if stored, err := c.table.Tally(t.Context(), c.d.OrganizationID, c.d.EndpointID); err != nil || stored.Revision != 2 {
		t.Errorf("Tally: %+v, %v; want revision 2", stored, err)
	}
	if other, err := c.table.Tally(t.Context(), value.NewID(), c.d.EndpointID); err != nil || other.Revision != 0 {
		t.Errorf("the tally of another organization's endpoint: %+v, %v; want none", other, err)
	}
}

// A count that fails is repeated by a batch that comes again: it counts once.
func TestATallyIsWrittenOnceWhateverFails(t *testing.T) {
	for _, f := range []faults.Fault{faults.Conflict, faults.Throttle, faults.InternalError, faults.LostAnswer, faults.LostRequest} {
		t.Run(string(f), func(t *testing.T) {
			table, proxy := faultyTable(t, nil)
			c := newCounting(t, table)
			for _, operation := range []string{"TransactWriteItems", "PutItem"} {
				proxy.SetOperation(operation, faults.Rates{f: 0.4})
			}
			tally := &webhook.Tally{}
			for i := range 20 { // an hour each: every second write is a transaction
				at := c.first + value.Time(i/2)*hour
				for done := false; !done; {
					next, finished := c.next(tally, 1, at)
					current, written, err := table.PutTally(t.Context(), c.d, next, finished)
					switch {
					case written:
						tally, done = next, true
					case err == nil && current.Revision > tally.Revision: // our own, without an answer
						tally, done = current, true
					case err != nil && !fault.Is(err, fault.Unavailable):
						t.Fatal(err)
					}
				}
			}
			c.check(20)
			if proxy.Counts().Of(f) == 0 {
				t.Errorf("nothing failed:\n%s", proxy.Counts())
			}
		})
	}
}

func TestAFinishedHourIsKept(t *testing.T) {
	c := newCounting(t, dynamotest.NewTable(t))
	c.count(c.count(c.count(&webhook.Tally{}, 1, c.first), 1, c.first+5), 2, c.first+hour)
	for _, row := range []struct {
		from, to value.Time
		want     []int64 // successes by hour
	}{
		{c.first, c.first + 2*hour, []int64{2, 2}},
		{c.first, c.first + hour, []int64{2}},
		{c.first + 1, c.first + 2*hour, []int64{2}},
		{c.first + hour, c.first + hour, nil},
	} {
		hours, err := c.table.Stats(t.Context(), c.d.OrganizationID, c.d.EndpointID, row.from, row.to)
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
	if hours, err := c.table.Stats(t.Context(), value.NewID(), c.d.EndpointID, c.first, c.first+2*hour); len(hours) > 0 || err != nil {
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
	c := newCounting(t, table)
	tally := c.count(&webhook.Tally{}, 3, c.first)
	hold.Store(true) // between the tally and the finished hours
	read := make(chan []*webhook.HourStats)
	go func() {
		hours, err := table.Stats(t.Context(), c.d.OrganizationID, c.d.EndpointID, c.first, c.first+hour)
		if err != nil {
			t.Errorf("Stats: %v", err)
		}
		read <- hours
	}()
	<-reached
	c.count(tally, 1, c.first+hour)
	close(release)
	if hours := <-read; len(hours) != 1 || hours[0].SuccessCount != 3 {
		t.Errorf("Stats: %+v, want one hour with 3 successes", hours)
	}
}

func TestAForgottenEndpointLeavesNothingThatStays(t *testing.T) {
	client, name := dynamotest.Client(t)
	table := dynamo.New(client, name, time.Now)
	c, kept := newCounting(t, table), newCounting(t, table)
	kept.d.OrganizationID = c.d.OrganizationID
	kept.count(&webhook.Tally{}, 1, kept.first)
	c.count(&webhook.Tally{}, 1, c.first)
	s := slotTaker{t, table, c.d.OrganizationID, c.d.EndpointID}
	s.take("worker", c.first, true)
	must(t, table.FinishEndpointDeletion(t.Context(), value.NewID(), c.d.EndpointID))
	c.check(1)
	must(t, table.FinishEndpointDeletion(t.Context(), c.d.OrganizationID, c.d.EndpointID))
	c.check(0)
	kept.check(1)
	for i := range webhook.FirstPermits {
		s.take(strconv.Itoa(i), c.first, true)
	}
}

// A change without an attempt, another process's outcome, and the table's own
// faults each have an answer of their own.
func TestAnOutcomeIsWrittenOnceOnTheDeliveryAsItWasRead(t *testing.T) {
	table := dynamotest.NewTable(t)
	org, now := value.NewID(), value.TimeOf(time.Now())
	rows := manyRows(org, 2, now)
	for _, r := range rows {
		createRow(t, table, r)
	}
	next := attempted(rows[0], true, now)
	if _, err := table.PutDelivery(t.Context(), rows[0], next); err != nil {
		t.Fatal(err)
	}
	current, err := table.PutDelivery(t.Context(), rows[0], attempted(rows[0], false, now+1))
	if !errors.Is(err, fault.ErrChanged) || cmp.Diff(current, next) != "" {
		t.Errorf("a second outcome: %+v, %v; want the first", current, err)
	}
	absent := *rows[1]
	absent.OrganizationID = value.NewID()
	if current, err := table.PutDelivery(t.Context(), &absent, attempted(&absent, true, now)); !errors.Is(err, fault.ErrChanged) || current != nil {
		t.Errorf("another organization's delivery: %+v, %v; want none", current, err)
	}
}
