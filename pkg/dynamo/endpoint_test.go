package dynamo_test

import (
	"errors"
	"fmt"
	"sync/atomic"
	"testing"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sync/errgroup"

	"github.com/commerce-integration/service/pkg/account"
	"github.com/commerce-integration/service/pkg/base/fault"
	"github.com/commerce-integration/service/pkg/base/value"
	"github.com/commerce-integration/service/pkg/dynamo"
	"github.com/commerce-integration/service/pkg/testkit/dynamotest"
	"github.com/commerce-integration/service/pkg/webhook"
)

const hookNow value.Time = 1795242941242 // 2026-11-21T06:35:41.242Z

func newApplication(t testing.TB, table *dynamo.Table, org value.ID) value.ID {
	t.Helper()
	name := "app"
	app := account.NewApplication(org, value.NewID(), account.CreateApplicationDto{Name: &name}, hookNow)
	if err := table.CreateApplication(t.Context(), org, app, account.ReadScopes()); err != nil {
		t.Fatal(err)
	}
	return app.ID
}

func makeEndpoint(org, app value.ID) *webhook.Endpoint {
	return &webhook.Endpoint{
		ID: value.NewID(), ApplicationID: app, OrganizationID: org, URL: "https://example.com/", Status: webhook.Active,
		SubscribedEvents: []string{"*"}, RetryCount: 8, TimeoutSeconds: 15, Secret: webhook.Secret{Sealed: "sealed", Tail: "Jw3k"},
		CreatedAt: hookNow, UpdatedAt: hookNow,
	}
}

func newEndpoint(t testing.TB, table *dynamo.Table, org, app value.ID) *webhook.Endpoint {
	t.Helper()
	e := makeEndpoint(org, app)
	if err := table.CreateEndpoint(t.Context(), e); err != nil {
		t.Fatal(err)
	}
	return e
}

func always(*webhook.Endpoint) error { return nil }

func TestEndpointIsReadAsItWasStored(t *testing.T) {
	table, org := dynamotest.NewTable(t), value.NewID()
	want := newEndpoint(t, table, org, newApplication(t, table, org))
	got, err := table.Endpoint(t.Context(), org, want.ID)
	if err != nil || cmp.Diff(got, want) != "" {
		t.Errorf("Endpoint: %v\n%s", err, cmp.Diff(got, want))
	}
	if got, err := table.Endpoint(t.Context(), value.NewID(), want.ID); got != nil || err != nil {
		t.Errorf("another organization reads %+v, %v", got, err)
	}
	counters, err := table.Counters(t.Context(), org, want.ID)
	if err != nil || cmp.Diff(counters, map[value.ID]webhook.Counters{want.ID: {}}) != "" {
		t.Errorf("Counters: %v, %v", counters, err)
	}
}

func TestEndpointNeedsItsApplication(t *testing.T) {
	table, org, other := dynamotest.NewTable(t), value.NewID(), value.NewID()
	foreign := newApplication(t, table, other)
	for name, app := range map[string]value.ID{"absent": value.NewID(), "another organization's": foreign} {
		t.Run(name, func(t *testing.T) {
			if err := table.CreateEndpoint(t.Context(), makeEndpoint(org, app)); !fault.Is(err, fault.NotFound) {
				t.Errorf("%s application: %v, want not_found", name, err)
			}
		})
	}
}

// createMany tries n endpoints of each application at once and counts those
// that were made; the others must have met the limit.
func createMany(t *testing.T, table *dynamo.Table, org value.ID, apps []value.ID, n int) int64 {
	t.Helper()
	var made atomic.Int64
	var group errgroup.Group
	group.SetLimit(8)
	for i := range n * len(apps) {
		group.Go(func() error {
			for {
				err := table.CreateEndpoint(t.Context(), makeEndpoint(org, apps[i%len(apps)]))
				f, isFault := fault.As(err)
				switch {
				case err == nil:
					made.Add(1)
				case isFault && f.Kind == fault.Unavailable:
					continue // collided too often
				case !isFault || f.Code != fault.CodeLimitReached:
					return err
				}
				return nil
			}
		})
	}
	if err := group.Wait(); err != nil {
		t.Fatal(err)
	}
	return made.Load()
}

func TestLimitsOfEndpointsHoldUnderConcurrency(t *testing.T) {
	table, org := dynamotest.NewTable(t), value.NewID()
	apps := []value.ID{newApplication(t, table, org)}
	if made := createMany(t, table, org, apps, webhook.MaxEndpointsPerApplication+10); made != webhook.MaxEndpointsPerApplication {
		t.Errorf("%d endpoints of one application were made, want %d", made, webhook.MaxEndpointsPerApplication)
	}
	for range 10 {
		apps = append(apps, newApplication(t, table, org))
	}
	made := createMany(t, table, org, apps[1:], webhook.MaxEndpointsPerApplication)
	if want := int64(webhook.MaxEndpoints - webhook.MaxEndpointsPerApplication); made != want {
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
	if err := table.FinishEndpointDeletion(t.Context(), org, e.ID); err != nil {
		t.Fatal(err)
	}
	if got := allDue(t, table); len(got) > 0 {
		t.Errorf("due after forgetting: %+v", got)
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
	for shard := range dynamo.DueShards {
		due, err := table.Due(t.Context(), shard, "", 1<<50, 100)
		if err != nil {
			t.Fatal(err)
		}
		for _, d := range due {
			d.At, d.Mark = 0, ""
			found = append(found, d)
		}
	}
	return found
}

func TestForgettingSparesALivingEndpoint(t *testing.T) {
	table, org := dynamotest.NewTable(t), value.NewID()
	e := newEndpoint(t, table, org, newApplication(t, table, org))
	if err := table.FinishEndpointDeletion(t.Context(), org, e.ID); err != nil {
		t.Fatal(err)
	}
	if got, err := table.Endpoint(t.Context(), org, e.ID); got == nil || err != nil {
		t.Errorf("Endpoint: %+v, %v", got, err)
	}
}

func TestApplicationTakesItsEndpointsWithIt(t *testing.T) {
	table, org := dynamotest.NewTable(t), value.NewID()
	app, other := newApplication(t, table, org), newApplication(t, table, org)
	gone, kept := newEndpoint(t, table, org, app), newEndpoint(t, table, org, other)
	if _, err := table.DeleteEndpoint(t.Context(), org, newEndpoint(t, table, org, app).ID, always); err != nil {
		t.Fatal(err)
	}
	if _, err := table.DeleteApplication(t.Context(), org, app, func(*account.Application) error { return nil }); err != nil {
		t.Fatal(err)
	}
	directory, err := table.Directory(t.Context(), org)
	if err != nil {
		t.Fatal(err)
	}
	want := &webhook.Directory{Endpoints: []*webhook.Endpoint{kept}, Applications: map[value.ID]webhook.ApplicationState{other: webhook.ApplicationActive}}
	if cmp.Diff(directory, want) != "" {
		t.Errorf("Directory: %s", cmp.Diff(directory, want))
	}
	marked := false
	for _, d := range allDue(t, table) {
		marked = marked || d.Kind == webhook.DueDeletion && d.ID == gone.ID
	}
	if !marked {
		t.Error("the deleted endpoint left no mark for its rows")
	}
	if was, err := table.DeleteEndpoint(t.Context(), org, gone.ID, always); was || err != nil {
		t.Errorf("DeleteEndpoint of one that went with its application: %t, %v", was, err)
	}
}

func TestDirectoryTellsSuspendedApplications(t *testing.T) {
	table, org := dynamotest.NewTable(t), value.NewID()
	app := newApplication(t, table, org)
	if _, err := table.ChangeApplication(t.Context(), org, app, func(a *account.Application) (bool, error) {
		return a.SetStatus(account.Suspended, hookNow), nil
	}); err != nil {
		t.Fatal(err)
	}
	directory, err := table.Directory(t.Context(), org)
	if err != nil || directory.Applications[app] != webhook.ApplicationSuspended {
		t.Errorf("Directory: %+v, %v", directory, err)
	}
}

func TestConcurrentChangesOfAnEndpointAllCount(t *testing.T) {
	table, org := dynamotest.NewTable(t), value.NewID()
	e := newEndpoint(t, table, org, newApplication(t, table, org))
	group, ctx := errgroup.WithContext(t.Context())
	for i := range 4 {
		group.Go(func() error {
			_, err := table.ChangeEndpoint(ctx, org, e.ID, func(e *webhook.Endpoint) (*webhook.Endpoint, error) {
				next := *e
				next.SubscribedEvents = append(next.SubscribedEvents, fmt.Sprint(i))
				next.UpdatedAt++
				return &next, nil
			})
			return err
		})
	}
	if err := group.Wait(); err != nil {
		t.Fatal(err)
	}
	got, err := table.Endpoint(t.Context(), org, e.ID)
	if err != nil || len(got.SubscribedEvents) != 5 || got.UpdatedAt != hookNow+4 {
		t.Errorf("Endpoint: %+v, %v", got, err)
	}
}
