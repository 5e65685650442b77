package dynamo_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/go-json-experiment/json"

	"github.com/commerce-integration/service/pkg/base/value"
	"github.com/commerce-integration/service/pkg/commerce"
	"github.com/commerce-integration/service/pkg/dynamo"
	"github.com/commerce-integration/service/pkg/lab/faults"
	"github.com/commerce-integration/service/pkg/testkit/dynamotest"
	"github.com/commerce-integration/service/pkg/webhook"
)

// orderEvent is a new order's event with so many items, as the service makes
// it of a record.
func orderEvent(t testing.TB, org value.ID, items int) *commerce.WebhookPayload {
	t.Helper()
	lines := make([]string, items)
	for i := range lines {
		lines[i] = fmt.Sprintf(`{"productId":%q,"sku":"SKU-%05d","name":"Espresso beans %d kg","quantity":%d,"unitPrice":%d.49,"taxRate":19}`,
			value.NewID(), i*7919%100_000, i+1, i+1, 12+i)
	}
	record := fmt.Sprintf(`{"id":%q,"orderNumber":"SO-0041873","status":"CONFIRMED","currency":"EUR","customerName":"Klara Müller","items":[%s]}`,
		value.NewID(), strings.Join(lines, ","))
	stored, err := commerce.Apply(nil, commerce.Change{
		Kind: commerce.KindOrder, Op: commerce.OpPut, OrganizationID: org, Record: []byte(record),
	}, value.TimeOf(time.Now()))
	must(t, err)
	events, err := commerce.Events(nil, stored)
	if err != nil || len(events) == 0 {
		t.Fatalf("%d events, %v", len(events), err)
	}
	return &events[0]
}

func encoded(t testing.TB, ev *commerce.WebhookPayload) []byte {
	t.Helper()
	body, err := json.Marshal(ev)
	must(t, err)
	return body
}

// What a delivered event costs, the record and the index left out: a unit for
// its payload, one for its row, one for its outcome, up to four where the receiver
// failed, and one for the tally of all outcomes that are counted together.
func TestADeliveryCostsFewWriteUnits(t *testing.T) {
	client, name := dynamotest.Client(t)
	m := faults.NewMeter()
	table := dynamo.New(dynamodb.New(client.Options(), m.Measure), name, time.Now)
	org, now := value.NewID(), value.TimeOf(time.Now())
	e, site := makeEndpoint(org, value.NewID()), value.NewID()
	var payloads []webhook.Payload
	var rows []*webhook.Delivery
	for range 10 {
		ev := orderEvent(t, org, 0)
		ev.SiteID, ev.Type = &site, "payment.authorized" // the longest there is
		body := encoded(t, ev)
		if len(body) < 1000 || len(body) > 1200 {
			t.Fatalf("the payload has %d bytes, want about 1 KB", len(body))
		}
		payloads = append(payloads, webhook.Payload{OrganizationID: org, EventID: ev.ID, Body: body})
		rows = append(rows, webhook.NewDelivery(ev, e, "", now))
	}
	consumed := func(what string, want float64, do func() error) {
		t.Helper()
		m.Reset()
		if err := do(); err != nil {
			t.Fatalf("%s: %v", what, err)
		}
		if got := m.Total().Writes; got > want {
			t.Errorf("%s: %.1f write units, want at most %.1f\n%v", what, got, want, m.Uses())
		}
	}
	consumed("ten payloads of 1 KB", 10, func() error { return putPayloads(t, table, payloads...) })
	consumed("ten rows", 10, func() error {
		_, _, err := table.CreateDeliveries(t.Context(), rows)
		return err
	})
	for i, r := range rows {
		consumed("a success", 1, func() error {
			rows[i] = attempted(r, true, now)
			_, err := table.PutDelivery(t.Context(), r, rows[i])
			return err
		})
		consumed("a failure", 4, func() error {
			_, err := table.PutDelivery(t.Context(), rows[i], attempted(r, false, now.Add(time.Second)))
			return err
		})
	}
	consumed("the tally of ten outcomes", 1, func() error {
		c := counting{t, table, rows[0], now}
		c.count(&webhook.Tally{}, 10, now)
		return nil
	})
}

// A page is read from 16 keys, and less than a page from each.
func TestAPageOfHeldRowsCostsFewReadUnits(t *testing.T) {
	client, name := dynamotest.Client(t)
	m := faults.NewMeter()
	table := dynamo.New(dynamodb.New(client.Options(), m.Measure), name, time.Now)
	org, now := value.NewID(), value.TimeOf(time.Now())
	e := makeEndpoint(org, value.NewID())
	rows := make([]*webhook.Delivery, 1600)
	for i := range rows {
		rows[i] = makeRow(org, e, webhook.HeldCircuitOpen, now)
	}
	if _, _, err := table.CreateDeliveries(t.Context(), rows); err != nil {
		t.Fatal(err)
	}
	for limit, most := range map[int]float64{18: 8, 500: 32} {
		m.Reset()
		page, err := table.Held(t.Context(), org, e.ID, "", limit)
		if got := m.Total().Reads; err != nil || len(page) != limit || got == 0 || got > most {
			t.Errorf("%d of %d rows: %.1f read units, %v; want at most %.0f", len(page), limit, got, err, most)
		}
	}
}

// A record of 1 KB takes a unit where it is read by key. Another organization has the same ids.
func TestRecordsNearOneAnotherTakeFewReadUnits(t *testing.T) {
	client, name := dynamotest.Client(t)
	m := faults.NewMeter()
	table := dynamo.New(dynamodb.New(client.Options(), m.Measure), name, time.Now)
	org, other, now := value.NewID(), value.NewID(), value.TimeOf(time.Now())
	const count, size = 1024, 1000
	var ids []value.ID
	var records []*commerce.Stored
	for range count {
		id := value.NewID() // ascending
		ids = append(ids, id)
		for _, owner := range []value.ID{org, other} {
			doc := `{"text":"` + strings.Repeat("x", size) + owner.String() + `"}`
			records = append(records, &commerce.Stored{OrganizationID: owner, Kind: commerce.KindProduct, ID: id, Revision: now, Doc: []byte(doc)})
		}
	}
	must(t, errors.Join(table.CreateRecords(t.Context(), records)...))
	const fewest = 512
	for name, row := range map[string]struct {
		org      value.ID
		ids      []value.ID
		maxBytes int
		all      bool
		most     float64 // units
	}{
		"all":                      {org, ids, 2 * count * size, true, 0.35 * count},
		"none":                     {value.NewID(), ids, 2 * count * size, false, 16},
		"the other organization's": {other, ids[:fewest], 2 * fewest * size, true, 0.35 * fewest},
		"too few":                  {org, ids[1:fewest], 2 * count * size, false, 0},
		"too large":                {org, ids, count * size / 2, false, 0.1 * count},
		"with as many between":     {org, everySecond(ids), 2 * count * size, false, 0.1 * count},
	} {
		t.Run(name, func(t *testing.T) {
			m.Reset()
			found, err := table.NearRecords(t.Context(), row.org, commerce.KindProduct, row.ids, row.maxBytes)
			units := m.Total().Reads
			if err != nil || units > row.most {
				t.Errorf("%.1f read units for %d of %d records, %v; want at most %.0f", units, len(found), len(row.ids), err, row.most)
			}
			for _, id := range row.ids {
				s := found[id]
				if s == nil && row.all || s != nil && (s.OrganizationID != row.org || s.ID != id) {
					t.Fatalf("record %s: got %+v", id, s)
				}
			}
		})
	}
}

func everySecond(ids []value.ID) (some []value.ID) {
	for pair := range slices.Chunk(ids, 2) {
		some = append(some, pair[0])
	}
	return some
}

// What a trace reads of each event: its deliveries and its payload, and beside
// all of them the object's record and the endpoints.
func TestATraceReadsAtMostTwoUnitsForAnEvent(t *testing.T) {
	const events, endpoints = 10, 3
	client, name := dynamotest.Client(t)
	m := faults.NewMeter()
	table := dynamo.New(dynamodb.New(client.Options(), m.Measure), name, time.Now)
	org, now := value.NewID(), value.TimeOf(time.Now())
	record, err := commerce.Apply(nil, commerce.Change{
		Kind: commerce.KindOrder, Op: commerce.OpPut, OrganizationID: org, Record: fmt.Appendf(nil, `{"id":%q,"orderNumber":"1","currency":"EUR"}`, value.NewID()),
	}, now)
	if err == nil {
		err = table.PutRecord(t.Context(), nil, record)
	}
	must(t, err)
	app := newApplication(t, table, org)
	var deliveries, ids []value.ID
	var rows []*webhook.Delivery
	var payloads []webhook.Payload
	for range events {
		ev := orderEvent(t, org, 20)
		ids, payloads = append(ids, ev.ID), append(payloads, webhook.Payload{OrganizationID: org, EventID: ev.ID, Body: encoded(t, ev)})
	}
	for range endpoints {
		e := newEndpoint(t, table, org, app)
		for _, ev := range ids {
			d := webhook.NewDelivery(&commerce.WebhookPayload{ID: ev, Type: "order.created", ObjectID: record.ID}, e, "", now)
			d = attempted(d, false, now)
			rows, deliveries = append(rows, d), append(deliveries, d.ID)
		}
	}
	must(t, putPayloads(t, table, payloads...))
	if _, _, err := table.CreateDeliveries(t.Context(), rows); err != nil {
		t.Fatal(err)
	}
	m.Reset()
	found, err := table.EventualDeliveries(t.Context(), org, deliveries)
	if err != nil || len(found) != len(deliveries) {
		t.Errorf("%d deliveries, %v; want %d", len(found), err, len(deliveries))
	}
	got, bodies, err := table.Origin(t.Context(), org, record.ID, commerce.Kinds(), ids)
	if err != nil || got == nil || got.Revision != record.Revision || len(bodies) != events {
		t.Errorf("the record %+v and %d payloads, %v; want %d", got, len(bodies), err, events)
	}
	for i, ev := range ids {
		if string(bodies[ev]) != string(payloads[i].Body) {
			t.Errorf("the payload of event %s is another: %s", ev, bodies[ev])
		}
	}
	if _, err := table.Endpoints(t.Context(), org); err != nil {
		t.Fatal(err)
	}
	t.Logf("%.1f read units for %d events with %d deliveries each: %v", m.Total().Reads, events, endpoints, m.Uses())
	if most := 2.0*events + 0.5*float64(len(commerce.Kinds())) + 1; m.Total().Reads > most || m.Total().Reads == 0 {
		t.Errorf("%.1f read units, want at most %.1f", m.Total().Reads, most)
	}
}

func TestAbsentOriginIsNone(t *testing.T) {
	table := dynamotest.NewTable(t)
	record, payloads, err := table.Origin(t.Context(), value.NewID(), value.NewID(), commerce.Kinds(), []value.ID{value.NewID()})
	if record != nil || len(payloads) != 0 || err != nil {
		t.Errorf("got %+v, %v, %v; want nothing", record, payloads, err)
	}
}
