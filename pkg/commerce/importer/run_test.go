package importer_test

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"strings"
	"testing"
	"time"

	"github.com/commerce-integration/service/pkg/base/value"
	"github.com/commerce-integration/service/pkg/commerce"
	"github.com/commerce-integration/service/pkg/commerce/importer"
)

var organization = value.MustID("0192f0c1-7a3e-7c54-9f3b-6c2a4d8e1f00")

// outbox keeps what is sent and fails from the given batch on.
type outbox struct {
	batches []importer.Batch
	fails   int
	refused []importer.Refused // of each batch
}

var errQueue = errors.New("the queue is gone")

func (o *outbox) Send(_ context.Context, batch importer.Batch) ([]importer.Refused, error) {
	if o.fails > 0 && len(o.batches)+1 >= o.fails {
		return nil, errQueue
	}
	o.batches = append(o.batches, batch)
	return o.refused, nil
}

// ids returns the ids of all records sent.
func (o *outbox) ids(t *testing.T) []string {
	t.Helper()
	var ids []string
	for _, batch := range o.batches {
		for _, message := range batch.Messages {
			changes, refused := commerce.ParseMessage(message)
			if len(refused) > 0 {
				t.Fatalf("message refused: %s", refused[0].Message)
			}
			for _, change := range changes {
				id, err := commerce.Identify(change)
				if err != nil {
					t.Fatal(err)
				}
				ids = append(ids, id.String())
			}
		}
	}
	return ids
}

// products yields n products of about size bytes; every seventh has no name.
func products(n, size int) iter.Seq2[importer.Record, error] {
	return func(yield func(importer.Record, error) bool) {
		for i := range n {
			id := value.DeriveID(organization, fmt.Sprint(i))
			name := strings.Repeat("x", 10)
			if i%7 == 6 {
				name = ""
			}
			body := fmt.Sprintf(`{"id":"%s","name":"%s","description":"%s"}`, id, name, strings.Repeat("y", min(size, 1_000)))
			if size > 1_000 {
				body = body[:len(body)-1] + `,"tags":["` + strings.Repeat(strings.Repeat("z", 200)+fmt.Sprintf(`%d","`, i), (size-1_000)/210) + `end"]}`
			}
			r := importer.Record{Kind: "product", Op: "put", Body: []byte(body), Place: importer.Place{File: "x", Line: i + 1, Read: &importer.Read{Rows: [][]string{{body}}}}}
			if !yield(r, nil) {
				return
			}
		}
	}
}

func run(t *testing.T, records iter.Seq2[importer.Record, error], to importer.Sender, cfg importer.Config) importer.Summary {
	t.Helper()
	cfg.Now = func() time.Time { return time.Date(2026, 11, 21, 0, 0, 0, 0, time.UTC) }
	summary, err := importer.Run(t.Context(), records, organization, to, cfg)
	if err != nil {
		t.Fatalf("run: %v", err)
	}
	return summary
}

func TestRunSendsTheGoodRecordsAndCountsTheBad(t *testing.T) {
	var to outbox
	summary := run(t, products(700, 10), &to, importer.Config{})
	if summary.Rows != 700 || summary.Sent != 600 || summary.Refused != 100 || len(to.ids(t)) != 600 {
		t.Errorf("got %d rows, %d sent (%d in batches), %d refused; want 700, 600, 100", summary.Rows, summary.Sent, len(to.ids(t)), summary.Refused)
	}
	if len(summary.Rejected) != 20 || summary.Reasons["validation_failed"] != 100 {
		t.Errorf("got %d rejections kept and reasons %v, want 20 and 100", len(summary.Rejected), summary.Reasons)
	}
	if got := summary.Rejected[0].Error(); !strings.HasPrefix(got, "x:7: validation_failed: name ") {
		t.Errorf("first rejection: got %q, want line 7 and the name", got)
	}
}

func TestRunKeepsEveryBatchWithinTheBounds(t *testing.T) {
	for _, c := range []struct{ records, size, most int }{{1_300, 10, 0}, {150, 9_000, 0}, {40, 50_000, 0}, {150, 9_000, 100_000}, {40, 50_000, 60_000}, {40, 50_000, 2 << 20}} {
		t.Run(fmt.Sprint(c.records, c.most), func(t *testing.T) {
			size := c.size
			var to outbox
			run(t, products(c.records, size), &to, importer.Config{MaxMessage: c.most})
			if len(to.batches) < 2 {
				t.Errorf("size %d: got %d batches, want the bounds to part the records", size, len(to.batches))
			}
			for i, batch := range to.batches {
				bytes, records := 0, 0
				for _, message := range batch.Messages {
					if bytes += len(message); c.most > 0 && len(message) > c.most {
						t.Errorf("size %d, batch %d: a message of %d bytes, want %d at most", size, i, len(message), c.most)
					}
					changes, _ := commerce.ParseMessage(message)
					records += len(changes)
					if len(changes) > 500 || len(changes) == 0 {
						t.Errorf("size %d, batch %d: a message has %d records, want 1 to 500", size, i, len(changes))
					}
				}
				if bytes > 1<<20 || len(batch.Messages) > 10 || records != batch.Records {
					t.Errorf("size %d, batch %d: got %d bytes in %d messages, %d of %d records", size, i, bytes, len(batch.Messages), records, batch.Records)
				}
			}
		})
	}
}

func TestRunNamesWhatTheServiceRefused(t *testing.T) {
	to := outbox{refused: []importer.Refused{
		{Message: 0, Position: 3, Reason: "version_conflict", Field: "version", Text: "is stored"},
		{Message: 1, Position: 0, Reason: "version_conflict", Field: "version", Text: "is stored"},
		{Message: 1, Position: 900, Reason: "unknown", Text: "a record that was not sent"},
	}}
	var refused []string
	summary := run(t, products(150, 10), &to, importer.Config{Refused: func(bad *importer.Rejection) error {
		refused = append(refused, bad.Error()+" "+rowOf(bad))
		return nil
	}})
	bad := 150 / 7 // of its own
	if summary.Sent != 150-bad-3 || summary.Refused != bad+3 || summary.Kinds[commerce.KindProduct] != 150-bad-2 {
		t.Errorf("got %d sent, %d refused, %v; want %d and %d", summary.Sent, summary.Refused, summary.Kinds, 150-bad-3, bad+3)
	}
	changes, _ := commerce.ParseMessage(to.batches[0].Messages[1])
	want := []string{"x:4: version_conflict: version is stored {", ": version_conflict: version is stored " + string(changes[0].Record), ":0: unknown: a record that was not sent "}
	for i, got := range refused[bad:] {
		if !strings.Contains(got, want[i]) {
			t.Errorf("refused %d: got %s, want %s", i, got, want[i])
		}
	}
}

func TestRunGoesOnAfterTheLastAcknowledgedBatch(t *testing.T) {
	records := products(250, 9_000)
	for _, fails := range []int{1, 2} {
		position := 0
		first := outbox{fails: fails}
		_, err := importer.Run(t.Context(), records, organization, &first, importer.Config{Acknowledged: func(rows int) error {
			position = rows
			return nil
		}})
		if !errors.Is(err, errQueue) {
			t.Fatalf("failing at batch %d: got %v, want %v", fails, err, errQueue)
		}
		var second outbox
		summary := run(t, records, &second, importer.Config{Skip: position})
		seen := map[string]int{}
		for _, id := range append(first.ids(t), second.ids(t)...) {
			seen[id]++
		}
		if len(seen) != summary.Sent+summary.AlreadySent || len(first.ids(t))+len(second.ids(t)) != len(seen) {
			t.Errorf("failing at batch %d: %d records in the first run, %d in the second, %d distinct", fails, len(first.ids(t)), len(second.ids(t)), len(seen))
		}
		if summary.Refused != 35 {
			t.Errorf("failing at batch %d: the second run refused %d rows, want all 35", fails, summary.Refused)
		}
	}
}

func TestRunStopsWhenItIsInterrupted(t *testing.T) {
	ctx, interrupt := context.WithCancel(t.Context())
	interrupt()
	var to outbox
	summary, err := importer.Run(ctx, products(10, 10), organization, &to, importer.Config{})
	if !errors.Is(err, context.Canceled) || summary.Sent != 0 {
		t.Errorf("got %d sent and %v, want none and %v", summary.Sent, err, context.Canceled)
	}
}

func TestRunRefusesARecordThatNoMessageHolds(t *testing.T) {
	var to outbox
	summary := run(t, products(1, 1<<21), &to, importer.Config{})
	if summary.Reasons["too_large"] != 1 {
		t.Errorf("got %v, want one too_large", summary.Reasons)
	}
}

func TestRunGivesProductsTheSitesThatTheyDoNotName(t *testing.T) {
	a, b := value.DeriveID(organization, "a"), value.DeriveID(organization, "b")
	id := value.DeriveID(organization, "x").String()
	for _, c := range []struct {
		name   string
		record importer.Record
		sites  []value.ID
		want   string
	}{
		{
			"product",
			importer.Record{Kind: "product", Op: "put", Body: []byte(`{"id":"` + id + `","name":"x"}`)},
			[]value.ID{a, b},
			`"siteIds":["` + a.String() + `","` + b.String() + `"]`,
		},
		{"product with its own", importer.Record{Kind: "product", Op: "put", Body: []byte(`{"id":"` + id + `","name":"x"}`), SiteIDs: []byte(`[]`)}, []value.ID{a}, `"siteIds":[]`},
		{"customer", importer.Record{Kind: "customer", Op: "put", Body: []byte(`{"id":"` + id + `"}`)}, []value.ID{a}, `"record":{"id":"` + id + `"},"silent":true}`},
		{"stock", importer.Record{Kind: "stock", Op: "put", Body: []byte(`{"productId":"` + id + `","onHand":1}`)}, []value.ID{a}, `"siteId":"` + a.String() + `"`},
		{"stock of several", importer.Record{Kind: "stock", Op: "put", Body: []byte(`{"productId":"` + id + `","onHand":1}`)}, []value.ID{a, b}, `"record":{"productId":"` + id + `","onHand":1}`},
		{"stock with its own", importer.Record{Kind: "stock", Op: "put", Body: []byte(`{"productId":"` + id + `","onHand":1,"siteId":null}`)}, []value.ID{a}, `"siteId":null`},
		{"deleted product", importer.Record{Kind: "product", Op: "delete", Body: []byte(`{"id":"` + id + `"}`)}, []value.ID{a}, `"record":{"id":"` + id + `"},"silent":true}`},
	} {
		t.Run(c.name, func(t *testing.T) {
			var to outbox
			run(t, func(yield func(importer.Record, error) bool) { yield(c.record, nil) }, &to, importer.Config{Sites: c.sites})
			if len(to.batches) != 1 {
				t.Error("nothing was sent")
				return
			}
			if got := string(to.batches[0].Messages[0]); !strings.Contains(got, c.want) {
				t.Errorf("got %s, want it to hold %s", got, c.want)
			}
		})
	}
}

func TestRunRefusesARecordOfAnotherOrganization(t *testing.T) {
	other := value.DeriveID(organization, "other")
	r := importer.Record{Kind: "customer", Op: "put", Body: []byte(`{"id":"` + other.String() + `"}`), OrganizationID: &other}
	var to outbox
	summary := run(t, func(yield func(importer.Record, error) bool) { yield(r, nil) }, &to, importer.Config{})
	if summary.Refused != 1 || summary.Rejected[0].Field != "organizationId" {
		t.Errorf("got %+v, want the organization refused", summary)
	}
}

// rowOf is the text that a refused record was read from.
func rowOf(bad *importer.Rejection) string {
	if bad.Place.Read == nil {
		return ""
	}
	return strings.Join(bad.Place.Read.Lines(""), "\n")
}
