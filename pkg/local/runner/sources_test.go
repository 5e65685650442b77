package runner

import (
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
		{"worker", 200, 200},
		{"worker", 2, 2},
		{"worker", 0, 1000},
		{"ingest", 50, 4},
		{"ingest", 2, 2},
		{"ingest", 0, 4},
		{"sweeper", 10, 2},
	} {
		if got := concurrency(c.function, c.template); got != c.want {
			t.Errorf("%s with %d in the template: got %d, want %d", c.function, c.template, got, c.want)
		}
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
	if diff := cmp.Diff(want, streamConfig(source), cmpopts.IgnoreFields(eventsource.StreamConfig{}, "Host")); diff != "" {
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
