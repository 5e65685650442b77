package ops_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/commerce-integration/service/pkg/base/value"
	"github.com/commerce-integration/service/pkg/dynamo"
	"github.com/commerce-integration/service/pkg/index"
	"github.com/commerce-integration/service/pkg/ops"
)

// indexed returns which lists of the organization have an index.
func (s state) indexed(t *testing.T) (names []string) {
	t.Helper()
	for _, list := range s.lists().All() {
		m, err := s.Table.Manifest(t.Context(), s.Org, list.Name, index.Key{Org: s.Org, List: list}.Layout().Live())
		if err != nil {
			t.Fatal(err)
		}
		if m != nil {
			names = append(names, list.Name)
		}
	}
	return names
}

// items returns everything that the table holds.
func (s state) items(t *testing.T) (items []map[string]types.AttributeValue) {
	t.Helper()
	name := s.Table.Name()
	for pages := dynamodb.NewScanPaginator(s.Client(), &dynamodb.ScanInput{TableName: &name}); pages.HasMorePages(); {
		page, err := pages.NextPage(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		items = append(items, page.Items...)
	}
	return items
}

func text(v types.AttributeValue) string {
	if s, ok := v.(*types.AttributeValueMemberS); ok {
		return s.Value
	}
	return ""
}

func TestVerifyListsWhatIndexAndTableDoNotAgreeOn(t *testing.T) {
	t.Parallel()
	s := newState(t)
	gone := s.product(t, value.NewID(), "Cup")
	s.reindex(t)
	if lines := s.differs(t); len(lines) > 0 {
		t.Errorf("after reindex: %q", lines)
	}
	first, second := value.NewID(), value.NewID()
	s.product(t, first, "Tea")
	s.product(t, second, "Pot")
	s.remove(t, gone[0].Change.Keys)
	want := []string{
		"products " + gone[0].Change.Keys["SK"].String() + ": in the index at revision ",
		"products " + first.String() + ": in the table at revision ",
		"products " + second.String() + ": in the table at revision ",
	}
	if lines := s.differs(t); !slices.EqualFunc(lines, want, strings.HasPrefix) {
		t.Errorf("got %q, want %q", lines, want)
	}
	s.reindex(t, "products")
	if lines := s.differs(t); len(lines) > 0 {
		t.Errorf("after reindex of the list: %q", lines)
	}
}

func TestVerifyDoesNotCountWhatIsOnItsWay(t *testing.T) {
	t.Parallel()
	s := newState(t)
	s.product(t, value.NewID(), "Tea")
	looks := 0
	v := ops.Verifier{Waits: []time.Duration{time.Hour, time.Hour}, Pause: func(context.Context, time.Duration) error {
		if looks++; looks == 2 {
			s.reindex(t)
		}
		return nil
	}}
	found, err := v.Verify(t.Context(), s.Table, s.Org, s.lists().Named("products"))
	if err != nil || len(found) > 0 || looks != 2 {
		t.Errorf("%v, %v after %d waits; want nothing after 2", found, err, looks)
	}
}

func TestADamagedIndexIsToldAndMended(t *testing.T) {
	t.Parallel()
	s := newState(t)
	s.product(t, value.NewID(), "Tea")
	s.reindex(t)
	for _, damaged := range []string{"MANIFEST", "CHUNK"} {
		n := 0
		for _, it := range s.items(t) {
			body, ok := it["body"].(*types.AttributeValueMemberB)
			if !strings.HasPrefix(text(it["SK"]), damaged) || !ok || len(body.Value) == 0 {
				continue
			}
			body.Value[len(body.Value)/2] ^= 0x40
			name := s.Table.Name()
			if _, err := s.Client().PutItem(t.Context(), &dynamodb.PutItemInput{TableName: &name, Item: it}); err != nil {
				t.Fatal(err)
			}
			n++
		}
		_, err := ops.Verify(t.Context(), s.Table, s.Org, s.lists().Named("products"), s.Time())
		if n == 0 || !index.Damaged(err) {
			t.Errorf("%d items %s damaged: got %v, want that it is damaged", n, damaged, err)
		}
		s.reindex(t)
		if lines := s.differs(t); len(lines) > 0 {
			t.Errorf("%s damaged, then reindex: %q", damaged, lines)
		}
	}
}

func TestInterruptedRebuildGoesOnAtTheNextJob(t *testing.T) {
	t.Parallel()
	s := newState(t)
	s.product(t, value.NewID(), "Tea")
	key := index.Key{Org: s.Org, List: s.lists().Named("products")}
	ctx, interrupt := context.WithCancel(t.Context())
	told := 0
	err := ops.Rebuild(ctx, s.Table, s.compactor(), key, func(int, int) {
		told++
		interrupt()
	})
	if !errors.Is(err, context.Canceled) || told != 1 {
		t.Fatalf("got %v after %d jobs, want the interruption after one", err, told)
	}
	if got := s.indexed(t); len(got) != 0 {
		t.Errorf("indexed %v, want nothing yet", got)
	}
	job, err := s.Table.TakeJob(t.Context(), s.Org, "products", value.TimeOf(time.Now()))
	if err != nil || job == nil {
		t.Fatalf("TakeJob: %v, %v; want the job that nobody has", job, err)
	}
	if _, err := s.Table.EndJob(t.Context(), job, nil); err != nil {
		t.Fatal(err)
	}
	s.reindex(t, "products")
	if got := s.indexed(t); !slices.Equal(got, []string{"products"}) {
		t.Errorf("indexed %v, want products", got)
	}
	if err := ops.Rebuild(ctx, s.Table, s.compactor(), key, func(int, int) {}); !errors.Is(err, context.Canceled) {
		t.Errorf("after the interruption: got %v, want no rebuild begun", err)
	}
}

func TestVerifyThatCannotBeMadeIsNoDifference(t *testing.T) {
	t.Parallel()
	s := newState(t)
	away := dynamo.New(s.Client(), "another", time.Now)
	if found, err := (ops.Verifier{}).Verify(t.Context(), away, s.Org, s.lists().Named("products")); err == nil || index.Damaged(err) {
		t.Errorf("another table: %v, %v; want an error", found, err)
	}
}
