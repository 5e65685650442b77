package webhooks

import (
	"bytes"
	"net/http"
	"slices"
	"time"

	"github.com/commerce-integration/service/pkg/account"
	"github.com/commerce-integration/service/pkg/api"
	"github.com/commerce-integration/service/pkg/auth"
	"github.com/commerce-integration/service/pkg/base/fault"
	"github.com/commerce-integration/service/pkg/base/strictjson"
	"github.com/commerce-integration/service/pkg/base/value"
	"github.com/commerce-integration/service/pkg/commerce"
	"github.com/commerce-integration/service/pkg/webhook"
)

// SendTestDto is the input of a test; an absent type is webhook.test.
type SendTestDto struct {
	Type *string `json:"type" required:"false" default:"webhook.test" doc:"A type of the catalogue."`
}

// RecoverDto is the input of a recovery: the time at which its events were
// created, since inclusive, until exclusive. Absent, they are the time of all
// that the history shows.
type RecoverDto struct {
	Since *value.Time `json:"since" required:"false" doc:"The creation time of the first event to send, not after until. Absent: that of the oldest event in the history."`
	Until *value.Time `json:"until" required:"false" doc:"The end of the span, exclusive. Absent: now."`
}

// WebhookRecovery is a [webhook.Recovery] as the API shows it.
type WebhookRecovery struct {
	ID             value.ID               `json:"id"`
	EndpointID     value.ID               `json:"endpointId" doc:"The endpoint whose events are sent again."`
	OrganizationID value.ID               `json:"-"`
	Status         webhook.RecoveryStatus `json:"status" doc:"CANCELLED: the endpoint was deleted or stopped being ACTIVE."`
	Since          value.Time             `json:"since" doc:"Events created at this time or later."`
	Until          value.Time             `json:"until" doc:"Events created before this time."`
	MatchedCount   int64                  `json:"matchedCount" doc:"The HELD or FAILED events found so far."`
	RequeuedCount  int64                  `json:"requeuedCount" doc:"The events that got a new schedule; the others changed in the meantime."`
	CreatedAt      value.Time             `json:"createdAt"`
	UpdatedAt      value.Time             `json:"updatedAt"`
	CompletedAt    *value.Time            `json:"completedAt" doc:"When it ended. null while it is RUNNING."`
	Cursor         string                 `json:"-"`
}

func (a *area) actionOperations() []api.Operation {
	conflicts := []int{http.StatusConflict}
	return []api.Operation{
		{
			ID: "sendTestEvent", Method: http.MethodPost, Path: endpointPath + "/test",
			Summary: "Send a test event",
			Description: "One attempt, whatever the endpoint subscribes to and also while it is PAUSED or DISABLED or its circuit is open; it changes " +
				"neither the endpoint nor its counters. Without a type it sends webhook.test, else the catalogue's example. Answers the event; read it " +
				"again for the outcome. 409 when the application is suspended.",
			Scope: auth.WebhooksWrite, Body: SendTestDto{}, EmptyBody: true, Result: webhook.WebhookEvent{}, Status: http.StatusAccepted,
			Errors: conflicts, Handle: a.test,
		},
		{
			ID: "recoverWebhookEndpoint", Method: http.MethodPost, Path: endpointPath + "/recover",
			Summary: "Send held and failed events again",
			Description: "Every HELD or FAILED event of the endpoint that was created in [since, until) gets a new schedule, the oldest first, " +
				"however many there are; a circuit that is open closes first. The answer may come before all are sent: read the recovery for its " +
				"progress. Without a body, every HELD or FAILED event that the history shows. 409 while the endpoint is not ACTIVE, its application " +
				"is suspended or another recovery of it runs; the message says which.",
			Scope: auth.WebhooksWrite, Body: RecoverDto{}, EmptyBody: true, Result: WebhookRecovery{}, Status: http.StatusAccepted,
			Errors: conflicts, Handle: a.recover,
		},
		{
			ID: "getWebhookRecovery", Method: http.MethodGet, Path: endpointPath + "/recoveries/{recoveryId}",
			Summary: "Read a recovery", Result: WebhookRecovery{}, Handle: a.recovery,
		},
	}
}

// checkNotSuspended refuses to send for an application that is suspended.
func (a *area) checkNotSuspended(r *api.Request, e *webhook.Endpoint) error {
	app, err := a.store.Application(r.Context(), r.Organization(), e.ApplicationID)
	if err != nil {
		return err
	}
	if app == nil {
		return errNoEndpoint()
	}
	if app.Status == account.Suspended {
		return conflict("the application is suspended; nothing is sent until it is activated")
	}
	return nil
}

func conflict(message string) error {
	return fault.New(fault.Conflict, fault.CodeConflict, "%s", message)
}

func (a *area) test(r *api.Request) (*api.Response, error) {
	eventType, err := testType(r.Body)
	if err != nil {
		return nil, err
	}
	e, err := a.endpoint(r)
	if err != nil {
		return nil, err
	}
	if err := a.checkNotSuspended(r, e); err != nil {
		return nil, err
	}
	now := a.now()
	payload := example(eventType)
	payload.ID, payload.Timestamp, payload.OrganizationID, payload.SiteID, payload.ObjectID = value.NewID(), now, r.Organization(), nil, value.ID{}
	body, err := payload.Encode()
	if err != nil {
		return nil, err
	}
	if err := a.store.PutPayload(r.Context(), r.Organization(), payload.ID, body); err != nil {
		return nil, err
	}
	d := webhook.NewTestDelivery(&payload, e, now)
	if _, err := a.store.PutDelivery(r.Context(), d.StoredAt(0), d); err != nil {
		return nil, err
	}
	return a.send(r, e.Lane, d, body)
}

func testType(body []byte) (string, error) {
	var dto SendTestDto
	if err := readOptional(body, &dto); err != nil {
		return "", err
	}
	switch {
	case dto.Type == nil:
		return commerce.EventWebhookTest, nil
	case !slices.Contains(commerce.EventNames(), *dto.Type):
		return "", fault.Field(fault.InBody, "type", fault.DetailUnknown, "must be a type of the catalogue (GET %s)", cataloguePath)
	}
	return *dto.Type, nil
}

// readOptional reads a body that may be empty.
func readOptional(body []byte, dto any) error {
	if len(bytes.TrimSpace(body)) == 0 {
		return nil
	}
	return strictjson.Unmarshal(body, dto)
}

// send sends a delivery that is stored under a due mark, and answers it. When
// sending fails, the sweeper finds the due mark: the answer is the same.
func (a *area) send(r *api.Request, lane webhook.Lane, d *webhook.Delivery, payload []byte) (*api.Response, error) {
	_ = a.cfg.Sender.Send(r.Context(), lane, *d.NextAttemptAt, d)
	shape, err := whole(r, d, payload)
	if err != nil {
		return nil, err
	}
	return r.Created(eventsPath+"/"+d.ID.String(), shape, "")
}

func (a *area) recover(r *api.Request) (*api.Response, error) {
	now := a.now()
	since, until, err := recoverSpan(r.Body, now)
	if err != nil {
		return nil, err
	}
	e, err := a.endpoint(r)
	if err != nil {
		return nil, err
	}
	if err := a.checkNotSuspended(r, e); err != nil {
		return nil, err
	}
	rec := &webhook.Recovery{
		ID: value.NewID(), EndpointID: e.ID, OrganizationID: r.Organization(), Status: webhook.RecoveryRunning,
		Since: since, Until: until, CreatedAt: now, UpdatedAt: now,
	}
	if err := a.store.CreateRecovery(r.Context(), rec, now.Add(time.Minute)); err != nil {
		return nil, err
	}
	// A first step that fails leaves the recovery to the sweeper.
	if next, err := a.cfg.Backlog.Recover(r.Context(), rec, maxBeforeAnswer); err == nil && next != nil {
		rec = next
	}
	return r.Created(endpointsPath+"/"+e.ID.String()+"/recoveries/"+rec.ID.String(), WebhookRecovery(*rec), "")
}

func recoverSpan(body []byte, now value.Time) (since, until value.Time, err error) {
	var dto RecoverDto
	if err := readOptional(body, &dto); err != nil {
		return 0, 0, err
	}
	since, until = oldestShown(now), now
	if dto.Since != nil {
		since = *dto.Since
	}
	if dto.Until != nil {
		until = *dto.Until
	}
	switch {
	case since <= until:
		return since, until, nil
	case dto.Since == nil:
		return 0, 0, fault.Field(fault.InBody, "until", fault.DetailOutOfRange, "must not be before %s: older events are not shown", since)
	}
	return 0, 0, fault.Field(fault.InBody, "since", fault.DetailOutOfRange, "must not be after until, nor in the future")
}

func (a *area) recovery(r *api.Request) (*api.Response, error) {
	e, err := a.endpoint(r)
	if err != nil {
		return nil, err
	}
	rec, err := foundRecovery(a.store.Recovery(r.Context(), r.Organization(), e.ID, r.PathID("recoveryId")))
	if err != nil {
		return nil, err
	}
	return api.OK(WebhookRecovery(*rec))
}

// foundRecovery makes a recovery that is not there a 404.
var foundRecovery = api.Found[webhook.Recovery]("recovery")
