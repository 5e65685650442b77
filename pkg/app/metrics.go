package app

import (
	"context"
	"net/http"
	"os"
	"strconv"
	"sync"
	"time"

	"github.com/aws/aws-lambda-go/events"
	"github.com/aws/aws-lambda-go/lambdacontext"

	"github.com/commerce-integration/service/pkg/app/metric"
	"github.com/commerce-integration/service/pkg/auth"
	"github.com/commerce-integration/service/pkg/base/value"
	"github.com/commerce-integration/service/pkg/commerce"
	"github.com/commerce-integration/service/pkg/delivery/sweeper"
	"github.com/commerce-integration/service/pkg/delivery/worker"
	"github.com/commerce-integration/service/pkg/index"
	"github.com/commerce-integration/service/pkg/index/indexer"
	"github.com/commerce-integration/service/pkg/ingest"
	"github.com/commerce-integration/service/pkg/webhook"
)

// newRecorder makes the recorder of a function in Lambda; nil, for no metrics,
// where the configuration names no namespace.
func newRecorder(cfg Config) *metric.Recorder {
	if cfg.MetricsNamespace == "" {
		return nil
	}
	return metric.New(os.Stdout, metric.Config{
		Namespace: cfg.MetricsNamespace, Function: lambdacontext.FunctionName, ByOrganization: cfg.MetricsByOrganization == "true",
	})
}

// measured tells the recorder when an invocation of a handler ends. What it notes
// of event and answer is left to note, if there is one.
func measured[E, A any, H ~func(context.Context, E) (A, error)](d *Dependencies, handler H, note func(event *E, answer *A, started time.Time)) H {
	return func(ctx context.Context, event E) (A, error) {
		started := d.Clock()
		answer, err := handler(ctx, event)
		if note != nil {
			note(&event, &answer, started)
		}
		d.Metrics.End(d.Clock())
		return answer, err
	}
}

// measuredRequests notes latency and status.
func (d *Dependencies) measuredRequests(handler GatewayFunc) GatewayFunc {
	return measured(d, handler, func(event *events.APIGatewayProxyRequest, answer *events.APIGatewayProxyResponse, started time.Time) {
		organization := ""
		if p, err := auth.PrincipalFromContext(event.RequestContext.Authorizer); err == nil {
			organization = p.OrganizationID.String()
		}
		now := d.Clock()
		d.Metrics.Add(organization, metric.Requests, 1)
		d.Metrics.Measure(organization, metric.Latency, now.Sub(started), now)
		switch status := answer.StatusCode; {
		case status == http.StatusTooManyRequests:
			d.Metrics.Add(organization, metric.RateLimited, 1)
		case status >= 500 || status == 0:
			d.Metrics.Add(organization, metric.ServerErrors, 1)
		case status >= 400:
			d.Metrics.Add(organization, metric.ClientErrors, 1)
		}
	})
}

// measuredMessages notes for how long messages have waited since they were
// sent, retries included.
func (d *Dependencies) measuredMessages(handler QueueFunc) QueueFunc {
	return measured(d, handler, func(event *events.SQSEvent, _ *events.SQSEventResponse, started time.Time) {
		d.noteAges(event.Records, started)
	})
}

func (d *Dependencies) noteAges(messages []events.SQSMessage, started time.Time) {
	for i := range messages {
		if sent, err := strconv.ParseInt(messages[i].Attributes["SentTimestamp"], 10, 64); err == nil {
			d.Metrics.Measure("", metric.QueueAge, started.Sub(time.UnixMilli(sent)), started)
		}
	}
}

func (d *Dependencies) measuredSchedule(handler ScheduleFunc) ScheduleFunc {
	return measured(d, handler, func(event *sweeper.Event, _ **events.SQSEventResponse, started time.Time) {
		d.noteAges(event.Records, started)
	})
}

func (d *Dependencies) countRefusal(denial *auth.Denial) {
	organization := ""
	if id := denial.Of.OrganizationID; !id.IsZero() {
		organization = id.String()
	}
	d.Metrics.Refuse(organization, denial.Code)
}

// measuredRecords is the store of ingest, counted.
type measuredRecords struct {
	ingest.Store
	to *metric.Recorder
}

func (m measuredRecords) CreateRecords(ctx context.Context, records []*commerce.Stored) []error {
	errs := m.Store.CreateRecords(ctx, records)
	for i, err := range errs {
		m.note(records[i], err)
	}
	return errs
}

func (m measuredRecords) PutRecord(ctx context.Context, previous, next *commerce.Stored) error {
	err := m.Store.PutRecord(ctx, previous, next)
	m.note(next, err)
	return err
}

func (m measuredRecords) AdjustStock(ctx context.Context, org, id value.ID, row *commerce.StockRow, next *commerce.Adjusted) (bool, error) {
	done, err := m.Store.AdjustStock(ctx, org, id, row, next)
	if done {
		m.to.Add(org.String(), metric.RecordsStored, float64(len(next.Counted)))
	}
	return done, err
}

func (m measuredRecords) note(s *commerce.Stored, err error) {
	if err == nil {
		m.to.Add(s.OrganizationID.String(), metric.RecordsStored, 1)
	}
}

// measuredRejects counts refused records.
type measuredRejects struct {
	ingest.Rejects
	to *metric.Recorder
}

func (m measuredRejects) Reject(ctx context.Context, sourceMessageID string, refusals []commerce.Refusal) error {
	err := m.Rejects.Reject(ctx, sourceMessageID, refusals)
	if err == nil {
		m.to.Add("", metric.RecordsRefused, float64(len(refusals)))
	}
	return err
}

// measuredOutcomes is the store of the worker, counted by what it records.
type measuredOutcomes struct {
	worker.Store
	to *metric.Recorder
}

func (m measuredOutcomes) PutDelivery(ctx context.Context, previous, next *webhook.Delivery) (*webhook.Delivery, error) {
	current, err := m.Store.PutDelivery(ctx, previous, next)
	if err != nil {
		return current, err
	}
	organization := next.OrganizationID.String()
	switch next.Status {
	case webhook.DeliveryDelivered:
		m.to.Add(organization, metric.Delivered, 1)
	case webhook.DeliveryFailed:
		m.to.Add(organization, metric.Failed, 1)
	case webhook.DeliveryHeld:
		m.to.Add(organization, metric.Held, 1)
	case webhook.DeliveryPending:
		if next.AttemptCount > previous.AttemptCount {
			m.to.Add(organization, metric.Retried, 1)
		}
	}
	return current, nil
}

// measuredTails measures how old changes are when their entry is appended.
type measuredTails struct {
	indexer.Storage
	to    *metric.Recorder
	clock func() time.Time
	// newest is the latest revision of each list that was decoded since its last
	// entry, by organization and list.
	newest map[tailOf]int64
	mu     sync.Mutex // guards newest
}

type tailOf struct {
	org  value.ID
	list string
}

// decode notes the revisions of a decoder.
func (m *measuredTails) decode(decode indexer.Decoder) indexer.Decoder {
	return func(ctx context.Context, r *events.DynamoDBEventRecord) ([]indexer.ListChange, error) {
		changes, err := decode(ctx, r)
		m.mu.Lock()
		defer m.mu.Unlock()
		for _, c := range changes {
			of := tailOf{c.Org, c.List.Name}
			m.newest[of] = max(m.newest[of], c.Revision)
		}
		return changes, err
	}
}

func (m *measuredTails) AppendTail(ctx context.Context, org value.ID, list string, body func(next index.Position) ([]byte, error)) (index.Position, error) {
	at, err := m.Storage.AppendTail(ctx, org, list, body)
	m.mu.Lock()
	defer m.mu.Unlock()
	if revision, ok := m.newest[tailOf{org, list}]; ok && err == nil {
		delete(m.newest, tailOf{org, list})
		now := m.clock()
		m.to.Measure(org.String(), metric.IndexAge, now.Sub(value.Time(revision).Std()), now)
	}
	return at, err
}
