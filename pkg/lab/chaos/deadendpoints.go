package chaos

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/go-json-experiment/json/jsontext"
	"golang.org/x/sync/errgroup"

	"github.com/commerce-integration/service/pkg/base/pause"
	"github.com/commerce-integration/service/pkg/base/value"
	"github.com/commerce-integration/service/pkg/commerce"
	"github.com/commerce-integration/service/pkg/lab/workload"
	"github.com/commerce-integration/service/pkg/ops"
	"github.com/commerce-integration/service/pkg/queue"
	"github.com/commerce-integration/service/pkg/webhook"
)

// DeadConfig says how many endpoints are dead and what waits for them.
type DeadConfig struct {
	Endpoints  int           // that refuse connections
	Events     int           // for all of them together
	Every      time.Duration // between two events of the healthy endpoint
	Timeout    time.Duration // until all events have been tried or held
	MaxLatency time.Duration // that 99 of 100 events of the healthy endpoint may take
}

// DeadDefaults is the usual run.
func DeadDefaults() DeadConfig {
	return DeadConfig{Endpoints: 1_200, Events: 200_000, Every: 500 * time.Millisecond, Timeout: 15 * time.Minute, MaxLatency: 5 * time.Second}
}

// RunDeadEndpoints has events of very many dead endpoints come at once, and
// measures how many messages they hold in flight, of which a queue has at most
// 120,000, and how long the events of a healthy endpoint take meanwhile. Its
// error says that a promise is broken, or that the run could not be made.
func RunDeadEndpoints(ctx context.Context, cfg Config, dead DeadConfig) error {
	return inFolder(ctx, cfg, func(r *run, ctx context.Context) error {
		return (&deadRun{run: r, dead: dead}).all(ctx)
	})
}

// deadRun is one run in progress. Every dead endpoint takes each event of its
// organization.
type deadRun struct {
	*run
	dead         DeadConfig
	healthy      *workload.Tenant
	latencyProbe *workload.Receiver // of the healthy endpoint
}

func (d *deadRun) all(ctx context.Context) (err error) {
	if d.latencyProbe, err = workload.NewReceiver(ctx); err != nil {
		return err
	}
	defer d.latencyProbe.Close()
	if d.service, err = d.process.Start(ctx, "--template", d.Template, "--log-level", "error"); err != nil {
		return err
	}
	if err := d.subscribe(ctx); err != nil {
		return err
	}
	deliveries, err := d.store(ctx)
	if err == nil {
		err = d.rest(ctx)
	}
	if err != nil {
		return err
	}
	e := &deadEvidence{dead: d.dead, made: len(deliveries), peaks: &peaks{inFlight: map[string]int{}, delayed: map[string]int{}}}
	watching, end := context.WithCancel(ctx)
	defer end()
	var ended atomic.Bool
	var group sync.WaitGroup
	group.Go(func() { e.peaks.watch(watching, d) })
	group.Go(func() {
		// What is wrong shows in how many events came.
		if paced, _ := d.healthy.Pace(ctx, d.dead.Every, func(int) bool { return !ended.Load() }); paced != nil {
			e.sent, e.latencies = paced.Sent, paced.Latencies
		}
	})
	var sentAt time.Time
	if err = d.send(ctx, deliveries); err == nil {
		sentAt = time.Now()
		err = d.await(ctx, len(deliveries), e.peaks)
	}
	ended.Store(true)
	end()
	group.Wait()
	if err != nil {
		return err
	}
	e.took = time.Since(sentAt)
	if e.deliveries, e.untried, err = d.count(ctx); err != nil {
		return err
	}
	return d.conclude(fmt.Sprintf("%d events of %d dead endpoints", e.made, d.dead.Endpoints), e.judge())
}

// subscribe makes the dead endpoints, fifty of an application and one
// application of an organization, and the healthy one.
func (d *deadRun) subscribe(ctx context.Context) (err error) {
	for left := d.dead.Endpoints; left > 0; left -= webhook.MaxEndpointsPerApplication {
		made, err := d.service.NewTenant(ctx)
		if err != nil {
			return err
		}
		t := &tenant{Tenant: made}
		for range min(left, webhook.MaxEndpointsPerApplication) {
			created, err := t.CreateEndpoint(ctx, map[string]any{"url": "http://127.0.0.1:1/", "events": []string{"product.created"}, "timeoutSeconds": 5})
			if err != nil {
				return err
			}
			t.endpoints = append(t.endpoints, &endpoint{id: created.ID})
		}
		d.tenants = append(d.tenants, t)
	}
	if d.healthy, err = d.service.NewTenant(ctx); err == nil {
		err = d.healthy.Subscribe(ctx, d.latencyProbe)
	}
	d.say("%d dead endpoints of %d organizations are there, and one that is healthy", d.dead.Endpoints, len(d.tenants))
	return err
}

const (
	writers    = 4
	writeBatch = 500 // deliveries written or sent at a time
)

// store stores an event of each organization after the other until there are
// enough, with a delivery for each of its dead endpoints, as the dispatcher
// does, whose own limits are not in question here. Their messages are not sent.
func (d *deadRun) store(ctx context.Context) ([]*webhook.Delivery, error) {
	table, now := d.table(), value.TimeOf(time.Now())
	var deliveries []*webhook.Delivery
	var payloads []webhook.Payload
	for i := 0; len(deliveries) < d.dead.Events; i++ {
		t := d.tenants[i%len(d.tenants)]
		p := commerce.WebhookPayload{ID: value.NewID(), Type: "product.created", APIVersion: commerce.APIVersion, Timestamp: now, OrganizationID: t.ID}
		p.Data.Object, p.Data.PreviousAttributes = jsontext.Value(`{"name":"Tea"}`), jsontext.Value("null")
		body, err := p.Encode()
		if err != nil {
			return nil, err
		}
		payloads = append(payloads, webhook.Payload{OrganizationID: t.ID, EventID: p.ID, Body: body})
		for _, e := range t.endpoints {
			to := &webhook.Endpoint{ID: e.id, ApplicationID: t.Application, OrganizationID: t.ID}
			deliveries = append(deliveries, webhook.NewDelivery(&p, to, "", now))
		}
	}
	group, writing := errgroup.WithContext(ctx)
	group.SetLimit(writers)
	for some := range slices.Chunk(payloads, writeBatch) {
		group.Go(func() error { return table.PutPayloads(writing, some) })
	}
	for some := range slices.Chunk(deliveries, writeBatch) {
		group.Go(func() error {
			_, err := table.CreateDeliveries(writing, some)
			return err
		})
	}
	if err := group.Wait(); err != nil {
		return nil, err
	}
	d.say("%d events of dead endpoints are in the table", len(deliveries))
	return deliveries, nil
}

// send sends the messages of the deliveries, as fast as the queue takes them.
func (d *deadRun) send(ctx context.Context, deliveries []*webhook.Delivery) error {
	info := d.service.Info
	queues := queue.NewDeliveries(queue.New(d.service.Queues, info.DeliveriesQueueURL), queue.New(d.service.Queues, info.SlowDeliveriesQueueURL))
	now := value.TimeOf(time.Now())
	group, sending := errgroup.WithContext(ctx)
	group.SetLimit(writers)
	for some := range slices.Chunk(deliveries, writeBatch) {
		group.Go(func() error { return queues.Send(sending, webhook.LaneMain, now, some...) })
	}
	if err := group.Wait(); err != nil {
		return err
	}
	d.say("their messages were sent")
	return nil
}

// rest waits until the service has worked off the stream of what was stored:
// three events of the healthy endpoint in a row come at once.
func (d *deadRun) rest(ctx context.Context) error {
	const soon, row = 500 * time.Millisecond, 3
	ctx, cancel := context.WithTimeout(ctx, d.dead.Timeout)
	defer cancel()
	for quick := 0; quick < row; quick++ {
		paced, err := d.healthy.Pace(ctx, 0, func(n int) bool { return n < 1 })
		if err != nil {
			return fmt.Errorf("before any trouble: %w", err)
		}
		if paced.Latencies[0] > soon {
			quick = -1
		}
	}
	d.say("the service is at rest")
	return nil
}

// await waits until every event was tried at least once, or is held: until the
// backlog is worked off.
func (d *deadRun) await(ctx context.Context, made int, p *peaks) error {
	const interval, calm = 2 * time.Second, 3
	for deadline, still := time.Now().Add(d.dead.Timeout), 0; still < calm && time.Now().Before(deadline); {
		if err := pause.For(ctx, interval); err != nil {
			return err
		}
		still++
		if p.backlog.Load() > 0 {
			still = 0
			continue
		}
		by, untried, err := d.count(ctx) // which reads very many
		if err != nil {
			return err
		}
		if total(by) < made || untried > 0 {
			still = 0
		}
	}
	return nil
}

func total(by map[string]int) (n int) {
	for _, one := range by {
		n += one
	}
	return n
}

// count counts the deliveries of dead endpoints by status, and those that wait
// for their first attempt as anything but a probe.
func (d *deadRun) count(ctx context.Context) (by map[string]int, untried int, err error) {
	by = map[string]int{}
	table := d.table()
	for _, t := range d.tenants {
		if err := ops.EachDelivery(ctx, table, t.ID, func(r *webhook.Delivery) error {
			by[string(r.Status)]++
			if r.Pending() && r.AttemptCount == 0 && !r.Probe {
				untried++
			}
			return nil
		}); err != nil {
			return nil, 0, err
		}
	}
	return by, untried, nil
}

// peaks is the most that was seen of the queues of deliveries.
type peaks struct {
	inFlight, delayed map[string]int // by queue
	together, visible int            // of both queues: in flight, and visible
	backlog           atomic.Int64   // messages that were visible at the last look
}

// watch looks four times a second until ctx ends, and tells now and then.
func (p *peaks) watch(ctx context.Context, d *deadRun) {
	const interval, tellEvery = 250 * time.Millisecond, 80
	for look := 1; pause.For(ctx, interval) == nil; look++ {
		queues, err := workload.ReadQueues(ctx, d.service.Queues)
		if err != nil {
			continue
		}
		var visible, inFlight, delayed int
		for i := range queues {
			if q := &queues[i]; q.Deliveries() {
				p.inFlight[q.Name], p.delayed[q.Name] = max(p.inFlight[q.Name], q.InFlight), max(p.delayed[q.Name], q.Delayed)
				visible, inFlight, delayed = visible+q.Visible, inFlight+q.InFlight, delayed+q.Delayed
			}
		}
		p.together, p.visible = max(p.together, inFlight), max(p.visible, visible)
		p.backlog.Store(int64(visible))
		if look%tellEvery == 0 {
			d.say("messages: %d visible, %d in flight, %d delayed", visible, inFlight, delayed)
		}
	}
}

// maxReceived is how many messages of a queue functions may have received
// beside those that wait for a retry: the concurrency of the main lane in the
// template times its batch.
const maxReceived = 200 * 10

// deadEvidence is what is known after a run with very many dead endpoints.
type deadEvidence struct {
	dead DeadConfig

	made       int            // events of dead endpoints
	deliveries map[string]int // theirs, by status
	untried    int
	took       time.Duration // from their messages to the end of the backlog
	peaks      *peaks

	sent      int                // events of the healthy endpoint
	latencies workload.Latencies // of those that came
}

// bound is how many messages of a queue may be in flight: those that wait for a
// retry until the queue has too many, those that fail in the two seconds for
// which a count holds, and those being worked on. After that retries are
// delayed messages, which are not in flight. A queue has room for 120,000.
func (e *deadEvidence) bound() int {
	const counted = 2 * time.Second
	failures := float64(e.made) * counted.Seconds() / max(e.took.Seconds(), 1)
	return queue.MaxInFlight + maxReceived + int(failures)
}

func (e *deadEvidence) judge() []check {
	return []check{e.handled(), e.bounded(), e.unaffected()}
}

func (e *deadEvidence) handled() check {
	c := check{promise: "every event of a dead endpoint has its delivery, and was tried or is held"}
	c.found = fmt.Sprintf("%d deliveries: %s", total(e.deliveries), countsText(e.deliveries))
	if total(e.deliveries) != e.made {
		c.breach("%d of %d deliveries are there", total(e.deliveries), e.made)
	}
	if e.untried > 0 {
		c.breach("%d were not tried", e.untried)
	}
	return c
}

func (e *deadEvidence) bounded() check {
	p := e.peaks
	c := check{
		promise: fmt.Sprintf("no queue has more than %d messages in flight", e.bound()),
		found: fmt.Sprintf("at most in flight %s, both together %d; at most delayed %s; at most visible %d",
			countsText(p.inFlight), p.together, countsText(p.delayed), p.visible),
	}
	if len(p.inFlight) == 0 {
		c.breach("nobody has looked")
	}
	for name, n := range p.inFlight {
		if n > e.bound() {
			c.breach("%s: %d", name, n)
		}
	}
	return c
}

func (e *deadEvidence) unaffected() check {
	percentile := func(p float64) time.Duration { return e.latencies.Percentile(p).Round(time.Millisecond) }
	c := check{
		promise: fmt.Sprintf("99 of 100 events of the healthy endpoint take less than %s", e.dead.MaxLatency),
		found:   fmt.Sprintf("%d events: p50 %s, p99 %s, at most %s", len(e.latencies), percentile(50), percentile(99), percentile(100)),
	}
	if percentile(99) >= e.dead.MaxLatency || len(e.latencies) == 0 {
		c.breach("p99 of %d events: %s", len(e.latencies), percentile(99))
	}
	if missing := e.sent - len(e.latencies); missing > 0 {
		c.breach("%d of %d events have not come", missing, e.sent)
	}
	return c
}
