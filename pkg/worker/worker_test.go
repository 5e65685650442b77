package worker_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/aws/aws-lambda-go/events"
	"github.com/google/go-cmp/cmp"
	standardwebhooks "github.com/standard-webhooks/standard-webhooks/libraries/go"
	"golang.org/x/sync/errgroup"

	"github.com/commerce-integration/service/pkg/account"
	"github.com/commerce-integration/service/pkg/dynamo/dynamotest"
	"github.com/commerce-integration/service/pkg/fault"
	"github.com/commerce-integration/service/pkg/sqsqueue"
	"github.com/commerce-integration/service/pkg/value"
	"github.com/commerce-integration/service/pkg/webhook"
)

func TestDeliveryIsSignedAndRecorded(t *testing.T) {
	b := newBench(t)
	rcv := newReceiver(t, func(_ int, w http.ResponseWriter) {
		w.WriteHeader(http.StatusAccepted)
		_, _ = io.WriteString(w, strings.Repeat("ok ", 1000))
	})
	e, secret := b.endpoint(t, rcv.url, 3)
	row := b.event(t, e)
	if left := b.handle(t, b.Worker, b.receive(t)...); len(left) > 0 {
		t.Errorf("messages left: %+v", left)
	}
	got := b.row(t, row, webhook.DeliveryDelivered, 1)
	if got.DeliveredAt == nil || got.NextAttemptAt != nil || got.DueAt != nil || len(got.Attempts) != 1 {
		t.Errorf("row: %+v", got)
	}
	attempt := got.Attempts[0]
	if *attempt.ResponseStatus != 202 || attempt.Error != nil || len(*attempt.ResponseBody) != 1<<10 {
		t.Errorf("attempt: %+v", attempt)
	}
	if c := b.counters(t, e, 1, 0); c.LastSuccessAt == nil || c.LastFailureAt != nil {
		t.Errorf("counters: %+v", c)
	}
	request := rcv.requests(t, 1)[0]
	verifier, err := standardwebhooks.NewWebhook(secret)
	if err != nil {
		t.Fatal(err)
	}
	if err := verifier.Verify(request.body, request.header); err != nil {
		t.Errorf("signature: %v", err)
	}
	if id := request.header.Get("webhook-id"); id != row.EventID.String() {
		t.Errorf("webhook-id %s, want %s", id, row.EventID)
	}
	if agent := request.header.Get("User-Agent"); agent != "commerce-integration-webhooks/1" {
		t.Errorf("User-Agent %q", agent)
	}
	payload, err := b.table.Payload(t.Context(), b.org, row.EventID)
	if err != nil || !bytes.Equal(payload, request.body) {
		t.Errorf("body %s, want %s, %v", request.body, payload, err)
	}
}

func TestDeliveryIsSignedWithEverySecretThatIsValid(t *testing.T) {
	b := newBench(t)
	rcv := newReceiver(t, always(http.StatusOK))
	e, first := b.endpoint(t, rcv.url, 3)
	secrets := []string{first}
	rotate := func() {
		if _, err := b.table.ChangeEndpoint(t.Context(), b.org, e.ID, func(e *webhook.Endpoint) (*webhook.Endpoint, error) {
			next, text, err := e.Rotate(b.box.Seal, value.TimeOf(b.clock()))
			secrets = append(secrets, text)
			return next, err
		}); err != nil {
			t.Fatal(err)
		}
	}
	for i, step := range []struct {
		rotate bool
		pass   time.Duration
		valid  []bool // of the secrets, in their order
	}{
		{false, 0, []bool{true}},
		{true, 0, []bool{true, true}},
		{true, time.Hour, []bool{true, true, true}},
		{false, 23*time.Hour - time.Second, []bool{true, true, true}},
		{false, time.Second, []bool{false, false, true}},
	} {
		if step.rotate {
			rotate()
		}
		b.pass(step.pass)
		row := b.event(t, e)
		b.handle(t, b.Worker, b.receive(t)...)
		b.row(t, row, webhook.DeliveryDelivered, 1)
		request := rcv.requests(t, i+1)[i]
		for n, secret := range secrets {
			key, err := webhook.SecretKey(secret)
			if err != nil {
				t.Fatal(err)
			}
			signature := webhook.Sign(row.EventID.String(), b.clock(), request.body, key)
			if got := slices.Contains(strings.Fields(request.header.Get(webhook.HeaderSignature)), signature); got != step.valid[n] {
				t.Errorf("step %d: signed with secret %d: %t, want %t", i, n+1, got, step.valid[n])
			}
		}
	}
}

func TestFailedAttemptIsRetriedByItsOwnMessage(t *testing.T) {
	b := newBench(t)
	rcv := newReceiver(t, func(n int, w http.ResponseWriter) {
		if n == 1 {
			w.WriteHeader(http.StatusInternalServerError)
		}
	})
	e, _ := b.endpoint(t, rcv.url, 3)
	row := b.event(t, e)
	left := b.handle(t, b.Worker, b.receive(t)...)
	if len(left) != 1 {
		t.Fatalf("%d messages left, want the one that carries the retry", len(left))
	}
	pending := b.row(t, row, webhook.DeliveryPending, 1)
	if wait := pending.NextAttemptAt.Std().Sub(b.clock()); pending.MessageID != left[0].MessageId+"/1" || wait < 3900*time.Millisecond || wait > 4*time.Second {
		t.Errorf("next attempt in %s by %q, want 4s by %q", wait, pending.MessageID, left[0].MessageId+"/1")
	}
	if reason := *pending.Attempts[0].Error; reason != "answered 500 Internal Server Error" {
		t.Errorf("error %q", reason)
	}
	hidden := time.Now()
	again := b.receive(t)
	if waited := time.Since(hidden); waited < 3*time.Second || again[0].MessageId != left[0].MessageId {
		t.Errorf("message %s came again after %s", again[0].MessageId, waited)
	}
	b.pass(5 * time.Second)
	if left := b.handle(t, b.Worker, again...); len(left) > 0 {
		t.Errorf("messages left: %+v", left)
	}
	b.row(t, row, webhook.DeliveryDelivered, 2)
	c := b.counters(t, e, 1, 1)
	if *c.LastFailureReason != "answered 500 Internal Server Error" {
		t.Errorf("lastFailureReason %q", *c.LastFailureReason)
	}
	requests := rcv.requests(t, 2)
	if !bytes.Equal(requests[0].body, requests[1].body) || requests[0].header.Get("webhook-id") != requests[1].header.Get("webhook-id") {
		t.Error("the retry differs from the first attempt")
	}
	if requests[0].header.Get("webhook-timestamp") == requests[1].header.Get("webhook-timestamp") {
		t.Error("the retry has the timestamp of the first attempt")
	}
}

// at gives the same message to the worker again, as the queue does when its
// time has come.
func (b *bench) at(t *testing.T, m events.SQSMessage, d time.Duration) []events.SQSMessage {
	t.Helper()
	b.pass(d)
	return b.handle(t, b.Worker, m)
}

func TestScheduleGoesFromTheQueueToTheSweeperToItsEnd(t *testing.T) {
	b := newBench(t)
	rcv := newReceiver(t, always(http.StatusBadGateway))
	e, _ := b.endpoint(t, rcv.url, 4)
	row := b.event(t, e)
	m := b.receive(t)[0]
	for attempt, step := range []time.Duration{5 * time.Second, time.Minute, 5 * time.Minute} {
		if left := b.handle(t, b.Worker, m); len(left) != 1 {
			t.Fatalf("attempt %d: the message is done", attempt+1)
		}
		got := b.row(t, row, webhook.DeliveryPending, attempt+1)
		if wait := got.NextAttemptAt.Std().Sub(b.clock()).Round(time.Second); wait != step*8/10 || got.DueAt != nil {
			t.Errorf("attempt %d: next in %s, due at %v; want %s by its message", attempt+1, wait, got.DueAt, step*8/10)
		}
		b.pass(step)
	}
	if left := b.handle(t, b.Worker, m); len(left) != 0 {
		t.Error("a long wait keeps its message")
	}
	got := b.row(t, row, webhook.DeliveryPending, 4)
	if wait := got.NextAttemptAt.Std().Sub(b.clock()).Round(time.Second); wait != 24*time.Minute || got.DueAt == nil || *got.DueAt != *got.NextAttemptAt || got.MessageID != "" {
		t.Errorf("after 4 attempts: next in %s, %+v; want 24m by a due mark", wait, got)
	}
	b.pass(24 * time.Minute)
	if err := b.deliveries.SendMain(t.Context(), value.TimeOf(b.clock()), got); err != nil {
		t.Fatal(err)
	}
	if left := b.handle(t, b.Worker, b.receive(t)...); len(left) != 0 {
		t.Error("the last attempt keeps its message")
	}
	b.row(t, row, webhook.DeliveryFailed, 5)
	b.counters(t, e, 0, 5)
	rcv.requests(t, 5)
	unsent, err := b.table.Unsent(t.Context(), b.org, e.ID, 0, 1<<50, "", 10)
	if err != nil || len(unsent) != 1 || unsent[0].DeliveryID != row.ID {
		t.Errorf("unsent: %+v, %v", unsent, err)
	}
}

func TestReplayedMessageOfAFinishedRowDoesNothing(t *testing.T) {
	b := newBench(t)
	rcv := newReceiver(t, always(http.StatusOK))
	e, _ := b.endpoint(t, rcv.url, 3)
	row := b.event(t, e)
	messages := b.receive(t)
	b.handle(t, b.Worker, messages...)
	want := b.row(t, row, webhook.DeliveryDelivered, 1)
	b.pass(time.Hour)
	if left := b.handle(t, b.Worker, messages...); len(left) > 0 {
		t.Errorf("messages left: %+v", left)
	}
	if got := b.row(t, row, webhook.DeliveryDelivered, 1); got.UpdatedAt != want.UpdatedAt {
		t.Errorf("the row was written again: %+v", got)
	}
	rcv.requests(t, 1)
	b.counters(t, e, 1, 0)
}

func TestConcurrentAttemptsOfARowCountOnce(t *testing.T) {
	b := newBench(t)
	for name, status := range map[string]int{"delivered": http.StatusOK, "failed": http.StatusInternalServerError} {
		var all sync.WaitGroup // nobody is answered before all have asked
		all.Add(4)
		rcv := newReceiver(t, func(_ int, w http.ResponseWriter) {
			all.Done()
			all.Wait()
			w.WriteHeader(status)
		})
		e, _ := b.endpoint(t, rcv.url, 3)
		row := b.event(t, e)
		message := b.receive(t)[0]
		var group errgroup.Group
		for i := range 4 {
			m := message
			m.MessageId += strconv.Itoa(i)
			group.Go(func() error {
				_, err := b.Handle(t.Context(), events.SQSEvent{Records: []events.SQSMessage{m}})
				return err
			})
		}
		if err := group.Wait(); err != nil {
			t.Fatal(err)
		}
		got, err := b.table.Delivery(t.Context(), b.org, row.ID)
		if err != nil || got.AttemptCount != 1 || len(got.Attempts) != 1 {
			t.Errorf("%s: row %+v, %v; want one attempt", name, got, err)
		}
		found, err := b.table.Counters(t.Context(), b.org, e.ID)
		if c := found[e.ID]; err != nil || c.SuccessCount+c.FailureCount != 1 {
			t.Errorf("%s: counters %+v, %v; want one attempt", name, c, err)
		}
		b.queues.Delete(t, mainQueue, message)
	}
}

// failedOnce is a row whose first attempt has failed, and the message that
// carries its retry.
func failedOnce(t *testing.T) (*bench, *receiver, *webhook.Delivery, events.SQSMessage) {
	t.Helper()
	b := newBench(t)
	rcv := newReceiver(t, always(http.StatusInternalServerError))
	e, _ := b.endpoint(t, rcv.url, 10)
	row := b.event(t, e)
	carrier := b.receive(t)[0]
	b.handle(t, b.Worker, carrier)
	return b, rcv, row, carrier
}

func TestOnlyTheCarrierBringsARetryUnlessItIsLost(t *testing.T) {
	b, rcv, row, carrier := failedOnce(t)
	duplicate := carrier
	duplicate.MessageId = "another"
	for _, step := range []struct {
		name     string
		message  events.SQSMessage
		after    time.Duration
		attempts int
	}{
		{"a duplicate that is too early waits", duplicate, 0, 1},
		{"the carrier that is too early waits", carrier, time.Second, 1},
		{"a duplicate at the time waits", duplicate, 4 * time.Second, 1},
		{"a duplicate a little late waits", duplicate, time.Minute, 1},
		{"a duplicate two minutes late takes over", duplicate, time.Minute + 10*time.Second, 2},
		{"the late carrier waits", carrier, 50 * time.Second, 2},
		{"the new carrier brings the retry", duplicate, 10 * time.Second, 3},
	} {
		b.pass(step.after)
		response, err := b.Handle(t.Context(), events.SQSEvent{Records: []events.SQSMessage{step.message}})
		if err != nil || len(response.BatchItemFailures) != 1 {
			t.Errorf("%s: %+v, %v; want it kept", step.name, response, err)
		}
		b.row(t, row, webhook.DeliveryPending, step.attempts)
		rcv.requests(t, step.attempts)
	}
}

func TestTheCarrierStaysOfTheMessagesOfOneBatch(t *testing.T) {
	for _, carrierFirst := range []bool{true, false} {
		b, _, row, carrier := failedOnce(t)
		duplicate, twin := carrier, carrier
		duplicate.MessageId = "another"
		batch := []events.SQSMessage{duplicate, carrier, twin}
		if carrierFirst {
			batch = []events.SQSMessage{carrier, twin, duplicate}
		}
		response, err := b.Handle(t.Context(), events.SQSEvent{Records: batch})
		want := []events.SQSBatchItemFailure{{ItemIdentifier: carrier.MessageId}, {ItemIdentifier: carrier.MessageId}}
		if diff := cmp.Diff(want, response.BatchItemFailures); err != nil || diff != "" {
			t.Errorf("carrier first %t: error %v, -want +got of what stays:\n%s", carrierFirst, err, diff)
		}
		b.pass(10 * time.Second)
		b.handle(t, b.Worker, carrier)
		b.row(t, row, webhook.DeliveryPending, 2)
	}
}

func TestEarlyMessageOfALongWaitIsDropped(t *testing.T) {
	b := newBench(t)
	rcv := newReceiver(t, always(http.StatusOK))
	e, _ := b.endpoint(t, rcv.url, 10)
	row := b.event(t, e)
	m := b.receive(t)[0]
	long := *row
	at := value.TimeOf(b.clock().Add(2 * time.Hour))
	long.NextAttemptAt, long.DueAt, long.UpdatedAt = &at, &at, row.UpdatedAt+1
	if _, err := b.table.PutDelivery(t.Context(), row, &long); err != nil {
		t.Fatal(err)
	}
	for _, step := range []struct {
		after time.Duration
		kept  bool
	}{{0, false}, {time.Hour, false}, {59 * time.Minute, true}} {
		b.pass(step.after)
		response, err := b.Handle(t.Context(), events.SQSEvent{Records: []events.SQSMessage{m}})
		if err != nil || (len(response.BatchItemFailures) == 1) != step.kept {
			t.Errorf("at %s: %+v, %v; want kept %t", b.clock(), response, err, step.kept)
		}
	}
	rcv.requests(t, 0)
	if left := b.at(t, m, time.Minute); len(left) > 0 {
		t.Errorf("messages left: %+v", left)
	}
	b.row(t, row, webhook.DeliveryDelivered, 1)
}

func TestRetryAfterIsHonoured(t *testing.T) {
	b := newBench(t)
	for _, tt := range []struct {
		status int
		header string
		want   time.Duration
	}{
		{http.StatusTooManyRequests, "60", time.Minute},
		{http.StatusServiceUnavailable, "3600", time.Hour},
		{http.StatusServiceUnavailable, "1", 4 * time.Second},
		{http.StatusTooManyRequests, "864000", 12 * time.Hour},
		{http.StatusInternalServerError, "3600", 4 * time.Second},
		{http.StatusTooManyRequests, "soon", 4 * time.Second},
	} {
		rcv := newReceiver(t, func(_ int, w http.ResponseWriter) {
			w.Header().Set("Retry-After", tt.header)
			w.WriteHeader(tt.status)
		})
		e, _ := b.endpoint(t, rcv.url, 3)
		row := b.event(t, e)
		m := b.receive(t)
		b.handle(t, b.Worker, m...)
		got := b.row(t, row, webhook.DeliveryPending, 1)
		if wait := got.NextAttemptAt.Std().Sub(b.clock()).Round(time.Second); wait != tt.want || (got.DueAt != nil) != (wait > 15*time.Minute) {
			t.Errorf("%d with Retry-After %s: next in %s, due %v; want %s", tt.status, tt.header, wait, got.DueAt, tt.want)
		}
		b.queues.Delete(t, mainQueue, m...)
	}
}

func TestGoneDisablesTheEndpointAtOnce(t *testing.T) {
	b := newBench(t)
	rcv := newReceiver(t, always(http.StatusGone))
	e, _ := b.endpoint(t, rcv.url, 3)
	row := b.event(t, e)
	if left := b.handle(t, b.Worker, b.receive(t)...); len(left) > 0 {
		t.Errorf("messages left: %+v", left)
	}
	got := b.row(t, row, webhook.DeliveryHeld, 1)
	after, err := b.table.Endpoint(t.Context(), b.org, e.ID)
	if err != nil || after.Status != webhook.Disabled || after.UpdatedAt <= e.UpdatedAt || got.HeldReason != webhook.HeldDisabled {
		t.Errorf("endpoint %+v, row held %s, %v", after, got.HeldReason, err)
	}
	b.counters(t, e, 0, 1)
	next := b.event(t, e)
	b.handle(t, b.Worker, b.receive(t)...)
	b.row(t, next, webhook.DeliveryHeld, 0)
	rcv.requests(t, 1)
}

func TestGoneAnswerOfAFormerURLDisablesNothing(t *testing.T) {
	b := newBench(t)
	var e *webhook.Endpoint
	moved := newReceiver(t, always(http.StatusOK))
	rcv := newReceiver(t, func(_ int, w http.ResponseWriter) {
		dynamotest.ChangeEndpoint(t, b.table, e, func(e *webhook.Endpoint) { e.URL = moved.url })
		w.WriteHeader(http.StatusGone)
	})
	e, _ = b.endpoint(t, rcv.url, 3)
	row := b.event(t, e)
	m := b.receive(t)[0]
	b.handle(t, b.Worker, m)
	b.row(t, row, webhook.DeliveryPending, 1)
	if left := b.at(t, m, 5*time.Second); len(left) > 0 {
		t.Errorf("messages left: %+v", left)
	}
	b.row(t, row, webhook.DeliveryDelivered, 2)
}

func TestEventsOfAnEndpointThatMustNotBeAskedAreHeld(t *testing.T) {
	b := newBench(t)
	rcv := newReceiver(t, always(http.StatusOK))
	for _, tt := range []struct {
		reason webhook.HeldReason
		change func(*webhook.Endpoint)
	}{
		{webhook.HeldPaused, func(e *webhook.Endpoint) { dynamotest.SetStatus(t, b.table, e, webhook.Paused) }},
		{webhook.HeldDisabled, func(e *webhook.Endpoint) { dynamotest.SetStatus(t, b.table, e, webhook.Disabled) }},
		{webhook.HeldSuspended, func(e *webhook.Endpoint) { dynamotest.Suspend(t, b.table, b.org, e.ApplicationID) }},
	} {
		e, _ := b.endpoint(t, rcv.url, 3)
		row := b.event(t, e)
		tt.change(e)
		if left := b.handle(t, b.Worker, b.receive(t)...); len(left) > 0 {
			t.Errorf("%s: messages left: %+v", tt.reason, left)
		}
		if got := b.row(t, row, webhook.DeliveryHeld, 0); got.HeldReason != tt.reason || got.NextAttemptAt != nil {
			t.Errorf("%s: row %+v", tt.reason, got)
		}
		b.counters(t, e, 0, 0)
	}
	rcv.requests(t, 0)
}

func TestTestIsAttemptedOnceWhateverTheStatus(t *testing.T) {
	b := newBench(t)
	rcv := newReceiver(t, always(http.StatusGone))
	e, _ := b.endpoint(t, rcv.url, 3)
	dynamotest.SetStatus(t, b.table, e, webhook.Paused)
	row := b.event(t, e)
	stored := b.row(t, row, webhook.DeliveryPending, 0)
	test := *stored
	test.Test, test.UpdatedAt = true, stored.UpdatedAt+1
	if _, err := b.table.PutDelivery(t.Context(), stored, &test); err != nil {
		t.Fatal(err)
	}
	if left := b.handle(t, b.Worker, b.receive(t)...); len(left) > 0 {
		t.Errorf("messages left: %+v", left)
	}
	b.row(t, row, webhook.DeliveryFailed, 1)
	b.counters(t, e, 0, 0)
	if after, err := b.table.Endpoint(t.Context(), b.org, e.ID); err != nil || after.Status != webhook.Paused {
		t.Errorf("endpoint: %+v, %v", after, err)
	}
	if unsent, err := b.table.Unsent(t.Context(), b.org, e.ID, 0, 1<<50, "", 10); len(unsent) > 0 || err != nil {
		t.Errorf("a recovery would send the test: %+v, %v", unsent, err)
	}
}

func TestEventsOfWhatWasDeletedAreCancelled(t *testing.T) {
	b := newBench(t)
	rcv := newReceiver(t, always(http.StatusOK))
	for name, remove := range map[string]func(*webhook.Endpoint) error{
		"endpoint": func(e *webhook.Endpoint) error {
			_, err := b.table.DeleteEndpoint(t.Context(), b.org, e.ID, func(*webhook.Endpoint) error { return nil })
			return err
		},
		"application": func(e *webhook.Endpoint) error {
			_, err := b.table.DeleteApplication(t.Context(), b.org, e.ApplicationID, func(*account.Application) error { return nil })
			return err
		},
	} {
		b.app = dynamotest.Application(t, b.table, b.org)
		e, _ := b.endpoint(t, rcv.url, 3)
		row := b.event(t, e)
		if err := remove(e); err != nil {
			t.Fatal(err)
		}
		if left := b.handle(t, b.Worker, b.receive(t)...); len(left) > 0 {
			t.Errorf("%s: messages left: %+v", name, left)
		}
		b.row(t, row, webhook.DeliveryCancelled, 0)
	}
	rcv.requests(t, 0)
}

func TestForbiddenTargetFailsForGood(t *testing.T) {
	b := newBench(t)
	e, _ := b.endpoint(t, "https://127.0.0.1/hook", 3)
	row := b.event(t, e)
	if left := b.handle(t, b.worker(b.table, b.deliveries, false), b.receive(t)...); len(left) > 0 {
		t.Errorf("messages left: %+v", left)
	}
	got := b.row(t, row, webhook.DeliveryFailed, 1)
	if reason := *got.Attempts[0].Error; !strings.Contains(reason, "loopback") || got.Attempts[0].ResponseStatus != nil {
		t.Errorf("attempt: %+v, error %q", got.Attempts[0], reason)
	}
	b.counters(t, e, 0, 1)
}

func TestExpiredRowIsForgotten(t *testing.T) {
	b := newBench(t)
	rcv := newReceiver(t, always(http.StatusOK))
	e, _ := b.endpoint(t, rcv.url, 3)
	b.event(t, e)
	m := b.receive(t)
	b.pass(31 * 24 * time.Hour)
	if left := b.handle(t, b.Worker, m...); len(left) > 0 {
		t.Errorf("messages left: %+v", left)
	}
	rcv.requests(t, 0)
}

func TestOneBadMessageDoesNotStopItsNeighbours(t *testing.T) {
	b := newBench(t)
	rcv := newReceiver(t, always(http.StatusOK))
	e, _ := b.endpoint(t, rcv.url, 3)
	good := b.event(t, e)
	broken, _ := b.endpoint(t, rcv.url, 3)
	dynamotest.ChangeEndpoint(t, b.table, broken, func(e *webhook.Endpoint) { e.Secret.Sealed = "rubbish" })
	unsignable := b.event(t, broken)
	wrong := good.Ref()
	wrong.EventID = value.NewID()
	q := b.queues.Queue("DeliveriesQueue")
	for _, body := range []string{"not json", "{}", wrong.Body()} {
		if err := q.Send(t.Context(), sqsqueue.Message{Body: body}); err != nil {
			t.Fatal(err)
		}
	}
	var messages []events.SQSMessage
	for len(messages) < 5 {
		messages = append(messages, b.receive(t)...)
	}
	if left := b.handle(t, b.Worker, messages...); len(left) != 4 {
		t.Errorf("%d messages left, want the four bad ones: %+v", len(left), left)
	}
	b.row(t, good, webhook.DeliveryDelivered, 1)
	b.row(t, unsignable, webhook.DeliveryPending, 0)
	rcv.requests(t, 1)
}

func TestNoAttemptIsStartedWithTooLittleTimeLeft(t *testing.T) {
	b := newBench(t)
	rcv := newReceiver(t, always(http.StatusOK))
	e, _ := b.endpoint(t, rcv.url, 3)
	row := b.event(t, e)
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Second)
	defer cancel()
	response, err := b.Handle(ctx, events.SQSEvent{Records: b.receive(t)})
	if err != nil || len(response.BatchItemFailures) != 1 {
		t.Errorf("%+v, %v; want the message kept", response, err)
	}
	b.row(t, row, webhook.DeliveryPending, 0)
	rcv.requests(t, 0)
}

// A pause that lands while the attempt is under way does not undo what the
// receiver has accepted.
func TestOutcomeIsWrittenOverAConcurrentHold(t *testing.T) {
	b := newBench(t)
	var row *webhook.Delivery
	rcv := newReceiver(t, func(_ int, w http.ResponseWriter) {
		if _, err := b.table.PutDelivery(t.Context(), row, row.Hold(webhook.HeldPaused, value.TimeOf(b.clock()))); err != nil && !errors.Is(err, fault.ErrChanged) {
			t.Error(err)
		}
	})
	e, _ := b.endpoint(t, rcv.url, 3)
	row = b.event(t, e)
	if left := b.handle(t, b.Worker, b.receive(t)...); len(left) > 0 {
		t.Errorf("messages left: %+v", left)
	}
	b.row(t, row, webhook.DeliveryDelivered, 1)
}
