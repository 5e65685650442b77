package chaos

import (
	"crypto/sha256"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/commerce-integration/service/pkg/base/value"
	"github.com/commerce-integration/service/pkg/lab/workload"
	"github.com/commerce-integration/service/pkg/local/clocks"
	"github.com/commerce-integration/service/pkg/webhook"
)

// story is a sound run of three deliveries of one endpoint: one delivered at once,
// one after a failure, one failed for good.
type story struct {
	*evidence
	endpoint           value.ID
	first, again, gone value.ID // deliveries
	start              time.Time
}

const (
	workerPID     = 10
	dispatcherPID = 20
)

func newStory() *story {
	s := &story{
		endpoint: value.NewID(), first: value.NewID(), again: value.NewID(), gone: value.NewID(),
		start: time.Date(2026, 11, 21, 6, 0, 0, 0, time.UTC),
	}
	s.evidence = &evidence{
		events: 3, expected: map[value.ID]expectation{}, deliveries: map[value.ID]*webhook.Delivery{},
		counters: map[value.ID]webhook.Counters{s.endpoint: {SuccessCount: 2, FailureCount: 3}},
		records:  map[value.ID]value.Time{}, copied: map[value.ID]value.Time{}, fed: map[value.ID]value.Time{},
		queues: []workload.Queue{{Name: "DeliveriesQueue"}, {Name: "DeliveriesDLQ", Dead: true}},
	}
	s.delivery(s.first, webhook.DeliveryDelivered, 0)
	s.delivery(s.again, webhook.DeliveryDelivered, 0)
	s.delivery(s.gone, webhook.DeliveryFailed, 1)
	s.attempt(s.first, 0, 204, true)
	s.attempt(s.again, 0, 500, true)
	s.attempt(s.again, 5*time.Second, 204, true)
	s.attempt(s.gone, 0, 500, true)
	s.attempt(s.gone, 5*time.Second, 500, true)
	return s
}

func (s *story) delivery(id value.ID, status webhook.DeliveryStatus, retries int) {
	s.deliveries[id] = &webhook.Delivery{ID: id, EndpointID: s.endpoint, Type: "order.created", Status: status, CreatedAt: value.TimeOf(s.start)}
	s.expected[id] = expectation{s.endpoint, "order.created", retries}
}

// attempt makes a request of a delivery, which takes 10 ms, and has it recorded or
// not.
func (s *story) attempt(delivery value.ID, after time.Duration, status int, recorded bool) {
	at := s.start.Add(after)
	s.requests = append(s.requests, request{
		delivery: delivery, arrived: at.Add(time.Millisecond), answered: at.Add(10 * time.Millisecond), status: status, body: sha256.Sum256(delivery[:]),
	})
	s.attempts = append(s.attempts, attempt{at.Add(11 * time.Millisecond), workerPID + len(s.attempts), delivery, status, "1"})
	if !recorded {
		return
	}
	a := webhook.Attempt{At: value.TimeOf(at), DurationMs: 10, ResponseStatus: &status}
	if status != 204 {
		failure := "answered 500 Internal Server Error"
		a.Error = &failure
	}
	r := s.deliveries[delivery]
	r.Attempts, r.AttemptCount = append(r.Attempts, a), r.AttemptCount+1
}

// acceptAgain has the first delivery's event accepted once more, a minute after the
// first time, of which its delivery knows nothing.
func (s *story) acceptAgain(after time.Duration) {
	s.deliveries[s.first].Attempts, s.deliveries[s.first].AttemptCount = nil, 0
	s.attempt(s.first, after, 204, true)
}

func (s *story) kill(function string, pid int, after time.Duration) {
	s.kills = append(s.kills, kill{s.start.Add(after), function, pid})
}

// broken returns the promises that do not hold.
func broken(e *evidence) (promises []string) {
	for _, c := range judge(e) {
		if !c.holds() {
			promises = append(promises, c.promise)
		}
	}
	return promises
}

func TestASoundRunKeepsEveryPromise(t *testing.T) {
	if got := broken(newStory().evidence); len(got) > 0 {
		t.Errorf("broken: %q, want none", got)
	}
}

func TestTheProbeOfAnOpenCircuitMayLieAhead(t *testing.T) {
	s := newStory()
	s.probe()
	if got := broken(s.evidence); len(got) > 0 {
		t.Errorf("broken: %q, want none", got)
	}
}

// probe has the delivery that failed be the probe of an open circuit, with its
// message.
func (s *story) probe() {
	s.deliveries[s.gone].Status, s.deliveries[s.gone].Probe = webhook.DeliveryPending, true
	s.queues[0].Delayed = 1
}

func TestEachPromiseCanBeBroken(t *testing.T) {
	for name, c := range map[string]struct {
		spoil func(*story)
		want  string // part of the only promise that is broken; several by |
	}{
		"a record that was lost":           {func(s *story) { s.lost = []put{{of: &tenant{Tenant: &workload.Tenant{}}}} }, "every record"},
		"a record that a copy lacks":       {func(s *story) { s.records[s.first], s.fed[s.first] = 1, 1 }, "a copy by X-Sync-From"},
		"a record that a copy has of old":  {func(s *story) { s.records[s.first], s.fed[s.first], s.copied[s.first] = 2, 2, 1 }, "a copy by X-Sync-From"},
		"a record that only a copy has":    {func(s *story) { s.copied[s.first] = 1 }, "a copy by X-Sync-From"},
		"a record that the feed lacks":     {func(s *story) { s.records[s.first], s.copied[s.first] = 2, 2 }, "a copy by the feed"},
		"a record that went back":          {func(s *story) { s.disordered = append(s.disordered, s.first) }, "a copy by the feed"},
		"a delivery that was lost":         {func(s *story) { s.lose(s.gone) }, "each event has one delivery|each request"},
		"a delivery of nobody":             {func(s *story) { delete(s.expected, s.first) }, "each event has one delivery"},
		"a delivery that still waits":      {func(s *story) { s.deliveries[s.gone].Status = webhook.DeliveryPending }, "each delivery is"},
		"a delivery that was cancelled":    {func(s *story) { s.deliveries[s.gone].Status = webhook.DeliveryCancelled }, "each delivery is"},
		"a delivery that nobody got":       {func(s *story) { s.requests = s.requests[1:] }, "DELIVERED was received|attempts are those"},
		"a delivery that was refused":      {func(s *story) { s.requests[0].status = 500 }, "DELIVERED was received|attempts are those"},
		"a failure before its time":        {func(s *story) { s.expected[s.gone] = expectation{s.endpoint, "", 2} }, "attempts are those"},
		"an attempt that was counted only": {func(s *story) { s.deliveries[s.gone].AttemptCount++ }, "attempts are those"},
		"an attempt that was kept twice":   {func(s *story) { s.keepTwice() }, "attempts are those"},
		"a success counted twice":          {func(s *story) { s.counters[s.endpoint] = webhook.Counters{SuccessCount: 3, FailureCount: 3} }, "counters equal"},
		"a failure not counted":            {func(s *story) { s.counters[s.endpoint] = webhook.Counters{SuccessCount: 2, FailureCount: 2} }, "counters equal"},
		"an endpoint without counters":     {func(s *story) { s.counters = map[value.ID]webhook.Counters{} }, "counters equal"},
		"counters of what never happened":  {func(s *story) { s.counters[value.NewID()] = webhook.Counters{SuccessCount: 1} }, "counters equal"},
		"a wrong signature":                {func(s *story) { s.requests[1].wrong = "no matching signature" }, "each request"},
		"a body that changes":              {func(s *story) { s.requests[2].body[0]++ }, "each request"},
		"an attempt that is no probe":      {func(s *story) { s.probe(); s.deliveries[s.gone].Probe = false }, "each delivery is|no queue"},
		"two messages for one probe":       {func(s *story) { s.probe(); s.queues[0].Delayed = 2 }, "no queue"},
		"a message that stays":             {func(s *story) { s.queues[0].Delayed = 1 }, "no queue"},
		"a dead letter":                    {func(s *story) { s.queues[1].Visible = 1 }, "no queue"},
		"a status that finds something":    {func(s *story) { s.waits = "1 message in ParkQueue" }, "no queue"},
		"a list that differs":              {func(s *story) { s.differs = "orders lacks one" }, "commerce verify"},
		"a duplicate by nobody":            {func(s *story) { s.acceptAgain(time.Minute) }, "accepted again"},
	} {
		s := newStory()
		c.spoil(s)
		got := broken(s.evidence)
		want := strings.Split(c.want, "|")
		if len(got) != len(want) {
			t.Errorf("%s: broken %q, want %q", name, got, want)
			continue
		}
		for i := range want {
			if !strings.Contains(got[i], want[i]) {
				t.Errorf("%s: broken %q, want %q", name, got, want)
			}
		}
	}
}

// lose forgets a delivery with what was counted of it.
func (s *story) lose(id value.ID) {
	delete(s.deliveries, id)
	s.counters[s.endpoint] = webhook.Counters{SuccessCount: 2, FailureCount: 1}
}

func TestADuplicateIsExplainedThoughClocksDiffer(t *testing.T) {
	s := newStory()
	s.clocks = clocks.Clocks{Apart: 5 * time.Minute, Seed: 1}
	s.acceptAgain(time.Minute)
	s.giveUp()
	for _, d := range s.deliveries {
		for i := range d.Attempts {
			made := slices.IndexFunc(s.attempts, func(a attempt) bool {
				return a.delivery == d.ID && a.at.Sub(d.Attempts[i].At.Std()).Abs() < time.Second
			})
			d.Attempts[i].At = value.TimeOf(d.Attempts[i].At.Std().Add(s.clocks.Offset(s.attempts[made].pid)))
		}
	}
	s.wantCause(t, "the answer came too late", byNetwork)
}

// keepTwice has a delivery know an attempt twice, and its endpoint count it.
func (s *story) keepTwice() {
	r := s.deliveries[s.gone]
	r.Attempts, r.AttemptCount = append(r.Attempts, r.Attempts[1]), 3
	s.expected[s.gone] = expectation{s.endpoint, "", 2}
	s.counters[s.endpoint] = webhook.Counters{SuccessCount: 2, FailureCount: 4}
}

func TestADuplicateIsExplainedByWhatCanHaveCausedIt(t *testing.T) {
	soon, later := 500*time.Millisecond, bookkeeping+time.Second
	for name, c := range map[string]struct {
		happens func(*story)
		want    string // "" when nothing explains it
	}{
		"its worker was killed":              {func(s *story) { s.kill("worker", workerPID, soon) }, byWorker},
		"its worker was killed long after":   {func(s *story) { s.kill("worker", workerPID, later) }, ""},
		"its worker had gone on":             {func(s *story) { s.goOn(); s.kill("worker", workerPID, soon) }, ""},
		"the whole, when it had gone on":     {func(s *story) { s.goOn(); s.kill("", 0, soon) }, ""},
		"its worker was killed before":       {func(s *story) { s.kill("worker", workerPID, -soon) }, ""},
		"another worker was killed":          {func(s *story) { s.kill("worker", workerPID+100, soon) }, ""},
		"a dispatcher was killed":            {func(s *story) { s.kill("dispatcher", dispatcherPID, soon) }, ""},
		"a worker that never told":           {func(s *story) { s.attempts = nil; s.kill("worker", workerPID+100, soon) }, byWorker},
		"none was killed, and none told":     {func(s *story) { s.attempts = nil }, ""},
		"the whole was killed":               {func(s *story) { s.kill("", 0, soon) }, byWhole},
		"the whole was killed long after":    {func(s *story) { s.kill("", 0, later) }, ""},
		"the whole, and its request arrived": {func(s *story) { s.attempts = nil; s.kill("", 0, time.Millisecond-underway) }, byWhole},
		"the whole was killed before":        {func(s *story) { s.kill("", 0, -underway) }, ""},
		"a worker, and its request arrived":  {func(s *story) { s.attempts = nil; s.kill("worker", workerPID, time.Millisecond-underway) }, byWorker},
		"a worker before, and none told":     {func(s *story) { s.attempts = nil; s.kill("worker", workerPID, -underway) }, ""},
		"the table refused, by its worker":   {func(s *story) { s.complain("worker", workerPID, s.first, later) }, byTable},
		"the table refused another delivery": {func(s *story) { s.complain("worker", workerPID, s.again, soon) }, ""},
		"the table refused another process":  {func(s *story) { s.complain("worker", workerPID+100, s.first, soon) }, ""},
		"the answer came too late":           {func(s *story) { s.giveUp() }, byNetwork},
		"a copy that came much later":        {func(s *story) { s.copies = []duplicate{{s.start, s.first}} }, ""},
	} {
		s := newStory()
		s.acceptAgain(time.Minute)
		c.happens(s)
		s.wantCause(t, name, c.want)
	}
}

func TestTwoMessagesOfARowExplainADuplicateOnlyWhenTheyCross(t *testing.T) {
	for name, c := range map[string]struct {
		after   time.Duration // between the two requests
		happens func(*story)
		want    string
	}{
		"a copy at the same time":               {5 * time.Millisecond, func(s *story) { s.copies = []duplicate{{s.start, s.first}} }, byCopy},
		"a copy of another delivery":            {5 * time.Millisecond, func(s *story) { s.copies = []duplicate{{s.start, s.again}} }, ""},
		"a copy after the outcome was written":  {bookkeeping + time.Second, func(s *story) { s.copies = []duplicate{{s.start, s.first}} }, ""},
		"a dispatcher that was killed":          {5 * time.Millisecond, func(s *story) { s.kill("dispatcher", dispatcherPID, -time.Second) }, bySender},
		"a dispatcher that failed":              {5 * time.Millisecond, func(s *story) { s.complain("dispatcher", dispatcherPID, value.ID{}, -time.Second) }, bySender},
		"a dispatcher that was killed long ago": {5 * time.Millisecond, func(s *story) { s.kill("dispatcher", dispatcherPID, -time.Minute) }, ""},
		"an indexer that was killed":            {5 * time.Millisecond, func(s *story) { s.kill("indexer", dispatcherPID, -time.Second) }, ""},
		"a message that was late":               {5 * time.Millisecond, func(s *story) { s.createdBefore(webhook.Lease) }, byQueue},
		"a message that was nearly late":        {5 * time.Millisecond, func(s *story) { s.createdBefore(webhook.Lease - 2*time.Millisecond) }, ""},
		"a late one after the outcome":          {bookkeeping + time.Second, func(s *story) { s.createdBefore(webhook.Lease) }, ""},
		"a retry that was late":                 {5 * time.Millisecond, func(s *story) { s.failedBefore(webhook.Lease + 7*time.Second) }, byQueue},
		"a retry that was nearly late":          {5 * time.Millisecond, func(s *story) { s.failedBefore(webhook.Lease + 6*time.Second) }, ""},
		"nothing":                               {5 * time.Millisecond, func(*story) {}, ""},
	} {
		s := newStory()
		s.acceptAgain(c.after)
		c.happens(s)
		s.wantCause(t, name, c.want)
	}
}

// createdBefore has the first delivery's event come so long before its first request.
func (s *story) createdBefore(early time.Duration) {
	s.deliveries[s.first].CreatedAt = value.TimeOf(s.start.Add(-early))
}

// failedBefore has the first delivery's event refused so long before it is accepted.
func (s *story) failedBefore(early time.Duration) {
	s.createdBefore(early)
	s.attempt(s.first, -early, 500, true)
}

func (s *story) complain(function string, pid int, delivery value.ID, after time.Duration) {
	s.complaints = append(s.complaints, complaint{s.start.Add(after), function, pid, delivery})
}

// goOn has the process that made the first request make another in a later
// invocation.
func (s *story) goOn() {
	s.attempts = append(s.attempts, attempt{s.start.Add(100 * time.Millisecond), workerPID, s.again, 500, "2"})
}

// giveUp has the delivery know the attempt that was accepted first as one that
// failed.
func (s *story) giveUp() {
	reason := "timed out after 5 s waiting for headers"
	r := s.deliveries[s.first]
	r.Attempts = append([]webhook.Attempt{{At: value.TimeOf(s.start), DurationMs: 5000, Error: &reason}}, r.Attempts...)
	r.AttemptCount++
}

func (s *story) wantCause(t *testing.T, name, want string) {
	t.Helper()
	check, causes := s.duplicates()
	switch {
	case want == "" && (check.holds() || len(causes) > 0):
		t.Errorf("%s: explained as %v, want no explanation", name, causes)
	case want != "" && (!check.holds() || causes[want] != 1):
		t.Errorf("%s: got %v and %q, want %q once", name, causes, check.broken, want)
	}
}
