package dynamo_test

import (
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/google/go-cmp/cmp"

	"github.com/commerce-integration/service/pkg/base/value"
	"github.com/commerce-integration/service/pkg/dynamo"
	"github.com/commerce-integration/service/pkg/lab/faults"
	"github.com/commerce-integration/service/pkg/testkit/dynamotest"
	"github.com/commerce-integration/service/pkg/webhook"
)

func openAt(at value.Time) webhook.Routing {
	return webhook.Routing{Lane: webhook.LaneSlow, Circuit: &webhook.Circuit{
		State: webhook.CircuitOpen, OpenedAt: at, ProbeAt: at.Add(time.Minute), IntervalMs: time.Minute.Milliseconds(),
	}}
}

func draining(c webhook.Routing, at value.Time) webhook.Routing {
	return webhook.Routing{Lane: c.Lane, Circuit: c.Circuit.Drain(at)}
}

// setCondition sets the condition and compares what the endpoint then has.
func setCondition(t *testing.T, table *dynamo.Table, e *webhook.Endpoint, previous, next webhook.Routing, want bool) {
	t.Helper()
	if done, err := table.SetRouting(t.Context(), e.OrganizationID, e.ID, previous, next); err != nil || done != want {
		t.Fatalf("SetRouting: %t, %v; want %t", done, err, want)
	}
	if !want {
		return
	}
	got, err := table.Endpoint(t.Context(), e.OrganizationID, e.ID)
	e.Circuit, e.Lane = next.Circuit, next.Lane
	if err != nil || cmp.Diff(got, e) != "" {
		t.Errorf("Endpoint: %v\n%s", err, cmp.Diff(got, e))
	}
}

func TestAConditionIsSetWhereItStandsAsItWasRead(t *testing.T) {
	table, org := dynamotest.NewTable(t), value.NewID()
	e := newEndpoint(t, table, org, newApplication(t, table, org))
	now := value.TimeOf(time.Now())
	none, open := webhook.Routing{}, openAt(now)
	slow := webhook.Routing{Lane: webhook.LaneSlow}
	setCondition(t, table, e, none, slow, true)
	setCondition(t, table, e, none, open, false)
	setCondition(t, table, e, slow, open, true)
	setCondition(t, table, e, slow, open, true) // it stands so already
	setCondition(t, table, e, openAt(now+1), none, false)
	setCondition(t, table, e, open, draining(open, now+5), true)
	setCondition(t, table, e, draining(open, now+5), none, true)
	if done, err := table.SetRouting(t.Context(), value.NewID(), e.ID, none, open); done || err != nil {
		t.Errorf("of another organization: %t, %v", done, err)
	}
	if _, err := table.DeleteEndpoint(t.Context(), org, e.ID, always); err != nil {
		t.Fatal(err)
	}
	setCondition(t, table, e, none, open, false)
}

func TestAConditionKeepsTheConfigurationOutOfIt(t *testing.T) {
	table, org := dynamotest.NewTable(t), value.NewID()
	e := newEndpoint(t, table, org, newApplication(t, table, org))
	open := openAt(value.TimeOf(time.Now()))
	changed, err := table.ChangeEndpoint(t.Context(), org, e.ID, func(read *webhook.Endpoint) (*webhook.Endpoint, error) {
		next := *read
		next.URL, next.UpdatedAt = "https://example.com/other", read.UpdatedAt+1
		if read.Circuit == nil { // a worker opens the circuit meanwhile
			setCondition(t, table, e, webhook.Routing{}, open, true)
		}
		return &next, nil
	})
	if err != nil || changed.URL != "https://example.com/other" {
		t.Fatalf("ChangeEndpoint: %+v, %v", changed, err)
	}
	want := *changed
	want.Circuit, want.Lane = open.Circuit, open.Lane
	if got, err := table.Endpoint(t.Context(), org, e.ID); err != nil || cmp.Diff(got, &want) != "" {
		t.Errorf("Endpoint: %v\n%s", err, cmp.Diff(got, &want))
	}
}

// Disabling ends the circuit, whatever a worker makes of it meanwhile.
func TestAChangeOfAnEndpointMayAlterItsCondition(t *testing.T) {
	table, org := dynamotest.NewTable(t), value.NewID()
	e := newEndpoint(t, table, org, newApplication(t, table, org))
	now := value.TimeOf(time.Now())
	open := openAt(now)
	setCondition(t, table, e, webhook.Routing{}, open, true)
	calls := 0
	disabled, err := table.ChangeEndpoint(t.Context(), org, e.ID, func(read *webhook.Endpoint) (*webhook.Endpoint, error) {
		if calls++; calls == 1 {
			setCondition(t, table, e, open, draining(open, now), true)
		}
		return read.Disable("410", now), nil
	})
	if err != nil || calls != 2 || disabled.Circuit != nil {
		t.Fatalf("ChangeEndpoint: %+v, %v after %d calls; want no circuit, at the second", disabled, err, calls)
	}
	if got, err := table.Endpoint(t.Context(), org, e.ID); err != nil || cmp.Diff(got, disabled) != "" {
		t.Errorf("Endpoint: %v\n%s", err, cmp.Diff(got, disabled))
	}
	if due := allDue(t, table); len(due) > 0 {
		t.Errorf("due: %+v", due)
	}
}

func TestACircuitLiesUnderADueMark(t *testing.T) {
	table, org := dynamotest.NewTable(t), value.NewID()
	e := newEndpoint(t, table, org, newApplication(t, table, org))
	now := value.TimeOf(time.Now())
	open := openAt(now)
	setCondition(t, table, e, webhook.Routing{}, open, true)
	due := func(at value.Time) webhook.Due {
		t.Helper()
		d := findDue(t, table, at+1)
		for shard := range dynamo.Shards {
			if early, err := table.Due(t.Context(), shard, "", at, 10); len(early) > 0 || err != nil {
				t.Errorf("due before %s: %+v, %v", at, early, err)
			}
		}
		if d.Kind != webhook.DueCircuit || d.OrganizationID != org || d.ID != e.ID {
			t.Errorf("due: %+v, want the circuit of %s", d, e.ID)
		}
		return d
	}
	probe := due(open.Circuit.ProbeAt)
	moved, row, err := table.Postpone(t.Context(), probe, now.Add(time.Hour))
	if err != nil || moved == nil || row != nil || *moved != due(now.Add(time.Hour)) {
		t.Errorf("Postpone: %+v, %+v, %v", moved, row, err)
	}
	quick := open
	quick.Lane = webhook.LaneMain
	setCondition(t, table, e, open, quick, true)
	due(now.Add(time.Hour)) // the circuit is as it was
	open = quick
	setCondition(t, table, e, open, draining(open, now+7), true)
	due(now + 7)
	if still, _, err := table.Postpone(t.Context(), *moved, now); still != nil || err != nil {
		t.Errorf("Postpone of a mark that was set anew: %+v, %v", still, err)
	}
	setCondition(t, table, e, e.Routing(), webhook.Routing{Lane: webhook.LaneSlow}, true)
	if due := allDue(t, table); len(due) > 0 {
		t.Errorf("due without a circuit: %+v", due)
	}
	setCondition(t, table, e, e.Routing(), open, true)
	if _, err := table.DeleteEndpoint(t.Context(), org, e.ID, always); err != nil {
		t.Fatal(err)
	}
	want := []webhook.Due{{Kind: webhook.DueDeletion, OrganizationID: org, ID: e.ID}}
	if got := allDue(t, table); cmp.Diff(got, want) != "" {
		t.Errorf("due after the deletion: %s", cmp.Diff(got, want))
	}
}

func TestAConditionWhoseAnswerIsLostIsSet(t *testing.T) {
	table, b := breakingTable(t, "UpdateItem")
	org := value.NewID()
	e := newEndpoint(t, table, org, newApplication(t, table, org))
	now := value.TimeOf(time.Now())
	b.armed.Store(true)
	open := openAt(now)
	setCondition(t, table, e, webhook.Routing{}, open, true)
	if b.armed.Load() {
		t.Error("no answer was lost")
	}
}

func TestConditionsStandWhateverFails(t *testing.T) {
	table, proxy := faultyTable(t, nil)
	org, now := value.NewID(), value.TimeOf(time.Now())
	e := newEndpoint(t, table, org, newApplication(t, table, org))
	proxy.SetOperation("UpdateItem", faults.Every(0.2, broken...))
	c := webhook.Routing{}
	for i := range 30 {
		next := openAt(now + value.Time(i))
		retryWhileThrottled(t, func() error {
			done, err := table.SetRouting(t.Context(), org, e.ID, c, next)
			if err == nil && !done {
				t.Errorf("transition %d was refused though nobody else made one", i)
			}
			return err
		})
		c = next
	}
}

// A circuit that another release wrote otherwise is the same circuit.
func TestACircuitIsComparedByItsMeaning(t *testing.T) {
	client, name := dynamotest.Client(t)
	table, org := dynamo.New(client, name, time.Now), value.NewID()
	e := newEndpoint(t, table, org, newApplication(t, table, org))
	open := openAt(value.TimeOf(time.Now()))
	setCondition(t, table, e, webhook.Routing{}, open, true)
	out, err := client.Scan(t.Context(), &dynamodb.ScanInput{
		TableName: &name, FilterExpression: ptr("attribute_exists(routing)"),
	})
	if err != nil || len(out.Items) != 1 {
		t.Fatalf("%d items, %v", len(out.Items), err)
	}
	circuit := out.Items[0]["routing"].(*types.AttributeValueMemberS)
	circuit.Value = `{"unknown":1, ` + circuit.Value[1:]
	if _, err := client.PutItem(t.Context(), &dynamodb.PutItemInput{TableName: &name, Item: out.Items[0]}); err != nil {
		t.Fatal(err)
	}
	setCondition(t, table, e, open, draining(open, open.Circuit.OpenedAt+1), true)
}
