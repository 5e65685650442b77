package dynamo_test

import (
	"bytes"
	"crypto/rand"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/google/go-cmp/cmp"
	"github.com/klauspost/compress/zstd"

	"github.com/commerce-integration/service/pkg/base/fault"
	"github.com/commerce-integration/service/pkg/base/value"
	"github.com/commerce-integration/service/pkg/dynamo"
	"github.com/commerce-integration/service/pkg/lab/faults"
	"github.com/commerce-integration/service/pkg/testkit/dynamotest"
	"github.com/commerce-integration/service/pkg/webhook"
)

// manyRows are rows of all states that a new one can have, for one endpoint
// of an organization.
func manyRows(org value.ID, n int, now value.Time) []*webhook.Delivery {
	e := makeEndpoint(org, value.NewID())
	rows := make([]*webhook.Delivery, n)
	for i := range rows {
		hold := []webhook.HeldReason{"", webhook.HeldPaused, webhook.HeldCircuitOpen}[i%3]
		rows[i] = makeRow(org, e, hold, now)
		if i%6 == 0 {
			due := now.Add(webhook.Lease)
			rows[i].DueAt = &due
		}
	}
	return rows
}

// putPayloads stores payloads as the dispatcher does, without deliveries.
func putPayloads(t *testing.T, table *dynamo.Table, payloads ...webhook.Payload) error {
	t.Helper()
	_, _, err := table.CreateDeliveries(t.Context(), nil, payloads...)
	return err
}

func TestRowsAreCreatedTogetherOnce(t *testing.T) {
	table, org, now := dynamotest.NewTable(t), value.NewID(), value.TimeOf(time.Now())
	rows := manyRows(org, 70, now)
	want := make([]*webhook.Delivery, len(rows))
	for i, r := range rows {
		if i%5 == 0 {
			want[i] = createRow(t, table, r)
			later := *r
			later.CreatedAt++
			rows[i] = &later
		}
	}
	rows, want = append(rows, rows[1]), append(want, rows[1]) // comes twice
	got, _, err := table.CreateDeliveries(t.Context(), rows)
	if err != nil || cmp.Diff(got, want) != "" {
		t.Errorf("CreateRows: %v\n%s", err, cmp.Diff(got, want))
	}
	for i, r := range rows {
		if want[i] == nil {
			want[i] = r
		}
		for owner, want := range map[value.ID]*webhook.Delivery{org: want[i], value.NewID(): nil} {
			if got, err := table.Delivery(t.Context(), owner, r.ID); err != nil || cmp.Diff(got, want) != "" {
				t.Errorf("row %d of %s: %v\n%s", i, owner, err, cmp.Diff(got, want))
			}
		}
	}
	if got, _, err = table.CreateDeliveries(t.Context(), rows); err != nil || cmp.Diff(got, want) != "" {
		t.Errorf("CreateRows again: %v\n%s", err, cmp.Diff(got, want))
	}
	if due := allDue(t, table); len(due) != 12 {
		t.Errorf("%d due marks, want 12", len(due))
	}
	if held, err := table.Held(t.Context(), org, rows[0].EndpointID, "", 100); err != nil || len(held) != 23 {
		t.Errorf("the circuit holds %d rows, %v; want 23", len(held), err)
	}
	if got, _, err := table.CreateDeliveries(t.Context(), nil); len(got) > 0 || err != nil {
		t.Errorf("CreateRows of none: %v, %v", got, err)
	}
}

// A row is shown for thirty days and still in the table for up to two more, and a
// replay that comes so late must not take it for a new one.
func TestAnExpiredRowIsNeitherShownNorCreatedAgain(t *testing.T) {
	now := value.TimeOf(time.Now())
	table, org := tableAt(t, &now), value.NewID()
	r := createRow(t, table, makeRow(org, makeEndpoint(org, value.NewID()), "", now))
	want := []*webhook.Delivery{r}
	for _, days := range []int{30, 1} {
		now = now.Add(time.Duration(days) * 24 * time.Hour)
		shown, err := table.Delivery(t.Context(), org, r.ID)
		if err != nil || (shown != nil) != (days == 30) {
			t.Errorf("%d days later: %+v, %v", days, shown, err)
		}
		later := *r
		later.CreatedAt = now
		if got, _, err := table.CreateDeliveries(t.Context(), []*webhook.Delivery{&later}); err != nil || cmp.Diff(got, want) != "" {
			t.Errorf("CreateRows: %v\n%s", err, cmp.Diff(got, want))
		}
	}
}

func TestRowsAndPayloadsAreCreatedWhateverFails(t *testing.T) {
	table, proxy := faultyTable(t, faults.Every(0.2, append(broken, faults.Unprocessed)...))
	org, now := value.NewID(), value.TimeOf(time.Now())
	for round := range 8 {
		rows := manyRows(org, 60, now)
		payloads := make([]webhook.Payload, len(rows))
		for i, r := range rows {
			payloads[i] = webhook.Payload{OrganizationID: org, EventID: r.EventID, Body: fmt.Appendf(nil, `{"round":%d,"row":%d}`, round, i)}
		}
		retryWhileThrottled(t, func() error { return putPayloads(t, table, payloads...) })
		retryWhileThrottled(t, func() error {
			existing, _, err := table.CreateDeliveries(t.Context(), rows)
			for i, e := range existing {
				if e != nil && cmp.Diff(e, rows[i]) != "" {
					t.Errorf("row %d: found\n%s", i, cmp.Diff(e, rows[i]))
				}
			}
			return err
		})
		proxy.Off()
		stored, err := table.Deliveries(t.Context(), org, idsOf(rows))
		if err != nil || len(stored) != len(rows) {
			t.Errorf("%d rows, %v; want %d", len(stored), err, len(rows))
		}
		for i, p := range payloads {
			if got, err := table.Payload(t.Context(), org, p.EventID); err != nil || !bytes.Equal(got, p.Body) {
				t.Errorf("payload %d: %q, %v; want %q", i, got, err, p.Body)
			}
		}
		proxy.On()
	}
	if proxy.Counts().Of(faults.Unprocessed) == 0 {
		t.Errorf("no statement failed on its own:\n%s", proxy.Counts())
	}
}

// insist does something until it is no longer the table that fails.
func retryWhileThrottled(t *testing.T, do func() error) {
	t.Helper()
	for {
		err := do()
		if err == nil {
			return
		}
		if !fault.Is(err, fault.Unavailable) {
			t.Fatal(err)
		}
	}
}

func TestStatementsThatGoOnFailingAreUnavailable(t *testing.T) {
	table, proxy := faultyTable(t, nil)
	org := value.NewID()
	rows := manyRows(org, 1, value.TimeOf(time.Now()))
	proxy.SetOperation("BatchExecuteStatement", faults.Rates{faults.Unprocessed: 1})
	if existing, _, err := table.CreateDeliveries(t.Context(), rows); existing != nil || !fault.Is(err, fault.Unavailable) {
		t.Errorf("CreateRows: %v, %v; want it unavailable", existing, err)
	}
}

func TestAnItemThatIsTooLargeIsAnError(t *testing.T) {
	table := dynamotest.NewTable(t)
	err := putPayloads(t, table, webhook.Payload{OrganizationID: value.NewID(), EventID: value.NewID(), Body: incompressible(500 << 10)})
	if err == nil || fault.Is(err, fault.Unavailable) {
		t.Errorf("a payload of 500 KB: %v, want an error that no repetition mends", err)
	}
}

func TestPayloadsAreKeptByteForByte(t *testing.T) {
	table, org := dynamotest.NewTable(t), value.NewID()
	bodies := [][]byte{
		[]byte(`{}`), []byte(`{"name":"Gül \u00fc 🎁"}`), bytes.Repeat([]byte(`{"a":1},`), 20_000),
		incompressible(3000), incompressible(300 << 10), incompressible(300 << 10), incompressible(300 << 10), incompressible(300 << 10),
	}
	payloads := make([]webhook.Payload, len(bodies))
	for i, body := range bodies {
		payloads[i] = webhook.Payload{OrganizationID: org, EventID: value.NewID(), Body: body}
	}
	must(t, putPayloads(t, table, payloads...))
	for i, p := range payloads {
		again := p
		again.Body = []byte("another release writes it otherwise")
		if err := errors.Join(putPayloads(t, table, again, again), table.PutPayload(t.Context(), org, again.EventID, again.Body)); err != nil {
			t.Error(err)
		}
		for owner, want := range map[value.ID][]byte{org: p.Body, value.NewID(): nil} {
			if got, err := table.Payload(t.Context(), owner, p.EventID); err != nil || !bytes.Equal(got, want) {
				t.Errorf("payload %d of %s: %d bytes, %v; want %d", i, owner, len(got), err, len(want))
			}
		}
		d, err := table.DeliveryInputs(t.Context(), []webhook.DeliveryRef{{OrganizationID: org, EventID: p.EventID}})
		if err != nil || !bytes.Equal(d[0].Payload, p.Body) {
			t.Errorf("payload %d of a delivery: %d bytes, %v; want %d", i, len(d[0].Payload), err, len(p.Body))
		}
	}
}

// putRaw stores an item as another release may have written it.
func putRaw(t *testing.T, client *dynamodb.Client, table string, attributes map[string]any) {
	t.Helper()
	it := map[string]types.AttributeValue{}
	for name, v := range attributes {
		switch v := v.(type) {
		case string:
			it[name] = &types.AttributeValueMemberS{Value: v}
		case []byte:
			it[name] = &types.AttributeValueMemberB{Value: v}
		case int:
			it[name] = &types.AttributeValueMemberN{Value: fmt.Sprint(v)}
		}
	}
	if _, err := client.PutItem(t.Context(), &dynamodb.PutItemInput{TableName: &table, Item: it}); err != nil {
		t.Fatal(err)
	}
}

func TestPayloadsOfEveryFormAreRead(t *testing.T) {
	client, name := dynamotest.Client(t)
	table, org := dynamo.New(client, name, time.Now), value.NewID()
	encoder, err := zstd.NewWriter(nil)
	must(t, err)
	for _, row := range []struct {
		what      string
		attribute string
		stored    []byte
		want      string // "" for an error
	}{
		{"as it is", "body", []byte(`{"a":1}`), `{"a":1}`},
		{"packed", "z", encoder.EncodeAll([]byte(`{"a":1}`), nil), `{"a":1}`},
		{"packed, 1 MB", "z", encoder.EncodeAll(bytes.Repeat([]byte("x"), 1<<20), nil), strings.Repeat("x", 1<<20)},
		{"packed, more than 1 MB", "z", encoder.EncodeAll(bytes.Repeat([]byte("x"), 1<<20+1), nil), ""},
		{"packed, 64 MB", "z", encoder.EncodeAll(make([]byte, 64<<20), nil), ""},
		{"garbage", "z", []byte("garbage"), ""},
	} {
		t.Run(row.what, func(t *testing.T) {
			event := value.NewID()
			putRaw(t, client, name, map[string]any{
				"PK": "ORG#" + org.String() + "#PAYLOAD#" + event.String(), "SK": "PAYLOAD", row.attribute: row.stored,
			})
			got, err := table.Payload(t.Context(), org, event)
			if string(got) != row.want || (err == nil) != (row.want != "") {
				t.Errorf("%d bytes, %v; want %d", len(got), err, len(row.want))
			}
		})
	}
}

// incompressible is like a body that is compressed already.
func incompressible(size int) []byte {
	body := make([]byte, size)
	rand.Read(body)
	return body
}

func idsOf(rows []*webhook.Delivery) []value.ID {
	ids := make([]value.ID, len(rows))
	for i, r := range rows {
		ids[i] = r.ID
	}
	return ids
}
