package bench

import (
	"context"
	"crypto/rand"
	stdjson "encoding/json"
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/aws/aws-lambda-go/events"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/commerce-integration/service/pkg/account"
	"github.com/commerce-integration/service/pkg/commerce"
	"github.com/commerce-integration/service/pkg/dynamo"
	"github.com/commerce-integration/service/pkg/local/runner"
	"github.com/commerce-integration/service/pkg/sealed"
	"github.com/commerce-integration/service/pkg/value"
	"github.com/commerce-integration/service/pkg/webhook"
)

const (
	workerEndpoints   = 8  // that the events are for
	workerBatches     = 64 // different ones
	workerBatch       = 10 // messages of a batch, as template.yaml says
	workerInvocations = 8  // side by side
	workerEvents      = 4  // deliveries of a round, for one of the other sections
)

// measureWorker is the section of the worker alone.
func measureWorker(ctx context.Context, w *webhooks) (err error) {
	load, err := w.workload(ctx)
	if err != nil {
		return err
	}
	stub, err := newStub(ctx, serviceTable, load.items)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, stub.close()) }()
	child, err := startChild(w.cfg.Child, w.cfg.Log, childOrder{Profile: w.profileOf("worker"), Worker: &workerOrder{
		Table: stub.url(), Queues: stub.url(), TableName: serviceTable, ServiceKey: load.key,
		Batches: load.batches, Deliveries: workerBatch, Invocations: workerInvocations,
	}})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, child.close()) }()
	var round workerRound
	if err := child.hear(ctx, &round); err != nil {
		return fmt.Errorf("start the worker: %w", err)
	}
	t := w.table(fmt.Sprintf("The worker alone, batches of %d, payload %s", workerBatch, kilobytes(load.payload)),
		"deliveries/s", "CPU worker", "CPU stubs, receiver", "allocations", "allocated")
	t.note = fmt.Sprintf("The real worker with the real SDK in a process of its own, %d invocations side by side, events for %d endpoints. Table and queue are "+
		"stubs that answer with bytes that are ready; they and the receiver are in the bench's process and share the machine's cores with the worker. "+
		"CPU and allocations are for one delivery.", workerInvocations, workerEndpoints)
	for number := range w.cfg.Rounds + 1 {
		round, stubs, err := w.deliveries(ctx, child, load)
		if err != nil {
			return err
		}
		if number == 0 {
			continue // connections are opened and code runs for the first time
		}
		n := float64(round.Deliveries)
		t.add(fmt.Sprintf("round %d, load %s", number, loadAverage()), "≥ 8,000/s", thousands(int(n/time.Duration(round.TookNs).Seconds())),
			perEvent(time.Duration(round.ProcessorNs), round.Deliveries), perEvent(stubs, round.Deliveries), amount(float64(round.Mallocs)/n), kilobytes(float64(round.Bytes)/n))
	}
	return nil
}

// deliveries makes a round, and checks that the receiver got all of it.
func (w *webhooks) deliveries(ctx context.Context, worker *child, load *workload) (round workerRound, own time.Duration, err error) {
	load.inbox.clear()
	used := ownProcessor()
	if err := worker.tell(w.cfg.Events * workerEvents); err != nil {
		return round, 0, err
	}
	if err := worker.hear(ctx, &round); err != nil {
		return round, 0, err
	}
	own = ownProcessor() - used
	if got := load.inbox.read(); got.receipts != round.Deliveries {
		return round, 0, fmt.Errorf("the receiver got %d of %d deliveries", got.receipts, round.Deliveries)
	}
	return round, own, nil
}

// workload is what the worker works on.
type workload struct {
	key     []byte           // of the service
	items   []jsontext.Value // that are in the table
	batches []jsontext.Value
	inbox   *inbox
	payload float64 // bytes of one, in the mean
}

// workload makes events on a real table, and takes from it what it holds
// then.
func (w *webhooks) workload(ctx context.Context) (load *workload, err error) {
	server, err := w.startTable(ctx, "workload")
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, server.Close()) }()
	url := server.Endpoint()
	if err := w.provision(ctx, url); err != nil {
		return nil, err
	}
	client := dynamodb.NewFromConfig(runner.AWSConfig(), func(o *dynamodb.Options) { o.BaseEndpoint = &url })
	load = &workload{key: make([]byte, sealed.KeySize), inbox: w.receiver.inbox("/worker")}
	if _, err := rand.Read(load.key); err != nil {
		return nil, fmt.Errorf("make a service key: %w", err)
	}
	if err := load.fill(ctx, dynamo.New(client, serviceTable, time.Now)); err != nil {
		return nil, err
	}
	for from := ""; ; {
		answer, err := askTable(ctx, http.DefaultClient, url, "Scan", fmt.Appendf(nil, `{"TableName":%q%s}`, serviceTable, from))
		if err != nil {
			return nil, err
		}
		var page struct {
			Items            []jsontext.Value
			LastEvaluatedKey jsontext.Value
		}
		if err := json.Unmarshal(answer, &page); err != nil {
			return nil, fmt.Errorf("read the table: %w", err)
		}
		load.items = append(load.items, page.Items...)
		if page.LastEvaluatedKey == nil {
			return load, nil
		}
		from = `,"ExclusiveStartKey":` + string(page.LastEvaluatedKey)
	}
}

// fill makes endpoints and the events of each batch, which is for one of
// them.
func (l *workload) fill(ctx context.Context, table *dynamo.Table) error {
	org, now := value.NewID(), value.TimeOf(time.Now())
	name := "bench"
	application := account.NewApplication(org, value.NewID(), account.CreateApplicationDto{Name: &name}, now)
	if err := table.CreateApplication(ctx, org, application); err != nil {
		return err
	}
	box, err := sealed.NewBox(l.key)
	if err != nil {
		return err
	}
	var endpoints []*webhook.Endpoint
	for range workerEndpoints {
		subscribed := []string{"product.created"}
		e, _ := webhook.NewEndpoint(org, application.ID, webhook.CreateWebhookEndpointDto{URL: &l.inbox.url, Events: &subscribed}, box.Seal, now)
		if err := table.CreateEndpoint(ctx, e); err != nil {
			return err
		}
		endpoints = append(endpoints, e)
	}
	shop := &catalogue{organization: org}
	for n := range workerBatches {
		batch, err := l.batch(ctx, table, shop, endpoints[n%len(endpoints)], n*workerBatch)
		if err != nil {
			return err
		}
		l.batches = append(l.batches, batch)
	}
	l.payload /= workerBatches * workerBatch
	return nil
}

// batch makes the events of so many products from the n-th, and the batch of
// their messages as Lambda gives it.
func (l *workload) batch(ctx context.Context, table *dynamo.Table, shop *catalogue, e *webhook.Endpoint, n int) (jsontext.Value, error) {
	var batch events.SQSEvent
	now := value.TimeOf(time.Now())
	for i := range workerBatch {
		row, body, err := parcelEvent(shop.parcel(n+i), e, now)
		if err != nil {
			return nil, err
		}
		l.payload += float64(len(body))
		if err := table.PutPayload(ctx, row.OrganizationID, row.EventID, body); err != nil {
			return nil, err
		}
		if _, err := table.CreateDelivery(ctx, row); err != nil {
			return nil, err
		}
		batch.Records = append(batch.Records, message(row.Ref().Body(), e.ID))
	}
	// Lambda's own types are written for this package.
	text, err := stdjson.Marshal(batch)
	if err != nil {
		return nil, fmt.Errorf("encode a batch: %w", err)
	}
	return text, nil
}

// parcelEvent is the event of a new product for an endpoint.
func parcelEvent(product *commerce.Product, e *webhook.Endpoint, now value.Time) (*webhook.Delivery, []byte, error) {
	doc, err := json.Marshal(product)
	if err != nil {
		return nil, nil, fmt.Errorf("encode a product: %w", err)
	}
	payloads, err := commerce.Events(nil, &commerce.Stored{
		Kind: commerce.KindProduct, ID: product.ID, OrganizationID: product.OrganizationID, Doc: doc, Revision: now,
	})
	if err != nil || len(payloads) != 1 {
		return nil, nil, fmt.Errorf("a new product means %d events: %w", len(payloads), err)
	}
	body, err := payloads[0].Encode()
	return webhook.NewDelivery(&payloads[0], e, "", now), body, err
}

// message is one of the deliveries queue, as Lambda gives it.
func message(body string, endpoint value.ID) events.SQSMessage {
	return events.SQSMessage{
		MessageId: value.NewRandomID().String(), ReceiptHandle: value.NewRandomID().String() + value.NewRandomID().String(), Body: body,
		EventSource: "aws:sqs", EventSourceARN: deliveriesARN, AWSRegion: "us-east-1", MessageAttributes: map[string]events.SQSMessageAttribute{},
		Attributes: map[string]string{
			"ApproximateReceiveCount": "1", "SentTimestamp": "1760000000000", "ApproximateFirstReceiveTimestamp": "1760000000001",
			"SenderId": "bench", "MessageGroupId": endpoint.String(),
		},
	}
}
