package chaos

import (
	"strings"
	"testing"
	"time"

	"github.com/commerce-integration/service/pkg/base/value"
	"github.com/commerce-integration/service/pkg/ops"
	"github.com/commerce-integration/service/pkg/webhook"
)

// story is a sound run of three deliveries of one endpoint: one delivered at once, one after a failure, one failed for
// good.
type story struct {
	*evidence
	endpoint           value.ID
	first, again, gone value.ID // deliveries
}

func newStory() *story {
	s := &story{evidence: newEvidence(), endpoint: value.NewID(), first: value.NewID(), again: value.NewID(), gone: value.NewID()}
	s.counters[s.endpoint] = webhook.Counters{SuccessCount: 2, FailureCount: 3}
	s.queues = []*ops.QueueStatus{{Name: "DeliveriesQueue"}, {Name: "DeliveriesDLQ", Stuck: true}}
	s.delivery(s.first, webhook.DeliveryDelivered, 204)
	s.delivery(s.again, webhook.DeliveryDelivered, 500, 204)
	s.delivery(s.gone, webhook.DeliveryFailed, 500, 500)
	return s
}

// start is when the first attempt of each delivery began, by every clock.
const start value.Time = 1_795_000_000_000

// delivery adds a delivery whose requests were answered so, a second apart.
func (s *story) delivery(id value.ID, status webhook.DeliveryStatus, answers ...int) {
	d := &webhook.Delivery{ID: id, EndpointID: s.endpoint, Type: "order.created", Status: status, AttemptCount: len(answers)}
	for n, answer := range answers {
		a := webhook.Attempt{At: start.Add(time.Duration(n) * time.Second), ResponseStatus: &answer}
		if answer != 204 {
			a.Error = new(string)
		}
		d.Attempts = append(d.Attempts, a)
		s.attempts[id] = append(s.attempts[id], attempt{Logged: a.At.Std(), At: a.At})
		if answer == 204 {
			s.accepted[id] = append(s.accepted[id], a.At.Std())
		}
	}
	s.deliveries[id] = d
	s.expected[id] = expectation{endpoint: s.endpoint, retries: 1}
}

// probe has the delivery that failed be the probe of an open circuit, with its message.
func (s *story) probe() {
	s.deliveries[s.gone].Status, s.deliveries[s.gone].Probe = webhook.DeliveryPending, true
	s.queues[0].Visible = 1
}

// again is when the first delivery is accepted again.
var again = start.Std().Add(time.Minute)

// acceptTwice has the first delivery accepted again. Many others are accepted once.
func (s *story) acceptTwice() {
	for range 20 {
		s.delivery(value.NewID(), webhook.DeliveryDelivered, 204)
	}
	s.count(22, 3)
	s.accepted[s.first] = append(s.accepted[s.first], again)
}

func (s *story) count(successes, failures int64) {
	s.counters[s.endpoint] = webhook.Counters{SuccessCount: successes, FailureCount: failures}
}

// broken returns the promises that do not hold.
func broken(e *evidence) (promises []string) {
	for _, c := range judge(e) {
		if len(c.broken) > 0 {
			promises = append(promises, c.promise)
		}
	}
	return promises
}

func TestASoundRunKeepsEveryPromise(t *testing.T) {
	for name, more := range map[string]func(*story){
		"as it is":                     func(*story) {},
		"with a probe that lies ahead": func(s *story) { s.probe() },
		"with a further message of one that failed": func(s *story) {
			s.probe()
			s.deliveries[s.gone].Status, s.deliveries[s.gone].HeldReason, s.deliveries[s.gone].Probe = webhook.DeliveryHeld, webhook.HeldCircuitOpen, false
		},
		"with one accepted twice": func(s *story) { s.acceptTwice(); s.restarts = append(s.restarts, again) },
	} {
		s := newStory()
		if more(s); len(broken(s.evidence)) > 0 {
			t.Errorf("%s: broken %q, want none", name, broken(s.evidence))
		}
	}
}

func TestEachPromiseCanBeBroken(t *testing.T) {
	for name, c := range map[string]struct {
		spoil func(*story)
		want  string // part of the only promise that is broken
	}{
		"a record that was lost":          {func(s *story) { s.lost = []string{"order 1"} }, "every record is stored"},
		"a record that the feed lacks":    {func(s *story) { s.records[s.first] = 2 }, "a copy by the feed"},
		"a record that the feed has old":  {func(s *story) { s.records[s.first], s.copied[s.first] = 2, 1 }, "a copy by the feed"},
		"a record that only the feed has": {func(s *story) { s.copied[s.first] = 1 }, "a copy by the feed"},
		"a list that verify differs from": {func(s *story) { s.differs = []string{"exit status 1"} }, "the lists equal"},
		"a delivery that was lost":        {func(s *story) { delete(s.deliveries, s.gone); s.count(2, 1) }, "each event has one delivery"},
		"a delivery of nobody":            {func(s *story) { delete(s.expected, s.first) }, "each event has one delivery"},
		"a delivery that still waits":     {func(s *story) { s.deliveries[s.gone].Status = webhook.DeliveryPending }, "each delivery is"},
		"a delivery that was cancelled":   {func(s *story) { s.deliveries[s.gone].Status = webhook.DeliveryCancelled }, "each delivery is"},
		"a failure before its time":       {func(s *story) { s.expected[s.gone] = expectation{endpoint: s.endpoint, retries: 2} }, "each delivery is"},
		"a delivery that nobody got":      {func(s *story) { delete(s.accepted, s.first) }, "DELIVERED was received"},
		"twice without a cause":           {func(s *story) { s.acceptTwice() }, "those with a cause"},
		"twice too often":                 {func(s *story) { s.accepted[s.first] = append(s.accepted[s.first], start.Std()) }, "few of them twice"},
		"an attempt that was counted":     {func(s *story) { s.deliveries[s.again].AttemptCount++ }, "each delivery is"},
		"a success counted twice":         {func(s *story) { s.count(3, 3) }, "counters equal"},
		"a failure not counted":           {func(s *story) { s.count(2, 2) }, "counters equal"},
		"an endpoint without counters":    {func(s *story) { clear(s.counters) }, "counters equal"},
		"counters of what never happened": {func(s *story) { s.counters[value.NewID()] = webhook.Counters{SuccessCount: 1} }, "counters equal"},
		"three messages for one probe":    {func(s *story) { s.probe(); s.queues[0].Visible = 3 }, "no queue"},
		"a message that stays":            {func(s *story) { s.queues[0].Visible = 1 }, "no queue"},
		"a dead letter":                   {func(s *story) { s.queues[1].Visible = 1 }, "no queue"},
	} {
		s := newStory()
		c.spoil(s)
		if got := broken(s.evidence); len(got) != 1 || !strings.Contains(got[0], c.want) {
			t.Errorf("%s: broken %q, want %q", name, got, c.want)
		}
	}
}
