package webhook_test

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/commerce-integration/service/pkg/base/value"
	"github.com/commerce-integration/service/pkg/webhook"
)

func TestAMessageNamesItsDelivery(t *testing.T) {
	d := newDelivery()
	m := webhook.DeliveryMessage{DeliveryRef: d.Ref()}
	m.As = "0192f0c4-5b1e-7a2d-8c3f-1e5d7b9a2c40"
	got, err := webhook.ParseDeliveryMessage(m.Body())
	if err != nil || got != m || !got.Names(d) || got.Names(newDelivery()) {
		t.Errorf("%s reads as %+v, %v", m.Body(), got, err)
	}
	if in, _ := got.Input(now); in.Delivery != nil || in.Endpoint != nil {
		t.Errorf("a message that carries nothing has the input %+v", in)
	}
	for _, bad := range []string{"", "{}", "[]", strings.Replace(m.Body(), d.EventID.String(), value.ID{}.String(), 1), m.Body() + "x"} {
		_, err := webhook.ParseDeliveryMessage(bad)
		if err == nil || len(bad) > 9 && strings.Contains(err.Error(), d.OrganizationID.String()) {
			t.Errorf("%q: %v, want an error that does not show it", bad, err)
		}
	}
}

func TestAMessageCarriesTheInputOfAFirstAttempt(t *testing.T) {
	payload := strings.Repeat(`{"name":"café ☕"} `, 1)
	for name, tt := range map[string]struct {
		payload string
		lane    webhook.Lane
		at      time.Duration // after it was read
		other   bool          // the message names another delivery
		want    bool
	}{
		"at once":                          {payload: payload, want: true},
		"just in time":                     {payload: payload, at: webhook.CarriedFor - time.Millisecond, want: true},
		"too late":                         {payload: payload, at: webhook.CarriedFor},
		"the largest payload":              {payload: strings.Repeat("a", webhook.MaxCarriedPayload), want: true},
		"too large a payload":              {payload: strings.Repeat("a", webhook.MaxCarriedPayload+1)},
		"to an endpoint of the other lane": {payload: payload, lane: webhook.LaneSlow},
		"of another delivery":              {payload: payload, other: true},
	} {
		t.Run(name, func(t *testing.T) {
			d := newDelivery()
			e := &webhook.Endpoint{ID: d.EndpointID, URL: "https://example.com", Status: webhook.Active, SubscribedEvents: []string{"*"}, Lane: tt.lane}
			m := webhook.DeliveryMessage{DeliveryRef: d.Ref(), Carried: webhook.Carry(d, e, webhook.ApplicationActive, []byte(tt.payload), now)}
			if tt.other {
				m.EventID = value.NewID()
			}
			got, err := webhook.ParseDeliveryMessage(m.Body())
			if err != nil || got.DeliveryID != d.ID {
				t.Fatalf("delivery %s, %v", got.DeliveryID, err)
			}
			if carries := got.Unstored() != nil; strings.Contains(m.Body(), `"rowId"`) == carries {
				t.Errorf("carries the delivery: %t; %s", carries, m.Body())
			}
			want := webhook.DeliveryInput{}
			if tt.want {
				want = webhook.DeliveryInput{Delivery: d.StoredAt(0), Payload: []byte(tt.payload), Endpoint: e, Application: webhook.ApplicationActive}
			}
			in, until := got.Input(now.Add(tt.at))
			if diff := cmp.Diff(want, in); diff != "" || (until == now.Add(webhook.CarriedFor)) != tt.want {
				t.Errorf("input (-want +got):\n%s", diff)
			}
			if unstored := got.Unstored(); (unstored != nil) != (tt.want || tt.at != 0) || unstored != nil && unstored.Stored() {
				t.Errorf("the message carries the delivery %+v", unstored)
			}
		})
	}
}
