package sweeper_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/aws/aws-lambda-go/events"
	"github.com/aws/aws-lambda-go/lambda"
	"github.com/google/go-cmp/cmp"

	"github.com/commerce-integration/service/pkg/base/fault"
	"github.com/commerce-integration/service/pkg/base/value"
	"github.com/commerce-integration/service/pkg/delivery/sweeper"
	"github.com/commerce-integration/service/pkg/queue"
)

// maintained is an index that notes what it is asked for.
type maintained struct {
	mu      sync.Mutex
	started []queue.IndexJob
	run     []queue.IndexJob
	left    int   // runs after which nothing is left to be done
	err     error // of a run
	sendErr error // of a start
}

func (m *maintained) Send(_ context.Context, org value.ID, list string) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.sendErr != nil {
		return m.sendErr
	}
	m.started = append(m.started, queue.IndexJob{OrganizationID: org, List: list})
	return nil
}

func (m *maintained) Run(_ context.Context, org value.ID, list string) (bool, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.run = append(m.run, queue.IndexJob{OrganizationID: org, List: list})
	m.left--
	return m.left > 0 && m.err == nil, m.err
}

// reset returns what was started since the last call.
func (m *maintained) reset() []queue.IndexJob {
	m.mu.Lock()
	defer m.mu.Unlock()
	started := m.started
	m.started = nil
	return started
}

// indexJobs is an event with one message for each body.
func indexJobs(bodies ...string) sweeper.Event {
	var event sweeper.Event
	for i, body := range bodies {
		event.Records = append(event.Records, events.SQSMessage{MessageId: fmt.Sprint(i), Body: body})
	}
	return event
}

func failures(ids ...string) *events.SQSEventResponse {
	response := &events.SQSEventResponse{BatchItemFailures: []events.SQSBatchItemFailure{}}
	for _, id := range ids {
		response.BatchItemFailures = append(response.BatchItemFailures, events.SQSBatchItemFailure{ItemIdentifier: id})
	}
	return response
}

const (
	someOrganization = "01938f5a-0f00-7000-8000-000000000001"
	someJob          = `{"organizationId":"` + someOrganization + `","list":"products"}`
)

func TestIndexJobGoesOnInAnotherMessageUntilNothingIsLeft(t *testing.T) {
	h := newHarness(t)
	h.index.left = 3
	want := []queue.IndexJob{{OrganizationID: value.MustID(someOrganization), List: "products"}}
	for runs, started := range [][]queue.IndexJob{want, want, nil} {
		answer, err := h.Handle(t.Context(), indexJobs(someJob))
		if diff := cmp.Diff(failures(), answer); diff != "" || err != nil {
			t.Errorf("run %d: error %v, answer (-want +got):\n%s", runs+1, err, diff)
		}
		if diff := cmp.Diff(started, h.index.reset()); diff != "" {
			t.Errorf("run %d: started (-want +got):\n%s", runs+1, diff)
		}
	}
	if diff := cmp.Diff(slices.Repeat(want, 3), h.index.run); diff != "" {
		t.Errorf("worked on (-want +got):\n%s", diff)
	}
	if sent := h.sent.reset(); len(sent) != 0 {
		t.Errorf("a message made the run of a minute, too: %v", sent)
	}
}

func TestIndexJobThatFailsComesAgain(t *testing.T) {
	for name, c := range map[string]struct {
		index *maintained
		body  string
	}{
		"a message that is none":          {index: &maintained{}, body: `{"list":"products"}`},
		"a run that fails":                {index: &maintained{err: errors.New("no such list")}, body: someJob},
		"a rest that cannot be passed on": {index: &maintained{left: 2, sendErr: fault.Busy(errors.New("the queue is down"))}, body: someJob},
	} {
		t.Run(name, func(t *testing.T) {
			s := sweeper.New(nil, nil, sweeper.IndexCompaction{IndexQueue: c.index, Compactor: c.index}, time.Now, slog.New(slog.DiscardHandler))
			answer, err := s.Handle(t.Context(), indexJobs(c.body))
			if diff := cmp.Diff(failures("0"), answer); diff != "" || err != nil {
				t.Errorf("error %v, answer (-want +got):\n%s", err, diff)
			}
		})
	}
}

func TestDueIndexJobsAreStartedUntilSomebodyTakesThem(t *testing.T) {
	h := newHarness(t)
	var want []queue.IndexJob
	for range 20 {
		job := queue.IndexJob{OrganizationID: value.NewID(), List: "orders"}
		want = append(want, job)
		if err := h.Table.RequestJob(t.Context(), job.OrganizationID, job.List, h.Now()); err != nil {
			t.Fatal(err)
		}
	}
	later := queue.IndexJob{OrganizationID: h.Org, List: "products"}
	if err := h.Table.RequestJob(t.Context(), later.OrganizationID, later.List, h.At(3*time.Minute)); err != nil {
		t.Fatal(err)
	}
	started := func(minute int, want ...queue.IndexJob) {
		t.Helper()
		h.sweep(t)
		order := func(a, b queue.IndexJob) int { return slices.Compare(a.OrganizationID[:], b.OrganizationID[:]) }
		got := h.index.reset()
		slices.SortFunc(got, order)
		slices.SortFunc(want, order)
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("minute %d: started (-want +got):\n%s", minute, diff)
		}
	}
	started(0, want...)
	h.Pass(time.Minute)
	started(1, want...) // their messages were lost
	for _, job := range want {
		taken, err := h.Table.TakeJob(t.Context(), job.OrganizationID, job.List, h.At(time.Minute))
		if err != nil || taken == nil {
			t.Fatalf("TakeJob: %v, %v", taken, err)
		}
		if _, err := h.Table.EndJob(t.Context(), taken, nil); err != nil {
			t.Fatal(err)
		}
	}
	h.Pass(time.Minute)
	started(2)
	h.Pass(2 * time.Minute)
	started(4, later)
}

func TestIndexJobsThatCannotBeStartedDoNotStopTheRest(t *testing.T) {
	h := newHarness(t)
	delivery := h.waiting(t, 0)
	if err := h.Table.RequestJob(t.Context(), h.Org, "orders", h.Now()); err != nil {
		t.Fatal(err)
	}
	h.index.sendErr = fault.Busy(errors.New("the queue is down"))
	if _, err := h.Handle(t.Context(), sweeper.Event{}); err == nil {
		t.Error("no error although a job was not started")
	}
	if got := h.sent.reset(); len(got) != 1 {
		t.Errorf("sent %v, want %s", got, delivery.ID)
	}
	h.index.sendErr = nil
	h.Pass(time.Minute)
	h.sweep(t)
	if got := h.index.reset(); len(got) != 1 {
		t.Errorf("a minute later: started %v, want the job", got)
	}
}

// Both samples of events go through the JSON that Lambda hands over.
func TestOneHandlerTakesTheScheduleAndTheMessages(t *testing.T) {
	h := newHarness(t)
	handler := lambda.NewHandler(h.Handle)
	for name, want := range map[string]string{"sweeper": "null", "sweeper-index-job": `{"batchItemFailures":[]}`} {
		event, err := os.ReadFile(filepath.Join("..", "..", "..", "events", name+".json"))
		if err != nil {
			t.Fatal(err)
		}
		delivery := h.waiting(t, 0)
		answer, err := handler.Invoke(t.Context(), event)
		if string(answer) != want || err != nil {
			t.Errorf("%s: got %s, %v; want %s", name, answer, err, want)
		}
		_, swept := h.sent.reset()[delivery.ID]
		if swept != (name == "sweeper") || len(h.index.run) != 0 == swept {
			t.Errorf("%s: swept %t, worked on %v", name, swept, h.index.run)
		}
		h.index.run = nil
	}
}
