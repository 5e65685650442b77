package dynamotest

import (
	"testing"
	"time"

	"github.com/commerce-integration/service/pkg/account"
	"github.com/commerce-integration/service/pkg/dynamo"
	"github.com/commerce-integration/service/pkg/value"
	"github.com/commerce-integration/service/pkg/webhook"
)

// Application stores an application of the organization and returns its id.
func Application(t testing.TB, table *dynamo.Table, org value.ID) value.ID {
	t.Helper()
	name := "app"
	app := account.NewApplication(org, value.NewID(), account.CreateApplicationDto{Name: &name}, value.TimeOf(time.Now()))
	if err := table.CreateApplication(t.Context(), org, app); err != nil {
		t.Fatal(err)
	}
	return app.ID
}

// Suspend suspends an application.
func Suspend(t testing.TB, table *dynamo.Table, org, app value.ID) {
	t.Helper()
	if _, err := table.ChangeApplication(t.Context(), org, app, func(a *account.Application) (bool, error) {
		return a.SetStatus(account.Suspended, value.TimeOf(time.Now())), nil
	}); err != nil {
		t.Fatal(err)
	}
}

// Endpoint stores an endpoint of the application, which subscribes to the
// given types. Its secret cannot be opened.
func Endpoint(t testing.TB, table *dynamo.Table, org, app value.ID, subscribed ...string) *webhook.Endpoint {
	t.Helper()
	url := "https://example.com/hook"
	e, _ := webhook.NewEndpoint(org, app, webhook.CreateWebhookEndpointDto{URL: &url, Events: &subscribed},
		func([]byte, string) string { return "sealed" }, value.TimeOf(time.Now()))
	if err := table.CreateEndpoint(t.Context(), e); err != nil {
		t.Fatal(err)
	}
	return e
}

// SetStatus sets an endpoint's status.
func SetStatus(t testing.TB, table *dynamo.Table, e *webhook.Endpoint, status webhook.Status) {
	t.Helper()
	ChangeEndpoint(t, table, e, func(e *webhook.Endpoint) { e.Status = status })
}

// ChangeEndpoint changes an endpoint's configuration.
func ChangeEndpoint(t testing.TB, table *dynamo.Table, e *webhook.Endpoint, change func(*webhook.Endpoint)) {
	t.Helper()
	if _, err := table.ChangeEndpoint(t.Context(), e.OrganizationID, e.ID, func(e *webhook.Endpoint) (*webhook.Endpoint, error) {
		next := *e
		change(&next)
		next.UpdatedAt++
		return &next, nil
	}); err != nil {
		t.Fatal(err)
	}
}

// Count adds attempts to a counter shard of the endpoint, as a worker does when
// it records their outcomes.
func Count(t testing.TB, table *dynamo.Table, org, endpoint value.ID, now value.Time, attempts ...webhook.Attempt) {
	t.Helper()
	const shard = 0
	stored, err := table.CounterShard(t.Context(), org, endpoint, shard)
	if err != nil {
		t.Fatal(err)
	}
	w := webhook.CounterShardWrite{OrganizationID: org, EndpointID: endpoint, Number: shard, Revision: stored.Revision}
	w.Next, w.Finished = stored.Shard.Add(attempts, webhook.Health{}, now)
	if clash, err := table.RecordOutcomes(t.Context(), nil, []webhook.CounterShardWrite{w}); clash != nil || err != nil {
		t.Fatalf("RecordOutcomes: %+v, %v", clash, err)
	}
}
