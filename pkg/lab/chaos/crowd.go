package chaos

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	"golang.org/x/sync/errgroup"

	"github.com/commerce-integration/service/pkg/commerce"
	"github.com/commerce-integration/service/pkg/pause"
	"github.com/commerce-integration/service/pkg/sqsqueue"
	"github.com/commerce-integration/service/pkg/value"
	"github.com/commerce-integration/service/pkg/webhook"
)

// CrowdConfig says how many endpoints are dead and what waits for them.
type CrowdConfig struct {
	Endpoints int           // that refuse connections, default 1,200
	Events    int           // for all of them together, default 200,000
	Every     time.Duration // between two events of the endpoint that is well, default 500 ms
	Patience  time.Duration // until all events have been tried or held, default 15 min
	Most      time.Duration // that 99 of 100 events of the endpoint that is well may take, default 5 s
}

func (c CrowdConfig) withDefaults() CrowdConfig {
	c.Endpoints = cmp.Or(c.Endpoints, 1_200)
	c.Events = cmp.Or(c.Events, 200_000)
	c.Every = cmp.Or(c.Every, 500*time.Millisecond)
	c.Patience = cmp.Or(c.Patience, 15*time.Minute)
	c.Most = cmp.Or(c.Most, 5*time.Second)
	return c
}

// RunCrowd lets events of very many dead endpoints come at once, and measures
// how many messages they hold in flight, of which a queue has no more than
// 120,000, and how long the events of an endpoint that is well take meanwhile.
// Its error says that a promise is broken, or that the run could not be made.
func RunCrowd(ctx context.Context, cfg Config, crowd CrowdConfig) error {
	cfg, crowd = cfg.withDefaults(), crowd.withDefaults()
	return inFolder(cfg.DataDir, func(dir string) (err error) {
		c := &crowdRun{run: &run{cfg: cfg, started: time.Now(), notes: newNotes(cfg.Log)}, crowd: crowd}
		defer c.close(&err)
		if c.service, err = newService(ctx, &c.cfg, dir, c.notes); err != nil {
			return err
		}
		c.service.level = "error"
		return c.all(ctx)
	})
}

// crowdRun is one run in progress. All dead endpoints together take each event
// of their organizations.
type crowdRun struct {
	*run
	crowd CrowdConfig
	well  *patient

	sentAt time.Time // when the messages of the dead endpoints were there
}

func (c *crowdRun) all(ctx context.Context) (err error) {
	if c.well, err = startPatient(ctx); err != nil {
		return err
	}
	defer c.well.server.Close()
	if err := c.start(ctx, 0); err != nil {
		return err
	}
	if err := c.subscribe(ctx); err != nil {
		return err
	}
	rows, err := c.stage(ctx)
	if err == nil {
		err = c.settled(ctx)
	}
	if err != nil {
		return err
	}
	living, end := context.WithCancel(ctx)
	defer end()
	var group sync.WaitGroup
	peaks := &peaks{}
	group.Go(func() { c.visit(living) })
	group.Go(func() { peaks.watch(living, c.client) })
	group.Go(func() { c.progress(living, peaks) })
	if err = c.send(ctx, rows); err == nil {
		err = c.await(ctx, len(rows), peaks)
	}
	end()
	group.Wait()
	if err == nil {
		err = c.arrive(ctx)
	}
	if err != nil {
		return err
	}
	return c.tell(ctx, len(rows), peaks)
}

// subscribe makes the dead endpoints, fifty of an application and one
// application of an organization, and the one that is well.
func (c *crowdRun) subscribe(ctx context.Context) error {
	base := c.service.info.BaseURL
	fill := func(o *organization, n int, url string) error {
		application, err := o.makeApplication(ctx, base)
		for i := 0; i < n && err == nil; i++ {
			var created struct {
				ID value.ID `json:"id"`
			}
			err = o.create(ctx, base, "/developers/webhooks/endpoints?applicationId="+application.String(),
				map[string]any{"url": url, "events": []string{"product.created"}, "timeoutSeconds": 5}, &created)
			o.endpoints = append(o.endpoints, &endpoint{id: created.ID})
		}
		return err
	}
	for left := c.crowd.Endpoints; left > 0; left -= webhook.MaxEndpointsPerApplication {
		o, err := newOrganization(c.service)
		if err == nil {
			err = fill(o, min(left, webhook.MaxEndpointsPerApplication), "http://127.0.0.1:1/")
		}
		if err != nil {
			return err
		}
		c.orgs = append(c.orgs, o)
	}
	var err error
	if c.well.of, err = newOrganization(c.service); err == nil {
		err = fill(c.well.of, 1, c.well.url)
	}
	c.say("%d dead endpoints of %d organizations are there, and one that is well", c.crowd.Endpoints, len(c.orgs))
	return err
}

// products is a message that makes so many products.
func products(of *organization, ids ...value.ID) string {
	entries := make([]map[string]any, len(ids))
	for i, id := range ids {
		entries[i] = map[string]any{"kind": "product", "op": "put", "version": 1, "record": map[string]any{"id": id, "name": "Tea"}}
	}
	text, err := json.Marshal(map[string]any{"organizationId": of.id, "records": entries})
	if err != nil {
		panic(fmt.Sprintf("a message of texts and numbers that is no JSON: %v", err))
	}
	return string(text)
}

// stage makes an event of each organization after the other until there are
// enough, with a row for each of its dead endpoints, as the dispatcher does;
// their messages are yet to be sent. What the dispatcher itself can take is
// another question.
func (c *crowdRun) stage(ctx context.Context) ([]*webhook.Delivery, error) {
	const writers, together = 4, 500 // rows written at a time
	table, now := c.table(), value.TimeOf(time.Now())
	var rows []*webhook.Delivery
	var payloads []webhook.Payload
	for i := 0; len(rows) < c.crowd.Events; i++ {
		o := c.orgs[i%len(c.orgs)]
		p := commerce.WebhookPayload{ID: value.NewID(), Type: "product.created", Timestamp: now, OrganizationID: o.id}
		p.Data.Object, p.Data.PreviousAttributes = jsontext.Value(`{"name":"Tea"}`), jsontext.Value("null")
		body, err := p.Encode()
		if err != nil {
			return nil, err
		}
		payloads = append(payloads, webhook.Payload{OrganizationID: o.id, EventID: p.ID, Body: body})
		for _, e := range o.endpoints {
			rows = append(rows, webhook.NewDelivery(&p, &webhook.Endpoint{ID: e.id, ApplicationID: o.application, OrganizationID: o.id}, "", now))
		}
	}
	group, writing := errgroup.WithContext(ctx)
	group.SetLimit(writers)
	for some := range slices.Chunk(payloads, together) {
		group.Go(func() error { return table.PutPayloads(writing, some) })
	}
	for some := range slices.Chunk(rows, together) {
		group.Go(func() error {
			_, err := table.CreateDeliveries(writing, some)
			return err
		})
	}
	if err := group.Wait(); err != nil {
		return nil, err
	}
	c.say("%d events of dead endpoints are in the table", len(rows))
	return rows, nil
}

// send sends the messages of the rows, as fast as the queue takes them.
func (c *crowdRun) send(ctx context.Context, rows []*webhook.Delivery) error {
	const senders, together = 4, 500
	client, main := c.queue("DeliveriesQueue")
	_, slow := c.queue("SlowDeliveriesQueue")
	deliveries, now := sqsqueue.NewDeliveries(sqsqueue.New(client, main), sqsqueue.New(client, slow)), value.TimeOf(time.Now())
	group, sending := errgroup.WithContext(ctx)
	group.SetLimit(senders)
	for some := range slices.Chunk(rows, together) {
		group.Go(func() error { return deliveries.Send(sending, webhook.LaneMain, now, some...) })
	}
	if err := group.Wait(); err != nil {
		return err
	}
	c.sentAt = time.Now()
	c.say("their messages were sent")
	return nil
}

// settled waits until the service has digested what was staged: an event of
// the endpoint that is well comes at once again.
func (c *crowdRun) settled(ctx context.Context) error {
	const soon, interval, row = 500 * time.Millisecond, 100 * time.Millisecond, 3
	deadline := time.Now().Add(c.crowd.Patience)
	for quick := 0; quick < row; {
		id := value.NewID()
		c.well.note(id)
		if err := send(ctx, c.records, products(c.well.of, id), c.well.of.id.String(), 0); err != nil {
			return err
		}
		for c.well.waits(id) {
			if err := pause.For(ctx, interval); err != nil {
				return err
			}
			if time.Now().After(deadline) {
				return fmt.Errorf("an event takes longer than %s before any trouble", c.crowd.Patience)
			}
		}
		took := c.well.forget()
		if quick++; took > soon {
			quick = 0
		}
	}
	c.say("the service is at rest")
	return nil
}

// visit sends the events of the endpoint that is well, one after the other,
// until ctx ends.
func (c *crowdRun) visit(ctx context.Context) {
	for pause.For(ctx, c.crowd.Every) == nil {
		id := value.NewID()
		c.well.note(id)
		if send(ctx, c.records, products(c.well.of, id), c.well.of.id.String(), 0) != nil {
			return
		}
	}
}

// progress tells now and then what there is, until ctx ends.
func (c *crowdRun) progress(ctx context.Context, p *peaks) {
	const interval = 20 * time.Second
	for pause.For(ctx, interval) == nil {
		took, sent := c.well.latencies()
		p.mu.Lock()
		c.say("messages: %d visible, %d in flight, %d delayed; well: %d of %d events have come, p99 %s",
			p.last.visible, p.last.inFlight, p.last.delayed, len(took), sent, percentile(took, 99).Round(time.Millisecond))
		p.mu.Unlock()
	}
}

// await waits until every event was tried at least once, or is held: until the
// backlog is worked off.
func (c *crowdRun) await(ctx context.Context, made int, p *peaks) error {
	const interval, calm = 2 * time.Second, 3
	for deadline, still := time.Now().Add(c.crowd.Patience), 0; still < calm && time.Now().Before(deadline); {
		if err := pause.For(ctx, interval); err != nil {
			return err
		}
		if p.backlog() > 0 {
			still = 0
			continue
		}
		rows, untried, err := c.rows(ctx) // of very many, which takes its time
		if err != nil {
			return err
		}
		if still++; total(rows) < made || untried > 0 {
			still = 0
		}
	}
	return nil
}

// arrive waits for the last events of the endpoint that is well.
func (c *crowdRun) arrive(ctx context.Context) error {
	const interval = 100 * time.Millisecond
	for deadline := time.Now().Add(c.crowd.Patience); time.Now().Before(deadline); {
		if took, sent := c.well.latencies(); len(took) == sent {
			return nil
		}
		if err := pause.For(ctx, interval); err != nil {
			return err
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

// rows counts the rows of dead endpoints by status, and those that wait for
// their first attempt as anything but a probe.
func (c *crowdRun) rows(ctx context.Context) (by map[string]int, untried int, err error) {
	by = map[string]int{}
	table := c.table()
	for _, o := range c.orgs {
		err := table.AllDeliveries(ctx, o.id, func(r *webhook.Delivery) error {
			name := string(r.Status)
			if r.Pending() && r.AttemptCount == 0 && !r.Probe {
				untried++
			}
			by[name]++
			return nil
		})
		if err != nil {
			return nil, 0, fmt.Errorf("read the rows of an organization: %w", err)
		}
	}
	return by, untried, nil
}

// tell reports, and holds what was measured against what is promised.
func (c *crowdRun) tell(ctx context.Context, made int, p *peaks) (err error) {
	e := &crowdEvidence{crowd: c.crowd, made: made, peaks: p, took: time.Since(c.sentAt)}
	if e.rows, e.untried, err = c.rows(ctx); err != nil {
		return err
	}
	e.latencies, e.sent = c.well.latencies()
	c.report.checks = e.judge()
	c.report.took, c.report.title = time.Since(c.started), fmt.Sprintf("%d events of %d dead endpoints", made, c.crowd.Endpoints)
	c.report.write(c.cfg.Out)
	if err := c.service.stop(); err != nil {
		return err
	}
	if n := c.report.failed(); n > 0 {
		return fmt.Errorf("%d of %d promises are broken", n, len(c.report.checks))
	}
	return nil
}
