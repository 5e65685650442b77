package sqsqueue_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-lambda-go/events"

	"github.com/commerce-integration/service/pkg/sender"
	"github.com/commerce-integration/service/pkg/sqsqueue"
	"github.com/commerce-integration/service/pkg/sqsqueue/queuetest"
)

func TestMovedMessageKeepsItsGroupAndItsTime(t *testing.T) {
	queues := queuetest.Start(t)
	records := sqsqueue.NewRecords(queues.Queue("RecordsQueue"), queues.Queue("ImportsQueue"))
	if err := queues.Queue("RecordsQueue").Send(t.Context(), sqsqueue.Message{Body: "a", Group: "g"}, sqsqueue.Message{Body: "b"}); err != nil {
		t.Fatal(err)
	}
	group, sent := map[string]string{"a": "g", "b": ""}, map[string]string{}
	for _, m := range queues.Receive(t, "RecordsQueue") {
		if sent[m.Body] = m.Attributes["SentTimestamp"]; records.Moved(&m) || records.Arrived(&m) == 0 {
			t.Errorf("%s: moved %t, arrived %s; want neither moved nor 0", m.Body, records.Moved(&m), records.Arrived(&m))
		}
		m.Attributes["SentTimestamp"] = "1795000000123" // long ago
		if err := records.Move(t.Context(), &m); err != nil {
			t.Fatal(err)
		}
	}
	received := queues.Receive(t, "ImportsQueue")
	for _, m := range received {
		if !records.Moved(&m) || records.Arrived(&m) != 1795000000123 || m.Attributes["MessageGroupId"] != group[m.Body] {
			t.Errorf("%s: moved %t, arrived %d, group %q", m.Body, records.Moved(&m), records.Arrived(&m), m.Attributes["MessageGroupId"])
		}
	}
	if len(received) != 2 {
		t.Errorf("%d messages, want 2", len(received))
	}
}

func TestMessageOfTheFullSizeIsMovedWithoutItsTime(t *testing.T) {
	queues := queuetest.Start(t)
	records := sqsqueue.NewRecords(queues.Queue("RecordsQueue"), queues.Queue("ImportsQueue"))
	body := strings.Repeat("x", sqsqueue.MaxMessage)
	if err := records.Move(t.Context(), &events.SQSMessage{Body: body, Attributes: map[string]string{"SentTimestamp": "1"}}); err != nil {
		t.Fatal(err)
	}
	if received := queues.Receive(t, "ImportsQueue"); len(received) != 1 || received[0].Body != body || !records.Moved(&received[0]) {
		t.Errorf("%d messages, want the whole one", len(received))
	}
}

func TestSignedMessageOfTheFullSizeIsMovedWithItsSignature(t *testing.T) {
	queues := queuetest.Start(t)
	records := sqsqueue.NewRecords(queues.Queue("RecordsQueue"), queues.Queue("ImportsQueue"))
	signature := sender.Sign([]byte("key"), "")
	body := strings.Repeat("x", sqsqueue.MaxMessage-len("signature")-len("String")-len(signature))
	m := sqsqueue.Message{Body: body, Attributes: map[string]string{sender.Attribute: signature}}
	if err := queues.Queue("RecordsQueue").Send(t.Context(), m); err != nil {
		t.Fatal(err)
	}
	sent := queues.Receive(t, "RecordsQueue")
	if len(sent) != 1 || records.Move(t.Context(), &sent[0]) != nil {
		t.Fatalf("%d messages, or they cannot be moved", len(sent))
	}
	received := queues.Receive(t, "ImportsQueue")
	if len(received) != 1 || received[0].Body != body || *received[0].MessageAttributes[sender.Attribute].StringValue != signature {
		t.Errorf("%d messages, want the whole one with its signature", len(received))
	}
}

func TestAPostponedMessageComesAgainSoon(t *testing.T) {
	queues := queuetest.Start(t)
	records := sqsqueue.NewRecords(queues.Queue("RecordsQueue"), queues.Queue("ImportsQueue"))
	names := []string{"RecordsQueue", "ImportsQueue"}
	var received []*events.SQSMessage
	for _, name := range names {
		if err := queues.Queue(name).Send(t.Context(), sqsqueue.Message{Body: name}); err != nil {
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
		if waited := time.Since(postponed); waited < 1900*time.Millisecond || len(again) != 1 || sqsqueue.Receives(&again[0]) != 2 {
			t.Errorf("%s: %d messages after %s, want one after 2 s", name, len(again), waited)
		}
	}
}

func TestBackOffDoublesUpToFiveMinutes(t *testing.T) {
	for receives, want := range map[int]time.Duration{
		1: 2 * time.Second, 2: 4 * time.Second, 8: 256 * time.Second, 9: 5 * time.Minute, 50: 5 * time.Minute, 1000: 5 * time.Minute,
	} {
		t.Run(fmt.Sprint(receives), func(t *testing.T) {
			if got := sqsqueue.BackOff(receives); got != want {
				t.Errorf("after %d receives: got %s, want %s", receives, got, want)
			}
		})
	}
}
