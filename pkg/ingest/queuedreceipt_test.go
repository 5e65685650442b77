package ingest_test

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/commerce-integration/service/pkg/base/value"
	"github.com/commerce-integration/service/pkg/commerce/receipt"
	"github.com/commerce-integration/service/pkg/queue"
)

// receipts are those of an organization, the latest first.
func (f *queueHarness) receipts(t *testing.T, org value.ID) []receipt.Receipt {
	t.Helper()
	found, _, err := f.table.Receipts(t.Context(), org, value.ID{}, 100)
	if err != nil {
		t.Fatal(err)
	}
	all := make([]receipt.Receipt, len(found))
	for i, s := range found {
		all[i] = s.Receipt
	}
	return all
}

// many is a message of many of the organization.
func (f *queueHarness) many(records ...string) string {
	return fmt.Sprintf(`{"organizationId":%q,"records":[%s]}`, f.org, strings.Join(records, ","))
}

// alone is a message of one record, made of one of many.
func (f *queueHarness) alone(record string) string {
	return fmt.Sprintf(`{"organizationId":%q,`, f.org) + record[1:]
}

// refusals tells position, kind, id and field of each refused record.
func refusals(r receipt.Receipt) (told []string) {
	for _, one := range r.Refusals {
		kind, id := "-", "-"
		if one.Kind != nil {
			kind = *one.Kind
		}
		if one.RecordID != nil {
			id = one.RecordID.String()
		}
		told = append(told, fmt.Sprintf("%d %s %s %s", one.Position, kind, id, one.Field))
	}
	return told
}

func TestAQueuedMessageWithRefusedRecordsHasAReceipt(t *testing.T) {
	const id = "0192f0c2-6f81-7a55-8e8a-95d4e6f7a8b9"
	f := newQueueHarness(t)
	first := f.org
	nameless := put(value.MustID(id), "")
	planet := strings.Replace(nameless, "product", "planet", 1)
	for name, row := range map[string]struct {
		body    string
		records int
		refused []string
	}{
		"one":                 {f.alone(nameless), 1, []string{"0 product " + id + " record.name"}},
		"one of a wrong kind": {f.alone(planet), 1, []string{"0 - " + id + " kind"}},
		"one with a wrong id": {f.alone(`{"kind":"order","op":"put","record":{"id":7}}`), 1, []string{"0 order - record.id"}},
		"none":                {f.alone(`{"op":"put"}`), 1, []string{"0 - - kind"}},
		"many": {f.many(nameless, put(value.NewID(), "Tea"), planet, `7`), 4, []string{
			"0 product " + id + " records[0].record.name", "2 - " + id + " records[2].kind", "3 - - records[3]",
		}},
		"more than there may be": {f.many(slices.Repeat([]string{`{}`}, 501)...), 1, []string{"0 - - records"}},
	} {
		t.Run(name, func(t *testing.T) {
			f.org = value.NewID()
			body := strings.ReplaceAll(row.body, first.String(), f.org.String())
			f.send(t, body)
			all := f.receipts(t, f.org)
			if len(all) != 1 {
				t.Fatalf("%d receipts, want 1", len(all))
			}
			r, now := all[0], value.TimeOf(f.now)
			if got := refusals(r); !slices.Equal(got, row.refused) || r.RecordCount != row.records || r.RefusedCount != len(got) || r.AcceptedCount != row.records-len(got) {
				t.Errorf("got %+v, refused %q, want of %d records %q", r, got, row.records, row.refused)
			}
			if r.Source != receipt.Queued || r.Status != receipt.Completed || *r.CompletedAt != now || r.ExpiresAt != now.Add(receipt.Retention) || r.Refusals[0].Message == "" {
				t.Errorf("got %+v", r)
			}
			if reasons, _ := f.refused(t); len(reasons) != r.RefusedCount {
				t.Errorf("%d refused records are in their queue, want %d", len(reasons), r.RefusedCount)
			}
		})
	}
}

func TestAMessageWithoutRefusalsOrOrganizationHasNoReceipt(t *testing.T) {
	f := newQueueHarness(t)
	for what, body := range map[string]string{
		"nothing refused": f.many(put(value.NewID(), "Tea")),
		"no organization": `{"kind":"product","op":"put","record":{}}`,
		"no JSON":         f.org.String(),
	} {
		f.send(t, body)
		if all := f.receipts(t, f.org); len(all) != 0 {
			t.Fatalf("%s: has the receipt %+v", what, all[0])
		}
	}
}

func TestTheReceiptOfAQueuedMessageIsItsOrganizations(t *testing.T) {
	f, other := newQueueHarness(t), value.NewID()
	bad := f.alone(put(value.NewID(), ""))
	f.send(t, bad, strings.ReplaceAll(bad, f.org.String(), other.String()))
	mine, theirs := f.receipts(t, f.org), f.receipts(t, other)
	if len(mine) != 1 || len(theirs) != 1 || mine[0].ID == theirs[0].ID {
		t.Fatalf("got %+v and %+v, want a receipt each", mine, theirs)
	}
	if found, err := f.table.Receipt(t.Context(), other, mine[0].ID); err != nil || found != nil {
		t.Errorf("the other reads %+v, %v", found, err)
	}
}

func TestAQueuedMessageThatComesTwiceHasOneReceipt(t *testing.T) {
	for name, fault := range map[string]struct {
		store  unfinished
		reject bool
		made   int // receipts, by the first try
	}{
		"killed before the receipt":            {unfinished{before: true}, false, 0},
		"killed after the receipt":             {unfinished{after: true}, false, 1},
		"the queue of refused records is away": {unfinished{}, true, 1},
	} {
		t.Run(name, func(t *testing.T) {
			f := newQueueHarness(t)
			fault.store.faulty = f.table
			f.ingestTo(&fault.store, f.rejects)
			// The large one goes to the imports at each try.
			large := f.many(slices.Repeat([]string{put(value.NewID(), "")}, 400)...)
			for _, body := range []string{f.alone(put(value.NewID(), "")), large} {
				if err := f.queues.Queue("RecordsQueue").Send(t.Context(), queue.Message{Body: body}); err != nil {
					t.Fatal(err)
				}
			}
			batch := f.queues.Receive(t, "RecordsQueue")
			f.rejects.fail = fault.reject
			if failed := f.invoke(t, batch...); len(failed) != 1 {
				t.Errorf("come again: %v, want the small one", failed)
			}
			if got := len(f.receipts(t, f.org)); got != fault.made {
				t.Errorf("%d receipts after the first try, want %d", got, fault.made)
			}
			fault.store, f.rejects.fail = unfinished{faulty: f.table}, false
			for range 2 {
				f.finish(t, batch...)
			}
			moved := f.queues.Receive(t, "ImportsQueue")
			if failed := f.invoke(t, moved...); failed != nil || len(moved) != 3 {
				t.Errorf("%d imports, come again: %v", len(moved), failed)
			}
			all := f.receipts(t, f.org)
			if len(all) != 2 {
				t.Fatalf("%d receipts, want one of each message", len(all))
			}
			slices.SortFunc(all, func(a, b receipt.Receipt) int { return cmp.Compare(a.RecordCount, b.RecordCount) })
			if all[0].RefusedCount != 1 || all[1].RefusedCount != 400 || len(all[1].Refusals) != receipt.MaxRefusals {
				t.Errorf("got %+v", all)
			}
		})
	}
}

// A receipt stays under what an item may have, 400 KB, whatever the sender writes.
func TestTheLongestRefusalsFitIntoAReceipt(t *testing.T) {
	f := newQueueHarness(t)
	for what, name := range map[string]string{"quotes": strings.Repeat(`\"`, 1000), "controls": strings.Repeat(`\u0001`, 1000), "wide": strings.Repeat("\U0001f375", 300)} {
		f.org = value.NewID()
		body := f.many(slices.Repeat([]string{fmt.Sprintf(`{"kind":"product","op":"put","record":{"id":%q,"%s":1}}`, value.NewID(), name)}, 120)...)
		f.send(t, body)
		if all := f.receipts(t, f.org); len(all) != 1 || len(all[0].Refusals) != receipt.MaxRefusals {
			t.Errorf("%s: got %+v", what, all)
		}
	}
}
