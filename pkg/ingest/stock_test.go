package ingest_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/aws/aws-lambda-go/events"
	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/commerce-integration/service/pkg/base/value"
	"github.com/commerce-integration/service/pkg/commerce"
	"github.com/commerce-integration/service/pkg/dynamo"
	"github.com/commerce-integration/service/pkg/ingest"
	"github.com/commerce-integration/service/pkg/testkit/dynamotest"
)

// SendLater keeps what is to come later.
func (i *imports) SendLater(_ context.Context, _ value.ID, body []byte, _ time.Duration) error {
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.fail {
		return errors.New("the queue is away")
	}
	i.later = append(i.later, string(body))
	return nil
}

// shop is ingest with a row of stock, a clock and a table that may fail.
type shop struct {
	*harness
	client  *mortal
	now     time.Time
	product value.ID
}

// mortal is what stands between ingest and the table: from so many writes on, each
// gets no answer; the first of these is made all the same, or not.
type mortal struct {
	client dynamodb.HTTPClient
	mu     sync.Mutex
	left   int // writes that are answered; below 0: all
	made   bool
}

func (m *mortal) Do(r *http.Request) (*http.Response, error) {
	m.mu.Lock()
	left := m.left
	if !strings.HasSuffix(r.Header.Get("X-Amz-Target"), "GetItem") && m.left >= 0 {
		m.left = max(m.left-1, 0)
		if left == 0 && !m.made {
			m.mu.Unlock()
			return nil, io.ErrUnexpectedEOF
		}
		if left == 0 {
			m.made = false
			m.mu.Unlock()
			if answer, err := m.client.Do(r); err == nil {
				_ = answer.Body.Close()
			}
			return nil, io.ErrUnexpectedEOF
		}
	}
	m.mu.Unlock()
	return m.client.Do(r)
}

func newShop(t *testing.T) *shop {
	t.Helper()
	client, name := dynamotest.Client(t)
	s := &shop{client: &mortal{client: client.Options().HTTPClient, left: -1}, now: start, product: value.NewID()}
	table := dynamo.New(dynamodb.New(client.Options(), func(o *dynamodb.Options) {
		o.HTTPClient, o.Retryer = s.client, aws.NopRetryer{}
	}), name, func() time.Time { return s.now })
	s.harness = &harness{table: &faulty{Table: table}, rejects: &rejects{}, imports: &imports{}, org: value.NewID()}
	s.ingester = ingest.New(s.table, s.rejects, s.imports, func() time.Time { return s.now }, slog.New(slog.DiscardHandler))
	return s
}

func (s *shop) id() value.ID { return commerce.StockID(s.org, s.product, nil, nil) }

// change is a message of one change of the row.
func (s *shop) change(op, members string) string {
	return fmt.Sprintf(`{"organizationId":%q,"kind":"stock","op":%q,"record":{"productId":%q,%s}}`, s.org, op, s.product, members)
}

func (s *shop) adjust(id string, delta int) string {
	return s.change("adjust", fmt.Sprintf(`"adjustmentId":%q,"delta":%d`, id, delta))
}

// stored is the row's record, nil when there is none.
func (s *shop) stored(t *testing.T) *commerce.Stored {
	t.Helper()
	stored, err := s.table.Record(t.Context(), s.org, commerce.KindStock, s.id())
	if err != nil {
		t.Fatal(err)
	}
	return stored
}

// onHand is that of the record.
func (s *shop) onHand(t *testing.T) string {
	t.Helper()
	stored := s.stored(t)
	if stored == nil {
		return "none"
	}
	record, err := stored.Record()
	if err != nil {
		t.Fatal(err)
	}
	return record.(*commerce.Stock).OnHand.String()
}

// settle brings what was sent for later, until nothing is.
func (s *shop) settle(t *testing.T) {
	t.Helper()
	for len(s.imports.later) > 0 {
		s.now = s.now.Add(commerce.StockInterval)
		later := s.imports.later
		s.imports.later = nil
		s.apply(t, later...)
	}
}

func (s *shop) wants(t *testing.T, when, onHand string) {
	t.Helper()
	if got := s.onHand(t); got != onHand {
		t.Errorf("%s: %s on hand, want %s", when, got, onHand)
	}
}

func TestAdjustmentsWriteTheRecordOnceASecond(t *testing.T) {
	s := newShop(t)
	s.apply(t, s.adjust("first", 5))
	s.wants(t, "a new row", "5")
	s.apply(t, s.adjust("a", -1), s.adjust("b", -1), s.adjust("a", -1))
	s.apply(t, s.adjust("c", -1))
	s.wants(t, "within the second", "5")
	if len(s.imports.later) != 1 {
		t.Fatalf("%d messages for later, want one: %v", len(s.imports.later), s.imports.later)
	}
	first := s.stored(t).Revision
	s.settle(t)
	s.wants(t, "after it", "2")
	if again := s.stored(t).Revision; again != first.Add(commerce.StockInterval) {
		t.Errorf("published at %s, want a second after %s", again, first)
	}
	s.apply(t, s.adjust("first", 5), s.adjust("c", -1))
	s.settle(t)
	s.wants(t, "what counted before", "2")
	s.now = s.now.Add(commerce.AdjustmentAge + time.Second)
	s.apply(t, s.adjust("c", -1))
	s.wants(t, "after a day", "1")
}

func TestAPutAndAdjustmentsOfARowKeepTheirOrder(t *testing.T) {
	s := newShop(t)
	s.apply(t, s.change("put", `"onHand":10,"reserved":4`), s.adjust("a", -3))
	s.apply(t, s.change("put", `"onHand":10,"reserved":4`)) // as the record still is, which lacks the adjustment
	s.settle(t)
	s.wants(t, "a put of the record's own content", "10")
	s.apply(t, s.adjust("b", -1), s.change("put", `"onHand":7`), s.adjust("c", -2), s.change("delete", `"siteId":null`), s.adjust("d", -2))
	s.settle(t)
	s.wants(t, "after a deletion", "-2")
	versioned := strings.Replace(s.change("put", `"onHand":20`), `"op"`, `"version":3,"op"`, 1)
	s.apply(t, versioned)
	s.now = s.now.Add(time.Minute)
	s.apply(t, s.adjust("e", -1))
	s.apply(t, versioned)
	s.settle(t)
	s.wants(t, "a put that comes again", "19")
	if len(s.rejects.got) > 0 {
		t.Errorf("refused: %+v", s.rejects.got)
	}
}

func TestAnAdjustmentIsRefusedAlone(t *testing.T) {
	s := newShop(t)
	s.apply(t, s.change("put", `"onHand":3,"reserved":1`))
	s.apply(t, s.adjust("a", -2), s.change("adjust", `"adjustmentId":"b","delta":-2,"min":0`), s.change("adjust", `"adjustmentId":"c","delta":-1,"min":0`),
		s.adjust("", -1), s.adjust(strings.Repeat("é", 121), -1), s.adjust(strings.Repeat("é", 120), -5), s.change("adjust", `"adjustmentId":"d"`),
		s.adjust("e", -99999999999), s.change("adjust", `"adjustmentId":"f","delta":0.00001`), s.change("adjust", `"adjustmentId":"g","delta":1,"onHand":1`),
		strings.Replace(s.adjust("h", 1), `"op"`, `"version":1,"op"`, 1), strings.Replace(s.adjust("i", 1), `"op"`, `"silent":true,"op"`, 1),
		strings.Replace(s.adjust("j", 1), "stock", "product", 1))
	s.settle(t)
	s.wants(t, "what is left", "-5")
	var got []string
	for _, r := range s.rejects.got {
		got = append(got, r.Reason+" "+r.Field)
	}
	slices.Sort(got)
	want := []string{
		"below_min record.min", "validation_failed op", "validation_failed record.adjustmentId", "validation_failed record.adjustmentId",
		"validation_failed record.delta", "validation_failed record.delta", "validation_failed record.delta", "validation_failed record.onHand", "validation_failed silent", "validation_failed version",
	}
	if !slices.Equal(got, want) {
		t.Errorf("refused %q, want %q", got, want)
	}
}

func TestAnotherOrganizationsStockStays(t *testing.T) {
	s := newShop(t)
	s.apply(t, s.change("put", `"onHand":3`))
	theirs := strings.Replace(s.adjust("a", -1), s.org.String(), value.NewID().String(), 1)
	s.apply(t, theirs, strings.Replace(theirs, `"productId"`, `"id":"`+s.id().String()+`","productId"`, 1))
	s.settle(t)
	s.wants(t, "ours", "3")
	if len(s.rejects.got) != 1 || s.rejects.got[0].Field != "record.id" {
		t.Errorf("refused %+v, want the one with our id", s.rejects.got)
	}
}

// TestADeathLosesNoAdjustment kills ingest at each of its writes, before it is made and
// after it, and when it sends what comes later.
func TestADeathLosesNoAdjustment(t *testing.T) {
	for _, made := range []bool{false, true} {
		for writes := range 4 {
			s := newShop(t)
			s.client.left, s.client.made = writes, made
			s.imports.fail = writes == 2
			want := 0
			var bodies []string
			for n := range 100 { // more than one transaction
				bodies, want = append(bodies, s.adjust(fmt.Sprint(n), n)), want+n
			}
			for range 2 {
				s.handle(t, bodies...)
				s.now = s.now.Add(100 * time.Millisecond)
				s.imports.fail = false
			}
			s.client.left = -1
			s.apply(t, bodies...)
			s.settle(t)
			s.wants(t, fmt.Sprintf("killed after %d writes, made %v", writes, made), fmt.Sprint(want))
			if again := len(s.handle(t, bodies...)) + len(s.imports.later); again > 0 {
				t.Errorf("again: %d messages", again)
			}
		}
	}
}

func TestConcurrentAdjustmentsAddUp(t *testing.T) {
	s := newShop(t)
	var wg sync.WaitGroup
	for writer := range 4 {
		wg.Go(func() {
			for n := range 10 {
				body := s.adjust(fmt.Sprint(writer, n%9), 1) // one comes twice
				for s.invoke(t, events.SQSMessage{MessageId: "m", Body: body}) != nil {
				}
			}
		})
	}
	wg.Wait()
	s.settle(t)
	s.wants(t, "the sum", "36")
}

func TestStockCrossesTheThresholdThatItsProductHasThen(t *testing.T) {
	s := newShop(t)
	product := func(members string) {
		s.apply(t, fmt.Sprintf(`{"organizationId":%q,"kind":"product","op":"put","record":{"id":%q,"name":"Tea"%s}}`, s.org, s.product, members))
	}
	old := (*commerce.Stored)(nil)
	step := func(body, want string) {
		t.Helper()
		s.apply(t, body)
		s.settle(t)
		next := s.stored(t)
		payloads, err := commerce.Events(old, next)
		var types []string
		for _, p := range payloads {
			types = append(types, strings.TrimPrefix(p.Type, "stock."))
		}
		if got := strings.Join(types, " "); got != want || err != nil {
			t.Errorf("%s: %s, %v, want %s", body, got, err, want)
		}
		old = next
		s.now = s.now.Add(time.Minute)
	}
	product(`,"minStockLevel":4`)
	step(s.change("put", `"onHand":3`), "created")
	step(s.adjust("a", 7), "updated")
	step(s.adjust("b", -5), "updated")
	step(s.adjust("c", -1), "updated low")
	step(s.adjust("d", -1), "updated")
	step(s.adjust("e", -3), "updated out")
	step(s.change("put", `"onHand":9,"reserved":1`), "updated back")
	product(`,"minStockLevel":4,"reorderPoint":6`)
	step(s.change("put", `"onHand":9,"reserved":3`), "updated low")
	step(s.change("put", `"onHand":20`), "updated")
	step(s.adjust("f", -21), "updated low out")
}
