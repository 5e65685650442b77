package runner

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/commerce-integration/service/pkg/local/eventsource"
	"github.com/commerce-integration/service/pkg/local/template"
)

func TestAQueueSourceIsWhatTheTemplateDeclares(t *testing.T) {
	source := template.QueueSource{
		ID: "WorkerDeliveries", Queue: "DeliveriesQueue", BatchSize: 7, Window: 3 * time.Second, MaxConcurrency: 200,
		ReportFailures: true, Filters: []string{`{"body":{"a":[1]}}`},
	}
	want := eventsource.QueueConfig{
		BatchSize: 7, MaximumBatchingWindow: 3 * time.Second,
		ReportBatchItemFailures: true, Filters: []string{`{"body":{"a":[1]}}`},
	}
	if diff := cmp.Diff(want, queueConfig(source), cmpopts.IgnoreFields(eventsource.QueueConfig{}, "Host")); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

func TestWhatKeepsTheMachineBusyRunsLessSideBySideThanInAWS(t *testing.T) {
	for _, c := range []struct {
		function       string
		template, want int
	}{
		{"worker", 200, 32},
		{"worker", 2, 2},
		{"worker", 0, 32},
		{"ingest", 50, 4},
		{"ingest", 2, 2},
		{"ingest", 0, 4},
		{"sweeper", 10, 2},
		{"dispatcher", 0, 1000},
	} {
		if got := concurrency(c.function, c.template); got != c.want {
			t.Errorf("%s with %d in the template: got %d, want %d", c.function, c.template, got, c.want)
		}
	}
}

func TestStreamBatchesAreFewOnOneMachine(t *testing.T) {
	for _, c := range []struct{ factor, here, asProcesses int }{{1, 1, 8}, {2, 2, 16}, {10, 2, 16}} {
		if here, asProcesses := lanes(c.factor), processLanes(c.factor); here != c.here || asProcesses != c.asProcesses {
			t.Errorf("factor %d: got %d and %d lanes, want %d and %d", c.factor, here, asProcesses, c.here, c.asProcesses)
		}
	}
}

func TestTheStreamIsReadAfterWhateverIngestHasDone(t *testing.T) {
	nudges := 0
	failing := then(func(context.Context, int) (string, error) {
		if nudges > 0 {
			t.Error("nudged before the call has ended")
		}
		return "answer", errors.New("broken")
	}, func() { nudges++ })
	if answer, err := failing(t.Context(), 1); answer != "answer" || err == nil || nudges != 1 {
		t.Errorf("got %q, %v and %d nudges; want what the call came to, and one", answer, err, nudges)
	}
	if then[int, string](nil, func() {}) != nil {
		t.Error("what is not there must not be called")
	}
}

func TestAStreamSourceIsWhatTheTemplateDeclares(t *testing.T) {
	source := template.StreamSource{
		ID: "IndexerChanges", BatchSize: 1000, Window: time.Second, Bisect: true, MaxRetries: 3, MaxAge: time.Hour,
		ReportFailures: true, Filters: []string{`{"eventName":["INSERT"]}`},
	}
	retries, age := 3, time.Hour
	want := eventsource.StreamConfig{
		BatchSize: 1000, MaximumBatchingWindow: time.Second, BisectBatch: true, MaximumRetryAttempts: &retries, MaximumRecordAge: &age,
		ReportBatchItemFailures: true, Filters: []string{`{"eventName":["INSERT"]}`},
	}
	if diff := cmp.Diff(want, streamConfig(source)); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

func TestRatesAreInMinutes(t *testing.T) {
	for every, want := range map[time.Duration]string{time.Minute: "rate(1 minute)", 5 * time.Minute: "rate(5 minutes)", 24 * time.Hour: "rate(1440 minutes)"} {
		if got := rate(every); got != want {
			t.Errorf("%s: got %s, want %s", every, got, want)
		}
	}
}
