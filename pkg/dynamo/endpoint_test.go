package dynamo_test

import (
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/commerce-integration/service/pkg/base/value"
	"github.com/commerce-integration/service/pkg/dynamo"
	"github.com/commerce-integration/service/pkg/testkit/dynamotest"
	"github.com/commerce-integration/service/pkg/webhook"
)

const hookNow value.Time = 1795242941242 // 2026-11-21T06:35:41.242Z

func newApplication(t testing.TB, table *dynamo.Table, org value.ID) value.ID {
	t.Helper()
	a := &accounts{Table: table, org: org, now: hookNow.Std()}
	return a.application(t, "app").ID
}

func makeEndpoint(org, app value.ID) *webhook.Endpoint {
	return &webhook.Endpoint{
		ID: value.NewID(), ApplicationID: app, OrganizationID: org, URL: "https://example.com/", Status: webhook.Active,
		SubscribedEvents: []string{"*"}, RetryCount: 8, TimeoutSeconds: 15,
		KeptSecrets: webhook.KeptSecrets{Secret: webhook.Secret{Sealed: "sealed", Tail: "Jw3k"}},
		CreatedAt:   hookNow, UpdatedAt: hookNow,
	}
}

func newEndpoint(t testing.TB, table *dynamo.Table, org, app value.ID) *webhook.Endpoint {
	t.Helper()
	e := makeEndpoint(org, app)
	must(t, table.CreateEndpoint(t.Context(), e))
	return e
}

func always(*webhook.Endpoint) error { return nil }

func TestLimitsOfEndpointsHoldUnderConcurrency(t *testing.T) {
	table, org := dynamotest.NewTable(t), value.NewID()
	const each = webhook.MaxEndpointsPerApplication
	var apps []value.ID
	for range webhook.MaxEndpoints/each + 1 {
		apps = append(apps, newApplication(t, table, org))
	}
	create := func(i int) error { return table.CreateEndpoint(t.Context(), makeEndpoint(org, apps[i/each])) }
	if made := atOnce(t, each+10, func(int) error { return create(0) }); made != each {
		t.Errorf("%d endpoints of one application were made, want %d", made, each)
	}
	made := atOnce(t, webhook.MaxEndpoints, func(i int) error { return create(each + i) })
	if want := webhook.MaxEndpoints - each; made != want {
		t.Errorf("%d more endpoints were made, want %d", made, want)
	}
	all, err := table.Endpoints(t.Context(), org)
	if err != nil || len(all) != webhook.MaxEndpoints {
		t.Fatalf("%d endpoints, %v; want %d", len(all), err, webhook.MaxEndpoints)
	}
	if _, err := table.DeleteEndpoint(t.Context(), org, all[0].ID, always); err != nil {
		t.Fatal(err)
	}
	if err := table.CreateEndpoint(t.Context(), makeEndpoint(org, all[0].ApplicationID)); err != nil {
		t.Errorf("after a deletion: %v", err)
	}
}

func TestDeletedEndpointIsGoneAndLeavesAMark(t *testing.T) {
	table, org := dynamotest.NewTable(t), value.NewID()
	e := newEndpoint(t, table, org, newApplication(t, table, org))
	must(t, table.FinishEndpointDeletion(t.Context(), org, e.ID))
	if got, err := table.Endpoint(t.Context(), org, e.ID); got == nil || err != nil {
		t.Errorf("the end of a deletion took a living endpoint: %v", err)
	}
	refusal := errors.New("refused")
	if _, err := table.DeleteEndpoint(t.Context(), org, e.ID, func(*webhook.Endpoint) error { return refusal }); !errors.Is(err, refusal) {
		t.Errorf("DeleteEndpoint: %v, want the check's error", err)
	}
	for _, want := range []bool{true, false} {
		if was, err := table.DeleteEndpoint(t.Context(), org, e.ID, always); err != nil || was != want {
			t.Errorf("DeleteEndpoint: %t, %v; want %t", was, err, want)
		}
	}
	if got, err := table.Endpoint(t.Context(), org, e.ID); got != nil || err != nil {
		t.Errorf("Endpoint: %+v, %v", got, err)
	}
	if all, err := table.Endpoints(t.Context(), org); len(all) != 0 || err != nil {
		t.Errorf("Endpoints: %+v, %v", all, err)
	}
	if changed, err := table.ChangeEndpoint(t.Context(), org, e.ID, unexpectedChange(t)); changed != nil || err != nil {
		t.Errorf("ChangeEndpoint: %+v, %v", changed, err)
	}
	want := []webhook.Due{{Kind: webhook.DueDeletion, OrganizationID: org, ID: e.ID}}
	if got := allDue(t, table); cmp.Diff(got, want) != "" {
		t.Errorf("due: %s", cmp.Diff(got, want))
	}
	must(t, table.FinishEndpointDeletion(t.Context(), org, e.ID))
	if got := allDue(t, table); len(got) > 0 {
		t.Errorf("due after its end: %+v", got)
	}
}

func unexpectedChange(t *testing.T) func(*webhook.Endpoint) (*webhook.Endpoint, error) {
	return func(e *webhook.Endpoint) (*webhook.Endpoint, error) {
		t.Errorf("a change of %s was computed", e.ID)
		return e, nil
	}
}

// allDue reads every due mark, without the marks themselves.
func allDue(t *testing.T, table *dynamo.Table) []webhook.Due {
	t.Helper()
	var found []webhook.Due
	for shard := range dynamo.Shards {
		due, err := table.Due(t.Context(), shard, "", 1<<50, 100)
		must(t, err)
		for _, d := range due {
			d.At, d.Mark = 0, ""
			found = append(found, d)
		}
	}
	return found
}
