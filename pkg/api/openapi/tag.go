package openapi

import (
	"github.com/danielgtaylor/huma/v2"

	"github.com/commerce-integration/service/pkg/api/records"
	"github.com/commerce-integration/service/pkg/commerce"
)

// eventsTag is the tag of the webhooks.
const eventsTag = "Events"

// tags describes the groups of operations, in the order in which they are shown.
func tags() []*huma.Tag {
	var all []*huma.Tag
	for _, kind := range commerce.Kinds() {
		all = append(all, &huma.Tag{Name: records.TagOf(kind), Description: kind.Text()})
	}
	return append(all, []*huma.Tag{
		{Name: "Deletions", Description: "Deletions, for clients that keep a copy."},
		{Name: "Changes", Description: "Every change, for clients that keep a copy or that webhooks cannot reach."},
		{Name: "Webhooks", Description: "Endpoints, the history of deliveries, and redelivery."},
		{Name: eventsTag, Description: "The webhooks that the service sends, signed by Standard Webhooks 1.0.0."},
		{Name: "Applications", Description: "An application is an integrator's program: credentials and webhook endpoints belong to it."},
		{Name: "API keys", Description: "Credentials of an application for the read API."},
		{Name: "Tokens", Description: "OAuth 2.0 for an application's own programs: tokens, and the keys that verify them."},
		{Name: "Index", Description: "The organization's own fields by which lists can be filtered."},
		{Name: "Ingestion", Description: "Records from back offices that do not send them to the queue."},
		{Name: "About", Description: "The service itself, and the credential."},
	}...)
}
