package webhooks

import (
	"slices"

	"github.com/commerce-integration/service/pkg/api"
	"github.com/commerce-integration/service/pkg/auth"
	"github.com/commerce-integration/service/pkg/commerce"
	"github.com/commerce-integration/service/pkg/lists"
	"github.com/commerce-integration/service/pkg/lists/columnar"
	"github.com/commerce-integration/service/pkg/webhook"
)

// An endpoint gets the records of the kinds that it subscribes to, and the history
// keeps them. So both take the read scopes of the kinds, in addition to those of webhooks:
// a caller without them sees the rows of the history without the payloads, and
// can neither subscribe nor change what a subscriber gets, where or under which
// secret. Alerts hold endpoints and rows of the history, which webhooks:read reads,
// and webhook.test holds nothing.

// takesReads says so in the descriptions of operations.
const takesReads = " It takes the read scopes of the kinds of records that the endpoint gets, and webhooks:read where it gets alerts: 403 names those that you lack."

// typesByScope are the types of events by the scope that reads their objects.
func typesByScope() map[auth.Scope][]string {
	by := map[auth.Scope][]string{}
	for _, types := range commerce.EventsByObject() {
		scope := auth.WebhooksRead
		if kind := commerce.RecordKind(types[0]); kind != "" {
			scope = auth.ReadScope(kind.Plural())
		}
		by[scope] = append(by[scope], types...)
	}
	return by
}

// readScopes are those that read the objects of the events of the subscription.
func readScopes(subscribed ...string) (scopes auth.Scopes) {
	for scope, types := range typesByScope() {
		if slices.ContainsFunc(types, func(name string) bool { return commerce.Matches(subscribed, name) }) {
			scopes = append(scopes, scope)
		}
	}
	return scopes
}

// reads reports whether the caller may see what events of the type hold.
func reads(r *api.Request, eventType string) bool {
	return len(r.Principal.Lacks(readScopes(eventType)...)) == 0
}

// readsAll refuses a caller who may not see what the endpoint gets.
func readsAll(r *api.Request) func(*webhook.Endpoint) error {
	return func(e *webhook.Endpoint) error { return r.CheckHolds(readScopes(e.SubscribedEvents...)...) }
}

// readsChanged refuses a change of the url or the events to a caller who may not
// see what the endpoint gets before or after it. What it got before its events were
// changed, by others, may still be sent again, and would go to a new url.
func (a *area) readsChanged(r *api.Request, change *webhook.UpdateWebhookEndpointDto) func(*webhook.Endpoint) error {
	return func(e *webhook.Endpoint) error {
		moved := change.URL.Given && change.URL.Value != e.URL
		if !moved && (!change.Events.Given || slices.Equal(change.Events.Value, e.SubscribedEvents)) {
			return nil
		}
		reached := readScopes(slices.Concat(e.SubscribedEvents, change.Events.Value)...)
		if moved {
			kept, err := a.kept(r, e)
			if err != nil {
				return err
			}
			reached = append(reached, kept...)
		}
		return r.CheckHolds(reached...)
	}
}

// kept are those scopes that the caller lacks of what the endpoint's history holds.
// The samples of tests have no object.
func (a *area) kept(r *api.Request, e *webhook.Endpoint) (scopes auth.Scopes, err error) {
	schema := webhook.DeliveryList().Schema
	shown, err := a.shown(r, schema)
	if err != nil {
		return nil, err
	}
	for scope, types := range typesByScope() {
		if len(r.Principal.Lacks(scope)) == 0 {
			continue
		}
		found, err := a.cfg.History.Query(r.Context(), r.Organization(), columnar.Query{
			Filter: columnar.All(slices.Concat(shown, []columnar.Filter{
				columnar.In(schema.Col("endpointId"), lists.Key(e.ID)),
				columnar.In(schema.Col("type"), types...), columnar.Not(columnar.Null(schema.Col("objectId"))),
			})...),
			OrderBy: schema.Col("createdAt"), Limit: 1,
		}, true)
		if err != nil {
			return nil, err
		}
		if found.Total > 0 {
			scopes = append(scopes, scope)
		}
	}
	return scopes, nil
}
