package webhook

import (
	"github.com/commerce-integration/service/pkg/base/value"
	"github.com/commerce-integration/service/pkg/commerce"
	"github.com/commerce-integration/service/pkg/lists"
	"github.com/commerce-integration/service/pkg/lists/columnar"
)

// Documents are stored with the places of their columns: a schema only grows
// at its end.
//
//nolint:gochecknoglobals // declarations that nothing changes
var (
	eventSchema = columnar.MustSchema("webhook-events",
		columnar.Column{Name: "applicationId", Type: columnar.Keyword},
		columnar.Column{Name: "endpointId", Type: columnar.Keyword},
		columnar.Column{Name: "type", Type: columnar.Keyword},
		columnar.Column{Name: "status", Type: columnar.Keyword},
		columnar.Column{Name: "eventId", Type: columnar.Keyword},
		columnar.Column{Name: "createdAt", Type: columnar.Time, Sort: true},
		columnar.Column{Name: "objectId", Type: columnar.Keyword},
	)
	endpointSchema = columnar.MustSchema("webhook-endpoints",
		columnar.Column{Name: "applicationId", Type: columnar.Keyword},
		columnar.Column{Name: "status", Type: columnar.Keyword},
		columnar.Column{Name: "url", Type: columnar.Text, Search: true},
		columnar.Column{Name: "description", Type: columnar.Text, Search: true},
		columnar.Column{Name: "createdAt", Type: columnar.Time, Sort: true},
	)
)

func applicationFilter() lists.Filter {
	return lists.Filter{
		Name: "applicationId", Kind: lists.ID, Column: "applicationId",
		Description: "Only those of this application; a deleted one counts, an unknown one has none.",
	}
}

func timeFilters() []lists.Filter {
	return []lists.Filter{
		{Name: "created", Kind: lists.Range, Column: "createdAt", Description: "When it was created."},
		{Name: "updated", Kind: lists.Visible, Description: "When the change became visible in lists."},
	}
}

// DeliveryList declares the list of the history.
func DeliveryList() *lists.List {
	return &lists.List{
		Name: "events", Schema: eventSchema, Walk: true, Sync: "updatedFrom", Orders: []lists.Order{lists.By("createdAt")},
		Filters: append([]lists.Filter{
			applicationFilter(),
			{Name: "endpointId", Kind: lists.ID, Column: "endpointId", Description: "Only those of this endpoint."},
			{
				Name: "type", Kind: lists.Enum, Column: "type", Values: commerce.EventNames(), Sets: commerce.EventSets(),
				Description: "The type of event; order.* is every type that begins with order.",
			},
			{Name: "status", Kind: lists.Enum, Column: "status", Values: DeliveryStatus("").Values(), Description: "The state of the delivery."},
			{Name: "eventId", Kind: lists.ID, Column: "eventId", Description: "Only the deliveries of this event."},
			{
				Name: "objectId", Kind: lists.ID, Column: "objectId",
				Description: "Only events about this object: the id of the record, or of the endpoint that an endpoint event is about.",
			},
			{
				Name: "objectKind", Kind: lists.Enum, Column: "type", Sets: commerce.EventsByObject(),
				Description: "Only events about an object of this kind; payment events are about an order.",
			},
		}, timeFilters()...),
	}
}

// DeliveryDocument is a delivery in the list of the history.
func DeliveryDocument(d *Delivery, visible value.Time) columnar.Document {
	b := eventSchema.Build(d.ID, 0)
	b.Keyword(eventSchema.Col("applicationId"), lists.Key(d.ApplicationID))
	b.Keyword(eventSchema.Col("endpointId"), lists.Key(d.EndpointID))
	b.Keyword(eventSchema.Col("type"), d.Type)
	b.Keyword(eventSchema.Col("status"), string(d.Status))
	b.Keyword(eventSchema.Col("eventId"), lists.Key(d.EventID))
	b.Time(eventSchema.Col("createdAt"), int64(d.CreatedAt))
	if !d.ObjectID.IsZero() {
		b.Keyword(eventSchema.Col("objectId"), lists.Key(d.ObjectID))
	}
	return b.Document(int64(d.UpdatedAt), int64(visible))
}

// EndpointList declares the list of endpoints.
func EndpointList() *lists.List {
	return &lists.List{
		Name: "endpoints", Schema: endpointSchema, Walk: true, Orders: []lists.Order{lists.By("createdAt")},
		Filters: append([]lists.Filter{
			applicationFilter(),
			{Name: "status", Kind: lists.Enum, Column: "status", Values: Status("").Values(), Description: "The endpoint's status."},
		}, timeFilters()...),
	}
}

// EndpointView is a view of endpoints, made on the spot: an organization has
// few, and a list of them shows the latest write.
func EndpointView(endpoints []*Endpoint) *columnar.View {
	documents := make([]columnar.Document, len(endpoints))
	for i, e := range endpoints {
		b := endpointSchema.Build(e.ID, 0)
		b.Keyword(endpointSchema.Col("applicationId"), lists.Key(e.ApplicationID))
		b.Keyword(endpointSchema.Col("status"), string(e.Status))
		b.Text(endpointSchema.Col("url"), e.URL)
		if e.Description != nil {
			b.Text(endpointSchema.Col("description"), *e.Description)
		}
		b.Time(endpointSchema.Col("createdAt"), int64(e.CreatedAt))
		documents[i] = b.Document(int64(e.UpdatedAt), int64(e.UpdatedAt))
	}
	v := columnar.NewView(endpointSchema)
	v.Apply(documents)
	return v
}
