package ingest_test

import (
	"log/slog"
	"testing"
	"time"

	"github.com/aws/aws-lambda-go/events"
	"github.com/aws/aws-sdk-go-v2/aws"

	"github.com/commerce-integration/service/pkg/ingest"
	"github.com/commerce-integration/service/pkg/queue"
	"github.com/commerce-integration/service/pkg/testkit/queuetest"
)

// queueHarness has the real queues.
type queueHarness struct {
	*harness
	queues *queuetest.Queues
	now    time.Time
}

func newQueueHarness(t *testing.T) *queueHarness {
	t.Helper()
	f := &queueHarness{harness: newHarness(t), queues: queuetest.Start(t), now: start}
	f.ingestTo(f.table, queue.NewRejects(f.queues.Queue("RecordsDLQ")))
	return f
}

// ingestTo makes the ingester of a store and a queue of refused records.
func (f *queueHarness) ingestTo(store ingest.Store, rejects ingest.Rejects) {
	f.ingester = ingest.New(store, rejects, queue.NewRecords(f.queues.Queue("RecordsQueue"), f.queues.Queue("ImportsQueue")),
		func() time.Time { return f.now }, slog.New(slog.DiscardHandler))
}

// send sends bodies to the records queue, and applies what the queues have, of
// which no message may come again.
func (f *queueHarness) send(t *testing.T, bodies ...string) {
	t.Helper()
	for _, body := range bodies {
		if err := f.queues.Queue("RecordsQueue").Send(t.Context(), queue.Message{Body: body}); err != nil {
			t.Fatal(err)
		}
	}
	for _, name := range []string{"RecordsQueue", "ImportsQueue"} {
		batch := f.queues.Receive(t, name)
		f.finish(t, batch...)
		f.queues.Delete(t, name, batch...)
	}
}

// refused takes the refused records out of their queue, by reason.
func (f *queueHarness) refused(t *testing.T) (reasons []string, messages []events.SQSMessage) {
	t.Helper()
	messages = f.queues.Receive(t, "RecordsDLQ")
	f.queues.Delete(t, "RecordsDLQ", messages...)
	for _, m := range messages {
		reasons = append(reasons, aws.ToString(m.MessageAttributes["reason"].StringValue))
	}
	return reasons, messages
}
