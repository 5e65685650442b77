package queue_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-lambda-go/events"

	"github.com/commerce-integration/service/pkg/queue"
	"github.com/commerce-integration/service/pkg/testkit/queuetest"
)

func TestMovedMessageKeepsItsGroupItsIDAndItsTime(t *testing.T) {
	queues := queuetest.Start(t)
	records := queue.NewRecords(queues.Queue("RecordsQueue"), queues.Queue("ImportsQueue"))
	// A sender's own word on when and as what the message came does not count.
	claims := map[string]string{"arrived": "9000000000000", "sourceMessageId": "another"}
	if err := queues.Queue("RecordsQueue").Send(t.Context(), queue.Message{Body: "a", Group: "g", Attributes: claims}, queue.Message{Body: "b"}); err != nil {
		t.Fatal(err)
	}
	group, sent := map[string]string{"a": "g", "b": ""}, map[string]string{}
	for _, m := range queues.Receive(t, "RecordsQueue") {
		sent[m.Body] = m.MessageId
		if id, at := records.Origin(&m); records.Moved(&m) || id != m.MessageId || fmt.Sprint(int64(at)) != m.Attributes["SentTimestamp"] {
			t.Errorf("%s: moved %t, was %s at %d; want it as it came", m.Body, records.Moved(&m), id, at)
		}
		m.Attributes["SentTimestamp"] = "1795000000123" // long ago
		if err := records.Move(t.Context(), &m); err != nil {
			t.Fatal(err)
		}
	}
	received := queues.Receive(t, "ImportsQueue")
	for _, m := range received {
		id, at := records.Origin(&m)
		if !records.Moved(&m) || id != sent[m.Body] || at != 1795000000123 || m.Attributes["MessageGroupId"] != group[m.Body] {
			t.Errorf("%s: moved %t, was %s at %d, group %q", m.Body, records.Moved(&m), id, at, m.Attributes["MessageGroupId"])
		}
	}
	if len(received) != 2 {
		t.Errorf("%d messages, want 2", len(received))
	}
}

func TestMessageOfTheFullSizeIsMovedAlone(t *testing.T) {
	queues := queuetest.Start(t)
	records := queue.NewRecords(queues.Queue("RecordsQueue"), queues.Queue("ImportsQueue"))
	body := strings.Repeat("x", queue.MaxMessage)
	if err := records.Move(t.Context(), &events.SQSMessage{MessageId: "m-1", Body: body, Attributes: map[string]string{"SentTimestamp": "1"}}); err != nil {
		t.Fatal(err)
	}
	received := queues.Receive(t, "ImportsQueue")
	if len(received) != 1 || received[0].Body != body || !records.Moved(&received[0]) {
		t.Fatalf("%d messages, want the whole one", len(received))
	}
	if id, at := records.Origin(&received[0]); id != "" || at == 0 {
		t.Errorf("was %q at %d; want an unknown message, and when it was moved", id, at)
	}
}

func TestAPostponedMessageComesAgainSoon(t *testing.T) {
	queues := queuetest.Start(t)
	records := queue.NewRecords(queues.Queue("RecordsQueue"), queues.Queue("ImportsQueue"))
	names := []string{"RecordsQueue", "ImportsQueue"}
	var received []*events.SQSMessage
	for _, name := range names {
		if err := queues.Queue(name).Send(t.Context(), queue.Message{Body: name}); err != nil {
			t.Fatal(err)
		}
		for _, m := range queues.Receive(t, name) {
			received = append(received, &m)
		}
	}
	postponed := time.Now()
	if err := records.Postpone(t.Context(), received...); err != nil {
		t.Fatal(err)
	}
	for _, name := range names {
		again := queues.Await(t, name) // its own timeout is minutes
		if waited := time.Since(postponed); waited < 1900*time.Millisecond || len(again) != 1 || queue.Receives(&again[0]) != 2 {
			t.Errorf("%s: %d messages after %s, want one after 2 s", name, len(again), waited)
		}
	}
}

func TestBackOffDoublesUpToFiveMinutes(t *testing.T) {
	for receives, want := range map[int]time.Duration{
		1: 2 * time.Second, 2: 4 * time.Second, 8: 256 * time.Second, 9: 5 * time.Minute, 50: 5 * time.Minute, 1000: 5 * time.Minute,
	} {
		t.Run(fmt.Sprint(receives), func(t *testing.T) {
			if got := queue.BackOff(receives); got != want {
				t.Errorf("after %d receives: got %s, want %s", receives, got, want)
			}
		})
	}
}
