package worker_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/aws/aws-lambda-go/events"
	standardwebhooks "github.com/standard-webhooks/standard-webhooks/libraries/go"
	"golang.org/x/sync/errgroup"

	"github.com/commerce-integration/service/pkg/account"
	"github.com/commerce-integration/service/pkg/base/fault"
	"github.com/commerce-integration/service/pkg/base/value"
	"github.com/commerce-integration/service/pkg/queue"
	"github.com/commerce-integration/service/pkg/testkit/servicetest"
	"github.com/commerce-integration/service/pkg/webhook"
)

func TestDeliveryIsSignedAndRecorded(t *testing.T) {
	h := newHarness(t)
	rcv := newReceiver(t, func(_ int, w http.ResponseWriter) {
		w.WriteHeader(http.StatusAccepted)
		_, _ = io.WriteString(w, strings.Repeat("ok ", 1000))
	})
	e, first := h.endpoint(t, rcv.url, 3)
	var second string
	h.ChangeEndpoint(t, e.ID, func(e *webhook.Endpoint) {
		next, text := e.Rotate(time.Hour, h.Box.Seal, h.Now())
		*e, second = *next, text
	})
	delivery := h.event(t, e)
	h.leaves(t, 0, h.Worker, h.receive(t)...)
	got := h.delivery(t, delivery, webhook.DeliveryDelivered, 1)
	if got.NextAttemptAt != nil || got.DueAt != nil || len(got.Attempts) != 1 {
		t.Errorf("delivery: %+v", got)
	}
	attempt := got.Attempts[0]
	if *attempt.ResponseStatus != 202 || attempt.Error != nil || !strings.HasPrefix(*attempt.ResponseBody, "ok ok") {
		t.Errorf("attempt: %+v", attempt)
	}
	if c := h.counters(t, e, 1, 0); c.LastSuccessAt == nil || c.LastFailureAt != nil {
		t.Errorf("counters: %+v", c)
	}
	request := rcv.requests(t, 1)[0]
	for _, secret := range []string{first, second} {
		verifier, err := standardwebhooks.NewWebhook(secret)
		if err != nil {
			t.Fatal(err)
		}
		if err := verifier.Verify(request.body, request.header); err != nil {
			t.Errorf("signature: %v", err)
		}
	}
	if id := request.header.Get("webhook-id"); id != delivery.EventID.String() {
		t.Errorf("webhook-id %s, want %s", id, delivery.EventID)
	}
	if agent := request.header.Get("User-Agent"); agent != "commerce-integration-webhooks/1" {
		t.Errorf("User-Agent %q", agent)
	}
	payload, err := h.Table.Payload(t.Context(), h.Org, delivery.EventID)
	if err != nil || !bytes.Equal(payload, request.body) {
		t.Errorf("body %s, want %s, %v", request.body, payload, err)
	}
}

func TestFailedAttemptIsRetriedByItsOwnMessage(t *testing.T) {
	h := newHarness(t)
	rcv := newReceiver(t, func(n int, w http.ResponseWriter) {
		if n == 1 {
			w.WriteHeader(http.StatusInternalServerError)
		}
	})
	e, _ := h.endpoint(t, rcv.url, 3)
	delivery, q := h.event(t, e), &hidden{Queue: h.deliveries}
	left := h.handle(t, h.worker(h.Table, q, true), h.receive(t)...)
	if len(left) != 1 {
		t.Fatalf("%d messages left, want the one that carries the retry", len(left))
	}
	pending := h.delivery(t, delivery, webhook.DeliveryPending, 1)
	if wait := pending.NextAttemptAt.Std().Sub(h.Time()); pending.MessageID != left[0].MessageId+"/1" || wait < 4900*time.Millisecond || wait > 5*time.Second {
		t.Errorf("next attempt in %s by %q, want 5s by %q", wait, pending.MessageID, left[0].MessageId+"/1")
	}
	if reason := *pending.Attempts[0].Error; reason != "answered 500 Internal Server Error" {
		t.Errorf("error %q", reason)
	}
	if q.changes[0].For.Round(time.Second) != 5*time.Second || q.changes[0].Receipt != left[0].ReceiptHandle {
		t.Errorf("visibility %+v, want the message to come again in 5s", q.changes)
	}
	h.Pass(5 * time.Second)
	h.leaves(t, 0, h.Worker, left[0])
	h.delivery(t, delivery, webhook.DeliveryDelivered, 2)
	c := h.counters(t, e, 1, 1)
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

// The endpoint is down from Friday, 18:00, to Monday, 8:00, and one event comes in
// the first minute, the worst case: no other event makes its circuit hold it.
func TestAWeekendsOutageLosesNothing(t *testing.T) {
	h := newHarness(t)
	up := h.Time().Add(62 * time.Hour)
	rcv := newReceiver(t, func(_ int, w http.ResponseWriter) {
		if h.Time().Before(up) {
			w.WriteHeader(http.StatusBadGateway)
		}
	})
	e, _ := h.endpoint(t, rcv.url, webhook.DefaultRetryCount)
	delivery := h.event(t, e)
	messages := h.receive(t)
	for attempt := 1; ; attempt++ {
		left := h.handle(t, h.Worker, messages...)
		got := h.StoredDelivery(t, delivery.ID)
		if got.AttemptCount != attempt {
			t.Fatalf("after attempt %d: %+v", attempt, got)
		}
		if !got.Pending() {
			break
		}
		h.Pass(got.NextAttemptAt.Std().Sub(h.Time()))
		if messages = left; got.DueAt != nil {
			lane, queue := h.routing(t, e).Lane, servicetest.MainQueue
			if lane == webhook.LaneSlow {
				queue = servicetest.SlowQueue
			}
			if err := h.deliveries.Send(t.Context(), lane, h.Now(), got); err != nil {
				t.Fatal(err)
			}
			messages = h.Queues().Await(t, queue)
		}
	}
	h.delivery(t, delivery, webhook.DeliveryDelivered, webhook.DefaultRetryCount+1)
}

func TestConcurrentAttemptsOfADeliveryCountOnce(t *testing.T) {
	h := newHarness(t)
	for name, status := range map[string]int{"delivered": http.StatusOK, "failed": http.StatusInternalServerError} {
		t.Run(name, func(t *testing.T) {
			var all sync.WaitGroup // nobody is answered before all have asked
			all.Add(4)
			rcv := newReceiver(t, func(_ int, w http.ResponseWriter) {
				all.Done()
				all.Wait()
				w.WriteHeader(status)
			})
			e, _ := h.endpoint(t, rcv.url, 3)
			delivery := h.event(t, e)
			message := h.receive(t)[0]
			var group errgroup.Group
			for i := range 4 {
				m := message
				m.MessageId += strconv.Itoa(i)
				group.Go(func() error {
					_, err := h.Handle(t.Context(), events.SQSEvent{Records: []events.SQSMessage{m}})
					return err
				})
			}
			if err := group.Wait(); err != nil {
				t.Fatal(err)
			}
			got, err := h.Table.Delivery(t.Context(), h.Org, delivery.ID)
			if err != nil || got.AttemptCount != 1 || len(got.Attempts) != 1 {
				t.Errorf("delivery %+v, %v; want one attempt", got, err)
			}
			h.CountStream(t)
			found, err := h.Table.Counters(t.Context(), h.Org, e.ID)
			if c := found[e.ID]; err != nil || c.SuccessCount+c.FailureCount != 1 {
				t.Errorf("counters %+v, %v; want one attempt", c, err)
			}
			h.Queues().Delete(t, servicetest.MainQueue, message)
		})
	}
}

// failedOnce is a delivery whose first attempt has failed, and the message that
// carries its retry.
func failedOnce(t *testing.T) (*harness, *receiver, *webhook.Delivery, events.SQSMessage) {
	t.Helper()
	h := newHarness(t)
	rcv := newReceiver(t, always(http.StatusInternalServerError))
	e, _ := h.endpoint(t, rcv.url, 10)
	delivery := h.event(t, e)
	message := h.receive(t)[0]
	h.handle(t, h.Worker, message)
	return h, rcv, delivery, message
}

func TestOnlyTheNamedMessageRetriesUnlessItIsLost(t *testing.T) {
	h, rcv, delivery, message := failedOnce(t)
	duplicate := message
	duplicate.MessageId = "another"
	for _, step := range []struct {
		name     string
		message  events.SQSMessage
		after    time.Duration
		attempts int
	}{
		{"a duplicate that is too early waits", duplicate, 0, 1},
		{"the message that is too early waits", message, time.Second, 1},
		{"a duplicate at the time waits", duplicate, 4 * time.Second, 1},
		{"a duplicate a little late waits", duplicate, time.Minute, 1},
		{"a duplicate two minutes late takes over", duplicate, time.Minute + 10*time.Second, 2},
		{"the late message waits", message, 50 * time.Second, 2},
		{"the new message brings the retry", duplicate, 10 * time.Second, 3},
	} {
		h.Pass(step.after)
		response, err := h.Handle(t.Context(), events.SQSEvent{Records: []events.SQSMessage{step.message}})
		if err != nil || len(response.BatchItemFailures) != 1 {
			t.Errorf("%s: %+v, %v; want it kept", step.name, response, err)
		}
		h.delivery(t, delivery, webhook.DeliveryPending, step.attempts)
		rcv.requests(t, step.attempts)
	}
}

// The messages of one delivery in a batch act one after the other: the one that the
// delivery names makes the retry, and another waits in case that one is lost.
func TestMessagesOfOneDeliveryInABatchTakeTurns(t *testing.T) {
	for _, carrierFirst := range []bool{true, false} {
		h, _, delivery, message := failedOnce(t)
		duplicate, twin := message, message
		duplicate.MessageId = "another"
		batch := []events.SQSMessage{duplicate, message, twin}
		if carrierFirst {
			batch = []events.SQSMessage{message, twin, duplicate}
		}
		response, err := h.Handle(t.Context(), events.SQSEvent{Records: batch})
		if err != nil || len(response.BatchItemFailures) != 3 {
			t.Errorf("message first %t: %+v, %v; want all to stay", carrierFirst, response, err)
		}
		h.Pass(10 * time.Second)
		h.handle(t, h.Worker, message)
		h.delivery(t, delivery, webhook.DeliveryPending, 2)
	}
}

func TestRetryAfterIsHonoured(t *testing.T) {
	h := newHarness(t)
	for _, tt := range []struct {
		status int
		header string
		want   time.Duration
	}{
		{http.StatusTooManyRequests, "60", time.Minute},
		{http.StatusServiceUnavailable, "3600", time.Hour},
		{http.StatusServiceUnavailable, "1", 5 * time.Second},
		{http.StatusTooManyRequests, "864000", 12 * time.Hour},
		{http.StatusInternalServerError, "3600", 5 * time.Second},
		{http.StatusTooManyRequests, "soon", 5 * time.Second},
	} {
		t.Run(fmt.Sprintf("%v_%v", tt.status, tt.header), func(t *testing.T) {
			rcv := newReceiver(t, func(_ int, w http.ResponseWriter) {
				w.Header().Set("Retry-After", tt.header)
				w.WriteHeader(tt.status)
			})
			e, _ := h.endpoint(t, rcv.url, 3)
			delivery := h.event(t, e)
			m := h.receive(t)
			h.handle(t, h.Worker, m...)
			got := h.delivery(t, delivery, webhook.DeliveryPending, 1)
			if wait := got.NextAttemptAt.Std().Sub(h.Time()).Round(time.Second); wait != tt.want || (got.DueAt != nil) != (wait > 15*time.Minute) {
				t.Errorf("%d with Retry-After %s: next in %s, due %v; want %s", tt.status, tt.header, wait, got.DueAt, tt.want)
			}
			h.Queues().Delete(t, servicetest.MainQueue, m...)
		})
	}
}

func TestGoneDisablesTheEndpointAtOnce(t *testing.T) {
	h := newHarness(t)
	rcv := newReceiver(t, always(http.StatusGone))
	e, _ := h.endpoint(t, rcv.url, 3)
	delivery := h.event(t, e)
	h.leaves(t, 0, h.Worker, h.receive(t)...)
	got := h.delivery(t, delivery, webhook.DeliveryHeld, 1)
	after, err := h.Table.Endpoint(t.Context(), h.Org, e.ID)
	if err != nil || after.Status != webhook.Disabled || after.UpdatedAt <= e.UpdatedAt || got.HeldReason != webhook.HeldDisabled {
		t.Errorf("endpoint %+v, delivery held %s, %v", after, got.HeldReason, err)
	}
	h.counters(t, e, 0, 1)
	next := h.event(t, e)
	h.handle(t, h.Worker, h.receive(t)...)
	h.delivery(t, next, webhook.DeliveryHeld, 0)
	rcv.requests(t, 1)
}

func TestGoneAnswerOfAFormerURLDisablesNothing(t *testing.T) {
	h := newHarness(t)
	var e *webhook.Endpoint
	moved := newReceiver(t, always(http.StatusOK))
	rcv := newReceiver(t, func(_ int, w http.ResponseWriter) {
		h.ChangeEndpoint(t, e.ID, func(e *webhook.Endpoint) { e.URL = moved.url })
		w.WriteHeader(http.StatusGone)
	})
	e, _ = h.endpoint(t, rcv.url, 3)
	delivery := h.event(t, e)
	m := h.receive(t)[0]
	h.handle(t, h.Worker, m)
	h.delivery(t, delivery, webhook.DeliveryPending, 1)
	h.Pass(5 * time.Second)
	h.leaves(t, 0, h.Worker, m)
	h.delivery(t, delivery, webhook.DeliveryDelivered, 2)
}

func TestDeliveriesThatMustNotBeAttemptedAreEnded(t *testing.T) {
	h := newHarness(t)
	rcv := newReceiver(t, always(http.StatusOK))
	for name, tt := range map[string]struct {
		change func(*webhook.Endpoint) error
		status webhook.DeliveryStatus
		reason webhook.HeldReason
	}{
		"paused": {func(e *webhook.Endpoint) error {
			h.SetStatus(t, e.ID, webhook.Paused)
			return nil
		}, webhook.DeliveryHeld, webhook.HeldPaused},
		"suspended": {func(e *webhook.Endpoint) error {
			h.Suspend(t, e.ApplicationID)
			return nil
		}, webhook.DeliveryHeld, webhook.HeldSuspended},
		"endpoint deleted": {func(e *webhook.Endpoint) error {
			_, err := h.Table.DeleteEndpoint(t.Context(), h.Org, e.ID, func(*webhook.Endpoint) error { return nil })
			return err
		}, webhook.DeliveryCancelled, ""},
		"application deleted": {func(e *webhook.Endpoint) error {
			_, err := h.Table.DeleteApplication(t.Context(), h.Org, e.ApplicationID, func(*account.Application) error { return nil })
			return err
		}, webhook.DeliveryCancelled, ""},
	} {
		t.Run(name, func(t *testing.T) {
			h.App = h.Application(t)
			e, _ := h.endpoint(t, rcv.url, 3)
			delivery := h.event(t, e)
			if err := tt.change(e); err != nil {
				t.Fatal(err)
			}
			h.leaves(t, 0, h.Worker, h.receive(t)...)
			if got := h.delivery(t, delivery, tt.status, 0); got.HeldReason != tt.reason || got.NextAttemptAt != nil {
				t.Errorf("delivery %+v", got)
			}
		})
	}
	rcv.requests(t, 0)
}

func TestTestIsAttemptedOnceWhateverTheStatus(t *testing.T) {
	h := newHarness(t)
	rcv := newReceiver(t, always(http.StatusGone))
	e, _ := h.endpoint(t, rcv.url, 3)
	h.SetStatus(t, e.ID, webhook.Paused)
	delivery := h.event(t, e)
	stored := h.delivery(t, delivery, webhook.DeliveryPending, 0)
	test := *stored
	test.Test, test.UpdatedAt = true, stored.UpdatedAt+1
	if _, err := h.Table.PutDelivery(t.Context(), stored, &test); err != nil {
		t.Fatal(err)
	}
	h.leaves(t, 0, h.Worker, h.receive(t)...)
	h.delivery(t, delivery, webhook.DeliveryFailed, 1)
	h.counters(t, e, 0, 0)
	if after := h.StoredEndpoint(t, e.ID); after.Status != webhook.Paused || !after.Routing().Equal(e.Routing()) {
		t.Errorf("endpoint: %+v", after)
	}
	if unsent, err := h.Table.Unsent(t.Context(), h.Org, e.ID, 0, 1<<50, "", 10); len(unsent) > 0 || err != nil {
		t.Errorf("a recovery would send the test: %+v, %v", unsent, err)
	}
}

func TestForbiddenTargetFailsForGood(t *testing.T) {
	h := newHarness(t)
	e, _ := h.endpoint(t, "https://127.0.0.1/hook", 3)
	delivery := h.event(t, e)
	h.leaves(t, 0, h.worker(h.Table, h.deliveries, false), h.receive(t)...)
	got := h.delivery(t, delivery, webhook.DeliveryFailed, 1)
	if reason := *got.Attempts[0].Error; !strings.Contains(reason, "loopback") || got.Attempts[0].ResponseStatus != nil {
		t.Errorf("attempt: %+v, error %q", got.Attempts[0], reason)
	}
	h.counters(t, e, 0, 1)
}

func TestOneBadMessageDoesNotStopItsNeighbours(t *testing.T) {
	h := newHarness(t)
	rcv := newReceiver(t, always(http.StatusOK))
	e, _ := h.endpoint(t, rcv.url, 3)
	good := h.event(t, e)
	broken, _ := h.endpoint(t, rcv.url, 3)
	h.ChangeEndpoint(t, broken.ID, func(e *webhook.Endpoint) { e.Secret.Sealed = "rubbish" })
	unsignable := h.event(t, broken)
	headed, _ := h.endpoint(t, rcv.url, 3)
	h.ChangeEndpoint(t, headed.ID, func(e *webhook.Endpoint) {
		e.Delivery.Headers = []webhook.SealedHeader{{Name: "X-Key", Sealed: h.Box.Seal([]byte("x"), "another purpose")}}
	})
	unopened := h.event(t, headed)
	wrong := good.Ref()
	wrong.EventID = value.NewID()
	q := h.Queues().Queue(servicetest.MainQueue)
	for _, body := range []string{"not json", "{}", webhook.DeliveryMessage{DeliveryRef: wrong}.Body()} {
		if err := q.Send(t.Context(), queue.Message{Body: body}); err != nil {
			t.Fatal(err)
		}
	}
	var messages []events.SQSMessage
	for len(messages) < 6 {
		messages = append(messages, h.receive(t)...)
	}
	h.leaves(t, 5, h.Worker, messages...)
	h.delivery(t, good, webhook.DeliveryDelivered, 1)
	h.delivery(t, unsignable, webhook.DeliveryPending, 0)
	h.delivery(t, unopened, webhook.DeliveryPending, 0)
	rcv.requests(t, 1)
}

func TestNoAttemptIsStartedWithTooLittleTimeLeft(t *testing.T) {
	h := newHarness(t)
	rcv := newReceiver(t, always(http.StatusOK))
	e, _ := h.endpoint(t, rcv.url, 3)
	delivery := h.event(t, e)
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Second)
	defer cancel()
	response, err := h.Handle(ctx, events.SQSEvent{Records: h.receive(t)})
	if err != nil || len(response.BatchItemFailures) != 1 {
		t.Errorf("%+v, %v; want the message kept", response, err)
	}
	h.delivery(t, delivery, webhook.DeliveryPending, 0)
	rcv.requests(t, 0)
}

// A pause that lands while the attempt is under way does not undo what the
// receiver has accepted.
func TestOutcomeIsWrittenOverAConcurrentHold(t *testing.T) {
	h := newHarness(t)
	var delivery *webhook.Delivery
	rcv := newReceiver(t, func(_ int, w http.ResponseWriter) {
		if _, err := h.Table.PutDelivery(t.Context(), delivery, delivery.Hold(webhook.HeldPaused, h.Now())); err != nil && !errors.Is(err, fault.ErrChanged) {
			t.Error(err)
		}
	})
	e, _ := h.endpoint(t, rcv.url, 3)
	delivery = h.event(t, e)
	h.leaves(t, 0, h.Worker, h.receive(t)...)
	h.delivery(t, delivery, webhook.DeliveryDelivered, 1)
}

// The log of a function begins at INFO.
func TestAttemptsThatFailOrAreSlowAreLogged(t *testing.T) {
	h := newHarness(t)
	for name, row := range map[string]struct {
		status int
		took   time.Duration
		level  string
	}{
		"succeeded":                      {http.StatusOK, webhook.SlowAttempt, "DEBUG"},
		"succeeded slowly":               {http.StatusOK, webhook.SlowAttempt + time.Millisecond, "INFO"},
		"failed":                         {http.StatusInternalServerError, 0, "INFO"},
		"redirected, which is a failure": {http.StatusFound, 0, "INFO"},
	} {
		t.Run(name, func(t *testing.T) {
			r := newReceiver(t, func(_ int, out http.ResponseWriter) {
				h.Pass(row.took)
				out.WriteHeader(row.status)
			})
			e, _ := h.endpoint(t, r.url, 0)
			d := h.event(t, e)
			h.leaves(t, 0, h.Worker, h.receive(t)...)
			want := `"level":"` + row.level + `","msg":"attempt","deliveryId":"` + d.ID.String() + `"`
			if !strings.Contains(h.Leaks.Log(), want) {
				t.Errorf("want %s in %s", want, h.Leaks.Log())
			}
		})
	}
}
