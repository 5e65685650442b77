package webhook

import (
	"github.com/commerce-integration/service/pkg/commerce"
	"github.com/commerce-integration/service/pkg/index"
	"github.com/commerce-integration/service/pkg/listing"
	"github.com/commerce-integration/service/pkg/value"
)

// Documents are stored with the places of their columns: a schema only grows
// at its end.
//
//nolint:gochecknoglobals // declarations that nothing changes
var (
	eventSchema = index.MustSchema("webhook-events",
		index.Column{Name: "applicationId", Type: index.Keyword},
		index.Column{Name: "endpointId", Type: index.Keyword},
		index.Column{Name: "type", Type: index.Keyword},
		index.Column{Name: "status", Type: index.Keyword},
		index.Column{Name: "eventId", Type: index.Keyword},
		index.Column{Name: "createdAt", Type: index.Time, Sort: true},
	)
	endpointSchema = index.MustSchema("webhook-endpoints",
		index.Column{Name: "applicationId", Type: index.Keyword},
		index.Column{Name: "status", Type: index.Keyword},
		index.Column{Name: "url", Type: index.Text, Search: true},
		index.Column{Name: "description", Type: index.Text, Search: true},
		index.Column{Name: "createdAt", Type: index.Time, Sort: true},
	)
)

func applicationFilter() listing.Filter {
	return listing.Filter{
		Name: "applicationId", Kind: listing.ID, Column: "applicationId",
		Description: "Only those of this application; a deleted one counts, an unknown one has none.",
	}
}

func timeFilters() []listing.Filter {
	return []listing.Filter{
		{Name: "created", Kind: listing.Range, Column: "createdAt", Description: "When it was created."},
		{Name: "updated", Kind: listing.Visible, Description: "When the change became visible in lists."},
	}
}

// EventList declares the list of the history.
func EventList() *listing.List {
	return &listing.List{
		Name: "events", Schema: eventSchema, Walk: true, Orders: []listing.Order{listing.By("createdAt")},
		Filters: append([]listing.Filter{
			applicationFilter(),
			{Name: "endpointId", Kind: listing.ID, Column: "endpointId", Description: "Only those of this endpoint."},
			{Name: "type", Kind: listing.Enum, Column: "type", Values: commerce.EventNames(), Description: "The type of event."},
			{Name: "status", Kind: listing.Enum, Column: "status", Values: RowStatus("").Values(), Description: "The state of the delivery."},
			{Name: "eventId", Kind: listing.ID, Column: "eventId", Description: "Only the deliveries of this event."},
		}, timeFilters()...),
	}
}

// EventDocument is what the history's index knows of a row.
func EventDocument(r *Row, visible value.Time) index.Document {
	b := eventSchema.Build(r.ID, 0)
	b.Keyword(eventSchema.Col("applicationId"), listing.Key(r.ApplicationID))
	b.Keyword(eventSchema.Col("endpointId"), listing.Key(r.EndpointID))
	b.Keyword(eventSchema.Col("type"), r.Type)
	b.Keyword(eventSchema.Col("status"), string(r.Status))
	b.Keyword(eventSchema.Col("eventId"), listing.Key(r.EventID))
	b.Time(eventSchema.Col("createdAt"), int64(r.CreatedAt))
	return b.Document(int64(r.UpdatedAt), int64(visible))
}

// EndpointList declares the list of endpoints.
func EndpointList() *listing.List {
	return &listing.List{
		Name: "endpoints", Schema: endpointSchema, Walk: true, Orders: []listing.Order{listing.By("createdAt")},
		Search: []string{"url", "description"},
		Filters: append([]listing.Filter{
			applicationFilter(),
			{Name: "status", Kind: listing.Enum, Column: "status", Values: Status("").Values(), Description: "The endpoint's status."},
		}, timeFilters()...),
	}
}

// EndpointView is a view of endpoints, made on the spot: an organization has
// few, and a list of them shows the latest write.
func EndpointView(endpoints []*Endpoint) *index.View {
	documents := make([]index.Document, len(endpoints))
	for i, e := range endpoints {
		b := endpointSchema.Build(e.ID, 0)
		b.Keyword(endpointSchema.Col("applicationId"), listing.Key(e.ApplicationID))
		b.Keyword(endpointSchema.Col("status"), string(e.Status))
		b.Text(endpointSchema.Col("url"), e.URL)
		if e.Description != nil {
			b.Text(endpointSchema.Col("description"), *e.Description)
		}
		b.Time(endpointSchema.Col("createdAt"), int64(e.CreatedAt))
		documents[i] = b.Document(int64(e.UpdatedAt), int64(e.UpdatedAt))
	}
	v := index.NewView(endpointSchema)
	v.Apply(documents)
	return v
}
