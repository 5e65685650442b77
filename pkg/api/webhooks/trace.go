package webhooks

import (
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"time"

	"github.com/go-json-experiment/json"

	"github.com/commerce-integration/service/pkg/api"
	"github.com/commerce-integration/service/pkg/auth"
	"github.com/commerce-integration/service/pkg/base/fault"
	"github.com/commerce-integration/service/pkg/base/value"
	"github.com/commerce-integration/service/pkg/commerce"
	"github.com/commerce-integration/service/pkg/lists"
	"github.com/commerce-integration/service/pkg/lists/columnar"
	"github.com/commerce-integration/service/pkg/webhook"
)

const (
	tracePath  = "/developers/webhooks/trace/{objectId}"
	limitParam = "limit"

	defaultTraced = 10
	maxTraced     = 50 // events of an answer
	// maxTracedDeliveries bounds the deliveries that are read for an answer: all
	// those of an event to the endpoints of an organization.
	maxTracedDeliveries = webhook.MaxEndpoints
	// recentTime is how long the events of a change may be on their way.
	recentTime = time.Minute
)

// WebhookTrace says what became of an object's changes.
type WebhookTrace struct {
	ObjectID value.ID      `json:"objectId" doc:"The requested id: of a record, or of the webhook endpoint or history entry of an alert."`
	Record   *TracedRecord `json:"record" doc:"The stored record. null if it never arrived, its deletion has expired, or the object is not a record."`
	Events   []TracedEvent `json:"events" doc:"The events of the object in the history, the newest first."`
	More     bool          `json:"more" doc:"Whether the history has older events of the object that are not shown."`
}

// TracedRecord is the stored state of a record.
type TracedRecord struct {
	Kind      commerce.Kind            `json:"kind" doc:"An open enumeration."`
	UpdatedAt value.Time               `json:"updatedAt" doc:"When the last change was stored; for a deleted record, the deletion."`
	Deleted   bool                     `json:"deleted" doc:"Whether the last change was the deletion."`
	NoEvents  *webhook.EventlessReason `json:"noEvents" doc:"The reason why no event of the last change is shown. SILENT: the sender asked for none. RECENT: the change is less than a minute old, and its events may be on their way. EXPIRED: the change is older than the history. NOT_SUBSCRIBED: no endpoint that the caller sees subscribes to an event of it, or no field that events show has changed. null: an event of it is shown. An open enumeration."`
}

// TracedEvent is an event and what became of it at each endpoint.
type TracedEvent struct {
	EventID   value.ID         `json:"eventId" doc:"The webhook-id of every attempt."`
	Type      string           `json:"type" doc:"A type of the catalogue; an open enumeration."`
	StoredAt  *value.Time      `json:"storedAt" doc:"When the change was stored. null once the payload has expired."`
	CreatedAt value.Time       `json:"createdAt" doc:"When the event was stored for its endpoints."`
	Endpoints []TracedEndpoint `json:"endpoints" doc:"The endpoints that have an entry of the event, and the other endpoints that the caller sees; for an alert only those of its application."`
}

// TracedEndpoint is what became of an event at an endpoint.
type TracedEndpoint struct {
	EndpointID    value.ID              `json:"endpointId" doc:"The endpoint."`
	ApplicationID value.ID              `json:"applicationId" doc:"The application of the endpoint."`
	Deleted       bool                  `json:"deleted" doc:"Whether the endpoint has been deleted."`
	Outcome       webhook.EventOutcome  `json:"outcome" doc:"The status of the entry, or the reason why there is none, by the endpoint's current configuration. CREATED_LATER: the endpoint was created after the event. NOT_SUBSCRIBED: it does not subscribe to the type. FILTERED: its delivery settings exclude the event. CHANGED_SINCE: it would receive the event now and did not then, or the entry is not listed yet. An open enumeration."`
	Reason        *string               `json:"reason" doc:"The delivery setting that excludes a FILTERED event. null for other outcomes."`
	Entry         *webhook.WebhookEvent `json:"entry" doc:"The entry of the history with its attempts, as in lists. null if none."`
}

func (a *area) traceOperation() api.Operation {
	return api.Operation{
		ID: "getWebhookTrace", Method: http.MethodGet, Path: tracePath,
		Summary: "Trace the events of an object's changes",
		Description: "For a record's id, or that of the webhook endpoint or entry of the history that alerts are about: what is stored, which events came of it, " +
			"and which endpoint got each, or why not, with every attempt. It is as of about a second ago. Why an endpoint did not get an event is told by its present configuration. An application " +
			"sees its own endpoints only. 404 when no such record is stored and the history that the caller sees has no event of it, " +
			"and of a record without the read scope of its kind.",
		Params: []api.Param{{
			Name: limitParam, In: fault.InQuery, Type: "integer", Default: strconv.Itoa(defaultTraced), Min: new(int64(1)), Max: new(int64(maxTraced)),
			Description: "How many events an answer has at most; fewer, but one, where they have more than 500 entries.",
		}},
		Result: WebhookTrace{},
		Handle: func(r *api.Request) (*api.Response, error) {
			return api.Answer(a.trace(r, r.PathID("objectId"), r.Number(limitParam)))
		},
	}
}

func (a *area) trace(r *api.Request, object value.ID, limit int) (*WebhookTrace, error) {
	groups, more, err := a.deliveriesOf(r, object)
	if err != nil {
		return nil, err
	}
	if len(groups) > limit {
		groups, more = groups[:limit], true
	}
	events := make([]value.ID, len(groups))
	for i, deliveries := range groups {
		events[i] = deliveries[0].EventID
	}
	record, payloads, err := a.store.Origin(r.Context(), r.Organization(), object, kindsOf(r, groups), events)
	if err != nil {
		return nil, err
	}
	endpoints, err := a.seen(r)
	if err != nil {
		return nil, err
	}
	if record == nil && len(groups) == 0 && !slices.ContainsFunc(endpoints, func(e *webhook.Endpoint) bool { return e.ID == object }) {
		return nil, fault.Missing("object")
	}
	t := &WebhookTrace{ObjectID: object, Events: make([]TracedEvent, len(groups)), More: more}
	for i, deliveries := range groups {
		if t.Events[i], err = tracedEvent(deliveries, payloads[events[i]], endpoints); err != nil {
			return nil, err
		}
	}
	if record != nil {
		t.Record = &TracedRecord{Kind: record.Kind, UpdatedAt: record.Revision, Deleted: record.Deleted, NoEvents: eventless(record, events, a.now())}
	}
	return t, nil
}

// deliveriesOf reads the deliveries of the object's newest events that the
// caller sees and may read, each event's together. More says that older ones are left out.
func (a *area) deliveriesOf(r *api.Request, object value.ID) (groups [][]*webhook.Delivery, more bool, err error) {
	schema := webhook.DeliveryList().Schema
	shown, err := a.shown(r, schema)
	if err != nil {
		return nil, false, err
	}
	found, err := a.cfg.History.Query(r.Context(), r.Organization(), columnar.Query{
		Filter:  columnar.All(append(shown, columnar.In(schema.Col("objectId"), lists.Key(object)))...),
		OrderBy: schema.Col("createdAt"), Desc: true, Limit: maxTracedDeliveries,
	}, false)
	if err != nil {
		return nil, false, err
	}
	ids := lists.HitIDs(found.Hits)
	stored, err := a.store.EventualDeliveries(r.Context(), r.Organization(), ids)
	if err != nil {
		return nil, false, err
	}
	place := map[value.ID]int{}
	for _, id := range ids {
		d := stored[id]
		if d == nil || !reads(r, d.Type) {
			continue
		}
		i, known := place[d.EventID]
		if !known {
			i = len(groups)
			place[d.EventID], groups = i, append(groups, nil)
		}
		groups[i] = append(groups[i], d)
	}
	if more = found.Total > len(found.Hits); more && len(groups) > 1 {
		groups = groups[:len(groups)-1] // some of its deliveries may be missing
	}
	return groups, more, nil
}

// kindsOf are the kinds of which the events' object may be a record: any that the
// caller reads without an event, and none when it is not a record.
func kindsOf(r *api.Request, groups [][]*webhook.Delivery) (kinds []commerce.Kind) {
	if len(groups) == 0 {
		return slices.DeleteFunc(commerce.Kinds(), func(kind commerce.Kind) bool { return !r.Principal.Scopes.Has(auth.ReadScope(kind.Plural())) })
	}
	for _, deliveries := range groups {
		if kind, ok := kindOf(deliveries[0].Type); ok && !slices.Contains(kinds, kind) {
			kinds = append(kinds, kind)
		}
	}
	return kinds
}

// kindOf is the kind of the records that events of the type are about.
func kindOf(eventType string) (commerce.Kind, bool) {
	byObject := commerce.EventsByObject()
	for _, kind := range commerce.Kinds() {
		if slices.Contains(byObject[string(kind)], eventType) {
			return kind, true
		}
	}
	return "", false
}

// tracedEvent shows an event with its deliveries, and the endpoints that have
// none.
func tracedEvent(deliveries []*webhook.Delivery, payload []byte, endpoints []*webhook.Endpoint) (TracedEvent, error) {
	first := deliveries[0]
	ev := TracedEvent{EventID: first.EventID, Type: first.Type, CreatedAt: first.CreatedAt, Endpoints: []TracedEndpoint{}}
	about := first.ObjectID // of an alert: the endpoint, or an entry of the endpoint
	c := webhook.Candidate{WebhookPayload: &commerce.WebhookPayload{}}
	if payload != nil {
		var err error
		if c.WebhookPayload, err = payloadOf(first.EventID, payload); err != nil {
			return ev, err
		}
		ev.StoredAt = &c.Timestamp
	}
	c.Type = first.Type
	if payload != nil && first.Type == commerce.EventEventFailed {
		var entry struct {
			EndpointID value.ID `json:"endpointId"`
		}
		if err := json.Unmarshal(c.Data.Object, &entry); err != nil {
			return ev, fmt.Errorf("object of event %s: %w", first.EventID, err)
		}
		about = entry.EndpointID
	}
	missing, applications := map[value.ID]*webhook.Endpoint{}, map[value.ID]bool{}
	for _, e := range endpoints {
		missing[e.ID] = e
	}
	for _, d := range deliveries {
		entry := d.Shape()
		d.ShowObject(&entry)
		ev.Endpoints = append(ev.Endpoints, TracedEndpoint{
			EndpointID: d.EndpointID, ApplicationID: d.ApplicationID, Deleted: missing[d.EndpointID] == nil,
			Outcome: webhook.EventOutcome(d.Status), Entry: &entry,
		})
		ev.CreatedAt = min(ev.CreatedAt, d.CreatedAt)
		applications[d.ApplicationID] = true
		delete(missing, d.EndpointID)
	}
	for _, e := range slices.SortedFunc(maps.Values(missing), func(a, b *webhook.Endpoint) int { return a.ID.Compare(b.ID) }) {
		if commerce.IsAlert(first.Type) && (!applications[e.ApplicationID] || e.ID == about) {
			continue // an alert goes to the other endpoints of the application
		}
		if e.Alerts && !commerce.IsAlert(first.Type) {
			continue
		}
		traced := TracedEndpoint{EndpointID: e.ID, ApplicationID: e.ApplicationID}
		var reason string
		var err error
		if traced.Outcome, reason, err = c.WhyNotDelivered(e, ev.CreatedAt); err != nil {
			return ev, err
		}
		if reason != "" {
			traced.Reason = &reason
		}
		ev.Endpoints = append(ev.Endpoints, traced)
	}
	return ev, nil
}

// eventless says why none of the events is of the record's last change; nil
// when one is.
func eventless(record *commerce.Stored, events []value.ID, now value.Time) *webhook.EventlessReason {
	for _, eventType := range commerce.EventsByObject()[string(record.Kind)] {
		if slices.Contains(events, commerce.EventID(record.Kind, record.OrganizationID, record.ID, record.Revision, eventType)) {
			return nil
		}
	}
	reason := webhook.EventlessUnasked
	switch {
	case record.Silent:
		reason = webhook.EventlessSilent
	case record.Revision.Add(recentTime) > now:
		reason = webhook.EventlessRecent
	case record.Revision < oldestShown(now):
		reason = webhook.EventlessExpired
	}
	return &reason
}
