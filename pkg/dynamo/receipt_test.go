package dynamo_test

import (
	"slices"
	"testing"
	"time"

	"github.com/commerce-integration/service/pkg/base/value"
	"github.com/commerce-integration/service/pkg/commerce/receipt"
	"github.com/commerce-integration/service/pkg/dynamo"
	"github.com/commerce-integration/service/pkg/testkit/dynamotest"
)

func TestAWalkThroughReceiptsMeetsEachOnceTheLatestFirst(t *testing.T) {
	client, name := dynamotest.Client(t)
	now := time.Now()
	table := dynamo.New(client, name, func() time.Time { return now })
	org, other := value.NewID(), value.NewID()
	var want []value.ID
	for i := range 120 {
		s := receipt.New(org, value.ID{}, nil, 1, value.TimeOf(now))
		if i%3 == 0 { // a third of the receipts are over
			s.Receipt.ExpiresAt = value.TimeOf(now.Add(-time.Hour))
		} else {
			want = append(want, s.Receipt.ID)
		}
		for _, one := range []*receipt.Stored{s, receipt.New(other, value.ID{}, nil, 1, value.TimeOf(now))} {
			must(t, table.CreateReceipt(t.Context(), one))
		}
	}
	slices.SortFunc(want, func(a, b value.ID) int { return b.Compare(a) })
	for _, limit := range []int{1, 7, 100} {
		var got []value.ID
		before := value.ID{}
		for {
			found, next, err := table.Receipts(t.Context(), org, before, limit)
			if err != nil || len(found) > limit || !before.IsZero() && next.Compare(before) >= 0 {
				t.Fatalf("limit %d: before %s: %d receipts, next %s, %v", limit, before, len(found), next, err)
			}
			for _, s := range found {
				if s.OrganizationID != org {
					t.Errorf("limit %d: shows a receipt of %s", limit, s.OrganizationID)
				}
				got = append(got, s.Receipt.ID)
			}
			if before = next; next.IsZero() {
				break
			}
		}
		if !slices.Equal(got, want) {
			t.Errorf("limit %d: got %d receipts %v, want %d %v", limit, len(got), got, len(want), want)
		}
	}
}
