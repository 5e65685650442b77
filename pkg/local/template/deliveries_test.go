package template_test

import (
	"slices"
	"testing"
	"time"

	"github.com/commerce-integration/service/pkg/delivery/worker"
	"github.com/commerce-integration/service/pkg/local/template"
	"github.com/commerce-integration/service/pkg/webhook"
)

// An attempt must have ended, and its outcome be written, before its message
// is visible again: the worker starts one only if the endpoint's timeout and
// its spare are left of the function's, which the visibility is six times of.
func TestNoMessageIsVisibleWhileItsAttemptRuns(t *testing.T) {
	m := model(t)
	fn := m.Functions["worker"]
	longest := webhook.MaxTimeoutSeconds*time.Second + worker.Spare
	if fn.Timeout < longest {
		t.Errorf("the worker has %v, the longest attempt and what it spares take %v", fn.Timeout, longest)
	}
	for _, name := range []string{"DeliveriesQueue", "SlowDeliveriesQueue"} {
		if got, want := m.Queues[name].VisibilityTimeout, 6*fn.Timeout; got != want {
			t.Errorf("%s: messages are invisible for %v, want six timeouts of the worker, %v", name, got, want)
		}
	}
}

func TestEachLaneIsItsOwnSourceOfTheWorker(t *testing.T) {
	m := model(t)
	sources := map[string]template.QueueSource{}
	for _, source := range m.Functions["worker"].Queues {
		sources[source.Queue] = source
	}
	for name, want := range map[string]struct{ batch, concurrency int }{
		"DeliveriesQueue": {10, 200}, "SlowDeliveriesQueue": {5, 20},
	} {
		got := sources[name]
		if got.BatchSize != want.batch || got.MaxConcurrency != want.concurrency || !got.ReportFailures {
			t.Errorf("%s: got %+v, want batches of %d, %d at a time", name, got, want.batch, want.concurrency)
		}
		queue := m.Queues[name]
		if queue.DeadLetterQueue != "DeliveriesDLQ" || queue.MaxReceiveCount != 50 {
			t.Errorf("%s: its messages go to %q after %d receives, want DeliveriesDLQ after 50", name, queue.DeadLetterQueue, queue.MaxReceiveCount)
		}
	}
	if len(sources) != 2 {
		t.Errorf("sources of the worker: %v, want one for each lane", sources)
	}
}

// An import takes its time: not the executions that single records come by.
func TestImportsAreASourceOfTheirOwn(t *testing.T) {
	sources := map[string]template.QueueSource{}
	for _, source := range model(t).Functions["ingest"].Queues {
		sources[source.Queue] = source
	}
	if got := sources["ImportsQueue"]; got.BatchSize != 1 || got.MaxConcurrency != 2 || len(sources) != 2 {
		t.Errorf("sources of ingest: %+v, want imports in batches of one, two at a time, beside the records", sources)
	}
	dead := map[string]bool{}
	for name := range sources {
		dead[model(t).Queues[name].DeadLetterQueue] = true
	}
	if len(dead) != 1 || !dead["RecordsDLQ"] {
		t.Errorf("dead letters go to %v, want RecordsDLQ", dead)
	}
}

// A circuit is looked after for a while once it has closed. Whoever saw it open
// must have held its events by then.
func TestWhoeverHoldsEventsEndsBeforeTheCircuitDoes(t *testing.T) {
	m := model(t)
	for _, name := range []string{"dispatcher", "worker"} {
		if timeout := m.Functions[name].Timeout; timeout > webhook.RecentSpan/2 {
			t.Errorf("%s may take %v, a closed circuit is looked after for %v", name, timeout, webhook.RecentSpan)
		}
	}
}

// A delivery goes to the lane of its endpoint, so that a function that may send to one queue
// may send to both.
func TestWhoSendsDeliveriesMaySendToBothLanes(t *testing.T) {
	m := model(t)
	for name, f := range m.Functions {
		may := func(action, queue string) bool {
			return slices.Contains(f.Permissions, template.Permission{Action: action, Resource: m.Queues[queue].ARN})
		}
		for _, action := range []string{"sqs:SendMessage", "sqs:ReceiveMessage", "sqs:DeleteMessage", "sqs:ChangeMessageVisibility", "sqs:GetQueueAttributes"} {
			if may(action, "DeliveriesQueue") != may(action, "SlowDeliveriesQueue") {
				t.Errorf("%s may %s in one lane only", name, action)
			}
		}
		sends := slices.Contains([]string{"dispatcher", "sweeper", "webhooks", "worker"}, name)
		if may("sqs:SendMessage", "DeliveriesQueue") != sends {
			t.Errorf("%s may send deliveries: %t, want %t", name, !sends, sends)
		}
	}
}
