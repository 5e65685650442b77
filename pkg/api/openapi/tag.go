package openapi

import "github.com/danielgtaylor/huma/v2"

// eventsTag is the tag of the webhooks.
const eventsTag = "Events"

// tags describes the groups of operations, in the order in which they are shown.
func tags() []*huma.Tag {
	return []*huma.Tag{
		{Name: "Products", Description: "What is sold."},
		{Name: "Categories", Description: "The tree that products are sorted into."},
		{Name: "Orders", Description: "What customers ordered, with payments, shipments and refunds."},
		{Name: "Customers", Description: "Who orders."},
		{Name: "Invoices", Description: "Invoices and credit notes."},
		{Name: "Deletions", Description: "What was deleted, for clients that keep a copy."},
		{Name: "Changes", Description: "All that was stored, changed or deleted, for clients that keep a copy or follow from a place that webhooks do not reach."},
		{Name: "Webhooks", Description: "Where events are sent, what became of each, and how to send it again."},
		{Name: eventsTag, Description: "What the service sends to subscribed endpoints, signed by Standard Webhooks 1.0.0."},
		{Name: "Applications", Description: "What an integrator's programs are to the service: credentials and webhook endpoints belong to one."},
		{Name: "API keys", Description: "Credentials of an application for the read API."},
		{Name: "Tokens", Description: "OAuth 2.0 for an application's own programs: tokens, and the keys that verify them."},
		{Name: "Ingestion", Description: "Records from back offices that do not send them to the queue."},
		{Name: "About", Description: "The service itself, and the credential."},
	}
}
