package template

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/commerce-integration/service/pkg/delivery/worker"
	"github.com/commerce-integration/service/pkg/webhook"
)

func TestQueueSourcesLeaveTimeForRetries(t *testing.T) {
	m := stack(t)
	type queue struct {
		function, dead                 string
		batch, concurrency, receptions int
	}
	got := map[string]queue{}
	for _, f := range m.Functions {
		for _, source := range f.Queues {
			q := m.Queues[source.Queue]
			got[source.Queue] = queue{f.Name, q.DeadLetterQueue, source.BatchSize, source.MaxConcurrency, q.MaxReceiveCount}
			if visible, err := time.ParseDuration(q.Attributes["VisibilityTimeout"] + "s"); err != nil || visible < 6*f.Timeout {
				t.Errorf("%s: visibility %v is less than six timeouts of %s (%v)", q.LogicalID, visible, f.Name, f.Timeout)
			}
			if dead := m.Queues[q.DeadLetterQueue]; dead.Attributes["MessageRetentionPeriod"] != "1209600" {
				t.Errorf("%s: dead letters in %+v", q.LogicalID, dead)
			}
		}
	}
	want := map[string]queue{
		"RecordsQueue": {"ingest", "RecordsDLQ", 10, 50, 50},
		// An import does not take the executions of single records.
		"ImportsQueue":        {"ingest", "RecordsDLQ", 1, 2, 50},
		"DeliveriesQueue":     {"worker", "DeliveriesDLQ", 10, 200, 50},
		"SlowDeliveriesQueue": {"worker", "DeliveriesDLQ", 5, 20, 50},
		"IndexJobsQueue":      {"sweeper", "IndexJobsDLQ", 1, 10, 10},
	}
	if fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("queues: got %v, want %v", got, want)
	}
	for id, q := range m.Queues {
		if size := q.Attributes["MaximumMessageSize"]; size != "1048576" {
			t.Errorf("%s takes messages of %s bytes, want 1 MiB", id, size)
		}
	}
}

func TestTimeoutsOfFunctionsFitWhatTheyDo(t *testing.T) {
	m := stack(t)
	// An attempt must end, and its outcome be written, before its message is visible again. The worker starts one only if
	// the endpoint's timeout and its spare time are left of the function's timeout.
	if longest := webhook.MaxTimeoutSeconds*time.Second + worker.ShutdownMargin; m.Functions["worker"].Timeout < longest {
		t.Errorf("the worker has %v, the longest attempt and what it spares take %v", m.Functions["worker"].Timeout, longest)
	}
	// The sweeper looks after a closed circuit for a while. A function that saw it open must have held its events by then.
	for _, name := range []string{"dispatcher", "worker"} {
		if timeout := m.Functions[name].Timeout; timeout > webhook.RecentSpan/2 {
			t.Errorf("%s may take %v, a closed circuit is looked after for %v", name, timeout, webhook.RecentSpan)
		}
	}
}

// A delivery goes to the lane of its endpoint, so a function that may send to one queue may send to both.
func TestFunctionsMaySendDeliveriesToBothLanes(t *testing.T) {
	m := stack(t)
	for name, f := range m.Functions {
		may := func(action, queue string) bool {
			return slices.Contains(f.Permissions, Permission{Action: action, Resource: m.Queues[queue].ARN})
		}
		for _, action := range []string{"sqs:SendMessage", "sqs:ReceiveMessage", "sqs:DeleteMessage", "sqs:ChangeMessageVisibility", "sqs:GetQueueAttributes"} {
			if may(action, "DeliveriesQueue") != may(action, "SlowDeliveriesQueue") {
				t.Errorf("%s may %s in one lane only", name, action)
			}
		}
		sends := slices.Contains([]string{"dispatcher", "indexer", "sweeper", "webhooks", "worker"}, name)
		if may("sqs:SendMessage", "DeliveriesQueue") != sends {
			t.Errorf("%s may send deliveries: %t, want %t", name, !sends, sends)
		}
	}
}

// The reader takes most of these properties for granted. The dispatcher's events need no order, so that it takes batches
// of a shard side by side; those of the indexer would meet at one tail.
func TestSourcesLoseNothing(t *testing.T) {
	type guaranteed struct {
		FunctionResponseTypes      []string
		Window                     time.Duration `json:"MaximumBatchingWindowInSeconds"`
		BisectBatchOnFunctionError string
		StartingPosition           string
		MaximumRetryAttempts       int
		MaximumRecordAgeInSeconds  int
		ParallelizationFactor      int
		FilterCriteria             struct{ Filters []struct{ Pattern string } }
	}
	partial := []string{"ReportBatchItemFailures"}
	stream := func(factor int, patterns ...string) guaranteed {
		g := guaranteed{partial, 0, "true", "TRIM_HORIZON", -1, -1, factor, struct{ Filters []struct{ Pattern string } }{}}
		for _, p := range patterns {
			g.FilterCriteria.Filters = append(g.FilterCriteria.Filters, struct{ Pattern string }{`{"dynamodb":{"NewImage":` + p + `}}`})
		}
		return g
	}
	m := stack(t, "DispatcherParallelization=3")
	want := map[string]guaranteed{
		"DispatcherChanges": stream(3, `{"t":{"S":["rec","end","app","key","cnt","grt","src","beat"]}}`, `{"alert":{"S":["event.failed"]}}`),
		"IndexerChanges":    stream(0, `{"t":{"S":["rec","evt","beat"]}}`),
	}
	got := map[string]guaranteed{}
	for _, f := range m.Functions {
		for _, source := range f.Streams {
			got[source.ID] = properties[guaranteed](t, m, source.ID)
		}
		for _, source := range f.Queues {
			got[source.ID] = properties[guaranteed](t, m, source.ID)
			want[source.ID] = guaranteed{FunctionResponseTypes: partial}
		}
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("event source mappings (-want +got):\n%s", diff)
	}
	if factor := stack(t).Functions["dispatcher"].Streams[0].ParallelizationFactor; factor != 2 {
		t.Errorf("factor %d of the dispatcher, want 2", factor)
	}
}

// Lambda drops a message after 16 steps through queues and functions that lead back to the same function, unless the
// function says RecursiveLoop.
func TestFunctionsThatFeedThemselvesAllowIt(t *testing.T) {
	m := stack(t)
	recursive := feedThemselves(m)
	if len(recursive) == 0 {
		t.Error("no function is found to feed itself, the sweeper does")
	}
	for name, f := range m.Functions {
		loop := properties[struct{ RecursiveLoop string }](t, m, f.LogicalID).RecursiveLoop
		if (loop == "Allow") != slices.Contains(recursive, name) {
			t.Errorf("%s: RecursiveLoop is %q, functions that feed themselves are %v", name, loop, recursive)
		}
	}
}

// feedThemselves returns the functions that a message of theirs can come back to, through any number of others: they
// may send it to a queue whose URL they have, and the queue invokes a function.
func feedThemselves(m *Model) (names []string) {
	leads := map[string][]string{}
	for from, f := range m.Functions {
		for to, other := range m.Functions {
			for _, source := range other.Queues {
				if f.sendsTo(source.Queue) {
					leads[from] = append(leads[from], to)
				}
			}
		}
	}
	for name := range m.Functions {
		reached := map[string]bool{}
		for open := leads[name]; len(open) > 0; open = open[1:] {
			if !reached[open[0]] {
				reached[open[0]] = true
				open = append(open, leads[open[0]]...)
			}
		}
		if reached[name] {
			names = append(names, name)
		}
	}
	return names
}

// sendsTo reports whether the function may send to the queue and has its URL.
func (f Function) sendsTo(queue string) bool {
	may := slices.ContainsFunc(f.Permissions, func(p Permission) bool {
		action := p.Action == "sqs:SendMessage" || p.Action == "sqs:*" || p.Action == "*"
		return action && (p.Resource == "*" || strings.HasSuffix(p.Resource, ":"+queue))
	})
	for _, value := range f.Environment {
		if may && strings.HasSuffix(value, "/"+queue) {
			return true
		}
	}
	return false
}
