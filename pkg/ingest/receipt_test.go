package ingest_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/commerce-integration/service/pkg/base/fault"
	"github.com/commerce-integration/service/pkg/base/value"
	"github.com/commerce-integration/service/pkg/commerce"
	"github.com/commerce-integration/service/pkg/commerce/receipt"
	"github.com/commerce-integration/service/pkg/queue"
)

// put is a change as a request has it; without a name it is refused.
func put(id value.ID, name string) string {
	if name != "" {
		name = fmt.Sprintf(`,"name":%q`, name)
	}
	return fmt.Sprintf(`{"kind":"product","op":"put","version":1,"record":{"id":%q%s}}`, id, name)
}

// post stores the receipt of records and sends their message as the API does.
func (f *queueHarness) post(t *testing.T, records ...string) *receipt.Stored {
	t.Helper()
	message, count, err := commerce.PostedMessage(f.org, []byte(`{"records":[`+strings.Join(records, ",")+`]}`))
	if err != nil {
		t.Fatal(err)
	}
	s := receipt.New(f.org, value.ID{}, message, count, value.TimeOf(f.now))
	if err := f.table.CreateReceipt(t.Context(), s); err != nil {
		t.Fatal(err)
	}
	if err := queue.NewPosts(f.queues.Queue("RecordsQueue")).Send(t.Context(), f.org, s.Receipt.ID, message); err != nil {
		t.Fatal(err)
	}
	return s
}

// receipt reads a receipt.
func (f *queueHarness) receipt(t *testing.T, s *receipt.Stored) receipt.Receipt {
	t.Helper()
	found, err := f.table.Receipt(t.Context(), s.OrganizationID, s.Receipt.ID)
	if err != nil || found == nil {
		t.Fatalf("receipt %s: %v, %v", s.Receipt.ID, found, err)
	}
	return found.Receipt
}

// wants says what a receipt must tell: its counts, and the fields of refused
// records.
func wants(t *testing.T, r receipt.Receipt, accepted int, refused ...string) {
	t.Helper()
	var fields []string
	for _, one := range r.Refusals {
		fields = append(fields, one.Field)
	}
	if r.Status != receipt.Completed || r.CompletedAt == nil || r.AcceptedCount != accepted || r.RefusedCount != len(refused) || !slices.Equal(fields, refused) {
		t.Errorf("got %+v, want %d accepted, and refused %v", r, accepted, refused)
	}
}

func TestAReceiptTellsWhatBecameOfPostedRecords(t *testing.T) {
	f, good := newQueueHarness(t), value.NewID()
	s := f.post(t, put(value.NewID(), ""), put(good, "Tea"), put(value.NewID(), ""), strings.Replace(put(good, "Other"), `"version":1`, `"version":0`, 1))
	if r := f.receipt(t, s); r.Status != receipt.Pending || r.RecordCount != 4 || r.Refusals == nil {
		t.Errorf("before: got %+v", r)
	}
	f.send(t)
	r := f.receipt(t, s)
	wants(t, r, 2, "records[0].record.name", "records[2].record.name") // the older version is accepted, and skipped
	if one := r.Refusals[1]; one.Position != 2 || one.Code != "validation_failed" || one.Message != "record.name is required" {
		t.Errorf("got %+v", one)
	}
	if p := f.product(t, good); p == nil || p.Name != "Tea" {
		t.Errorf("stored %+v", p)
	}
	if reasons, _ := f.refused(t); len(reasons) != 2 {
		t.Errorf("%d refused records are in their queue, want 2", len(reasons))
	}
}

func TestAReceiptOfALargeMessageGoesWithItToTheImports(t *testing.T) {
	f := newQueueHarness(t)
	records := make([]string, 500)
	for i := range records {
		records[i] = put(value.NewID(), "Tea "+strings.Repeat("leaf ", 20))
		if i%4 == 0 {
			records[i] = put(value.NewID(), "")
		}
	}
	s := f.post(t, records...)
	f.send(t)
	r := f.receipt(t, s)
	if r.AcceptedCount != 375 || r.RefusedCount != 125 || len(r.Refusals) != receipt.MaxRefusals || r.Refusals[99].Position != 396 {
		t.Errorf("got %d accepted, %d refused, %d of them named, want 375, 125, 100", r.AcceptedCount, r.RefusedCount, len(r.Refusals))
	}
}

// unfinished fails writes of receipts, as when ingest is killed before them or
// after them.
type unfinished struct {
	*faulty
	before, after bool
	unread        bool
}

var errKilled = fault.Busy(errors.New("killed"))

func (u *unfinished) Receipt(ctx context.Context, org, id value.ID) (*receipt.Stored, error) {
	if u.unread {
		return nil, errKilled
	}
	return u.faulty.Receipt(ctx, org, id)
}

func (u *unfinished) CompleteReceipt(ctx context.Context, s *receipt.Stored) error {
	return u.write(ctx, s, u.faulty.CompleteReceipt)
}

func (u *unfinished) CreateReceipt(ctx context.Context, s *receipt.Stored) error {
	return u.write(ctx, s, u.faulty.CreateReceipt)
}

func (u *unfinished) write(ctx context.Context, s *receipt.Stored, write func(context.Context, *receipt.Stored) error) error {
	if u.before {
		return errKilled
	}
	err := write(ctx, s)
	if u.after {
		return errKilled
	}
	return err
}

func TestAReceiptCountsOnceWhateverComesTwice(t *testing.T) {
	for _, row := range []struct {
		name   string
		store  unfinished
		reject bool
		done   bool // by the first try
	}{
		{"a read that fails", unfinished{unread: true}, false, false},
		{"killed before the receipt", unfinished{before: true}, false, false},
		{"killed after the receipt", unfinished{after: true}, false, true},
		{"the queue of refused records away", unfinished{}, true, true},
		{"a duplicate", unfinished{}, false, true},
	} {
		t.Run(row.name, func(t *testing.T) {
			f := newQueueHarness(t)
			row.store.faulty = f.table
			f.ingestTo(&row.store, f.rejects)
			id := value.NewID()
			s := f.post(t, put(id, "Tea"), put(value.NewID(), ""))
			batch := f.queues.Receive(t, "RecordsQueue")
			f.rejects.fail = row.reject
			failed := f.invoke(t, batch...)
			if want := row.name != "a duplicate"; (len(failed) == 1) != want {
				t.Errorf("comes again: %v, want %t", failed, want)
			}
			if r := f.receipt(t, s); (r.Status == receipt.Completed) != row.done {
				t.Errorf("after the first try: %+v", r)
			}
			row.store, f.rejects.fail = unfinished{faulty: f.table}, false
			// Another sender's newer version comes between.
			f.send(t, f.one(id, "Newer", 2))
			for range 2 {
				f.finish(t, append(batch, batch...)...)
			}
			wants(t, f.receipt(t, s), 1, "records[1].record.name")
			if p := f.product(t, id); p == nil || p.Name != "Newer" {
				t.Errorf("stored %+v, want the newer version", p)
			}
		})
	}
}

// A message with a record that the table did not take is not done.
func TestAReceiptWaitsForEachRecord(t *testing.T) {
	f := newQueueHarness(t)
	f.table.every = 2
	s := f.post(t, put(value.NewID(), "A"), put(value.NewID(), "B"), put(value.NewID(), ""))
	batch := f.queues.Receive(t, "RecordsQueue")
	if failed := f.invoke(t, batch...); len(failed) != 1 {
		t.Fatalf("comes again: %v", failed)
	}
	if r := f.receipt(t, s); r.Status != receipt.Pending {
		t.Errorf("got %+v, want it to wait", r)
	}
	f.table.every = 0
	f.invoke(t, batch...)
	wants(t, f.receipt(t, s), 2, "records[2].record.name")
}
